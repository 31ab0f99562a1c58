"""What is refused: the type of the error, and the field, row, option or file that it names. Its words are golden."""

from collections.abc import Callable
from typing import Any

import pytest


def refused(kind: type[BaseException], named: str, call: Callable[..., object], *given: Any, **options: Any) -> str:
    """The message of the error that a call ends with."""
    with pytest.raises(kind) as caught:
        call(*given, **options)
    message = str(caught.value)
    assert named in message
    return message
