"""Under which licence a checkpoint stands, and what is known of the data that it learned from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

_USES = {
    "train": "encoder and heads", "labelled": "heads for faults",
    "stack": "ranks and interval of replies", "dialogues": "of conversations", "taught": "its teacher",
}  # fmt: skip
#: From what a company may use to what it may not; a checkpoint has the last that one of its sources asks for.
_LICENCES = ("apache-2.0", "cc-by-nc-4.0", "cc-by-nc-sa-4.0")


@cache
def facts() -> Mapping[str, Mapping[str, Any]]:
    """What no config can say: of approaches what they measure and where they fail, of data titles and licences."""
    read: dict[str, dict[str, Any]] = json.loads(
        Path(__file__).with_name("card_facts.json").read_text(encoding="utf-8")
    )
    return read


def licence_of(training: Mapping[str, Any]) -> str:
    """Of the weights: the strictest that a source asks for; one that states none counts as non-commercial."""
    stated = [
        facts()[kind].get(name, {"licence": "none stated"})["licence"]
        for kind, names in (("corpora", training.get("corpora", ())), ("ratings", rated(training)))
        for name in names
    ]
    unknown = ("NC", "none stated", "not stated")
    asked = [2 if "NC-SA" in licence else 1 if any(mark in licence for mark in unknown) else 0 for licence in stated]
    return _LICENCES[max(asked, default=0)]


def rated(training: Mapping[str, Any]) -> dict[str, list[str]]:
    """Sources of ratings, and what each was used for."""
    sources: dict[str, list[str]] = {}
    own, taught = training.get("recipe", {}).get("ratings", {}), {"taught": training.get("taught", ())}
    for settings in (training.get("ratings_before", {}), own, taught):
        for use, shown in _USES.items():
            for name in settings.get(use, ()) if isinstance(settings, Mapping) else ():
                sources.setdefault(name, []).append(shown)
    return sources
