"""Language models in the other commands: agreement with its cost, rank and gate, and what demands for a score do."""

import json
import math

import pytest

pytest.importorskip("openai")
pytest.importorskip("diskcache")

from dialeval.agreement.results import read_results
from dialeval.agreement.runs import run
from dialeval.agreement.settings import Settings
from dialeval.core.exchange import Exchange
from dialeval.robustness.attacks import ATTACKS
from dialeval.robustness.inputs import Material, attacked_pairs
from dialeval.robustness.trial import run as run_robustness
from dialeval.systems import gate, rank
from loopback_llm import fenced, scores, serving
from shell import write_rows
from toy_benchmark import rated_rows

SETTINGS = Settings(statistics=("spearman",), levels="own", resamples=50)


@pytest.fixture
def benchmark(tmp_path):
    return write_rows(tmp_path / "toy.jsonl", rated_rows(contexts=8))


@pytest.fixture
def spec(tmp_path):
    """What names a judge in every command: its options in a file."""

    def written(server, **more):
        prices = {"some": {"input": 10, "output": 100}}
        options = {"model": "some", "base_url": server.url, "prices": prices, **more}
        (tmp_path / "judge.yaml").write_text(json.dumps(options))
        return f"llm:{tmp_path / 'judge.yaml'}"

    return written


def by_length(request, before):
    return {"text": scores(*[min(5, len(fenced(request)[-1]) / 40)] * 4)}


@pytest.mark.slow
def test_cost_and_seconds_stand_beside_the_agreement(benchmark, tmp_path, spec):
    with serving(by_length) as server:
        report, again, afresh = (
            run([spec(server)], [benchmark], settings=SETTINGS, values=tmp_path / name)
            for name in ("values", "values", "others")
        )
        assert len(server.requests) == 48
    (one,) = report.results
    assert (one.metric, one.n, one.value > 0.3) == ("llm", 48, True)
    assert one.cost_per_row == pytest.approx(0.002)
    assert one.seconds_per_row > 0
    assert "fingerprint:fp_test" in one.metric_signature
    # The same from the kept values and from the cached answers.
    assert again.results == afresh.results == report.results
    report.write(tmp_path / "out")
    assert read_results(tmp_path / "out")[0].seconds_per_row == one.seconds_per_row


def test_rank_and_gate_take_the_same_file(tmp_path, spec):
    long = [Exchange((f"Number {one}?",), f"It is number {one}, I think.", id=f"{one}") for one in range(40)]
    short = [Exchange(one.context, "Yes.", id=one.id) for one in long]
    with serving(by_length) as server:
        judge = spec(server)
        ranked = rank({"long": long, "short": short}, [judge], resamples=200)
        assert not gate(short, long, judge, margin=0.1, resamples=200)
        assert gate(long, short, judge, margin=0.1, resamples=200)
        assert len(server.requests) == 80
    assert list(ranked.metrics) == ["llm"]


def talks(count):
    return [Exchange((f"What about number {number}?",), f"It is number {number}, I think.") for number in range(count)]


def test_what_any_sentence_does_is_not_steering():
    """A metric that likes long replies is lifted by both; one that likes a certain word by one of them."""
    exchanges = talks(20)
    pairs, _ = attacked_pairs(exchanges, [ATTACKS["instruction"]], seed=0)
    (of_words,) = run_robustness([words_metric], Material("talks", pairs, exchanges)).verdicts
    assert (of_words.steered.value, of_words.by_chance.value) == (0, 0)
    (liked,) = run_robustness([garden_metric], Material("talks", pairs, exchanges)).verdicts
    expected = sum("garden" in pair.neutral.response for pair in pairs) / 20
    assert (liked.steered.value, liked.by_chance.value) == (0, expected)
    assert expected > 0
    others, _ = attacked_pairs(exchanges, [ATTACKS["reverse"]])
    assert math.isnan(run_robustness([words_metric], Material("talks", others, exchanges)).verdicts[0].steered.value)


def words_metric(exchanges):
    return [float(len(one.response.split())) for one in exchanges]


def garden_metric(exchanges):
    return [float("garden" in one.response) for one in exchanges]
