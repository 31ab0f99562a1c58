"""What metrics are given beside context, response and references: facts, and what was said next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialeval.agreement.settings import Settings

if TYPE_CHECKING:
    from datasets import Dataset


def with_inputs(dataset: Dataset, settings: Settings) -> Dataset:
    """The rows with what the settings give: usually facts, but not the turn that follows, which is still to come."""
    withheld = [*([] if settings.facts else ["facts"]), *([] if settings.following else ["following"])]
    return dataset.remove_columns([column for column in withheld if column in dataset.column_names])


def inputs_of(dataset: Dataset) -> str:
    """In what these rows differ from what metrics usually get, in words; empty where in nothing."""
    columns = dataset.column_names
    parts = [*(["without facts"] if "facts" not in columns else []), *(["following"] if "following" in columns else [])]
    return ", ".join(parts)
