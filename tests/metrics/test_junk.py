"""Whatever is given to a module of `evaluate` or to the command: a score or a sentence, and nothing left behind."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import overlap_metric
from anything import ANYTHING, JSON
from dialeval.cli import build_app
from overlap_module import CONTEXTS, PREDICTIONS, RESULT

# Not more of each: what breaks, breaks early, and the suite runs them every time.
MODEST = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
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
    assert module.compute(predictions=PREDICTIONS, contexts=CONTEXTS) == RESULT


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


@pytest.mark.parametrize(
    "option", ["--metric=../../x", "--metric=overlap\x1b[2J", "--checkpoint=a/../b", "--dtype=int1"]
)
def test_options_that_lead_nowhere(tmp_path: Path, option: str) -> None:
    overlap_metric.register()
    (tmp_path / "rows.jsonl").write_text('{"context": ["a"], "response": "a"}\n')
    command = ["score", "-m", "overlap", "-i", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "out.jsonl"), option]
    result = CliRunner().invoke(build_app(), command)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "\x1b" not in result.stderr
