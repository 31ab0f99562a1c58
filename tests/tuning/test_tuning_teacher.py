"""A judge that learns from a language model's scores: what people say of it, and which files do not fit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dialeval.approaches.judge import FEATURES, Judge
from dialeval.cli import build_app
from dialeval.readers import Source
from dialeval.tuning import Tuned, tune
from dialeval.tuning.teacher import read_taught, read_teacher
from dialeval.weights.config import CheckpointConfig
from rated_rows import rated, small_judge

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def judge(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_judge(tiny_encoder, tmp_path_factory.mktemp("judge") / "judge-tiny")


def without_ratings(rows: Rows) -> Rows:
    return [{name: value for name, value in row.items() if name != "rating"} for row in rows]


def scores_file(path: Path, values: list[float | None], ids: list[str] | None = None, **columns: list[Any]) -> Path:
    """A file as `dialeval score --metric llm` writes it."""
    with path.open("w") as stream:
        for number, value in enumerate(values):
            beside = {name: column[number] for name, column in columns.items()}
            row = {"row": number, "id": ids[number] if ids else None, "system": None, "llm": value}
            stream.write(json.dumps({**row, "llm.relevance": value, **beside}) + "\n")
    return path


def tuned(rows: Any, judge: Path, out: Path, **options: Any) -> Tuned:
    return tune(rows, out=out, checkpoint=judge, resamples=300, device="cpu", **options)


def weights_in(folder: Path) -> list[float]:
    return [float(weight) for weight in Judge(folder, device="cpu").array("turn_weights")]


# --- what is learned -------------------------------------------------------------------------------


def test_a_teacher_s_scores_are_learned_as_ratings_are(judge: Path, tmp_path: Path) -> None:
    rows = rated(300)
    scores = scores_file(tmp_path / "scores.jsonl", [row["rating"] for row in rows])
    by_teacher = tuned(without_ratings(rows), judge, tmp_path / "taught", teacher=scores)
    by_people = tuned(rows, judge, tmp_path / "rated")
    assert by_teacher.changed
    assert by_teacher.weights == by_people.weights
    assert by_teacher.comparison == by_people.comparison
    shown = str(by_teacher)
    assert "rated by a teacher (llm)" in shown
    assert "agreement with the teacher on contexts held out" in shown
    assert "no row is rated by people" in shown
    assert "gets wrong again and again" in shown


def test_people_are_held_against_judge_and_teacher(judge: Path, tmp_path: Path) -> None:
    """The teacher is a noisy copy of people, who rated a third of the rows."""
    rows = rated(300)
    noise = np.random.default_rng(1).normal(0, 0.7, len(rows))
    scores = scores_file(tmp_path / "scores.jsonl", [row["rating"] + one for row, one in zip(rows, noise, strict=True)])
    for row in rows[100:]:
        row["rating"] = None
    found = tuned(rows, judge, tmp_path / "mine", teacher=scores)
    assert found.count == 300
    people = found.lesson.people
    assert people.count == 100
    assert people.judge.after.value > people.judge.before.value + 0.1
    assert people.judge.after.value > found.comparison.after.value, "the noise is the teacher's, not people's"
    assert people.judge.after.value < people.teacher.value
    assert "the same contexts held out" in str(found)
    written = CheckpointConfig.read(tmp_path / "mine").training["tuned"]["teacher"]
    assert written["people"]["rated"] == 100
    assert written["people"]["after"][0] == pytest.approx(people.judge.after.value, abs=1e-4)
    card = (tmp_path / "mine" / "README.md").read_text()
    assert "not people's" in card
    assert str(written["people"]["teacher"][0]) in card


def test_people_s_ratings_stand_beside_the_scores_of_the_same_replies() -> None:
    rows = rated(120)
    taught = read_taught(Source(rows), read_teacher([row["rating"] for row in rows]))
    assert taught.people is not None
    assert [taught.opinions.exchanges[at] for at in taught.rated] == list(taught.people.exchanges)
    assert np.array_equal(taught.people.targets, taught.opinions.targets)


def test_a_teacher_that_leads_away_from_people_is_not_followed(judge: Path, tmp_path: Path) -> None:
    """What it likes, people do not; the agreement with it rises, that with people falls."""
    rows = rated(300)
    scores = [row["rating"] for row in rows]
    for row in rows:
        row["rating"] *= -1
    found = tuned(rows, judge, tmp_path / "mine", teacher=scores)
    assert found.comparison.gains
    assert found.lesson.people.judge.difference.high < 0
    assert not found.changed
    assert "leads away from people" in str(found)
    assert weights_in(tmp_path / "mine") == pytest.approx([0.1] * len(FEATURES), abs=1e-6)
    assert CheckpointConfig.read(tmp_path / "mine").quantiles == CheckpointConfig.read(judge).quantiles


def test_too_few_people_say_nothing(judge: Path, tmp_path: Path) -> None:
    rows = rated(150)
    scores = [row["rating"] for row in rows]
    for row in rows[12:]:
        del row["rating"]
    found = tuned(rows, judge, tmp_path / "mine", teacher=scores)
    assert found.lesson.people.judge is None
    assert "12 of these replies, to 4 contexts, are rated by people: too few" in str(found)
    assert "did not tell" in (tmp_path / "mine" / "README.md").read_text()


# --- how scores find their rows --------------------------------------------------------------------


def test_rows_go_by_their_id_in_any_order(tmp_path: Path) -> None:
    rows = [{**row, "id": f"r{number}"} for number, row in enumerate(without_ratings(rated(60)))]
    values = [float(number) for number in range(60)]
    backwards = scores_file(tmp_path / "scores.jsonl", values[::-1], [row["id"] for row in rows[::-1]])
    by_id = read_taught(Source(rows), read_teacher(backwards)).opinions
    by_place = read_taught(Source(rows), read_teacher(values)).opinions
    assert np.array_equal(by_id.targets, by_place.targets)
    assert np.array_equal(np.argsort(by_id.targets), np.arange(60))


def test_refused_rows_are_left_out_and_counted(judge: Path, tmp_path: Path) -> None:
    rows = without_ratings(rated(150))
    values: list[float | None] = [row["rating"] for row in rated(150)]
    values[3] = values[77] = None
    found = tuned(rows, judge, tmp_path / "mine", teacher=scores_file(tmp_path / "scores.jsonl", values))
    assert (found.count, found.lesson.unscored) == (148, 2)
    assert "2 rows have no score of the teacher's and were left out" in str(found)


def test_scores_in_python_and_a_lower_that_is_better(judge: Path, tmp_path: Path) -> None:
    rows = without_ratings(rated(40))
    scores = Judge(judge, device="cpu").score([row["response"] for row in rows], [row["context"] for row in rows])
    up = read_taught(Source(rows), read_teacher(scores)).opinions
    assert np.array_equal(np.argsort(up.targets, kind="stable"), np.argsort(scores.values, kind="stable"))
    document = {"metric": "m", "ids": list(range(40)), "values": list(range(40)), "higher_is_better": False}
    (tmp_path / "scores.json").write_text(json.dumps({**document, "signature": "m"}))
    down = read_taught(Source(rows), read_teacher(tmp_path / "scores.json")).opinions
    assert np.array_equal(np.argsort(down.targets), np.arange(40)[::-1])


def test_one_of_several_columns_is_chosen(tmp_path: Path) -> None:
    several = scores_file(tmp_path / "scores.jsonl", [1.0, 2.0], deb=[0.5, 0.4])
    with pytest.raises(ValueError, match="has scores of llm, deb; choose"):
        read_teacher(several)
    assert read_teacher(several, "deb").by_row == {"0": 0.5, "1": 0.4}
    assert read_teacher(several, "llm.relevance").by_row == {"0": 1.0, "1": 2.0}
    with pytest.raises(ValueError, match="no scores 'lm'; it has llm, "):
        read_teacher(several, "lm")
    assert read_teacher(scores_file(tmp_path / "one.jsonl", [1.0])).name == "llm"


@pytest.mark.parametrize(
    ("teacher", "message"),
    [
        ([1.0] * 41, "gave 41 scores and list has 40 rows"),
        ([None] * 40, "no score for any of the 40 rows"),
        ([True] * 40, "row 0: the teacher's score is a bool"),
        (["5"] * 40, "row 0: the teacher's score is a str"),
        ([math.inf] * 40, "no score for any"),
    ],
)
def test_lists_that_do_not_fit(teacher: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_taught(Source(without_ratings(rated(40))), read_teacher(teacher))


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    rows = without_ratings(rated(40))
    with pytest.raises(ValueError, match="10 of the teacher's 50 scores are of rows that list lacks, '40' for one"):
        read_taught(Source(rows), read_teacher(scores_file(tmp_path / "scores.jsonl", [1.0] * 50)))
    with pytest.raises(ValueError, match="cannot be read"):
        read_teacher(tmp_path / "absent.jsonl")
    with pytest.raises(TypeError, match="teacher is a dict"):
        read_teacher({"a": 1})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leave it out"):
        read_teacher([1.0], "llm")
    pair = {"context": ["Hi"], "response_a": "a", "response_b": "b", "preferred": "a", "response": "c"}
    with pytest.raises(ValueError, match="has preferred"):
        read_taught(Source([pair]), read_teacher([1.0]))


def test_the_command(judge: Path, tmp_path: Path) -> None:
    rows = rated(120)
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in without_ratings(rows)))
    scores = scores_file(tmp_path / "scores.jsonl", [row["rating"] for row in rows])
    options = ["--checkpoint", str(judge), "--resamples", "300", "--device", "cpu", "--out", str(tmp_path / "mine")]
    arguments = ["tune", str(tmp_path / "rows.jsonl"), "--teacher", str(scores), *options]
    done = CliRunner().invoke(build_app(), arguments)
    assert done.exit_code == 0, done.output
    assert "rated by a teacher (llm)" in done.output
    assert CheckpointConfig.read(tmp_path / "mine").training["tuned"]["teacher"]["name"] == "llm"
