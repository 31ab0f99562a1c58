"""The page's workers: files, previews and typed texts have some each, so that none waits for another."""

from __future__ import annotations

from limits import SECONDS
from workers import Allowance, Pool

_GIBIBYTE = 2**30

#: Typed texts and endpoints; whole files; and previews, which load no weights and stay small.
TEXTS = Pool(2, Allowance(SECONDS["texts"], 8 * _GIBIBYTE))
FILES = Pool(1, Allowance(SECONDS["file"], 8 * _GIBIBYTE))
PREVIEWS = Pool(2, Allowance(SECONDS["preview"], 2 * _GIBIBYTE, grown=_GIBIBYTE // 2))
