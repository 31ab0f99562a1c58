"""Load on the side-by-side page: many users call `/score` at once from another process, each with rows of its own.

Every answer is held against the library's values, so that a mixed-up one is found. Writes
`space_load.json` beside this file:

    python performance/space_load.py            # 50 users for 60 seconds
    python performance/space_load.py --users 4 --seconds 5 --out /tmp/quick.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import threading
import time
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from space_server import address  # noqa: E402

_ANIMALS = ("cat", "dog", "horse", "parrot", "goat")
_VERBS = ("likes", "hides", "steals", "remembers", "ignores", "wants", "finds", "drops", "guards", "eats")


@dataclass
class User:
    """One caller: what it asks, what it must be told, and what happened."""

    rows: list[dict[str, Any]]
    expected: Any
    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    mixed_up: int = 0

    def call_until(self, url: str, end: float, ready: threading.Barrier) -> None:
        """Call again and again; the first call is asked for before the clock starts."""
        from gradio_client import Client

        client = Client(url, verbose=False)
        ready.wait()
        while (begin := time.perf_counter()) < end + _started[0]:
            try:
                found = client.predict(self.rows, ["density"], api_name="/score")["density"]["values"]
            except Exception as error:  # whatever goes wrong is what this script looks for
                self.errors.append(f"{type(error).__name__}: {error}"[:300])
                continue
            self.seconds.append(time.perf_counter() - begin)
            self.mixed_up += not np.allclose(found, self.expected, rtol=1e-4)


_started = [0.0]


def make_users(count: int) -> list[User]:
    """Users with different rows, and the library's values for them."""
    import dialeval

    density = dialeval.load("density")
    users = []
    for number in range(count):
        animal, verb = _ANIMALS[number % 5], _VERBS[number // 5 % 10]
        context = [f"Tell me about your {animal}.", f"Well, it {verb} number {number}."]
        replies = [f"How nice that it {verb} that!", f"My {animal} is {number} years old.", "The exam was hard."]
        rows = [{"context": context, "response": reply} for reply in replies]
        users.append(User(rows, density.score(replies, [context] * 3).values))
    return users


def measure(count: int, seconds: float) -> dict[str, Any]:
    """Let all users loose at once."""
    users = make_users(count)
    url = address()
    from gradio_client import Client

    Client(url, verbose=False).predict(users[0].rows, ["density"], api_name="/score")  # the model is loaded once
    ready = threading.Barrier(count, action=lambda: _started.__setitem__(0, time.perf_counter()))
    threads = [threading.Thread(target=user.call_until, args=(url, seconds, ready)) for user in users]
    busy_before = os.getloadavg()[0]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = sorted(one for user in users for one in user.seconds)
    errors = [error for user in users for error in user.errors]
    return {
        "users": count,
        "seconds": seconds,
        "rows_per_call": 3,
        "calls": len(took),
        "errors": len(errors),
        "first_errors": errors[:3],
        "mixed_up_answers": sum(user.mixed_up for user in users),
        "calls_of_the_least_served_user": min(len(user.seconds) for user in users),
        "calls_per_second": round(len(took) / seconds, 2),
        "latency_seconds": {
            name: round(float(np.quantile(took, share)), 3) if took else None
            for name, share in (("median", 0.5), ("p95", 0.95), ("max", 1.0))
        },
        "machine": {"cpus": os.cpu_count(), "processor": platform.machine(), "load_before": round(busy_before, 2)},
        "versions": {name: version(name) for name in ("dialeval", "gradio", "gradio_client", "torch")},
    }


def main() -> None:
    """Measure, write, print; a failed or mixed-up answer is a failure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("space_load.json"))
    given = parser.parse_args()
    found = measure(given.users, given.seconds)
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))
    if found["errors"] or found["mixed_up_answers"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
