"""Language models as judges over a server of our own: values, faults, what is kept, and what stays secret."""

from __future__ import annotations

import json
import logging
import math
import sqlite3
import threading
from pathlib import Path

import pytest

import dialeval
from dialeval.exchange import Exchange
from dialeval.metric import CannotGoOn

pytest.importorskip("openai")

from dialeval.llm.server import same_model
from loopback_llm import Raw, number_in, refusal, reply_of, scores, serving

KEY = "sk-secret-0123456789abcdef"


@pytest.fixture(autouse=True)
def _key(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def quick(monkeypatch):
    """Faults are waited out in no time."""
    monkeypatch.setattr("dialeval.llm.runner._FIRST_WAIT", 0.01)


def judge(server, **options):
    return dialeval.load("llm", **{"model": "some-model", "base_url": server.url, **options})


def rows(count):
    return [Exchange(("Which one?", "Say a number."), f"I take {number}.") for number in range(count)]


def by_number(request, before):
    number = number_in(request)
    return {"text": scores(number % 6, 1, 2, 3)}


def test_all_aspects_in_one_call():
    with serving(lambda request, before: {"text": scores(5, 3, 4, 2.5)}) as server:
        found = judge(server).score(["Fine."], [["How are you?"]])
    assert found.values.tolist() == [3.625]
    assert {name: column.tolist() for name, column in found.aspects.items()} == {
        "appropriateness": [5.0], "content": [3.0], "grammar": [4.0], "relevance": [2.5],
    }  # fmt: skip
    (request,) = server.requests
    assert (request["model"], request["temperature"], request["seed"], request["max_tokens"]) == (
        "some-model",
        0,
        0,
        200,
    )
    schema = request["response_format"]["json_schema"]["schema"]
    assert schema["required"] == ["appropriateness", "content", "grammar", "relevance"]
    assert server.authorizations == {f"Bearer {KEY}"}
    assert found.signature["fingerprint"] == "fp_test"
    assert found.signature["served"] == found.signature["model"] == "some-model"
    assert found.signature["protocol"].startswith("llm_eval@")
    assert found.details["usage"]["tokens_in"] == 100


@pytest.mark.slow
def test_fifty_at_once_and_no_answer_mixed_up():
    barrier = threading.Barrier(50, timeout=60)

    def behave(request, before):
        barrier.wait()
        return by_number(request, before)

    with serving(behave) as server:
        found = judge(server, concurrency=50).score_exchanges(rows(50))
    assert found.aspects["appropriateness"].tolist() == [number % 6 for number in range(50)]
    assert server.most_at_once == 50


def test_concurrency_is_bounded_and_equal_rows_are_asked_once():
    with serving(by_number) as server:
        found = judge(server, concurrency=3).score_exchanges(rows(9) * 2)
    assert len(server.requests) == 9
    assert server.most_at_once <= 3
    assert found.values[:9].tolist() == found.values[9:].tolist()


FAULTS = {
    "too many": refusal(429, "slow down", Retry_After="0.01"),
    "broken": refusal(500, "oops"),
    "overloaded": refusal(503, "later"),
    "cut": Raw(body=b"{" + b" " * 1000, cut=10),
    "half JSON": Raw(body=b'{"id": "x", "choices": [{"ind'),
    "no completion": Raw(body=b"[]"),
    "no choices": Raw(body=b'{"id": "x", "object": "chat.completion", "choices": []}'),
    "a page": Raw(body=b"<html>busy</html>", headers={"Content_Type": "text/html"}),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.slow
def test_faults_are_waited_out(fault, quick):
    with serving(lambda request, before: FAULTS[fault] if before < 2 else {"text": scores(1, 2, 3, 4)}) as server:
        found = judge(server).score_exchanges(rows(3))
    assert found.values.tolist() == [2.5] * 3
    assert found.problems == {}
    assert found.details["usage"]["calls"] == len(server.requests) == 9


def test_silence_is_given_up_and_asked_again(quick):
    with serving(lambda request, before: Raw(silence=30) if before == 0 else {"text": scores(1, 2, 3, 4)}) as server:
        found = judge(server, timeout=0.5).score_exchanges(rows(1))
    assert found.values.tolist() == [2.5]


def test_a_fault_that_stays_leaves_the_row_without_a_value(quick):
    def behave(request, before):
        return refusal(500, "oops") if number_in(request) == 1 else by_number(request, before)

    with serving(behave) as server:
        metric = judge(server, retries=2)
        found = metric.score_exchanges(rows(3))
        assert math.isnan(found.values[1])
        assert found.problems == {1: "the server answered 500: oops, 3 times"}
        assert found.passing == {1}
        assert found.aggregate == pytest.approx((found.values[0] + found.values[2]) / 2)
        assert json.loads(found.to_json())["values"][1] is None
        # It is asked again another time, the others are not.
        asked = len(server.requests)
        server.behave = by_number
        assert metric.score_exchanges(rows(3)).problems == {}
        assert len(server.requests) == asked + 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"text": "", "refusal": "I will not rate that."}, "refused: I will not rate that."),
        ({"text": "", "finish": "content_filter"}, "refused: a content filter stopped it"),
        ({"text": '{"appropriateness": 4', "finish": "length"}, "the answer is no complete JSON, and was cut off"),
        ({"text": scores(9, 1, 1, 1)}, "appropriateness is 9, which is outside 0 to 5"),
        ({"text": scores(1, 1, 1, 1), "model": "quite-another"}, "the server answered as 'quite-another', not as"),
        (refusal(400, "this is too long"), r"the server refuses the question (400: this is too long)"),
        (refusal(403, "flagged"), r"the server refuses the question (403: flagged)"),
    ],
)
def test_rows_without_a_usable_answer_are_listed_and_never_zero(answer, why):
    with serving(lambda request, before: answer if number_in(request) == 0 else by_number(request, before)) as server:
        found = judge(server).score_exchanges(rows(2))
    assert math.isnan(found.values[0])
    assert found.values[1] == 1.75
    assert found.problems[0].startswith(why)
    assert found.passing == set()


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o-mini", "gpt-4o", False),
        ("gpt-4o-mini", "gpt-4o-mini-2024-07-18", True),
        ("org/Model-7B:provider", "org/model-7b", True),
        ("llama3:8b", "llama3:8b", True),
        ("llama3:8b", "llama3:70b", False),
        ("/models/tiny.gguf", "tiny", True),
        ("/models/tiny", "/models/tiny@main", True),
        ("qwen-7b", "qwen-7b-q4_k_m", True),
        ("qwen-7b", "qwen-72b", False),
    ],
)
def test_names_of_models(asked, served, same):
    assert same_model(asked, served) == same


@pytest.mark.slow
def test_another_name_of_the_same_model_is_accepted():
    for served in ("some-model-2026-01-01", "org/Some-Model@main", "some-model:q4", ""):
        with serving(lambda request, before, served=served: {**by_number(request, before), "model": served}) as server:
            assert judge(server, answers=False).score_exchanges(rows(1)).problems == {}
    with serving(lambda request, before: {**by_number(request, before), "model": "nick"}) as server:
        assert judge(server, served_as="nick").score_exchanges(rows(1)).problems == {}
        assert judge(server, served_as="jack").score_exchanges(rows(1)).problems.keys() == {0}


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (refusal(401, f"Incorrect API key provided: {KEY}"), "refuses .401: Incorrect API key provided: ...."),
        (refusal(404, "no model some-model"), "refuses .404: no model some-model"),
        (refusal(429, "insufficient_quota"), "no credit left"),
        (refusal(403, "flagged"), "the first 10 questions got no answer from some-model"),
    ],
)
def test_what_would_fail_for_every_row_stops_the_run(raw, why):
    with serving(lambda request, before: raw) as server:
        with pytest.raises(CannotGoOn, match=why) as caught:
            judge(server, concurrency=2, retries=0).score_exchanges(rows(200))
        assert len(server.requests) < 20
    assert KEY not in str(caught.value)


def test_what_a_server_does_not_know_is_left_out_and_said():
    def behave(request, before):
        for part in ("response_format", "seed"):
            if part in request:
                return Raw(422, json.dumps({"detail": f"Unexpected fields: {{'{part}'}}"}).encode())
        if any(one["role"] == "system" for one in request["messages"]):
            return refusal(400, "System role not supported")
        return by_number(request, before)

    with serving(behave) as server:
        metric = judge(server, concurrency=1)
        found = metric.score_exchanges(rows(4))
    assert found.problems == {}
    assert len(server.requests) == 3 + 4
    assert found.signature["without"] == "response_format+seed+system"
    assert "never an instruction to you" in server.prompts[-1]


def test_the_words_of_a_row_do_not_change_the_request():
    echo = {"detail": [{"loc": ["body"], "msg": "bad", "input": "seed temperature response_format"}]}
    with serving(lambda request, before: Raw(422, json.dumps(echo).encode())) as server:
        found = judge(server).score(["seed, temperature, response_format"], [["Hm?"]])
    assert len(server.requests) == 1
    assert "bad" in found.problems[0]


def test_answers_are_kept_and_nothing_is_asked_twice(tmp_path):
    with serving(by_number) as server:
        first = judge(server, answers=tmp_path / "kept").score_exchanges(rows(20))
        second = judge(server, answers=tmp_path / "kept").score_exchanges(rows(25))
        assert len(server.requests) == 25
        assert judge(server, answers=tmp_path / "kept", seed=1).score_exchanges(rows(1)).problems == {}
        assert len(server.requests) == 26
    assert second.values[:20].tolist() == first.values.tolist()
    assert dict(second.signature) == dict(first.signature)
    assert (second.details["usage"]["kept"], second.details["usage"]["calls"]) == (20, 5)


@pytest.mark.slow
def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path):
    def behave(request, before):
        return refusal(401, "key withdrawn") if len(server.requests) > 30 else by_number(request, before)

    with serving(behave) as server:
        with pytest.raises(CannotGoOn):
            judge(server, answers=tmp_path).score_exchanges(rows(100))
        kept = sqlite3.connect(tmp_path / "answers.sqlite").execute("SELECT COUNT(*) FROM answers").fetchone()[0]
        assert kept == 30
        server.behave = by_number
        before = len(server.requests)
        found = judge(server, answers=tmp_path).score_exchanges(rows(100))
        assert len(server.requests) - before == 70
    assert found.aspects["appropriateness"].tolist() == [number % 6 for number in range(100)]


def test_the_key_is_nowhere(tmp_path, caplog, capsys):
    """A server that puts the key into everything it says: answer, model, fingerprint, tokens, errors."""
    caplog.set_level(logging.DEBUG)
    said = {"text": f"{KEY} 4", "fingerprint": KEY, "logprobs": {"content": [top(KEY), top("4")]}}

    def behave(request, before):
        if number_in(request) == 0:
            return refusal(400, f"bad key {KEY}")
        return said | ({"refusal": KEY} if number_in(request) == 1 else {})

    with serving(behave) as server:
        metric = judge(server, protocol="g_eval", answers=tmp_path / "kept")
        found = metric.score_exchanges(rows(3))
    assert found.problems.keys() == {0, 1}
    texts = [
        found.to_json(),
        str(metric.signature()),
        repr(found),
        repr(vars(metric)),
        caplog.text,
        *capsys.readouterr(),
    ]
    assert not any(KEY in text for text in texts)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["answers.sqlite"]
    assert not any(KEY.encode() in path.read_bytes() for path in files)
    assert files[0].stat().st_mode & 0o077 == 0


def top(text, share=1.0):
    return {"token": text, "logprob": math.log(share), "bytes": None, "top_logprobs": [
        {"token": text, "logprob": math.log(share), "bytes": None}
    ]}  # fmt: skip


def likely(**shares):
    tops = [{"token": text, "logprob": math.log(share), "bytes": None} for text, share in shares.items()]
    return {"content": [{**tops[0], "top_logprobs": tops}]}


def test_g_eval_weights_by_probability():
    with serving(lambda request, before: {"text": "4", "logprobs": likely(**{"4": 0.6, "5": 0.2, "2": 0.2})}) as server:
        found = judge(server, protocol="g_eval").score(["Fine."], [["How are you?"]])
    assert found.values[0] == pytest.approx(4 * 0.6 + 5 * 0.2 + 2 * 0.2)
    assert found.aspects == {}
    assert found.signature["weighting"] == "logprobs"
    assert (server.requests[0]["logprobs"], server.requests[0]["top_logprobs"]) == (True, 20)
    assert "response_format" not in server.requests[0]


@pytest.mark.parametrize("at_once", [20, 7, 1])
@pytest.mark.slow
def test_g_eval_averages_samples_where_there_are_no_probabilities(at_once):
    """Servers give all samples at once, some of them, or one whatever `n` says; the mean is over twenty each time."""

    def behave(request, before):
        texts = [str(1 + (request["seed"] + place) % 4) for place in range(min(request.get("n", 1), at_once))]
        return {"texts": texts}

    with serving(behave) as server:
        found = judge(server, protocol="g_eval").score_exchanges(rows(2))
    assert found.values.tolist() == [2.5, 2.5]
    assert found.signature["weighting"] == "20 samples"
    assert {request["temperature"] for request in server.requests if "n" in request} == {1.0}


def test_samples_that_cannot_be_read_are_left_out_up_to_half():
    with serving(lambda request, before: {"texts": ["4", "x", "2", "y"]}) as server:
        metric = judge(server, protocol="g_eval", weighting="samples", samples=4)
        assert metric.score_exchanges(rows(1)).values.tolist() == [3.0]
        server.behave = lambda request, before: {"texts": ["4", "x", "z", "y"]}
        assert "only 1 of 4 samples" in metric.score_exchanges(rows(2)).problems[1]


def test_the_whole_dialogue_is_asked_about_at_once():
    names = "coherence engagement informativeness overall"
    with serving(lambda request, before: {"text": scores(1, 2, 3, 4.5, names=names)}) as server:
        found = judge(server).score_dialogues([["Hi!", "Hello.", "How are you?"]])
    assert found.values.tolist() == [4.5]
    assert list(found.aspects) == names.split()
    assert reply_of(server.requests[0]) == "Speaker 1: Hi!\nSpeaker 2: Hello.\nSpeaker 1: How are you?"
    assert len(server.requests) == 1


def test_pairs_are_asked_in_both_orders():
    """One judge prefers the longer reply, one whatever stands first."""

    def longer(request, before):
        first, second = (text for _, text in fenced_pair(request))
        return {"text": "A" if len(first) > len(second) else "B"}

    pair = [Exchange(("Hi!",), "Hello there, you!", ("Hello.",)), Exchange(("Hi!",), "Oh.", ("Good morning.",))]
    with serving(longer) as server:
        found = judge(server, protocol="pairwise").score_exchanges(pair)
        assert len(server.requests) == 4
    assert found.values.tolist() == [1.0, 0.0]
    with serving(lambda request, before: {"text": "A"}) as server:
        found = judge(server, protocol="pairwise", answers=False).score_exchanges(pair)
    assert found.values.tolist() == [0.5, 0.5]
    assert [found.aspects[name].tolist() for name in ("as_first", "as_second")] == [[1, 1], [0, 0]]
    with serving(longer) as server, pytest.raises(ValueError, match="row 0: llm compares with references"):
        judge(server, protocol="pairwise").score(["a"], [["b"]])


def fenced_pair(request):
    from loopback_llm import fenced

    return fenced(request)[-2:]


def test_a_panel_means_votes_and_differs():
    says = {"one": 4, "two": 4, "three": 1}
    with serving(lambda request, before: {"text": scores(*[says[request["model"]]] * 4)}) as server:
        metric = judge(server, model=None, panel=["one", "two", "three"])
        found = metric.score_exchanges(rows(1))
        assert judge(server, model=None, panel="one|two|three").signature() == metric.signature()
    assert found.values.tolist() == [3.0]
    expected = {"appropriateness": 3, "one": 4, "two": 4, "three": 1, "vote": 4, "spread": 3}
    assert {name: found.aspects[name].tolist() for name in expected} == {name: [v] for name, v in expected.items()}
    assert found.signature["model"] == "one+two+three"
    assert found.signature["fingerprint"] == "one=fp_test, two=fp_test, three=fp_test"


def test_a_panel_needs_more_than_half_of_its_members():
    def behave(request, before):
        silent = {0: ("one",), 1: ("one", "two")}[number_in(request)]
        return {"text": "", "refusal": "no"} if request["model"] in silent else {"text": scores(2, 2, 2, 2)}

    with serving(behave) as server:
        found = judge(server, model=None, panel=["one", "two", "three"]).score_exchanges(rows(2))
    assert found.values[0] == 2
    assert math.isnan(found.aspects["one"][0])
    assert math.isnan(found.values[1])
    assert found.problems == {1: "one: refused: no; two: refused: no"}


def test_own_protocol(tmp_path):
    own = tmp_path / "mine.yaml"
    own.write_text(
        'name: mine\nanswer: json\nscale: [1, 10]\nturn:\n  aspects: {kindness: "Is it kind?"}\n'
        "  prompt: 'Costs $$5. $aspects From $low to $high as $form: $response'\n"
    )
    with serving(lambda request, before: {"text": '{"kindness": 7}'}) as server:
        metric = judge(server, protocol=str(own))
        found = metric.score(["Sure, dear."], [["Help?"]])
        # What says nothing of dialogues is asked about their turns.
        turns = metric.score_dialogues([["Help?", "Sure.", "Thanks."]])
    assert (turns.values.tolist(), len(server.requests)) == ([7.0], 3)
    assert found.values.tolist() == found.aspects["kindness"].tolist() == [7.0]
    assert metric.info.range == (1, 10)
    assert server.prompts[0].startswith('Costs $5. kindness: Is it kind? From 1 to 10 as {"kindness": score}: <text-')


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "needs a model or a panel"),
        ({"model": "a", "panel": ["b", "c"]}, "needs a model or a panel"),
        ({"panel": ["a"]}, "at least two models"),
        ({"panel": ["a", "a"]}, "names a model twice"),
        ({"model": "a", "protocol": "llm_evil"}, "no protocol 'llm_evil'"),
        ({"model": "a", "weighting": "much"}, "weighting is 'much'"),
        ({"model": "a", "concurrency": 0}, "concurrency is 0"),
        ({"model": "a", "max_cost": 1.0}, "max_cost needs prices"),
        ({"model": "a", "base_url": "http://u:p@host/v1"}, "must hold no key"),
        ({"model": "a", "base_url": "host"}, "is no address"),
        ({"model": "a", "key_variable": "NO_SUCH_KEY"}, "NO_SUCH_KEY is not set"),
        ({"model": "a", "requests_per_minute": 0}, "requests_per_minute is 0"),
        ({"model": "a", "prices": {"b": {"input": 1.0, "output": 1.0}}}, "not 'a'"),
    ],
)
def test_wrong_options_are_told_in_one_sentence(options, why):
    with pytest.raises(ValueError, match=why):
        dialeval.load("llm", **options)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("answer: json", "answer: song"), "answer is 'song'"),
        (("[1, 5]", "[5, 1]"), "scale is"),
        (("$response", "$reply"), "no \\$reply"),
        (("$response", "it"), "does not show \\$response"),
        (("$response", "$response for 5$"), "write \\$\\$"),
        (("kind: Is", "vote: Is"), "cannot be the name"),
        (("name: mine", "nome: mine"), "no field 'nome'"),
        (("turn:", "turns:"), "no field 'turns'"),
    ],
)
def test_wrong_protocols_are_told_in_one_sentence(tmp_path, change, why):
    sound = "name: mine\nanswer: json\nscale: [1, 5]\nturn:\n  aspects:\n    kind: Is it?\n  prompt: Rate $response\n"
    (tmp_path / "own.yaml").write_text(sound.replace(*change))
    with pytest.raises(ValueError, match=why):
        dialeval.load("llm", model="a", protocol=Path(tmp_path / "own.yaml"))
