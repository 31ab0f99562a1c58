"""What the networks of all approaches share: padding is not read, and which segment a token is in is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from dialeval.papers import network_class
from small_checkpoints import small_checkpoint


@pytest.mark.parametrize("name", ["density", "deb", "cmn", "quantidce", "judge"])
@pytest.mark.slow
def test_padding_is_not_read_and_segments_are(tiny_encoder: Path, tmp_path: Path, name: str) -> None:
    network = network_class(name).from_pretrained(small_checkpoint(name, tiny_encoder, tmp_path / "one"), device="cpu")
    ids = torch.tensor([[5, 9, 11, 6, 12, 8], [5, 10, 7, 12, 6, 8]])
    given = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_type_ids": torch.tensor([[0, 0, 0, 1, 1, 1]] * 2),
    }
    padded = {key: F.pad(value, (0, 3), value=4 if key == "input_ids" else 0) for key, value in given.items()}
    with torch.no_grad():
        rows = network(**given)
        assert len(rows) == 2
        assert not torch.allclose(rows[0], rows[1], atol=1e-3)
        torch.testing.assert_close(network(**padded), rows, rtol=1e-4, atol=1e-5)
        other = network(**{**given, "token_type_ids": 1 - given["token_type_ids"]})
    assert not torch.allclose(other, rows, atol=1e-3)
