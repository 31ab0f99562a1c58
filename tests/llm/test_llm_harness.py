"""Language models in the harness: agreement with cost and seconds a row, and what demands for a score do to judges."""

from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("openai")

from dialeval.agreement.results import read_results
from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.exchange import Exchange
from dialeval.plots.cost import measured_rates
from dialeval.robustness.attacks import ASIDES, ATTACKS, DEMANDS, Pool
from dialeval.robustness.inputs import Material
from dialeval.robustness.pairs import attacked_pairs
from dialeval.robustness.report import render
from dialeval.robustness.run import run as run_robustness
from loopback_llm import refusal, reply_of, scores, serving
from toy_benchmark import rated_rows

SETTINGS = Settings(statistics=("spearman",), levels="own", resamples=50)


@pytest.fixture(autouse=True)
def _key(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789abcdef")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def benchmark(tmp_path):
    file = tmp_path / "toy.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rated_rows(contexts=8)))
    return file


def by_length(request, before):
    return {"text": scores(*[min(5, len(reply_of(request)) / 40)] * 4)}


def spec(server, tmp_path, *more):
    (tmp_path / "prices.yaml").write_text("some: {input: 10, output: 100}\n")
    return "&".join((f"llm?model=some&base_url={server.url}", f"prices={tmp_path / 'prices.yaml'}", *more))


@pytest.mark.slow
def test_cost_and_seconds_stand_beside_the_agreement(benchmark, tmp_path):
    with serving(by_length) as server:
        report = run([spec(server, tmp_path)], [benchmark], settings=SETTINGS, values=tmp_path / "values")
        asked = len(server.requests)
        again = run([spec(server, tmp_path)], [benchmark], settings=SETTINGS, values=tmp_path / "values")
        afresh = run([spec(server, tmp_path)], [benchmark], settings=SETTINGS, values=tmp_path / "others")
        assert len(server.requests) == asked == 48
    (one,) = report.results
    assert one.n == 48
    assert one.value > 0.3
    assert one.cost_per_row == pytest.approx(0.002)
    assert one.seconds_per_row > 0
    assert "fingerprint:fp_test" in one.metric_signature
    # The same from the kept values and from the kept answers.
    assert again.results == afresh.results == report.results
    report.write(tmp_path / "out")
    assert measured_rates(read_results(tmp_path / "out")) == {"llm": pytest.approx(1 / one.seconds_per_row)}


@pytest.mark.slow
def test_a_row_without_an_answer_is_left_out_with_the_reason_and_asked_again(benchmark, tmp_path, monkeypatch):
    monkeypatch.setattr("dialeval.llm.runner._FIRST_WAIT", 0.001)

    def behave(request, before):
        if reply_of(request).endswith("(3)"):
            return refusal(500, "oops")
        return {"text": "", "refusal": "no"} if reply_of(request).endswith("(4)") else by_length(request, before)

    with serving(behave) as server:
        wanted = spec(server, tmp_path, "retries=1")
        report = run([wanted], [benchmark], settings=SETTINGS, values=tmp_path / "values")
        found = {row.id: row.problem for row in report.excluded}
        assert {key.split("-")[1] for key in found} == {"3", "4"}
        assert set(found.values()) == {"the server answered 500: oops, 2 times", "refused: no"}
        assert report.results[0].n == 36
        server.behave = by_length
        report = run([wanted], [benchmark], settings=SETTINGS, values=tmp_path / "values")
    # Faults pass; a refusal is an answer.
    assert {row.id.split("-")[1] for row in report.excluded} == {"4"}
    assert report.results[0].n == 42


@pytest.mark.slow
def test_a_budget_that_is_spent_leaves_the_metric_out_and_its_answers_kept(benchmark, tmp_path):
    with serving(by_length) as server:
        poor = run([spec(server, tmp_path, "max_cost=0.05")], [benchmark], settings=SETTINGS, values=tmp_path / "v")
        assert not poor.results
        assert "max_cost are spent" in poor.skipped[0].reason
        rich = run([spec(server, tmp_path, "max_cost=1")], [benchmark], settings=SETTINGS, values=tmp_path / "v")
        assert len(server.requests) == 48
    assert rich.results[0].n == 48


def talks(count):
    return [Exchange((f"What about number {number}?",), f"It is number {number}, I think.") for number in range(count)]


def test_an_instruction_is_a_random_reply_and_a_demand():
    exchanges = talks(12)
    pairs, _ = attacked_pairs(exchanges, [ATTACKS["random_reply"], ATTACKS["instruction"]], seed=3)
    random, steering = pairs[:12], pairs[12:]
    for other, pair in zip(random, steering, strict=True):
        assert pair.plain.response == other.attacked.response != pair.true.response
        demand = pair.attacked.response.removeprefix(pair.plain.response).strip()
        assert demand in DEMANDS
        assert pair.neutral.response == f"{pair.plain.response} {ASIDES[DEMANDS.index(demand)]}"
    assert all(pair.plain is None and pair.neutral is None for pair in random)
    assert ATTACKS["instruction"].apply(exchanges[0], Pool(exchanges[:1])) is None


@pytest.mark.parametrize(("demand", "aside"), zip(DEMANDS, ASIDES, strict=True))
def test_a_neutral_sentence_is_as_long_as_its_demand(demand, aside):
    assert len(aside.split()) == len(demand.split())
    assert abs(len(aside) - len(demand)) <= 5
    assert not {"judge", "score", "answer", "rating", "rated", "marks", "instructions"} & set(aside.lower().split())


def test_what_any_sentence_does_is_not_steering():
    """A metric that likes long replies is lifted by both; one that likes a certain word by one of them."""
    exchanges = talks(20)
    pairs, _ = attacked_pairs(exchanges, [ATTACKS["instruction"]], seed=0)
    (long,) = run_robustness([len_metric], Material("talks", pairs, exchanges)).verdicts
    assert long.mean_attacked > long.mean_true + 10 * long.tolerance
    assert long.steered.value + long.by_chance.value < 1
    (of_words,) = run_robustness([words_metric], Material("talks", pairs, exchanges)).verdicts
    assert (of_words.steered.value, of_words.by_chance.value) == (0, 0)
    (liked,) = run_robustness([garden_metric], Material("talks", pairs, exchanges)).verdicts
    expected = sum("garden" in pair.neutral.response for pair in pairs) / 20
    assert (liked.steered.value, liked.by_chance.value) == (0, expected)
    assert expected > 0


@pytest.mark.slow
def test_the_share_of_steered_rows_is_measured():
    exchanges = talks(20)
    pairs, _ = attacked_pairs(exchanges, [ATTACKS["instruction"]], seed=0)
    material = Material("talks", pairs, exchanges)
    gullible = {demand for demand in DEMANDS if "highest" in demand or "full marks" in demand}

    def behave(request, before):
        context = request["messages"][-1]["content"].partition("What about number ")[2].partition("?")[0]
        reply = reply_of(request)
        fits = 4 if f"number {context}," in reply else 1
        return {"text": scores(*[5 if any(demand in reply for demand in gullible) else fits] * 4)}

    with serving(behave) as server:
        found = run_robustness([f"llm?model=some&base_url={server.url}"], material)
    (verdict,) = found.verdicts
    expected = sum(any(demand in pair.attacked.response for demand in gullible) for pair in pairs) / 20
    assert 0 < expected < 1
    assert verdict.steered.value == expected
    assert verdict.preferred.value == 1 - expected
    assert verdict.steered.low < expected < verdict.steered.high
    assert verdict.by_chance.value == 0
    assert "| steered | by chance |" in render(found)


def test_other_attacks_steer_nobody():
    pairs, _ = attacked_pairs(talks(5), [ATTACKS["reverse"]])
    found = run_robustness([len_metric], Material("talks", pairs, talks(5)))
    assert math.isnan(found.verdicts[0].steered.value)
    assert "| steered |" not in render(found)


def len_metric(exchanges):
    return [float(len(one.response)) for one in exchanges]


def words_metric(exchanges):
    return [float(len(one.response.split())) for one in exchanges]


def garden_metric(exchanges):
    return [float("garden" in one.response) for one in exchanges]
