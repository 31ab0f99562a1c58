"""A judge's encoder and one of its heads as a plain cross-encoder, which other libraries load without dialeval.

The head reads the first token's state; transformers' classifiers put a dense layer and tanh before theirs. A dense
layer of a tiny multiple of one makes tanh a straight line, and the classifier's weights take the factor back.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dialeval.encoders.base import longest_input, takes_segments, width
from dialeval.judge.network import JudgeNetwork

#: Small enough for tanh to be straight to the last digits of float32, large enough for them not to be lost.
_TINY = 1e-4
#: What people rated such replies.
HEAD = "follows"


def export_judge(checkpoint: str | Path | None, folder: Path) -> Path:
    """Write model, tokenizer, settings of sentence-transformers, and a card: the folder appears when it is whole."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    network = JudgeNetwork.from_pretrained(checkpoint, device="cpu")
    ours: Any = network.encoder
    # Of our own class, or of transformers'.
    settings = AutoConfig.for_model(**(ours.config.raw if hasattr(ours.config, "raw") else ours.config.to_dict()))
    settings.num_labels, settings.id2label, settings.label2id = 1, {0: "relevance"}, {"relevance": 0}
    settings.architectures = None
    settings.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    model: Any = AutoModelForSequenceClassification.from_config(settings)  # type: ignore[no-untyped-call]
    base = getattr(model, model.base_model_prefix)
    state = dict(ours.state_dict())
    if takes_segments(ours):  # the judge reads all tokens as the first segment, whatever a tokenizer says
        name = "embeddings.token_type_embeddings.weight"
        state[name] = state[name][:1].expand_as(state[name]).contiguous()
    base.load_state_dict({**base.state_dict(), **state})
    place = network.head_names.index(HEAD)
    dense, last = _classifier(model)
    with torch.no_grad():
        dense.weight.copy_(_TINY * torch.eye(width(ours)))
        dense.bias.zero_()
        last.weight.copy_(network.heads.weight[place : place + 1] / _TINY)
        last.bias.copy_(network.heads.bias[place : place + 1])
    model.eval()
    tokenizer = network.tokenizer
    separator = network.config.layout.separator
    if separator.strip():  # so that it is one token where it stands in a text
        tokenizer.add_special_tokens({"additional_special_tokens": [separator]})
    tokenizer.model_max_length = min(network.config.layout.max_length, longest_input(settings))
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    card = _CARD.format(name=network.config.name, between=f" {separator} " if separator.strip() else " ")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as workspace:
        fresh = Path(workspace) / "fresh"
        model.save_pretrained(fresh)
        tokenizer.save_pretrained(fresh)
        (fresh / "modules.json").write_text(json.dumps(modules, indent=2) + "\n", "utf-8")
        (fresh / "README.md").write_text(card, "utf-8")
        fresh.replace(folder)
    return folder


def _classifier(model: Any) -> tuple[nn.Linear, nn.Linear]:
    """The dense layer before tanh and the last layer of a classifier."""
    head = model.classifier
    if isinstance(head, nn.Linear):  # BERT's: its pooler has the dense layer
        return getattr(model, model.base_model_prefix).pooler.dense, head
    return head.dense, head.out_proj


_CARD = """---
pipeline_tag: text-classification
library_name: sentence-transformers
tags: [dialogue, evaluation, cross-encoder]
---

# {name}: relevance as people rated it, as a plain cross-encoder

One number for a context and a reply, higher is better; it has no scale of its own, so compare replies to one context.
Turns of a context are joined by `{between}`, the oldest first.

```python
from sentence_transformers import CrossEncoder

model = CrossEncoder("FOLDER")
print(model.predict([("How was your trip?{between}Great, but I lost my suitcase.", "Oh no! Did the airline find it?")]))
```

It is one head of the judge. What the judge adds is not in it: facts that a reply should use, repetition, faults that
are vetoes, the other side's next turn, aspects, reasons, and the reading of replies longer than the encoder's input.
Agreement and licence are those of the checkpoint's card in dialeval.
"""
