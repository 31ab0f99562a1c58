"""Questions about systems rather than replies: which of them is best, and is the new one worse than the old one?

Every answer stands on pairs: two systems are compared on replies to the same contexts, and contexts, not replies, are
what chance draws.
"""

from __future__ import annotations

from dialeval.systems.gate import gate
from dialeval.systems.gate_outcome import Gate
from dialeval.systems.ranking import rank
from dialeval.systems.ranking_outcome import Ranking

__all__ = ["Gate", "Ranking", "gate", "rank"]
