"""dialeval: automatic evaluation of open-domain dialogue.

    >>> import dialeval
    >>> metric = dialeval.load("density")                                  # doctest: +SKIP
    >>> metric.score(responses=["Fine, thanks!"], contexts=[["How are you?"]])  # doctest: +SKIP

Heavy libraries are imported when a metric is loaded, not here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dialeval.version import __version__

if TYPE_CHECKING:
    from dialeval.agreement.score_comparison import compare
    from dialeval.core.exchange import BadRow, Exchange
    from dialeval.core.scores import Scores, Signature
    from dialeval.judge.verdicts import compare_replies, judge_conversation
    from dialeval.papers import register_auto_model
    from dialeval.readers.frames import read
    from dialeval.registry import available, load, register
    from dialeval.systems import Gate, Ranking, gate, rank
    from dialeval.tuning import Tuned, tune

_HOMES = {
    "BadRow": "dialeval.core.exchange",
    "Exchange": "dialeval.core.exchange",
    "Gate": "dialeval.systems",
    "Ranking": "dialeval.systems",
    "Scores": "dialeval.core.scores",
    "Signature": "dialeval.core.scores",
    "Tuned": "dialeval.tuning",
    "available": "dialeval.registry",
    "compare": "dialeval.agreement.score_comparison",
    "compare_replies": "dialeval.judge.verdicts",
    "gate": "dialeval.systems",
    "judge_conversation": "dialeval.judge.verdicts",
    "load": "dialeval.registry",
    "rank": "dialeval.systems",
    "read": "dialeval.readers.frames",
    "register": "dialeval.registry",
    "register_auto_model": "dialeval.papers",
    "tune": "dialeval.tuning",
}

__all__ = [
    "BadRow",
    "Exchange",
    "Gate",
    "Ranking",
    "Scores",
    "Signature",
    "Tuned",
    "__version__",
    "available",
    "compare",
    "compare_replies",
    "gate",
    "judge_conversation",
    "load",
    "rank",
    "read",
    "register",
    "register_auto_model",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dialeval' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
