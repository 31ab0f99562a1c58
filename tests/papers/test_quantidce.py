"""QuantiDCE: the specification's vectors for every loss, gradients, traces and the checkpoint."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dialeval.papers.quantidce import (
    MultiLevelRanking,
    QuantiDce,
    Trace,
    binary_loss,
    centroids,
    compactness_loss,
    distillation_loss,
    fast_triplet_loss,
    feature_ranking_loss,
    margin_ranking_loss,
    ordering_loss,
    rating_loss,
    separation_loss,
    supervised_contrastive_loss,
    vanilla_ranking_loss,
)
from refusals import refused
from small_checkpoints import TEXTS, small_network, tensors

#: Scores per level from low to high, two replies each.
CASES = {
    "A": [(0.2, 0.3), (0.5, 0.4), (0.9, 0.5)],
    "B": [(0.9, 0.5), (0.5, 0.4), (0.2, 0.3)],
    "C": [(0.1, 0.1), (0.4, 0.4), (0.7, 0.7)],
    "D": [(0.5, 0.5), (0.5, 0.5), (0.5, 0.5)],
    "E": [(0.7, 0.7), (0.4, 0.4), (0.1, 0.1)],
}


def case(*names: str) -> Tensor:
    return torch.tensor([CASES[name] for name in names], dtype=torch.float64)


#: By case: separation; compactness of each reply and of the mean; the right order and the printed one; the sum as the
#: code has it, as the paper means it, and as it is printed.
TABLE = {
    "A": (0.3, 0.2, 0.1, 0.0, 0.9, 0.4, 0.5, 1.4),
    "B": (0.3, 0.2, 0.1, 0.9, 0.0, 1.3, 1.4, 0.5),
    "C": (0.0, 0.0, 0.0, 0.0, 1.2, 0.0, 0.0, 1.2),
    "D": (1.2, 0.0, 0.0, 0.0, 0.0, 1.2, 1.2, 1.2),
    "E": (0.0, 0.0, 0.0, 1.2, 0.0, 1.2, 1.2, 0.0),
}


@pytest.mark.parametrize("name", TABLE)
def test_table_of_the_specification(name: str) -> None:
    scores = case(name)
    centres = centroids(scores)
    losses = [
        separation_loss(centres),
        compactness_loss(scores, centres, kind="per_item"),
        compactness_loss(scores, centres),
        ordering_loss(centres),
        ordering_loss(centres, "as_printed"),
        MultiLevelRanking()(scores),
        MultiLevelRanking(compactness="per_item")(scores),
        MultiLevelRanking(compactness="per_item", ordering="as_printed")(scores),
    ]
    assert [loss.item() for loss in losses] == pytest.approx(TABLE[name], abs=1e-12)


@pytest.mark.parametrize(("off", "remaining"), [("separation", 1.0), ("compactness", 1.2), ("ordering", 0.4)], ids=str)
def test_each_part_can_be_switched_off(off: str, remaining: float) -> None:
    ranking = MultiLevelRanking(**{f"{off}_weight": 0.0})  # type: ignore[arg-type]
    assert ranking(case("B")).item() == pytest.approx(remaining)
    assert off not in ranking.parts(case("B"))


def test_compared_losses_on_case_a() -> None:
    scores = case("A")
    assert binary_loss(scores).item() == pytest.approx(0.430383166, abs=1e-9)
    assert margin_ranking_loss(scores).item() == pytest.approx(0.075)
    # A sum of 1.0 over all twelve pairs, four for every two levels.
    assert vanilla_ranking_loss(scores).item() * 4 == pytest.approx(1.0)
    assert vanilla_ranking_loss(scores, on_means=True).item() == pytest.approx(0.15)
    assert vanilla_ranking_loss(scores, adjacent_only=True).item() * 4 == pytest.approx(0.9)


@pytest.mark.parametrize(("temperature", "expected"), [(0.5, 0.676400755), (1.0, 0.780154725), (0.1, 1.533147395)])
def test_supervised_contrast_of_the_specification(temperature: float, expected: float) -> None:
    features = torch.tensor([(1, 0), (4, 3), (0, 1), (-1, 0)], dtype=torch.float64)
    loss = supervised_contrastive_loss(features, torch.tensor([1, 1, 2, 2]), temperature)
    assert loss.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("margin", "expected"), [(1.0, 0.5), (4.0, 1.341396596)])
def test_fast_triplets_of_the_specification(margin: float, expected: float) -> None:
    points = torch.tensor([(0, 0), (0, 2), (3, 0), (5, 0)], dtype=torch.float64)
    loss = fast_triplet_loss(points, torch.tensor([0, 0, 1, 1]), margin)
    assert loss.item() == pytest.approx(expected, abs=1e-9)


def test_feature_ranking_by_hand() -> None:
    # Levels along orthogonal and opposite axes: distances 1, 1, 2 and no spread.
    axes = torch.tensor([[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2, [[-1.0, 0.0]] * 2])[None]
    assert feature_ranking_loss(axes).item() == pytest.approx(0.0, abs=1e-6)
    # All the same: every pair of levels misses its whole margin, 1 + 1 + 2.
    same = torch.ones(1, 3, 2, 2)
    assert feature_ranking_loss(same).item() == pytest.approx(4.0, abs=1e-6)


def spec_traces() -> tuple[Trace, Trace]:
    def trace(*values: list[Any]) -> Trace:
        hidden, attention, score = (torch.tensor(value, dtype=torch.float64) for value in values)
        return Trace((hidden,), (attention,), score)

    teacher = trace([[1, 2], [0, -1]], [[0.7, 0.3], [0.5, 0.5]], [0.6])
    return teacher, trace([[1.5, 2], [0, 0]], [[0.6, 0.4], [0.5, 0.5]], [0.7])


def test_distillation_of_the_specification() -> None:
    teacher, student = spec_traces()
    fitting = rating_loss(student.score, torch.tensor([3.2], dtype=torch.float64))
    assert fitting.item() == pytest.approx(0.36)
    assert distillation_loss(teacher, student).item() == pytest.approx(0.3275)
    assert distillation_loss(teacher, student, "sum").item() == pytest.approx(1.28)
    assert (fitting + 5 * distillation_loss(teacher, student)).item() == pytest.approx(1.9975)
    assert (fitting + 5 * distillation_loss(teacher, student, "sum")).item() == pytest.approx(6.76)
    refused(ValueError, "distance is 'max'", distillation_loss, teacher, student, "max")  # type: ignore[arg-type]


def test_distillation_gradient_reaches_the_student_only() -> None:
    traces = spec_traces()
    for trace in traces:
        for tensor in (*trace.hidden, *trace.attentions, trace.score):
            tensor.requires_grad_()
    distillation_loss(*traces).backward()
    for trace, learns in zip(traces, (False, True), strict=True):
        assert [tensor.grad is not None for tensor in (*trace.hidden, *trace.attentions, trace.score)] == [learns] * 3


def test_a_trace_is_the_same_pass(tiny_encoder: Path) -> None:
    network = small_network("quantidce", tiny_encoder)
    given_tensors = tensors(network)
    with torch.no_grad():
        row = network(**given_tensors)
        trace = network.trace(**given_tensors)
    assert row.shape == (3, 33)
    torch.testing.assert_close(trace.score, row[:, -1], rtol=1e-4, atol=1e-5)
    assert len(trace.hidden) == 3
    assert len(trace.attentions) == 2
    assert distillation_loss(trace, trace).item() == 0.0
    for attention in trace.attentions:
        torch.testing.assert_close(attention.sum(dim=-1), torch.ones(attention.shape[:-1]))


def test_scores_before_the_softmax_give_the_probabilities_after_it(tiny_encoder: Path) -> None:
    network = small_network("quantidce", tiny_encoder)
    given_tensors = tensors(network)
    with torch.no_grad():
        after = network.trace(**given_tensors)
        before = network.trace(**given_tensors, attention="pre_softmax")
    mask = given_tensors["attention_mask"].bool()
    for raw, probability in zip(before.attentions, after.attentions, strict=True):
        assert (raw[(~mask)[:, None, None, :].expand_as(raw)] == 0).all()
        rebuilt = raw.masked_fill(~mask[:, None, None, :], float("-inf")).softmax(dim=-1)
        real = mask[:, None, :, None].expand_as(rebuilt)
        torch.testing.assert_close(rebuilt[real], probability[real], rtol=1e-4, atol=1e-5)


def test_checkpoint_scores_lie_between_1_and_5(tiny_encoder: Path, tmp_path: Path) -> None:
    network = small_network("quantidce", tiny_encoder)
    with torch.no_grad():
        expected = 1 + 4 * network(**tensors(network))[:, -1].double().numpy()
    leaks = ("dailydialogpp_dev", "dailydialog_grade")
    network.config = replace(network.config, quantiles={}, contaminated_by=leaks)
    network.save_pretrained(tmp_path)
    metric = QuantiDce(tmp_path, device="cpu")
    scores = metric.score_exchanges(TEXTS)
    assert scores.values == pytest.approx(expected, abs=1e-5)
    assert ((scores.values > 1) & (scores.values < 5)).all()
    assert metric.contaminated_by == set(leaks)
    assert metric.score_exchanges(TEXTS[::-1]).values[::-1] == pytest.approx(scores.values, abs=1e-6)
    refused(ValueError, "quantiles", metric.score_exchanges, TEXTS, scale="human_percentile")


def test_sums_as_centroids_punish_perfect_scores() -> None:
    sums = centroids(case("A"), "sum")
    assert sums[0].tolist() == pytest.approx([0.5, 0.9, 1.4])
    assert separation_loss(sums).item() == pytest.approx(0.0)
    assert compactness_loss(case("A"), sums, kind="per_item").item() == pytest.approx(2.2)
    assert compactness_loss(case("A"), sums).item() == pytest.approx(1.1)
    assert ordering_loss(sums).item() == pytest.approx(0.0)
    perfect = MultiLevelRanking(centroid="sum", compactness="per_item")
    assert perfect(case("C")).item() == pytest.approx(1.8)
