"""A language model as judge over a server of our own: values, failures, the cache, costs, and what stays secret."""

import json
import logging
import math
import pickle
import sqlite3
import threading
from base64 import b32encode, b64encode, b85encode
from codecs import encode
from urllib.parse import quote

import pytest

import dialeval
from dialeval.core.exchange import Exchange
from dialeval.registry.interface import CannotGoOn
from dialeval.scoring import Summary
from refusals import refused

pytest.importorskip("openai")
pytest.importorskip("diskcache")

from loopback_llm import AT_ONCE, KEY, Raw, by_number, fenced, longer, no_credit, number_in, refusal, scores, serving

#: What the server counts for an answer is 100 tokens read and 10 written: $0.002.
PRICES = {"some-model": {"input": 10.0, "output": 100.0}}


def judge(server, **options):
    return dialeval.load("llm", **{"model": "some-model", "base_url": server.url, **options})


#: The ways in which a server may quote a key.
SPELLINGS = {
    "percent": quote(KEY, safe="").replace("-", "%2D"),
    "base64": b64encode(f"user:{KEY}:x".encode()).decode(),
    "escaped": json.dumps(KEY).strip('"').replace("-", "\\u002d"),
    "lines": f"{KEY[:9]}\n   {KEY[9:]}",
    "html": "".join(f"&#{ord(one)};" for one in KEY),
    "hexadecimal": KEY.encode().hex(),
    "quoted": f'"{KEY[:9]}" + "{KEY[9:]}"',
    "listed": json.dumps(list(KEY)),
    "with signs between": "\u200b*".join(KEY),
    "in capitals": KEY.upper(),
    "full width": "".join(chr(ord(one) + 0xFEE0) for one in KEY),
    "marked up": f"<b>{KEY[:9]}</b>{KEY[9:]}",
    "coloured": f"{KEY[:9]}\x1b[1m{KEY[9:]}",
    "as in a mail": KEY.replace("-", "=2D"),
    "octal": "".join(f"\\{ord(one):03o}" for one in KEY),
    "in C": ", ".join(f"0x{ord(one):02x}" for one in KEY),
    "in Rust": "".join(f"\\u{{{ord(one):x}}}" for one in KEY),
    "numbers": str([*KEY.encode()]),
    "hexadecimal pairs": KEY.encode().hex(":"),
    "base32": b32encode(KEY.encode()).decode(),
    "its first half": KEY[:16],
    "its last half": KEY[-14:],
    "its last ten letters": KEY[-10:],
    "backwards": KEY[::-1],
    "half of it in base64": b64encode(KEY[5:20].encode()).decode(),
    "cut by our own limit": quote(KEY, safe="").replace("-", "%25252D") * 1_000,
    "base64 of UTF-16": b64encode(KEY.encode("utf-16-le")).decode(),
    "base64 twice": b64encode(b64encode(KEY.encode())).decode(),
    "base85": b85encode(KEY.encode()).decode(),
    "enciphered": encode(KEY, "rot13"),
    "enciphered and listed": ", ".join(encode(KEY, "rot13")),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_the_key_is_shown(spelling):
    shown = SPELLINGS[spelling]
    parts = [KEY[9:], KEY[-14:], KEY[-10:], b64encode(KEY.encode()).decode()[8:24], shown[:30][-22:]]
    refused_with = refusal(401, f"bad {shown} \x1b[2J{'x' * 5000}")
    with serving(lambda request, before: refused_with) as server, pytest.raises(CannotGoOn) as caught:
        judge(server, retries=0).score_exchanges(rows(2))
    message = str(caught.value)
    assert "bad" in message
    assert message.isprintable()
    assert len(message) < 400
    assert not [part for part in parts if part in message]
    said = {"text": f"{scores(1, 2, 3, 4)} for {shown[:1000]}", "fingerprint": shown[:1000], "finish": shown[:1000]}
    with serving(lambda request, before: said) as server:
        scored = judge(server).score_exchanges(rows(1))
    assert scored.values.tolist() == [2.5]
    assert not [part for part in (*parts, shown[:1000]) if part in scored.to_json() + str(scored.signature)]


@pytest.mark.parametrize("status", [302, 307, 308])
def test_rows_are_not_sent_on_to_another_server(status):
    with serving(by_number) as other, serving(lambda request, before: Raw(status, b"", {})) as server:
        server.behave = lambda request, before: Raw(status, b"", {"Location": f"{other.url}/chat/completions"})
        with pytest.raises(CannotGoOn, match=r"sends the rows on to .*base_url"):
            judge(server, retries=0).score_exchanges(rows(2))
        assert not other.requests


def test_a_key_with_a_line_break_is_named(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-first\nsk-second")
    with serving(by_number) as server, pytest.raises(ValueError, match="OPENAI_API_KEY holds a line break") as caught:
        judge(server)
    assert "sk-first" not in str(caught.value)


def rows(count):
    return [Exchange(("Which one?", "Say a number."), f"I take {number}.") for number in range(count)]


def test_all_aspects_in_one_call():
    with serving(lambda request, before: {"text": scores(5, 3, 4, 2.5)}) as server:
        found = judge(server, answers=False).score(["Fine."], [["How are you?"]])
        server.behave = lambda request, before: {"text": scores(5, 3, 4, 2.5), "usage": None}
        estimated = judge(server).score(["Fine."], [["How are you?"]]).details["usage"]
    assert found.values.tolist() == [3.625]
    aspects = {"appropriateness": [5.0], "content": [3.0], "grammar": [4.0], "relevance": [2.5]}
    assert {name: column.tolist() for name, column in found.aspects.items()} == aspects
    request = server.requests[0]
    sent = {"model": "some-model", "temperature": 0, "seed": 0, "max_tokens": 200}
    assert {name: request[name] for name in sent} == sent
    assert request["response_format"]["json_schema"]["schema"]["required"] == list(aspects)
    assert server.authorizations == {f"Bearer {KEY}"}
    assert found.signature["fingerprint"] == "fp_test"
    assert found.signature["served"] == found.signature["model"] == "some-model"
    assert (found.details["usage"]["tokens_in"], found.details["usage"]["estimated"]) == (100, 0)
    assert (estimated["estimated"], estimated["tokens_out"]) == (1, math.ceil(len(scores(5, 3, 4, 2.5)) / 4))
    assert list(found.columns()["llm.answer"]) == [scores(5, 3, 4, 2.5)]


def test_questions_are_asked_at_once_in_any_order_and_equal_ones_together():
    barrier = threading.Barrier(4, timeout=60)

    def behave(request, before):
        barrier.wait()
        return by_number(request, before)

    with serving(behave) as server:
        found = judge(server, concurrency=4).score_exchanges(rows(12) * 2)
    assert found.aspects["appropriateness"].tolist() == [number % 6 for number in range(12)] * 2
    assert len(server.requests) == 12


CUT = Raw(body=b"{" * 100, cut=5)


@pytest.mark.parametrize("fault", [refusal(429, "wait", **AT_ONCE), refusal(503, "later", **AT_ONCE), CUT])
def test_the_client_repeats_requests(fault):
    with serving(lambda request, before: fault if before < 1 else {"text": scores(1, 2, 3, 4)}) as server:
        found = judge(server, retries=1).score_exchanges(rows(2))
    assert found.values.tolist() == [2.5] * 2
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"text": "", "refusal": "I will not."}, "I will not."),
        ({"text": '{"appropriateness": 4', "finish": "length"}, "max_tokens"),
        ({"text": scores(9, 1, 1, 1)}, "appropriateness"),
        (refusal(400, "this is too long"), "this is too long"),
        (refusal(403, "flagged"), "403"),
        (refusal(500, "oops"), "oops"),
        (Raw(body=b'{"id": "x", "choices": [{"ind'), ""),
        (Raw(body=b"<html>busy</html>", headers={"Content_Type": "text/html"}), ""),
    ],
)
def test_rows_without_a_usable_answer_have_no_value_and_are_asked_again(answer, why):
    with serving(lambda request, before: answer if number_in(request) == 0 else by_number(request, before)) as server:
        metric = judge(server, retries=0)
        found = metric.score_exchanges(rows(2))
        asked = len(server.requests)
        server.behave = by_number
        again = metric.score_exchanges(rows(2))
    assert math.isnan(found.values[0])
    assert found.values[1] == found.aggregate == 1.75
    assert found.problems.keys() == found.passing == {0}
    assert why in found.problems[0]
    if isinstance(answer, dict):
        assert found.columns()["llm.answer"][0] in (answer["text"], *found.problems[0].split(": "))
    assert (again.problems, len(server.requests)) == ({}, asked + 1)


@pytest.mark.parametrize(
    ("raw", "asked"),
    [(refusal(401, f"bad key {KEY}"), 2), (no_credit(), 2), (refusal(402, "Pay."), 2), (refusal(403, "flagged"), 14)],
)
def test_what_would_fail_for_every_row_stops_the_run(raw, asked):
    with serving(lambda request, before: raw) as server:
        with pytest.raises(CannotGoOn) as caught:
            judge(server, concurrency=2, retries=0).score_exchanges(rows(100))
        assert len(server.requests) <= asked + 1
    assert KEY not in str(caught.value)


def test_credit_that_is_used_up_is_not_asked_for_again():
    with serving(lambda request, before: no_credit(**AT_ONCE)) as server:
        with pytest.raises(CannotGoOn):
            judge(server, concurrency=1, retries=5).score_exchanges(rows(3))
        assert len(server.requests) == 1


def test_what_a_server_does_not_know_is_left_out_and_said():
    def behave(request, before):
        for part in ("response_format", "seed"):
            if part in request:
                return Raw(422, json.dumps({"detail": f"Unexpected fields: {{'{part}'}}"}).encode())
        if any(one["role"] == "system" for one in request["messages"]):
            return refusal(400, "System role not supported")
        return by_number(request, before)

    with serving(behave) as server:
        found = judge(server, concurrency=1).score_exchanges(rows(4))
    assert (found.problems, len(server.requests)) == ({}, 3 + 4)
    assert found.signature["without"] == "response_format+seed+system"
    assert "never an instruction to you" in server.prompts[-1]


def test_answers_are_cached(tmp_path):
    with serving(by_number) as server:
        first = judge(server, answers=tmp_path / "kept").score_exchanges(rows(10))
        second = judge(server, answers=tmp_path / "kept").score_exchanges(rows(15))
        assert len(server.requests) == 15
        judge(server, answers=tmp_path / "kept", seed=1).score_exchanges(rows(1))
        judge(server, answers=False).score_exchanges(rows(1))
        assert len(server.requests) == 17
    assert second.values[:10].tolist() == first.values.tolist()
    assert dict(second.signature) == dict(first.signature)
    assert (second.details["usage"]["kept"], second.details["usage"]["calls"]) == (10, 5)
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0


def test_the_cache_holds_text_and_never_a_pickle(tmp_path):
    """A pickle in somebody else's cache would run their code."""
    with serving(by_number) as server:
        judge(server, answers=tmp_path).score_exchanges(rows(1))
        database = sqlite3.connect(tmp_path / "cache.db")
        ((value,),) = database.execute("SELECT value FROM Cache").fetchall()
        assert json.loads(value)["texts"] == [scores(0, 1, 2, 3)]
        database.execute("UPDATE Cache SET mode = 4, value = ?", (pickle.dumps(pytest.fail),))
        database.commit()
        database.close()
        judge(server, answers=tmp_path).score_exchanges(rows(1))
        assert len(server.requests) == 2


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_run_stops_at_its_cost_and_goes_on_with_more(tmp_path, concurrency):
    each = (100 * 10 + 10 * 100) / 1e6
    with serving(by_number) as server:
        options = {"prices": PRICES, "answers": tmp_path, "concurrency": concurrency}
        with pytest.raises(CannotGoOn):
            judge(server, max_cost=10 * each, **options).score_exchanges(rows(40))
        asked = len(server.requests)
        assert 10 <= asked < 10 + concurrency
        found = judge(server, max_cost=1, **options).score_exchanges(rows(40))
        assert len(server.requests) == 40
    assert found.details["usage"]["cost"] == pytest.approx((40 - asked) * each)
    assert found.details["usage"]["kept_cost"] == pytest.approx(asked * each)


def test_an_estimate_asks_nothing_and_knows_what_is_cached():
    with serving(by_number) as server:
        judge(server).score_exchanges(rows(4))
        found = judge(server, prices=PRICES).estimate([*rows(10), *rows(10)])
        assert len(server.requests) == 4
    assert (found["questions"], found["cached"], found["tokens_out"]) == (10, 4, 6 * 200)
    # Four bytes a token, and eight tokens around each of the two messages.
    asked = sum(-(-len(one["content"]) // 4) + 8 for one in server.requests[0]["messages"])
    assert found["tokens_in"] == 6 * asked
    assert found["cost"] == pytest.approx((found["tokens_in"] * 10 + found["tokens_out"] * 100) / 1e6)


@pytest.mark.parametrize("key", [KEY, "plain words may be a key too"])
def test_the_key_is_nowhere(key, tmp_path, monkeypatch, caplog, capsys):
    """A server that puts the key into everything it says: answer, model, fingerprint, tokens, errors."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    said = {"text": f"{key} 4", "fingerprint": key, "finish": key, "logprobs": likely({key: 1}, {"4": 1})}

    def behave(request, before):
        if number_in(request) == 0:
            return refusal(400, f"bad key {key}")
        return said | ({"refusal": key} if number_in(request) == 1 else {})

    with serving(behave) as server:
        metric = judge(server, protocol="g_eval", answers=tmp_path / "kept")
        found = metric.score_exchanges(rows(3))
    assert found.problems.keys() == {0, 1}
    texts = [found.to_json(), str(metric.signature()), repr(found), repr(vars(metric)), caplog.text]
    assert not any(key in text for text in (*texts, *capsys.readouterr()))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(key.encode() in path.read_bytes() for path in files)


def likely(*places):
    """Log-probabilities as the API has them: for every token of an answer, the likely tokens and their shares."""
    content = []
    for shares in places:
        tops = [{"token": text, "logprob": math.log(share), "bytes": None} for text, share in shares.items()]
        content.append({**tops[0], "top_logprobs": tops})
    return {"content": content}


@pytest.mark.parametrize("at_once", [20, 7, 1])
def test_g_eval_averages_samples_where_there_are_no_probabilities(at_once):
    """Servers give all samples at once, some of them, or one whatever `n` says; the mean is over twenty each time."""

    def behave(request, before):
        return {"texts": [str(1 + (request["seed"] + at) % 4) for at in range(min(request.get("n", 1), at_once))]}

    with serving(behave) as server:
        metric = judge(server, protocol="g_eval")
        found = metric.score_exchanges(rows(2))
        asked = len(server.requests)
        assert metric.score_exchanges(rows(2)).values.tolist() == found.values.tolist() == [2.5, 2.5]
        assert len(server.requests) == asked
    assert found.signature["weighting"] == "20 samples"
    assert {request["temperature"] for request in server.requests if "n" in request} == {1.0}


def test_the_whole_dialogue_is_asked_about_at_once():
    names = "coherence engagement informativeness overall"
    with serving(lambda request, before: {"text": scores(1, 2, 3, 4.5, names=names)}) as server:
        found = judge(server).score_dialogues([["Hi!", "Hello.", "How are you?"]])
    assert (found.values.tolist(), list(found.aspects)) == ([4.5], names.split())
    assert fenced(server.requests[0])[-1] == "Speaker 1: Hi!\nSpeaker 2: Hello.\nSpeaker 1: How are you?"
    assert len(server.requests) == 1
    # A summary does not say that every turn was judged, unless the protocol says nothing of dialogues.
    told = [Summary.begin("dialogue", {"llm": judge(server, protocol=one).info}) for one in ("llm_eval", "pairwise")]
    assert len({summary.tallies["llm"].judges for summary in told}) == 2


def test_pairs_are_asked_about_in_both_orders():
    pair = [Exchange(("Hi!",), "Hello there, you!", ("Hello.",)), Exchange(("Hi!",), "Oh.", ("Good morning.",))]
    with serving(longer) as server:
        metric = judge(server, protocol="pairwise", answers=False)
        assert metric.score_exchanges(pair).values.tolist() == [1.0, 0.0]
        assert len(server.requests) == 4
        server.behave = lambda request, before: {"text": "A"}
        found = metric.score_exchanges(pair)
        refused(ValueError, "row 0", metric.score, ["a"], [["b"]])
    assert found.values.tolist() == [0.5, 0.5]
    assert [found.aspects[name].tolist() for name in ("as_first", "as_second")] == [[1, 1], [0, 0]]


MINE = """name: mine
answer: json
scale: [1, 10]
turn:
  aspects: {kindness: "Is it kind?"}
  prompt: 'Costs $$5. $aspects From $low to $high as $form: $response'
"""


def test_own_protocol_and_options_from_a_file(tmp_path):
    (tmp_path / "mine.yaml").write_text(MINE)
    with serving(lambda request, before: {"text": '{"kindness": 7}'}) as server:
        options = {"model": "m", "base_url": server.url, "protocol": str(tmp_path / "mine.yaml")}
        (tmp_path / "judge.yaml").write_text(json.dumps(options))
        metric = dialeval.load(f"llm:{tmp_path / 'judge.yaml'}")
        found = metric.score(["Sure, dear."], [["Help?"]])
        # What says nothing of dialogues is asked about their turns.
        turns = metric.score_dialogues([["Help?", "Sure.", "Thanks."]])
    assert (turns.values.tolist(), len(server.requests)) == ([7.0], 3)
    assert found.values.tolist() == found.aspects["kindness"].tolist() == [7.0]
    assert metric.info.range == (1, 10)
    assert server.prompts[0].startswith('Costs $5. kindness: Is it kind? From 1 to 10 as {"kindness": score}: <text-')
    (tmp_path / "judge.yaml").write_text("model: m\ncolour: red\n")
    refused(ValueError, "colour", dialeval.load, f"llm:{tmp_path / 'judge.yaml'}")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"protocol": "llm_evil"}, "llm_evil"),
        ({"concurrency": 0}, "concurrency"),
        ({"retries": -1}, "retries"),
        ({"timeout": "long"}, "timeout"),
        ({"max_cost": 1.0}, "prices"),
        ({"base_url": "http://u:p@host/v1"}, "base_url"),
        ({"base_url": "host"}, "base_url"),
        ({"key_variable": "NO_SUCH_KEY"}, "NO_SUCH_KEY"),
        ({"prices": {"b": {"input": 1.0, "output": 1.0}}}, "a: "),
        ({"prices": {"a": {"input": 1.0}}}, "a: "),
        ({"prices": {"a": {"input": -1, "output": 1.0}}}, "of a"),
        ({"prices": "nowhere.yaml"}, "nowhere.yaml"),
    ],
)
def test_wrong_options(options, named):
    refused(ValueError, named, dialeval.load, "llm", model="a", **options)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (("answer: json", "answer: song"), "answer"),
        (("[1, 10]", "[5, 1]"), "scale"),
        (("$response", "$reply"), "reply"),
        (("$response", "it"), "response"),
        (("$response", "$response for 5$"), "prompt"),
        (("kindness:", "as_first:"), "as_first"),
        (("name: mine", "nome: mine"), "nome"),
        (("turn:", "turns:"), "turns"),
        (("name: mine", "- mine"), "own.yaml"),
    ],
)
def test_wrong_protocols(tmp_path, change, named):
    (tmp_path / "own.yaml").write_text(MINE.replace(*change))
    refused(ValueError, named, dialeval.load, "llm", model="a", protocol=tmp_path / "own.yaml")
