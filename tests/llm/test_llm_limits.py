"""Money and pace: nothing is passed that was set as a limit, and what is asked is counted."""

from __future__ import annotations

import threading

import pytest

pytest.importorskip("openai")

from test_llm_judge import by_number, judge, rows

from dialeval.llm.estimate import estimates
from dialeval.llm.pace import Pace
from dialeval.llm.spending import Budget, BudgetSpent, likely_tokens, read_prices
from loopback_llm import Raw, refusal, scores, serving

PRICES = {"some-model": {"input": 10.0, "output": 100.0}}


@pytest.fixture(autouse=True)
def _key(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789abcdef")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def starts(pace, clock, sizes):
    """When each request starts if each is made as soon as the one before was told its time."""
    return [round(clock.now + pace.wait_for(size), 6) for size in sizes]


def test_requests_of_any_minute_are_bounded():
    clock = Clock()
    pace = Pace(3, clock=clock)
    assert starts(pace, clock, [1] * 7) == [0, 0, 0, 60, 60, 60, 120]
    clock.now = 200
    assert starts(pace, clock, [1]) == [200]


def test_tokens_of_any_minute_are_bounded():
    clock = Clock()
    pace = Pace(None, 100, clock=clock)
    assert starts(pace, clock, [60, 30, 20, 10]) == [0, 0, 60, 60]
    # One that is larger than the limit goes alone.
    assert starts(pace, clock, [500, 1]) == [120, 180]


def test_no_window_of_a_minute_holds_more():
    clock = Clock()
    pace = Pace(5, 50, clock=clock)
    booked = []
    for number in range(60):
        clock.now += 3.7
        size = 1 + 7 * number % 20
        booked.append((clock.now + pace.wait_for(size), size))
    for begin, _ in booked:
        window = [size for at, size in booked if begin <= at < begin + 60 - 1e-6]
        assert len(window) <= 5
        assert sum(window) <= 50
    begun = [round(at, 6) for at, _ in booked]
    assert begun == sorted(begun)


def test_a_pause_holds_for_all():
    clock = Clock()
    pace = Pace(clock=clock)
    pace.pause(7)
    assert (pace.wait_for(1), pace.paused()) == (7, 7)
    clock.now = 8
    assert (pace.wait_for(1), pace.paused()) == (0, 0)


def test_a_server_that_says_wait_is_left_alone_by_all(monkeypatch):
    pauses = []
    monkeypatch.setattr(Pace, "pause", lambda self, seconds: pauses.append(seconds))
    with serving(
        lambda request, before: refusal(429, "wait", Retry_After="0.02") if before == 0 else by_number(request, 0)
    ) as server:
        assert judge(server).score_exchanges(rows(2)).problems == {}
    assert pauses == [0.02, 0.02]


def test_the_budget_waits_for_answers_under_way_and_then_stops():
    budget = Budget(1.0)
    budget.reserve(0.6)
    lines = []
    other = threading.Thread(target=lambda: (budget.reserve(0.6), lines.append("went on")))
    other.start()
    budget.settle(0.6, 0.1)
    other.join(timeout=30)
    assert lines == ["went on"]
    budget.settle(0.6, 0.6)
    assert budget.spent == pytest.approx(0.7)
    with pytest.raises(BudgetSpent, match=r"\$0.700000 of the \$1 of max_cost are spent"):
        budget.reserve(0.31)


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.slow
def test_a_run_never_passes_its_budget_and_goes_on_with_more(tmp_path, concurrency):
    each = (100 * 10 + 10 * 100) / 1e6
    with serving(by_number) as server:
        options = {"prices": PRICES, "answers": tmp_path, "concurrency": concurrency}
        with pytest.raises(BudgetSpent, match="answers so far are kept"):
            judge(server, max_cost=0.1, **options).score_exchanges(rows(100))
        asked = len(server.requests)
        assert 0 < asked * each <= 0.1
        found = judge(server, max_cost=10, **options).score_exchanges(rows(100))
        assert len(server.requests) == 100
    assert found.problems == {}
    assert found.details["usage"]["cost"] == pytest.approx((100 - asked) * each)
    assert found.details["usage"]["kept_cost"] == pytest.approx(asked * each)


def test_what_may_have_been_billed_counts(monkeypatch):
    """A server that works but whose answers are lost on the way must not eat more than the budget."""
    monkeypatch.setattr("dialeval.llm.runner._FIRST_WAIT", 0.001)
    with serving(lambda request, before: Raw(body=b"{" * 100, cut=5)) as server:
        metric = judge(server, prices=PRICES, max_cost=0.1, concurrency=1, retries=100)
        with pytest.raises(BudgetSpent):
            metric.score_exchanges(rows(1))
        assert metric.members[0].once.budget.spent <= 0.1
        assert len(server.requests) < 10


def test_a_server_that_does_not_count_is_estimated():
    with serving(lambda request, before: {"text": scores(1, 2, 3, 4), "usage": None}) as server:
        usage = judge(server).score_exchanges(rows(1)).details["usage"]
    assert usage["estimated"] == 1
    assert usage["tokens_out"] == likely_tokens(scores(1, 2, 3, 4))
    assert usage["tokens_in"] > 200


def test_an_estimate_asks_nothing_and_knows_what_was_answered(tmp_path):
    with serving(by_number) as server:
        judge(server, answers=tmp_path).score_exchanges(rows(4))
        metric = judge(server, answers=tmp_path, prices=PRICES)
        (found,) = estimates(metric, [*rows(10), *rows(10)])
        assert len(server.requests) == 4
    assert (found.questions, found.kept, found.tokens_out) == (10, 4, 6 * 200)
    assert found.cost == pytest.approx((found.tokens_in * 10 + found.tokens_out * 100) / 1e6)
    (question,) = metric.questions_about(rows(1)[0])
    # Four bytes a token, and eight tokens around each of the two messages.
    assert found.tokens_in == 6 * (16 + sum(-(-len(one["content"]) // 4) for one in question.messages))


@pytest.mark.parametrize(
    ("text", "why"),
    [("[]", "hold no models"), ("m: {input: 1}", "m needs input and output"), ("m: {input: -1, output: 1}", "m needs")],
)
def test_wrong_prices(tmp_path, text, why):
    (tmp_path / "prices.yaml").write_text(text)
    with pytest.raises(ValueError, match=why):
        read_prices(tmp_path / "prices.yaml")
