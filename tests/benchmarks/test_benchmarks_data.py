"""The real files: row counts, means, alignment with published scores, and the oddities that are claimed."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from counted_rows import ROWS
from dialeval import benchmarks
from dialeval.benchmarks import Benchmark, FetchError
from refusals import refused
from resources import MIRROR
from resources import PUBLISHED_SCORES as SCORES

pytestmark = pytest.mark.data

Load = Callable[..., Benchmark]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Any:
    loaded: dict[tuple[str, str], Benchmark] = {}

    def of(name: str, protocol: str | None = None) -> Benchmark:
        key = name, protocol or benchmarks.protocols(name)[0]
        if key not in loaded:
            loaded[key] = benchmarks.load(name, mirror=MIRROR, protocol=protocol)
        return loaded[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIALEVAL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield of


def human(rows: Any, aspect: str) -> list[float]:
    return [scores[aspect] for scores in rows["scores"][:]]


def of_systems(benchmark: Benchmark, aspect: str) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for system, score in zip(benchmark.dataset["system"][:], human(benchmark.dataset, aspect), strict=True):
        values.setdefault(system, []).append(score)
    return {system: float(np.mean(scores)) for system, scores in values.items()}


KINDS = {name: benchmarks.info(name).kind for name in benchmarks.available()}


@pytest.mark.parametrize(("name", "protocol"), ROWS)
def test_rows_and_groups(load: Load, name: str, protocol: str) -> None:
    found = load(name, protocol)
    table = found.dataset
    assert (len(table), len(set(table["group"][:]))) == ROWS[name, protocol]
    assert len(set(table["id"][:])) == len(table)
    assert set(table["dataset"][:]) == {name}
    if found.info.systems:
        assert set(table["system"][:]) == set(found.info.systems)
    turns = table["dialogue" if found.info.level == "dialogue" else "context"][:]
    group_of: dict[tuple[str, ...], str] = {}
    for spoken, group in zip(turns, table["group"][:], strict=True):
        assert spoken
        assert group_of.setdefault(tuple(spoken), group) == group


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if kind == "ratings"])
def test_ratings_lie_on_the_declared_scale_and_scores_are_their_means(load: Load, name: str) -> None:
    found = load(name)
    for aspect, scale in found.info.aspects.items():
        ratings = [row[aspect] for row in found.dataset["ratings"][:]]
        given = [value for row in ratings for value in row]
        assert (min(given), max(given)) == (scale.low, scale.high)
        for values, score in zip(ratings, human(found.dataset, aspect), strict=True):
            assert score == (pytest.approx(np.mean(values)) if values else None)


@pytest.mark.parametrize("corpus", ["convai2", "dailydialog", "empatheticdialogues"])
def test_grade_agrees_with_the_other_files_of_its_release(load: Load, corpus: str) -> None:
    found = load({"empatheticdialogues": "empathetic"}.get(corpus, corpus) + "_grade")
    ((source, _), *_) = found.info.files
    release = MIRROR / source.repository / source.commit / "evaluation"
    for number, system in enumerate(found.info.systems):
        rows = found.dataset.select(range(150 * number, 150 * (number + 1)))
        assert set(rows["system"][:]) == {system}
        texts = release / "eval_data" / corpus / system
        contexts = (texts / "human_ctx.txt").read_text(encoding="utf-8").splitlines()
        assert ["|||".join(context) for context in rows["context"][:]] == contexts
        assert rows["response"][:] == (texts / "human_hyp.txt").read_text(encoding="utf-8").splitlines()
        scores = np.loadtxt(release / "human_score" / corpus / system / "human_score.txt")
        np.testing.assert_allclose(human(rows, "coherence"), scores, atol=5e-5)


def test_mean_scores_of_the_other_sets(load: Load) -> None:
    usr = of_systems(load("persona_usr"), "Overall")
    assert [round(usr[system], 3) for system in ("KV-MemNN", "Seq2Seq", "Language Model", "New Human Generated")] == [
        3.250,
        3.467,
        2.972,
        4.800,
    ]
    zhao = load("dailydialog_zhao")
    by_position = np.reshape(human(zhao.dataset, "overall"), (100, 9)).mean(axis=0)
    assert by_position == pytest.approx([4.42, 3.775, 3.64, 3.495, 2.7975, 2.8375, 2.875, 2.7825, 2.21])
    released = of_systems(load("fbd_dailyz", "as_released"), "overall")
    assert list(released.values()) == pytest.approx(by_position[1:])


@pytest.mark.published
@pytest.mark.parametrize(("name", "column"), [("fed_turn", "context"), ("fed_dialogue", "dialogue")])
def test_ids_match_the_published_scores_on_fed(load: Load, name: str, column: str) -> None:
    """These values follow the length of the text closely, and only if every id stands for its own text."""
    table = load(name).dataset
    rows = map(json.loads, (SCORES / "fed_dialogpt.jsonl").read_text("utf-8").splitlines())
    scores = {row["id"]: row["scores"] for row in rows}
    values = [scores[row_id]["fed_interesting"] for row_id in table["id"][:]]
    lengths = [sum(map(len, turns)) for turns in table[column][:]]
    assert stats.spearmanr(values, lengths)[0] > 0.93
    assert stats.spearmanr(np.roll(values, 1), lengths)[0] < 0.5


def test_subsets_have_the_sizes_of_the_paper(load: Load) -> None:
    assert [
        len(load(name).select(subset="density")) for name in ("dailydialog_zhao", "persona_usr", "dailydialog_grade")
    ] == [
        640,
        192,
        240,
    ]
    assert [len(load(name).select()) for name in ("dailydialog_zhao", "persona_zhao", "persona_usr")] == [700, 600, 240]
    kept = load("dailydialog_zhao").select(subset="density")
    assert set(load("dailydialog_zhao").info.systems) - set(kept["system"][:]) == {"ground-truth"}
    assert kept["id"][0] == "dailydialog_zhao-00181"


def test_fed_turns_are_groups_of_three_from_one_dialogue(load: Load) -> None:
    turns, dialogues = load("fed_turn").dataset, load("fed_dialogue").dataset
    assert sorted(Counter(turns["group"][:]).values()) == [3] * 123 + [6]
    for number, turn in enumerate(turns):
        whole = dialogues[number // 3]["dialogue"]
        judged = [*turn["context"], turn["response"]]
        assert judged[: len(whole)] == whole[: len(judged)]
    missing = [row["id"] for row in dialogues if row["scores"]["Error recovery"] is None]
    assert missing == ["fed_dialogue-00099"]


def test_what_is_said_of_the_released_fbd_files(load: Load) -> None:
    def squeezed(text: str) -> str:
        return "".join(character for character in text if character.isalnum())

    def pairs(name: str, protocol: str) -> list[tuple[str, str]]:
        table = load(name, protocol).dataset
        contexts, responses = table["context"][:], table["response"][:]
        return [(squeezed("".join(turns)), squeezed(text)) for turns, text in zip(contexts, responses, strict=True)]

    answered = set(pairs("convai2_grade", "standard"))
    systems = load("fbd_convai2", "as_released").dataset["system"][:]
    released = pairs("fbd_convai2", "as_released")
    aligned = Counter(system for system, pair in zip(systems, released, strict=True) if pair in answered)
    assert aligned == {"convai2/0": 150, "convai2/1": 8, "convai2/2": 4, "convai2/3": 3}
    empathetic, daily = (load(f"fbd_{name}", "as_released").dataset for name in ("empathetic", "dailyh"))
    assert empathetic["context"][:] == daily["context"][:]
    assert empathetic["references"][:] == daily["references"][:]
    generated = set(load("dailydialog_grade").dataset["response"][:300])
    assert set(empathetic["response"][:]) <= generated
    assert len(load("fbd_dailyz").info.systems) == 19
    assert len(load("fbd_personaz").info.systems) == 12


def test_clean_rows_are_the_rows_of_their_source(load: Load) -> None:
    source = {row["id"]: row for row in load("persona_zhao").dataset}
    for row in load("fbd_personaz").dataset:
        assert {**row, "dataset": "persona_zhao"} == source[row["id"]]


def test_attacks_are_counted(load: Load) -> None:
    table = load("adversarial_khalid").dataset
    assert Counter(table["attack"][:])["ner_neutral"] == 344
    assert set(Counter(attack for attack in table["attack"][:] if attack != "ner_neutral").values()) == {400}
    harmless = {attack for attack, harmful in zip(table["attack"][:], table["harmful"][:], strict=True) if not harmful}
    assert harmless == {"good_paraphrase", "ner_neutral"}
    changed = sum(row["context"] != row["adversarial_context"] for row in table)
    assert changed == 18


def test_a_corrupted_mirror_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    ((source, file),) = benchmarks.info("persona_usr").files
    copy = tmp_path / "mirror" / source.repository / source.commit / file.path
    copy.parent.mkdir(parents=True)
    shutil.copyfile(MIRROR / source.repository / source.commit / file.path, copy)
    with copy.open("r+b") as damaged:
        damaged.seek(1000)
        damaged.write(b"#")
    refused(FetchError, "pc_usr_data.json", benchmarks.load, "persona_usr", mirror=tmp_path / "mirror")
    assert benchmarks.load("persona_usr", mirror=MIRROR).info.name == "persona_usr"
