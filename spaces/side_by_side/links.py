"""A comparison as a link: the texts themselves, packed into the address, so that nothing is kept anywhere."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Sequence

from limits import MAX_CHARACTERS, MAX_LINK, MAX_REPLIES, MAX_TURNS, Refused, taken, taken_all

#: The name in the address.
PARAMETER = "compare"
#: What a link unpacks to at most: every text that the page takes, as JSON.
_MOST = 12 * MAX_CHARACTERS * (MAX_TURNS + MAX_REPLIES + 1)
_BROKEN = "this link is damaged or not from this page; ask for it again"


def written(turns: Sequence[str], replies: Sequence[str], reference: str, metrics: Sequence[str]) -> str:
    """What stands behind the page's address."""
    content = json.dumps([list(turns), list(replies), reference, list(metrics)], ensure_ascii=False)
    packed = base64.urlsafe_b64encode(zlib.compress(content.encode("utf-8", errors="replace"), 9)).decode().rstrip("=")
    if len(packed) > MAX_LINK:
        raise Refused(f"the texts are too long for a link ({len(packed):,} characters of {MAX_LINK:,}); shorten them")
    return f"?{PARAMETER}={packed}"


def read(packed: str) -> tuple[list[str], list[str], str, list[str]]:
    """Turns, replies, reference and metrics of a link, within the limits of what can be typed."""
    try:
        raw = base64.b64decode(packed + "=" * (-len(packed) % 4), altchars=b"-_", validate=True)
        unpacking = zlib.decompressobj()
        content = json.loads(unpacking.decompress(raw, _MOST))
        turns, replies, reference, metrics = content
        said, _ = taken_all("turn", "turns", turns, MAX_TURNS)
        candidates, _ = taken_all("reply", "replies", replies, MAX_REPLIES)
        known, _ = taken("the reference", reference)
        names = [name for name in metrics if isinstance(name, str)]
    except Refused:
        raise
    except (ValueError, TypeError, binascii.Error, zlib.error, RecursionError):
        raise Refused(_BROKEN) from None
    return said or [""], candidates or [""], known, names
