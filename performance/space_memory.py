"""Memory of the side-by-side page over thousands of calls, each of another caller who never comes back.

Every call is a session of its own, as `curl` makes them; every fiftieth also uploads a file of its own. The page's own
process and its workers are watched apart. Writes `space_memory.json` and, if asked, a picture:

    python performance/space_memory.py                    # 5,000 calls
    python performance/space_memory.py --calls 300 --out quick.json --picture quick.png
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from space_server import address, process_id  # noqa: E402

_MEGABYTE = 2**20
_AT_ONCE = 4


def call(number: int) -> None:
    """Score two rows that nobody has sent before."""
    rows = [
        {"context": [f"How is number {number}?", uuid.uuid4().hex], "response": reply}
        for reply in ("Fine, thank you.", f"It is {number} years old and grows.")
    ]
    body = json.dumps({"data": [rows, ["density"]]}).encode()
    place = f"{address()}/gradio_api/call/score"
    asked = urllib.request.Request(place, body, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{place}/{event}") as answer:
        told = answer.read().decode()
    if "event: complete" not in told:
        raise RuntimeError(told[:300])
    if number % 50 == 0:
        upload(number)


def upload(number: int) -> None:
    """A file that nobody asks about again."""
    mark, rows = uuid.uuid4().hex, f'{{"context": ["a {number}"], "response": "b"}}\n' * 1000
    head = 'Content-Disposition: form-data; name="files"; filename="rows.jsonl"'
    body = f"--{mark}\r\n{head}\r\n\r\n{rows}\r\n--{mark}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={mark}"}
    urllib.request.urlopen(urllib.request.Request(f"{address()}/gradio_api/upload", body, headers=headers)).close()


def resident(process: int) -> float:
    """Megabytes of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MEGABYTE


def workers() -> list[int]:
    """The page's children."""
    page = process_id()
    told = Path(f"/proc/{page}/task").glob("*/children")
    return sorted({int(child) for path in told for child in path.read_text().split()})


def measure(calls: int, every: int) -> dict[str, Any]:
    """Call, and look at the memory from time to time."""
    seen: list[dict[str, float]] = []
    begun = time.perf_counter()
    address()  # one page, whichever thread would come first
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for first in range(0, calls, every):
            list(pool.map(call, range(first, min(calls, first + every))))
            done, children = min(calls, first + every), sum(map(resident, workers()))
            seen.append({"calls": done, "page_mb": resident(process_id()), "workers_mb": children})
            print(f"{done:6} calls  page {seen[-1]['page_mb']:7.1f} MB  workers {children:7.1f} MB", flush=True)
    # The start loads what is loaded once; growth is what goes on after that.
    later = [one for one in seen if one["calls"] > calls // 5]
    at = [one["calls"] for one in later]
    slopes = {name: float(np.polyfit(at, [one[name] for one in later], 1)[0]) for name in ("page_mb", "workers_mb")}
    return {
        "calls": calls,
        "seconds": round(time.perf_counter() - begun, 1),
        "kilobytes_a_call_after_the_first_fifth": {name: round(slope * 1024, 2) for name, slope in slopes.items()},
        "seen": [{name: round(value, 1) for name, value in one.items()} for one in seen],
    }


def draw(found: dict[str, Any], path: Path) -> None:
    """Memory over calls."""
    from dialeval.plots.figures import new_figure

    figure = new_figure(6, 3.2)
    axes = figure.subplots()
    for name, label in (("page_mb", "the page"), ("workers_mb", "its workers together")):
        axes.plot([one["calls"] for one in found["seen"]], [one[name] for one in found["seen"]], label=label)
    axes.set(xlabel="calls", ylabel="resident memory, MB", ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--every", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("space_memory.json"))
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    found = measure(given.calls, given.every)
    given.out.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found["kilobytes_a_call_after_the_first_fifth"]))
    if given.picture:
        draw(found, given.picture)


if __name__ == "__main__":
    main()
