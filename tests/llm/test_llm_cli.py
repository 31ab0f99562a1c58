"""`dialeval llm-score` as a user runs it: counted before, told after."""

import json

import pytest
from typer.testing import CliRunner

from dialeval.cli import build_app

pytest.importorskip("openai")
pytest.importorskip("diskcache")

from loopback_llm import KEY, by_number, longer, number_in, scores, serving
from shell import read_rows, write_rows

pytestmark = pytest.mark.slow


PRICED = ("--model", "some", "--prices", "prices.yaml")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = [{"context": ["Pick one."], "response": f"I take {one}.", "id": f"row-{one}"} for one in range(5)]
    write_rows(tmp_path / "few.jsonl", texts)
    (tmp_path / "prices.yaml").write_text("some: {input: 10, output: 100}\n")
    return tmp_path


def run(files, server, *more):
    given = ["--base-url", server.url, "-i", files / "few.jsonl", "-o", files / "out.jsonl", *more]
    given += ["--answers", files / "kept"]
    return CliRunner(env={"OPENAI_API_KEY": KEY}).invoke(build_app(), ["llm-score", *map(str, given)])


def table(files):
    return read_rows(files / "out.jsonl")


def test_values_problems_answers_and_cost(files):
    def behave(request, before):
        return {"text": "No, I won't."} if number_in(request) == 3 else by_number(request, before)

    with serving(behave) as server:
        done = run(files, server, *PRICED)
        assert done.exit_code == 3, done.stderr
        again = run(files, server, *PRICED, "--overwrite")
        assert (again.exit_code, len(server.requests)) == (3, 6)
    assert "row 3 " in done.stderr
    assert "1 of 5 rows" in done.stderr
    assert "$0.010000" in done.stderr
    unread = table(files)[3]
    assert (unread["llm"], unread["llm.grammar"], unread["llm.answer"]) == (None, None, "No, I won't.")
    assert table(files)[1]["llm.answer"] == scores(1, 1, 2, 3)


def test_dry_run_counts_and_writes_nothing(files):
    with serving(by_number) as server:
        done = run(files, server, *PRICED, "--dry-run")
        assert (done.exit_code, len(server.requests)) == (0, 0)
    assert done.stdout.startswith("5 questions, 0 ")
    assert " 1000 " in done.stdout
    assert "$0.1" in done.stdout
    assert not (files / "out.jsonl").exists()
    first = json.loads((files / "few.jsonl").read_text().splitlines()[0])
    assert first["response"] in done.stdout.partition("The first question:")[2]


def test_a_cost_limit_that_is_reached_is_one_sentence(files):
    with serving(by_number) as server:
        done = run(files, server, *PRICED, "--max-cost", "0.004", "--concurrency", "1")
        assert len(server.requests) == 2
    assert done.exit_code == 2
    assert [line for line in done.stderr.splitlines() if "error: " in line] == done.stderr.splitlines()[-1:]


def test_a_rival_file_and_a_config(files):
    others = [{"context": ["?"], "response": "Some very much longer reply.", "id": f"row-{one}"} for one in range(1, 5)]
    write_rows(files / "rival.jsonl", others)
    (files / "judge.yaml").write_text("model: some\nprotocol: pairwise\nseed: 7\n")

    rival = ("--config", "judge.yaml", "--rival", "rival.jsonl")
    with serving(longer) as server:
        done = run(files, server, *rival)
        assert (done.exit_code, "row 0" in done.stderr) == (2, True)
        others.append({**others[0], "id": "row-0"})
        write_rows(files / "rival.jsonl", others)
        done = run(files, server, *rival)
        assert done.exit_code == 0, done.stderr
        assert {request["seed"] for request in server.requests} == {7}
    assert [row["llm"] for row in table(files)] == [0.0] * 5
    assert list(table(files)[0])[3:] == ["language", "llm", "llm.as_first", "llm.as_second", "llm.answer"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ((), "model"),
        (("--model", "a", "--rival", "x.jsonl"), "--rival"),
        (("--model", "a", "--protocol", "none"), "none"),
        (("--config", "nowhere.yaml"), "nowhere.yaml"),
    ],
)
def test_wrong_options(files, options, named):
    with serving(by_number) as server:
        done = run(files, server, *options)
    assert (done.exit_code, named in done.stderr) == (2, True)


def test_a_blank_reply_is_judged_where_asked(files):
    (files / "few.jsonl").write_text(json.dumps({"context": ["Pick one."], "response": " "}) + "\n")
    with serving(lambda request, before: {"text": scores(3, 3, 3, 3)}) as server:
        assert "--empty" in run(files, server, "--model", "some").stderr
        assert run(files, server, "--model", "some", "--empty", "score").exit_code == 0
    assert len(table(files)) == 1
