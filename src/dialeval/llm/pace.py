"""No more requests and tokens in a minute than a server allows, and a pause for all when it asks for one."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

_MINUTE = 60.0


class Pace:
    """Tells each request when it may start. Limits hold for every window of a minute."""

    def __init__(
        self,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        for name, limit in (("requests_per_minute", requests_per_minute), ("tokens_per_minute", tokens_per_minute)):
            if limit is not None and limit < 1:
                raise ValueError(f"{name} is {limit}; it is a whole number from 1 on")
        self._limits = (requests_per_minute, tokens_per_minute)
        self._clock = clock
        self._lock = threading.Lock()
        #: When requests start, and their tokens.
        self._starts: deque[tuple[float, int]] = deque()
        self._not_before = 0.0

    def wait_for(self, tokens: int) -> float:
        """Book a request of so many tokens and return how many seconds it has to wait."""
        with self._lock:
            now = self._clock()
            start = max(now, self._not_before, self._starts[-1][0] if self._starts else now)
            while self._starts and self._starts[0][0] <= now - _MINUTE:
                self._starts.popleft()
            start = max(start, self._earliest(start, tokens))
            self._starts.append((start, tokens))
            return start - now

    def pause(self, seconds: float) -> None:
        """Let nobody start for so long."""
        with self._lock:
            self._not_before = max(self._not_before, self._clock() + seconds)

    def paused(self) -> float:
        """How long a pause that somebody asked for still lasts, also for those who booked before it."""
        with self._lock:
            return max(0.0, self._not_before - self._clock())

    def _earliest(self, start: float, tokens: int) -> float:
        """The first moment at which the minute before it has room for one more request of so many tokens."""
        requests, budget = self._limits
        booked = [(at, size) for at, size in self._starts if at > start - _MINUTE]
        for number in range(len(booked) + 1):
            rest = booked[number:]
            fits = requests is None or len(rest) < requests
            # A request larger than the limit itself goes alone; the server will say what it thinks of it.
            fits = fits and (budget is None or not rest or sum(size for _, size in rest) + tokens <= budget)
            if fits:
                return start if number == 0 else booked[number - 1][0] + _MINUTE
        return start
