"""The page under visitors: first paint, time to compare, fifty at once, memory: `python performance/space.py`.

Every answer is held against the library's own. Needs Chromium (`make browser`). Writes space.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gradio_client import Client
from playwright.sync_api import sync_playwright
from tqdm.auto import tqdm

import dialeval

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from resources import CHROMIUM
from space_server import address, process_id

CONTEXT = ["How was your trip?", "Great, but I lost my suitcase on the way back."]


def replies(visitor: int) -> list[str]:
    """Two replies that no other visitor sends."""
    return [f"Oh no! Did airline number {visitor} find it?", f"The library closes at {visitor}."]


def expected(count: int) -> list[list[float]]:
    """What the library says to each visitor."""
    judge = dialeval.load("judge", dtype="float32")
    return [[float(value) for value in judge.score(replies(at), [CONTEXT] * 2).values] for at in range(count)]


def right(client: Client, visitor: int, values: list[float]) -> bool:
    """Ask once; whether the answer is the library's."""
    found = client.predict(CONTEXT, replies(visitor), api_name="/compare")
    return all(abs(x - y) < 1e-4 for x, y in zip(found["values"], values, strict=True))


def in_browser() -> dict[str, float]:
    """From the request to an answer on the screen; then from the button to another answer."""
    with sync_playwright() as own:
        browser = own.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        begun = time.monotonic()
        page.goto(address())
        page.wait_for_selector("#answer .card")
        paint, each = time.monotonic() - begun, []
        for at in range(10):
            page.get_by_role("textbox", name="Reply A").fill(replies(at)[0])
            begun = time.monotonic()
            page.click("#compare")
            page.locator("#answer .card", has_text=replies(at)[0]).wait_for()
            each.append(time.monotonic() - begun)
        browser.close()
    return {
        "seconds to a first answer": round(paint, 2),
        "seconds to compare, median": round(statistics.median(each), 2),
    }


def many_at_once(visitors: int, seconds: float, values: list[list[float]]) -> dict[str, float]:
    """Visitors that ask again as soon as they are answered."""
    end = time.monotonic() + seconds

    def visit(visitor: int) -> list[tuple[bool, float]]:
        client, answers = Client(address(), verbose=False), []
        while (begun := time.monotonic()) < end:
            answers.append((right(client, visitor, values[visitor]), time.monotonic() - begun))
        return answers

    with ThreadPoolExecutor(visitors) as pool:
        found = [answer for own in pool.map(visit, range(visitors)) for answer in own]
    waits = sorted(wait for _, wait in found)
    return {
        "visitors": visitors,
        "answers": len(found),
        "wrong": sum(not good for good, _ in found),
        "median wait": round(statistics.median(waits), 2),
        "longest wait": round(waits[-1], 2),
    }


def memory() -> float:
    """Resident MiB of the page's process."""
    status = Path(f"/proc/{process_id()}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def grown(calls: int, values: list[list[float]]) -> dict[str, float]:
    """Memory after a fifth of the calls and after all; every tenth call is a new visitor's."""
    first, wrong, client = 0.0, 0, Client(address(), verbose=False)
    for call in tqdm(range(calls), "calls"):
        if call % 10 == 0:
            client = Client(address(), verbose=False)
        wrong += not right(client, call % len(values), values[call % len(values)])
        if call == calls // 5:
            first = memory()
    last = memory()
    return {
        "calls": calls, "wrong": wrong, "MiB after a fifth": round(first), "MiB after all": round(last),
        "growth": round(last / first - 1, 4),
    }  # fmt: skip


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--calls", type=int, default=5_000)
    options = parser.parse_args()
    address()
    values = expected(max(1, options.visitors))
    found = {
        "browser": in_browser(),
        "many at once": many_at_once(options.visitors, options.seconds, values),
        "memory": grown(options.calls, values),
    }
    text = json.dumps(found, indent=2)
    Path(__file__).with_suffix(".json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
