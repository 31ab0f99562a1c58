"""`dialeval score --metric llm` as a user runs it: killed, resumed, counted before, told after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("openai")

from test_llm_judge import KEY, by_number

from loopback_llm import fenced, number_in, scores, serving


@pytest.fixture
def files(tmp_path):
    texts = [{"context": ["Pick one."], "response": f"I take {one}.", "id": f"row-{one}"} for one in range(1000)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts))
    (tmp_path / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in texts[:5]))
    (tmp_path / "prices.yaml").write_text("some: {input: 10, output: 100}\n")
    return tmp_path


def command(files, server, *more, rows="few.jsonl"):
    arguments = ["-m", "llm", "--base-url", server.url, "-i", str(files / rows), "-o", str(files / "out.jsonl")]
    return [sys.executable, "-m", "dialeval", "score", *arguments, "--answers", str(files / "answers"), *more]


def run(*arguments, **more):
    env = {**os.environ, "OPENAI_API_KEY": KEY, "HF_HUB_OFFLINE": "1"}
    return subprocess.run(command(*arguments, **more), capture_output=True, text=True, env=env, check=False)


def table(files):
    return [json.loads(line) for line in (files / "out.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_thousand_rows_killed_in_the_middle(files):
    env = {**os.environ, "OPENAI_API_KEY": KEY, "HF_HUB_OFFLINE": "1"}
    with serving(by_number) as server:
        arguments = command(files, server, "--model", "some", rows="rows.jsonl")
        first = subprocess.Popen(arguments, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while first.poll() is None and len(server.requests) < 400:
            pass
        first.send_signal(signal.SIGKILL)
        first.communicate()
        assert not (files / "out.jsonl").exists()
        before = len(server.requests)
        second = run(files, server, "--model", "some", rows="rows.jsonl")
        assert second.returncode == 0, second.stderr
        # At most the eight that were under way are asked a second time.
        assert 1000 <= len(server.requests) <= 1008
        assert before < 1000
    assert [row["llm.appropriateness"] for row in table(files)] == [number % 6 for number in range(1000)]
    assert not any(KEY.encode() in path.read_bytes() for path in files.rglob("*") if path.is_file())


@pytest.mark.slow
def test_rows_without_an_answer_are_told_with_the_reason(files):
    def behave(request, before):
        return {"text": "", "refusal": "No, I won't."} if number_in(request) == 3 else by_number(request, before)

    with serving(behave) as server:
        done = run(files, server, "--model", "some", "--prices", str(files / "prices.yaml"),
                   "--summary", str(files / "summary.json"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "row 3 has no value: refused: No, I won't." in done.stderr
    assert "5 calls, 500 tokens read and 50 written, $0.010000" in done.stderr
    assert "1 refusals, 0 questions without an answer" in done.stderr
    found = json.loads((files / "summary.json").read_text())["metrics"]["llm"]
    assert found["problems"] == [{"row": 3, "problem": "refused: No, I won't."}]
    assert found["usage"]["cost"] == pytest.approx(0.01)
    assert (table(files)[3]["llm"], table(files)[3]["llm.grammar"]) == (None, None)
    assert "fingerprint:fp_test" in found["signature"]


@pytest.mark.slow
def test_dry_run_counts_and_writes_nothing(files):
    with serving(by_number) as server:
        done = run(files, server, "--model", "some", "--prices", str(files / "prices.yaml"), "--dry-run")
        assert (done.returncode, len(server.requests)) == (0, 0)
    assert done.stdout.startswith("some: 5 questions, 0 of them answered before; about ")
    assert "at most 1000 to write; about $0.1" in done.stdout
    assert not (files / "out.jsonl").exists()


@pytest.mark.slow
def test_a_budget_that_is_spent_is_one_sentence(files):
    with serving(by_number) as server:
        done = run(files, server, "--model", "some", "--prices", str(files / "prices.yaml"), "--max-cost", "0.04")
    assert done.returncode == 2
    assert done.stderr.startswith("error: $0.0")
    assert "max_cost are spent" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_rival_file_and_a_panel(files):
    others = [{"context": ["?"], "response": "Some very much longer reply.", "id": f"row-{one}"} for one in range(1, 5)]
    (files / "rival.jsonl").write_text("".join(json.dumps(row) + "\n" for row in others))

    def longer(request, before):
        first, second = (text for _, text in fenced(request)[-2:])
        return {"text": "A" if len(first) > len(second) else "B"}

    rival = ("--protocol", "pairwise", "--rival", str(files / "rival.jsonl"))
    with serving(longer) as server:
        done = run(files, server, "--model", "some", *rival)
        assert (done.returncode, "row 0" in done.stderr, "no reply to this row" in done.stderr) == (2, True, True)
        (files / "rival.jsonl").write_text(json.dumps({**others[0], "id": "row-0"}) + "\n" + "".join(
            json.dumps(row) + "\n" for row in others))  # fmt: skip
        done = run(files, server, "--model", "one", "--model", "two", *rival)
    assert done.returncode == 0, done.stderr
    assert [row["llm"] for row in table(files)] == [0.0] * 5
    keys = ["llm", "llm.as_first", "llm.as_second", "llm.one", "llm.two", "llm.vote", "llm.spread"]
    assert list(table(files)[0])[3:] == keys


@pytest.mark.slow
def test_dialogues(files):
    (files / "few.jsonl").write_text(json.dumps({"dialogue": ["Hi!", "Hello."]}) + "\n")
    names = "coherence engagement informativeness overall"
    with serving(lambda request, before: {"text": scores(1, 2, 3, 4, names=names)}) as server:
        done = run(files, server, "--model", "some", "--level", "dialogue")
    assert done.returncode == 0, done.stderr
    assert (table(files)[0]["llm"], table(files)[0]["llm.coherence"]) == (4.0, 1.0)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ((), "needs a model or a panel"),
        (("--model", "a", "--rival", "x.jsonl"), "compares replies with nothing; leave --rival out"),
        (("--model", "a", "--engine", "ray"), "leave out --engine ray"),
        (("--model", "a", "--protocol", "none"), "there is no protocol 'none'"),
    ],
)
@pytest.mark.slow
def test_wrong_options(files, options, why):
    with serving(by_number) as server:
        done = run(files, server, *options)
    assert done.returncode == 2
    assert why in done.stderr
