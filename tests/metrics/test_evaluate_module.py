"""The modules of evaluate: what they compute, refuse and show, for every metric."""

import gzip
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import overlap_metric
from anything import ANYTHING, JSON
from dialeval import registry
from dialeval.cli import build_app
from dialeval.core.exchange import BadRow
from dialeval.hub.evaluate_module import loaded
from dialeval.hub.modules import module_folders
from refusals import refused
from resources import PATIENCE

ROOT = Path(__file__).parents[2]
#: Two rows, and what a module says of them with word overlap behind it.
PREDICTIONS, CONTEXTS = ["the bus", "nobody"], [["the bus is late", "again"], ["who"]]
RESULT = {"density": 0.2, "scores": [0.4, 0.0], "signature": "metric:overlap|weight:1.0"}
RESULT |= {"n_truncated": 0, "n_empty": 0}
GIVEN: dict[str, Any] = {"predictions": PREDICTIONS, "contexts": CONTEXTS}


@pytest.fixture(scope="module")
def evaluate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The library: no network, caches of our own, and a metric that needs no weights under the module's name."""
    library = pytest.importorskip("evaluate")
    home = tmp_path_factory.mktemp("evaluate")
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(library.config, "HF_EVALUATE_OFFLINE", True)
        changed.setattr(library.config, "HF_METRICS_CACHE", home / "metrics")
        changed.setitem(registry.REGISTRY, "density", registry.RegisteredMetric("overlap_metric:Overlap"))
        loaded.cache_clear()
        yield library
    loaded.cache_clear()


@pytest.fixture
def module(evaluate: Any) -> Any:
    return evaluate.load(str(ROOT / "metrics" / "density"))


def test_compute(module: Any) -> None:
    assert module.compute(**GIVEN) == RESULT
    assert module.compute(**GIVEN, references=[["a", "b"], []]) == RESULT


@pytest.mark.parametrize(
    ("predictions", "contexts", "references"),
    [
        (tuple(PREDICTIONS), tuple(map(tuple, CONTEXTS)), ("a", None)),
        (pd.Series(PREDICTIONS), pd.Series(CONTEXTS), pd.Series(["a", "b"])),
        (np.array(PREDICTIONS), [np.array(turns) for turns in CONTEXTS], None),
        (iter(PREDICTIONS), (turns for turns in CONTEXTS), None),
    ],
)
def test_columns_of_many_types(module: Any, predictions: Any, contexts: Any, references: Any) -> None:
    assert module.compute(predictions=predictions, contexts=contexts, references=references) == RESULT


def test_rows_are_added_one_by_one_and_in_batches(module: Any) -> None:
    module.add(prediction="the bus", context=["the bus is late", "again"], reference="a")
    module.add_batch(predictions=[], contexts=[])
    module.add_batch(predictions=["nobody"], contexts=[["who"]])
    assert len(module) == 2
    assert module.compute() == RESULT
    assert len(module) == 0
    assert module


def test_two_processes_share_the_work(evaluate: Any) -> None:
    """Two modules that meet over files, as two processes would."""
    options = {"num_process": 2, "experiment_id": "shared", "timeout": PATIENCE}
    modules = [evaluate.load(str(ROOT / "metrics" / "density"), process_id=rank, **options) for rank in range(2)]
    with ThreadPoolExecutor(2) as pool:
        work = [
            pool.submit(module.compute, predictions=[response], contexts=[context])
            for module, response, context in zip(modules, PREDICTIONS, CONTEXTS, strict=True)
        ]
    assert [done.result() for done in work] == [RESULT, None]


#: What cannot be scored, and what the error names.
BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "predictions"),
    ({"predictions": [], "contexts": []}, "predictions"),
    ({"predictions": PREDICTIONS}, "contexts"),
    ({"contexts": CONTEXTS}, "predictions"),
    ({"predictions": "the bus", "contexts": CONTEXTS}, "predictions"),
    ({"predictions": PREDICTIONS, "contexts": CONTEXTS[:1]}, "2 predictions"),
    ({**GIVEN, "references": ["a"]}, "1 references"),
    ({"predictions": ["a", None], "contexts": CONTEXTS}, "row 1"),
    ({"predictions": PREDICTIONS, "contexts": [["a", 2], ["b"]]}, "row 0"),
    ({**GIVEN, "references": [1, 2]}, "row 0"),
    ({"predictions": ["a", " "], "contexts": CONTEXTS}, "row 1"),
    ({**GIVEN, "level": "word"}, "level"),
    ({**GIVEN, "empty": "maybe"}, "empty"),
    ({**GIVEN, "dtype": "float32"}, "dtype"),
    *(
        ({**GIVEN, name: odd}, name)
        for name in ("checkpoint", "device", "dtype", "batch_tokens", "level", "empty")
        for odd in ({"a": 1}, ["cpu"], pd.DataFrame({"a": [1]}))
    ),
]


@pytest.mark.parametrize("keep_in_memory", [False, True])
@pytest.mark.parametrize(("values", "named"), BAD)
def test_errors_come_through_and_leave_nothing_behind(
    evaluate: Any, values: dict[str, Any], named: str, keep_in_memory: bool
) -> None:
    module = evaluate.load(str(ROOT / "metrics" / "density"), keep_in_memory=keep_in_memory)
    refused(ValueError, named, module.compute, **values)
    assert module.compute(**GIVEN) == RESULT
    assert not list(Path(module.data_dir).glob("*.arrow"))


def test_a_row_that_is_added_late_has_its_own_number(module: Any) -> None:
    module.add_batch(**GIVEN)
    refused(BadRow, "row 2", module.add, prediction=None, context=["a"])
    # The rows before it are still there.
    assert module.compute() == RESULT


def test_the_model_is_read_once(evaluate: Any, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(overlap_metric.Overlap, "__init__", lambda self, device="cpu": made.append(device))
    monkeypatch.setattr(overlap_metric.Overlap, "weight", 1.0, raising=False)
    loaded.cache_clear()
    another = evaluate.load(str(ROOT / "metrics" / "density"))
    for options in ({}, {}, {"device": "cpu"}):
        module.compute(**GIVEN, **options)
        another.compute(**GIVEN, **options)
    assert len(made) == 2
    loaded.cache_clear()


def test_every_module_has_the_same_inputs_and_a_full_folder(evaluate: Any) -> None:
    for folder in module_folders():
        module = evaluate.load(str(folder))
        assert sorted(module.features) == ["contexts", "predictions", "references"]
        assert module.name == folder.name
        assert module.description
        assert "predictions (list of str)" in module.inputs_description
        assert {path.name for path in folder.iterdir() if path.is_file()} == {
            f"{folder.name}.py",
            "README.md",
            "app.py",
            "requirements.txt",
        }


# Not more of each: what breaks, breaks early, and the suite runs them every time.
MODEST = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

#: Columns that are good, good but for one cell, or nothing of the kind.
TEXT = st.text(max_size=20)
PREDICTION_COLUMNS = st.lists(TEXT, max_size=3) | st.lists(TEXT | ANYTHING, max_size=3) | ANYTHING
CONTEXT_COLUMNS = st.lists(st.lists(TEXT, max_size=3), max_size=3) | st.lists(ANYTHING, max_size=3) | ANYTHING
REFERENCE_COLUMNS = st.none() | PREDICTION_COLUMNS | CONTEXT_COLUMNS
OPTIONS = st.fixed_dictionaries(
    {}, optional={"empty": st.sampled_from(["score", "error", "?", None]), "level": st.sampled_from(["turn", "x", 1])}
)


@MODEST
@given(PREDICTION_COLUMNS, CONTEXT_COLUMNS, REFERENCE_COLUMNS, OPTIONS)
def test_a_module_scores_or_says_what_is_wrong(
    module: Any, predictions: Any, contexts: Any, references: Any, options: dict[str, Any]
) -> None:
    given_rows = {"predictions": predictions, "contexts": contexts, "references": references}
    problem, result = "", None
    try:
        result = module.compute(**given_rows, **options)
    except ValueError as error:
        problem = str(error)
    if result is None:
        assert problem
        assert "\n" not in problem
    else:
        assert len(result["scores"]) == len(predictions) == len(contexts)
    # Nothing of what failed, or was scored, is scored again with what comes next.
    assert module.compute(**GIVEN) == RESULT


FIELDS = ["context", "response", "reference", "references", "facts", "system", "id", "dialogue", "\x1b[2J", ""]
GOOD = st.fixed_dictionaries({"context": st.lists(TEXT, max_size=3), "response": TEXT})
ODD = st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=5)
LINES = st.one_of(GOOD, ODD, JSON).map(lambda row: json.dumps(row).encode()) | st.binary(max_size=30)
FILES = st.lists(LINES, max_size=4).map(b"\n".join)
FREE = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8)
CHOICES = st.dictionaries(
    st.sampled_from(["--columns", "--context-separator", "--split", "--subset", "--checkpoint", "--device"]),
    FREE,
    max_size=1,
)
NAMES = st.sampled_from(["rows.jsonl", "rows.csv", "rows.tsv", "rows.jsonl.gz", "rows.parquet"])
FLAGS = st.sets(st.sampled_from(["--skip-bad", "--empty=score", "--level=dialogue", "--scale=human_percentile"]))


@MODEST
@given(NAMES, FILES, CHOICES, FLAGS)
@pytest.mark.slow
def test_the_command_scores_or_says_what_is_wrong(
    tmp_path_factory: pytest.TempPathFactory, name: str, content: bytes, choices: dict[str, str], flags: set[str]
) -> None:
    overlap_metric.register()
    folder = tmp_path_factory.mktemp("junk")
    (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    options = [*(f"{option}={value}" for option, value in choices.items()), *flags]
    command = ["score", "-m", "overlap", "-i", str(folder / name), "-o", str(folder / "scores.jsonl")]
    result = CliRunner().invoke(build_app(), [*command, *options])
    assert result.exit_code in (0, 2, 3), result.exception
    assert (folder / "scores.jsonl").exists() == (result.exit_code != 2)
    assert not list(folder.glob(".*"))
    if result.exit_code == 2:
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
