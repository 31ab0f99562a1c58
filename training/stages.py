"""What several scripts share: starting networks, a stage in a run folder of its own, grouped corpora."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from common import (
    Recipe,
    Run,
    contaminated_by,
    is_trunk,
    left_out,
    provenance,
    read_trunk,
    recounted,
)
from corpora.batches import CandidateSet
from corpora.dialogues import CorpusDialogue, overlapping_ids, read_corpus
from corpora.grouped import Group, hold_out, read_groups, sharing_dialogues, with_random
from corpora.mining import ending, with_mined, word_overlap
from corpora.negatives import NegativeCounts
from dialeval.checkpoints.config import CheckpointConfig, LoraSettings, current_versions, encoder_source
from dialeval.checkpoints.find import find_checkpoint, find_encoder
from dialeval.checkpoints.load import load_encoder, load_tokenizer
from dialeval.checkpoints.network import Network
from dialeval.core.exchange import Exchange
from dialeval.encoders.base import load_exactly
from dialeval.encoders.batching import PairEncoder, collate
from dialeval.encoders.layout import PairFormat, PairTokenizer
from dialeval.hub.card import render_card
from dialeval.papers.feature_set import FeatureNetwork
from dialeval.registry import load
from history import stages_of

N = TypeVar("N", bound=Network)


def new_network(network_class: type[N], recipe: Recipe, architecture: dict[str, Any]) -> N:
    """A network on the recipe's encoder; its adapter, or its layers, begin as those of the checkpoint `start_from`.

    An encoder that `training/aspects.py` saved stays as it is: only heads are trained on it. With `keep_head` a
    checkpoint of the same approach is gone on with as a whole.
    """
    start = recipe["start_from"]
    if is_trunk(start) and len(network_class.encoders) > 1:
        raise SystemExit(f"start_from: {start} holds layers, and {network_class.approach} needs an adapter")
    stored, made = read_trunk(start) if is_trunk(start) else ({}, {})
    lora = made["recipe"].get("lora") if made else None
    config = CheckpointConfig(
        approach=network_class.approach,
        name=recipe["name"],
        encoder=encoder_source(recipe["encoder"], "layers" if made and not lora else recipe["tuning"]),
        layout=PairFormat(**recipe["layout"]),
        architecture=architecture,
        contaminated_by=contaminated_by(recipe),
        versions=current_versions(),
    )
    if made:
        network = network_class.create(config, lora=LoraSettings(**lora) if lora else None)
        tuned = {name.removeprefix("encoder."): rows for name, rows in stored.items() if name.startswith("encoder.")}
        encoder: Any = network.encoder
        kept = [name for name in encoder.state_dict() if lora and ".lora_" not in name]
        load_exactly(encoder, tuned, kept=(*kept, "embeddings."))
        network.encoder.requires_grad_(False)
        return network
    if start is not None:
        begun = CheckpointConfig.read(find_checkpoint(start, default=start).folder)
        tuning = begun.encoder.tuning
        if tuning == "layers" and len(network_class.encoders) > 1:
            raise SystemExit(f"start_from: {start} holds layers, and {network_class.approach} needs an adapter")
        if recipe["tuning"] != tuning or begun.encoder.sha256 not in (None, config.encoder.sha256):
            raise SystemExit(
                f"start_from: {start} was tuned over {begun.encoder.id}; use that encoder with "
                f"tuning: {tuning}, or set start_from to null"
            )
        if goes_on(network_class, recipe):
            network = continued(network_class, start, recipe)
            network.config = replace(config, architecture=begun.architecture)
            return network
    lora = LoraSettings(**recipe["lora"]) if recipe["tuning"] == "lora" else None
    return with_dropout(network_class.create(config, lora=lora, start=start), recipe)


def goes_on(network_class: type[Network], recipe: Recipe) -> bool:
    """Whether a run goes on with the heads of a checkpoint, too."""
    start = recipe["start_from"]
    if start is None or is_trunk(start) or not recipe.get("keep_head"):
        return False
    return CheckpointConfig.read(find_checkpoint(start, default=start).folder).approach == network_class.approach


def continued(network_class: type[N], folder: Path | str, recipe: Recipe) -> N:
    """The network that an earlier stage left in `folder`, to be trained further; the shared encoder stays as it is."""
    network = with_dropout(network_class.from_pretrained(folder, device="cpu", trainable=True), recipe)
    if is_trunk(recipe["start_from"]):
        network.encoder.requires_grad_(False)
    return network


def with_dropout(network: N, recipe: Recipe) -> N:
    """Set the encoder's dropout to the recipe's."""
    for name in network.encoders:
        for module in getattr(network, name).modules():
            if isinstance(module, nn.Dropout):
                module.p = recipe["encoder_dropout"]
    return network


def keep_stage(run: Run, arguments: argparse.Namespace, network_class: type[Network], **made: Any) -> None:
    """Leave what the first of two stages kept as FOLDER/checkpoint, with the record of its making."""
    if run.accelerator.is_main_process:
        best = continued(network_class, run.folder / "best", run.recipe)
        best.config = replace(best.config, training=record(run, arguments, earlier={}, **made))
        best.save_pretrained(run.folder / "checkpoint")
    run.accelerator.wait_for_everyone()


def kept_network(run: Run, network_class: type[N]) -> N:
    """What a run kept, with the numbers that its file will have."""
    network = network_class.from_pretrained(run.folder / "best", device=run.accelerator.device, trainable=True)
    network.round_tuned()
    return network


def keep_checkpoint(
    run: Run, network: Network, training: dict[str, Any], figures: Mapping[str, float], **changes: Any
) -> None:
    """Write OUT/checkpoint with its record and its card, and the last line of the log; see that it can be loaded."""
    network.config = replace(network.config, training=training, versions=current_versions(), **changes)
    network.save_pretrained(run.folder / "checkpoint", card=render_card(network.config))
    run.log("final", **figures)
    load(network.approach, checkpoint=run.folder / "checkpoint")


def stage_is_done(folder: Path, arguments: argparse.Namespace) -> bool:
    """Whether a resumed run finished this stage before."""
    return arguments.resume and (folder / "checkpoint" / "config.json").is_file()


#: Parts into which the pairs of a step are cut by their length: more have little left to spare.
GROUPS = 3


class Collator:
    """Token tensors of exchanges, as short as the recipe trains."""

    def __init__(self, network: Network, max_length: int, *, pad_to_max_length: bool = False) -> None:
        layout = replace(network.config.layout, max_length=max_length)
        self.tokenizer = PairTokenizer(network.tokenizer, layout)
        self.segment_ids = layout.segment_ids
        self.pad_to = max_length if pad_to_max_length else 0

    def __call__(self, exchanges: list[Exchange]) -> dict[str, Tensor]:
        """Tensors for the network's forward."""
        tensors = collate(self.tokenizer.pairs(exchanges), self.tokenizer.pad_id, segment_ids=self.segment_ids)
        missing = max(0, self.pad_to - tensors["input_ids"].shape[1])
        fill = {"input_ids": self.tokenizer.pad_id}
        return {key: nn.functional.pad(value, (0, missing), value=fill.get(key, 0)) for key, value in tensors.items()}

    def rows_of(self, forward: Callable[[dict[str, Tensor]], Tensor], exchanges: list[Exchange]) -> Tensor:
        """What the network says of every exchange, read in groups of like lengths so that little is padding."""
        pairs = self.tokenizer.pairs(exchanges)
        order = np.argsort([len(pair.ids) for pair in pairs], kind="stable")
        groups = [group for group in np.array_split(order, GROUPS) if len(group)]
        read = [forward(self([exchanges[row] for row in group])) for group in groups]
        back = torch.from_numpy(np.argsort(np.concatenate(groups))).to(read[0].device)
        return torch.cat(read)[back]


def network_rows(network: Network, exchanges: list[Exchange]) -> NDArray[np.float32]:
    """One row per exchange in evaluation mode, as the metric computes it."""
    training = network.training
    tokenizer = PairTokenizer(network.tokenizer, network.config.layout)
    rows = PairEncoder(network, tokenizer, allow_nan=True).encode(exchanges).rows
    network.train(training)
    return rows


def read_grouped(recipe: Recipe, root: Path) -> tuple[dict[str, list[Group]], list[float], list[Group]]:
    """Training groups by source, the shares of the sources, and the held-out groups.

    The source under `groups` comes first and is what people wrote; what `augmentation` lists is marked
    by its name. Contexts that overlap with evaluation data are left out of all of them.
    """
    main = recipe["groups"]
    train, held = split_groups(recipe, root)
    sources = {f"{main['name']}/{'+'.join(main.get('splits') or [main['split']])}": train}
    shares = [1.0 - sum(source["share"] for source in recipe["augmentation"])]
    if shares[0] <= 0:
        raise SystemExit("the shares of augmentation leave nothing for groups; they must add up to less than 1")
    for number, source in enumerate(recipe["augmentation"], start=1):
        shares.append(float(source["share"]))
        if "negatives" in source:
            named = f"{source['name']}/{'+'.join(source['splits'])}"
            sources[named] = dialogue_groups(
                source, root, leave_out=left_out(recipe, root), seed=recipe["seed"] + number
            )
            continue
        extra = extra_groups(recipe, source, root)
        order = np.random.default_rng([recipe["seed"], number]).permutation(len(extra))
        extra = [extra[int(index)] for index in sorted(order[: source["contexts"]])]
        extra = with_random(extra, source["random"], recipe["seed"] + number)
        if source["mined_by_words"]:
            texts = [ending(group) for group in extra] + [reply for group in extra for reply in group.positives]
            extra = with_mined(extra, source["mined_by_words"], word_overlap(texts), seed=recipe["seed"])
        if source["mined_by_embedding"]:
            embed = partial(embed_texts, recipe["encoder"])
            extra = with_mined(extra, source["mined_by_embedding"], embed, seed=recipe["seed"] + 1)
        sources[f"{source['name']}/{source['split']}"] = extra
    return sources, shares, held


def extra_groups(recipe: Recipe, source: Recipe, root: Path) -> list[Group]:
    """The contexts of a grouped source of `augmentation`, none of a dialogue that is held out or evaluated on."""
    unwanted = unwanted_groups(recipe, root) | left_out(recipe, root)
    if recipe["leave_out"]:
        others = ["test", recipe["groups"]["split"]]
        unwanted |= sharing_dialogues(root / recipe["leave_out"], source["split"], others)
    return read_groups(root, source["name"], source["split"], leave_out=unwanted)


def unwanted_groups(recipe: Recipe, root: Path) -> frozenset[str]:
    """Contexts of the recipe's `groups` that overlap with evaluation data."""
    if not recipe["leave_out"]:
        return frozenset()
    overlaps = root / recipe["leave_out"]
    return overlapping_ids(overlaps) | sharing_dialogues(overlaps, recipe["groups"]["split"], ["test"])


def split_groups(recipe: Recipe, root: Path) -> tuple[list[Group], list[Group]]:
    """The recipe's `groups` to train on, and those held out; runs with the same seed hold out the same ones.

    `splits` instead of `split` says that they are made of ordinary dialogues, and `held_out` names a split then.
    """
    main = recipe["groups"]
    if "splits" in main:
        unwanted, seed = left_out(recipe, root), main["seed"]
        held_out = {**main, "splits": [main["held_out"]], "contexts": main["held_out_contexts"]}
        return (
            dialogue_groups(main, root, leave_out=unwanted, seed=seed),
            dialogue_groups(held_out, root, leave_out=unwanted, seed=seed),
        )
    groups = read_groups(root, main["name"], main["split"], leave_out=unwanted_groups(recipe, root))
    train, held = hold_out(groups, main["held_out"], main["seed"])
    # What the recount found goes afterwards, so that it does not change who is held out.
    leaked = set(recounted()["leave_out"]) if recipe["leave_out"] else set()
    return [group for group in train if group.id not in leaked], [group for group in held if group.id not in leaked]


def dialogue_groups(source: Recipe, root: Path, *, leave_out: frozenset[str], seed: int) -> list[Group]:
    """Replies of ordinary dialogues as contexts with one right reply each; negatives that are not random are mined."""
    dialogues: list[CorpusDialogue] = []
    for split in source["splits"]:
        dialogues += read_corpus(root, source["name"], split, leave_out=leave_out)
    counts = NegativeCounts(**source["negatives"])
    pairs = CandidateSet(dialogues, counts, seed=seed, fact_share=float(source.get("facts", 0.0)))
    chosen = np.random.default_rng(seed).permutation(len(pairs))[: source["contexts"]]
    groups = []
    for candidates in map(pairs.get, sorted(chosen.tolist())):
        right, *wrong = candidates.responses
        harder = len(wrong) - counts.random
        context, identity = tuple(candidates.exchange.context), candidates.exchange.id
        mined, random, facts = tuple(wrong[:harder]), tuple(wrong[harder:]), candidates.exchange.facts
        groups.append(Group(identity or "", context, (right,), mined=mined, random=random, facts=facts))
    return groups


def embed_texts(encoder: str, texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of single texts from the base encoder before any training, mean-pooled."""
    folder, layout = find_encoder(encoder).folder, PairFormat(max_length=64)
    tokenizer = load_tokenizer(folder, layout)
    network = FeatureNetwork(load_encoder(folder, len(tokenizer)), "mean", segment_ids=False)
    engine = PairEncoder(network, PairTokenizer(tokenizer, layout), segment="context")
    rows = engine.encode([Exchange(context=(text,), response="") for text in texts]).rows
    unit: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def corpora_of(sources: Mapping[str, Any]) -> list[str]:
    """Names of the corpora behind sources called CORPUS/SPLIT."""
    return list(dict.fromkeys(name.partition("/")[0] for name in sources))


def record(
    run: Run, arguments: argparse.Namespace, *, corpora: Sequence[str], earlier: Mapping[str, Any], **figures: Any
) -> dict[str, Any]:
    """What `config.json` says about the making of a checkpoint, with the stage before it counted in."""
    names = list(dict.fromkeys([*corpora, *earlier.get("corpora", ())]))
    before = stages_of(earlier)
    if earlier.get("recipe", {}).get("name") == run.recipe["name"]:  # two stages of one run
        before[-1] = replace(before[-1], name=f"{run.recipe['name']}, first stage")
    made = provenance(run, arguments, earlier=before, corpora=names, **figures)
    if earlier:
        left = ("command", "recipe", "stages", "total")
        made["pretraining"] = {key: value for key, value in earlier.items() if key not in left}
    return made


def count_kinds(sources: Mapping[str, Sequence[Group]]) -> dict[str, dict[str, int]]:
    """How many replies of each kind every source gives, for the checkpoint's record."""
    kinds = ("positives", "adversarial", "random", "mined")
    return {
        name: {"contexts": len(groups), **{kind: sum(len(getattr(group, kind)) for group in groups) for kind in kinds}}
        for name, groups in sources.items()
    }
