"""FBD and PRD as metrics: features, systems, the human side, shards, intervals, refusals."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.checkpoints.find import CheckpointError
from dialeval.core.exchange import BadRow, Exchange
from dialeval.encoders.batching import collate
from dialeval.encoders.layout import PairTokenizer
from dialeval.papers import network_class
from dialeval.papers.distribution import EncodedRows
from dialeval.papers.fbd import Fbd, FbdState
from dialeval.papers.feature_set import FrozenFeatures
from dialeval.papers.prd import Prd
from refusals import refused
from shell import invoke, write_rows
from small_checkpoints import small_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:fewer")
KINDS: dict[str, Any] = {"fbd": Fbd, "prd": Prd}

NOUNS = "fish chips weather walk week dog cat".split()
CONTEXTS = [["hello there", f"do you like the {noun}"] for noun in NOUNS]
HUMAN = [f"yes i like the {noun} and how are you" for noun in NOUNS]
#: Four replies like the human ones, three of another kind.
SYSTEM = [f"yes i like the {noun} and how are you today" for noun in NOUNS[:4]] + [f"no thank {n}" for n in NOUNS[4:]]


def made(kind: str, encoder: Path, **options: Any) -> Any:
    """A metric over the tiny encoder; one thread of clusters is enough for seven rows."""
    return KINDS[kind](encoder, **({"clusters": 4, "runs": 3} if kind == "prd" else {}), **options)


def rows(
    replies: Sequence[str] = SYSTEM, system: str | None = None, contexts: Sequence[Any] = CONTEXTS
) -> list[Exchange]:
    return [
        Exchange(tuple(context), reply, (human,), system=system)
        for context, reply, human in zip(contexts, replies, HUMAN, strict=True)
    ]


@pytest.fixture(params=["fbd", "prd"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_features_are_the_last_layer_of_the_pair(tiny_encoder: Path, pooling: Any) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    result = FrozenFeatures(tiny_encoder, pooling=pooling).of([Exchange(("hello there", "how are you"), "fine thanks")])
    tokenizer, model = AutoTokenizer.from_pretrained(tiny_encoder), AutoModel.from_pretrained(tiny_encoder)
    encoded = tokenizer("hello there how are you", "fine thanks", return_tensors="pt")
    segments = [[0] * 7 + [1] * 3]  # [CLS] five words [SEP], two words [SEP]
    with torch.no_grad():
        hidden = model(encoded["input_ids"], token_type_ids=torch.tensor(segments)).last_hidden_state[0]
    wanted = hidden[0] if pooling == "cls" else hidden.mean(dim=0)
    assert result.rows[0] == pytest.approx(wanted.numpy(), abs=1e-5)


def test_metrics_of_one_encoder_share_it_and_encode_a_pair_once(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fbd, prd = made("fbd", tiny_encoder), made("prd", tiny_encoder)
    assert fbd.features is prd.features
    assert made("fbd", tiny_encoder, pooling="mean").features is not fbd.features
    fbd.score_exchanges(rows())
    monkeypatch.setattr(fbd.features.encoder, "network", None)  # nothing can be encoded any more
    prd.score_exchanges(rows())


def test_fbd_is_the_distance_of_the_two_feature_sets(tiny_encoder: Path) -> None:
    """By the textbook formula, with a covariance of full rank for which it is safe."""
    from scipy.linalg import sqrtm

    metric = made("fbd", tiny_encoder)
    chance = np.random.default_rng(0)
    contexts = [chance.choice(NOUNS, 5).tolist() for _ in range(90)]
    replies, humans = ([" ".join(chance.choice(NOUNS, 4)) for _ in contexts] for _ in range(2))
    ours, theirs = (
        metric.features.of([Exchange(tuple(c), r) for c, r in zip(contexts, texts, strict=True)]).rows.astype(float)
        for texts in (replies, humans)
    )
    spread = np.cov(ours.T), np.cov(theirs.T)
    wanted = ((ours.mean(0) - theirs.mean(0)) ** 2).sum() + np.trace(
        sum(spread) - 2 * sqrtm(spread[0] @ spread[1]).real
    )
    scores = metric.score(replies, contexts, humans)
    assert scores.aggregate == pytest.approx(float(wanted), rel=1e-3)
    assert (scores.details["n"], scores.details["dimensions"]) == ([90], [32])


def test_neither_order_nor_side_matters(kind: str, tiny_encoder: Path) -> None:
    metric = made(kind, tiny_encoder)
    one = metric.score(SYSTEM, CONTEXTS, HUMAN)
    back = metric.score(SYSTEM[::-1], CONTEXTS[::-1], HUMAN[::-1])
    swapped = metric.score(HUMAN, CONTEXTS, SYSTEM)
    for other in (back, swapped):
        assert other.aggregate == pytest.approx(one.aggregate, rel=1e-6)
        assert other.details["low"] == pytest.approx(one.details["low"], rel=1e-4)
        assert other.details["high"] == pytest.approx(one.details["high"], rel=1e-4)


def test_one_value_per_system_that_the_others_do_not_move(kind: str, tiny_encoder: Path) -> None:
    metric = made(kind, tiny_encoder)
    mixed = [row for pair in zip(rows(SYSTEM, "curt"), rows(HUMAN, "people"), strict=True) for row in pair]
    together = metric.score_exchanges(mixed)
    assert together.ids == ("curt", "people")
    alone = [metric.score_exchanges(rows(SYSTEM, "curt")), metric.score_exchanges(rows(HUMAN, "people"))]
    assert together.values.tolist() == pytest.approx([scores.aggregate for scores in alone], abs=1e-6)
    assert together.aggregate == pytest.approx(together.values.mean())
    assert together.details["n"] == [7, 7]
    assert metric.score_exchanges(rows()).ids == (None,)
    worse, best = together.values
    assert worse < 0.9 * best if metric.info.higher_is_better else worse > 1e3 * best
    json.loads(together.to_json())


def test_systems_with_different_contexts_share_the_human_side(kind: str, tiny_encoder: Path, tmp_path: Path) -> None:
    metric = made(kind, tiny_encoder)
    exchanges = [*rows(system="early")[:5], *rows(system="late")[2:]]
    scores = metric.score_exchanges(exchanges)
    assert scores.details["n"] == [5, 5]
    assert scores.details["n_reference"] == [7, 7]
    metric.save_human(tmp_path / "human", rows())
    saved = made(kind, tiny_encoder, reference=tmp_path / "human").score_exchanges(exchanges)
    assert saved.values.tolist() == pytest.approx(scores.values.tolist(), rel=1e-6)


def test_parts_that_were_encoded_apart_give_the_value_of_the_whole(kind: str, tiny_encoder: Path) -> None:
    metric, exchanges = made(kind, tiny_encoder), [*rows(system="early"), *rows(system="late")]
    whole = metric.score_exchanges(exchanges)
    parts = [metric.encode(exchanges[start : start + 3]) for start in range(0, len(exchanges), 3)]
    result = metric.scores_of(functools.reduce(EncodedRows.merge, parts))
    assert result.values.tolist() == pytest.approx(whole.values.tolist(), abs=1e-5)
    assert result.ids == whole.ids


def test_several_references_all_count_and_many_are_sampled_by_row(tiny_encoder: Path) -> None:
    many = [tuple(f"{reply} {word}" for word in NOUNS * 2) for reply in HUMAN]
    metric = made("fbd", tiny_encoder, references_per_query=3)
    exchanges = [Exchange(tuple(c), s, r) for c, s, r in zip(CONTEXTS, SYSTEM, many, strict=True)]
    drawn = [pair.response for _, pair in metric.human_pairs(exchanges)]
    assert len(drawn) == 21
    assert all(reply in many[number // 3] for number, reply in enumerate(drawn))
    assert [pair.response for _, pair in metric.human_pairs(exchanges[::-1])][-3:] == drawn[:3]
    assert [
        p.response for _, p in made("fbd", tiny_encoder, references_per_query=3, seed=1).human_pairs(exchanges)
    ] != drawn
    assert metric.score_exchanges(exchanges).details["n_reference"] == [21]
    two = [Exchange(row.context, row.response, (*row.references[:2], " ")) for row in exchanges]
    assert metric.score_exchanges(two).details["n_reference"] == [14]


def test_cut_rows_are_counted_once(kind: str, tiny_encoder: Path) -> None:
    metric = made(kind, tiny_encoder, max_length=16)
    contexts = [["hello there"] * 20, *CONTEXTS[1:3]]
    replies, humans = [SYSTEM[0], SYSTEM[1], "walk"], ["fish", "see then bye " * 9, "walk"]
    assert metric.score(replies, [*contexts[:2], ["hello"]], humans).n_truncated == 2


def test_a_saved_human_side_gives_the_same_value(kind: str, tiny_encoder: Path, tmp_path: Path) -> None:
    metric = made(kind, tiny_encoder)
    wanted = metric.score_exchanges(rows())
    path = tmp_path / "human.safetensors"
    metric.save_human(path, rows()[::-1])
    assert not any(word.encode() in path.read_bytes() for word in NOUNS)
    later = made(kind, tiny_encoder, reference=path).score(SYSTEM, CONTEXTS)  # without references
    assert later.aggregate == pytest.approx(wanted.aggregate, rel=1e-6)
    assert later.details["low"] == pytest.approx(wanted.details["low"], rel=1e-4)
    assert later.signature["reference"].startswith("human.safetensors@")
    assert wanted.signature["reference"] == "call"
    (tmp_path / "config.json").write_text("{}")  # a checkpoint folder that brings its human side
    assert made(kind, tiny_encoder, reference=tmp_path).score(SYSTEM, CONTEXTS).aggregate == later.aggregate


def test_states_of_shards_add_up(tiny_encoder: Path, tmp_path: Path) -> None:
    metric = made("fbd", tiny_encoder)
    exchanges = rows()
    wanted = metric.score_exchanges(exchanges).aggregate
    state = metric.state(iter(exchanges[:3])).merge(metric.state(exchanges[3:4])).merge(metric.state(exchanges[4:]))
    human = metric.human_state(exchanges[5:]).merge(metric.human_state(exchanges[:5]))
    assert metric.compute(state, human) == pytest.approx(wanted, rel=1e-9)
    human.save(tmp_path / "state")
    assert FbdState.load(tmp_path / "state").moments.count == 7
    loaded = made("fbd", tiny_encoder, reference=tmp_path / "state")
    assert loaded.compute(state) == pytest.approx(wanted, rel=1e-9)
    assert loaded.score(SYSTEM, CONTEXTS).aggregate == pytest.approx(wanted, rel=1e-9)
    metric.save_human(tmp_path / "rows", exchanges)
    assert made("fbd", tiny_encoder, reference=tmp_path / "rows").compute(state) == pytest.approx(wanted, rel=1e-9)


def test_states_that_cannot_be_compared(tiny_encoder: Path, tmp_path: Path) -> None:
    metric, other = made("fbd", tiny_encoder), made("fbd", tiny_encoder, pooling="mean")
    state = metric.state(rows())
    refused(ValueError, "pooling", lambda: state.merge(other.state(rows())))
    refused(ValueError, "pooling", lambda: other.compute(state, other.human_state(rows())))
    refused(ValueError, "human side", metric.compute, state)
    refused(ValueError, "2 replies", lambda: metric.compute(metric.state(rows()[:1]), metric.human_state(rows())))
    refused(ValueError, "2 references", lambda: metric.compute(state, metric.human_state([])))
    metric.human_state(rows()).save(tmp_path / "state")
    refused(ValueError, "pooling=cls", made, "fbd", tiny_encoder, pooling="mean", reference=tmp_path / "state")
    refused(ValueError, "save_human", made, "prd", tiny_encoder, reference=tmp_path / "state")


def test_files_that_are_no_human_side(kind: str, tiny_encoder: Path, tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    (tmp_path / "text").write_text("hello")
    save_file({"rows": np.zeros((2, 2))}, tmp_path / "foreign")
    half = tmp_path / "half"
    metric = made(kind, tiny_encoder)
    metric.save_human(half, rows())
    half.write_bytes(half.read_bytes()[:-40])
    save_file({"rows": np.zeros((2, 2))}, tmp_path / "lacking", {"format": "dialeval-features-1"})
    for name in ("text", "foreign", "half", "lacking", "nothing-here"):
        with pytest.raises(CheckpointError):
            made(kind, tiny_encoder, reference=tmp_path / name)
    (tmp_path / "config.json").write_text("{}")
    refused(CheckpointError, "human side", made, kind, tiny_encoder, reference=tmp_path)


def test_intervals_surround_the_value(kind: str, tiny_encoder: Path) -> None:
    metric = made(kind, tiny_encoder)
    scores = metric.score_exchanges(rows())
    (low,), (high,) = scores.details["low"], scores.details["high"]
    assert low < scores.aggregate < high
    assert metric.score_exchanges(rows()).details["low"] == [low]
    assert made(kind, tiny_encoder, seed=3).score_exchanges(rows()).details["low"] != [low]


def test_fbd_interval_has_the_width_of_repeated_samples(tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First-order resampling against what it stands for: many samples from one population."""
    metric = made("fbd", tiny_encoder)
    chance = np.random.default_rng(0)
    scale = np.arange(1, 17) ** -1.0
    keys = np.arange(60, dtype=np.uint64)

    def side(shift: float) -> Any:
        from dialeval.papers.feature_set import FeatureSet

        drawn = (chance.normal(size=(60, 16)) * scale + shift * scale).astype(np.float32)
        return FeatureSet(drawn, keys, keys, np.zeros(60, bool))

    result = [metric.compare(side(0.0), side(0.6)) for _ in range(60)]
    spread = np.std([one.value for one in result])
    widths = np.array([one.high - one.low for one in result]) / (2 * 1.96)
    assert 0.8 < widths.mean() / spread < 1.25


def test_bad_rows(kind: str, tiny_encoder: Path) -> None:
    metric = made(kind, tiny_encoder)
    refused(BadRow, "row 1", metric.score, SYSTEM[:2], CONTEXTS[:2], ["fine", []])
    refused(BadRow, "row 1", metric.score, SYSTEM[:2], CONTEXTS[:2], ["fine", " "])
    refused(BadRow, "row 7", lambda: metric.score_exchanges([*rows(system="a"), *rows()]))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("fbd", {"mean_term": "cubed"}),
        ("fbd", {"pooling": "max"}),
        ("fbd", {"references_per_query": 0}),
        ("fbd", {"resamples": -1}),
        ("prd", {"grid": "fine"}),
        ("prd", {"clusters": 0}),
    ],
)
def test_bad_options(kind: str, options: dict[str, Any], tiny_encoder: Path) -> None:
    refused(ValueError, next(iter(options)), KINDS[kind], tiny_encoder, **options)


@pytest.mark.parametrize("approach", ["deb", "cmn"])
def test_a_trained_checkpoint_lends_its_encoder(approach: str, kind: str, tiny_encoder: Path, tmp_path: Path) -> None:
    """The adapter merged, of several encoders the one that reads pairs, pairs laid out as it learned them."""
    import torch

    folder = small_checkpoint(approach, tiny_encoder, tmp_path / "run" / "checkpoint")
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "contaminated_by": ["fbd_dailyz"]}))
    metric = made(kind, folder)
    assert metric.signature()["encoder"].startswith(f"{approach}-tiny@")
    assert metric.contaminated_by == {"fbd_dailyz"}
    assert not made(kind, tiny_encoder).contaminated_by
    network = network_class(approach).from_pretrained(folder, device="cpu")
    pair = rows()[0]
    layout = PairTokenizer(network.tokenizer, network.config.layout)
    batch = collate(layout.pairs([pair]), layout.pad_id, segment_ids=layout.layout.segment_ids)
    inner = getattr(network, network.encoders[0])
    with torch.inference_mode():
        own = inner(**batch).last_hidden_state[:, 0]
    assert metric.features.of([pair]).rows == pytest.approx(own.numpy(), abs=1e-5)
    assert metric.features.of([pair]).rows != pytest.approx(made(kind, tiny_encoder).features.of([pair]).rows, abs=1e-3)


def test_small_sets_are_warned_about(tiny_encoder: Path) -> None:
    with pytest.warns(UserWarning, match="32 dimensions"):
        made("fbd", tiny_encoder).score_exchanges(rows())
    with pytest.warns(UserWarning, match="4 clusters"):
        made("prd", tiny_encoder).score_exchanges(rows())


@pytest.mark.encoder
@pytest.mark.parametrize("disturb", ["mismatch", "repeat"])
@pytest.mark.slow
def test_disturbed_replies_lie_further_away(disturb: str) -> None:
    """Both metrics get worse with every further share of the replies that is exchanged or made generic."""
    topics = "trains rain soup football chess guitars tomatoes novels bicycles coffee cinema swimming".split()
    contexts = [["Hi there!", f"What do you think about {topic}?"] for topic in topics]
    humans = [f"I love {topic}, I have known all about {topic} since I was a child." for topic in topics]
    metrics = [dialeval.load(name, pooling="mean", resamples=0) for name in ("fbd", "prd")]
    values = []
    for share in (0, 4, 8, 12):
        wrong = ["I do not know."] * share if disturb == "repeat" else [*humans[1:share], *humans[: min(share, 1)]]
        values.append([metric.score(wrong + humans[share:], contexts, humans).aggregate for metric in metrics])
    fbd, prd = np.array(values).T
    assert fbd[0] == pytest.approx(0, abs=1e-9)
    assert prd[0] == pytest.approx(1, abs=1e-6)
    assert (np.diff(fbd) > 0).all()
    assert (np.diff(prd) < 0).all() if disturb == "repeat" else (prd[1:] < prd[0]).all()


def write(path: Path, exchanges: Sequence[Exchange], *, people: bool = False) -> str:
    """Rows without references; those of people have the human reply in the place of the response."""
    lines = [
        {"context": list(one.context), "response": one.references[0] if people else one.response, "system": one.system}
        for one in exchanges
    ]
    write_rows(path, lines)
    return str(path)


def test_a_file_of_human_rows_is_a_human_side(kind: str, tiny_encoder: Path, tmp_path: Path) -> None:
    people = write(tmp_path / "people.jsonl", rows(), people=True)
    plain = [Exchange(one.context, one.response) for one in rows()]
    result = made(kind, tiny_encoder, reference=people).score_exchanges(plain)
    assert result.values == pytest.approx(made(kind, tiny_encoder).score_exchanges(rows()).values, abs=1e-9)
    assert result.signature["reference"].startswith("people.jsonl@")
    (tmp_path / "bad.jsonl").write_text('{"context": ["hello"], "response": null}\n')
    refused(ValueError, "bad.jsonl, row 0", made, kind, tiny_encoder, reference=tmp_path / "bad.jsonl")
    refused(FileNotFoundError, "none.jsonl", made, kind, tiny_encoder, reference=tmp_path / "none.jsonl")


def test_the_shell_scores_against_people_and_tells_intervals(tiny_encoder: Path, tmp_path: Path) -> None:
    systems = [*rows(system="a"), *rows([reply + " ok" for reply in SYSTEM], system="b")]
    replies, people = write(tmp_path / "replies.jsonl", systems), write(tmp_path / "people.jsonl", rows(), people=True)
    saved = tmp_path / "human.safetensors"
    made("fbd", tiny_encoder).save_human(saved, rows())
    direct = made("fbd", tiny_encoder).score_exchanges(systems)
    for reference in (people, str(saved)):
        out, summary = tmp_path / "values.jsonl", tmp_path / "values.jsonl.summary.json"
        command = ["score", "-m", "fbd", "--checkpoint", str(tiny_encoder), "-i", replies, "-o", str(out)]
        asked = invoke(*command, "--reference", reference, "--overwrite")
        result = json.loads(summary.read_text())["metrics"]["fbd"]
        assert list(result["systems"].values()) == pytest.approx(list(direct.values), abs=1e-9)
        lows, highs = zip(*result["intervals"].values(), strict=True)
        assert lows == pytest.approx(direct.details["low"], abs=1e-6)
        assert highs == pytest.approx(direct.details["high"], abs=1e-6)
        assert f"({lows[1]:.6g} to {highs[1]:.6g} at 95%)" in asked.stderr
        assert f"reference:{Path(reference).name}@" in asked.stderr
    assert "reference" in invoke(*command[:-1], tmp_path / "other.jsonl", code=2).stderr
