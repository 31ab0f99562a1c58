"""Every promise of SECURITY.md names the tests that show it, and they are there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shell import write_rows

ROOT = Path(__file__).parents[2]


def test_each_promise_has_its_test() -> None:
    promises = re.findall(r"^- (.*(?:\n  .*)*)$", (ROOT / "SECURITY.md").read_text("utf-8"), re.MULTILINE)
    assert len(promises) > 30
    for promise in promises:
        named = re.findall(r"`(tests/\S+\.py)::(\w+)`", promise)
        assert named, promise
        for path, name in named:
            assert re.search(rf"^def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE), f"{path}::{name}"


#: The command, which tells of every name that is looked up and every place that is called.
WATCHED = """
import sys
def watch(event, given):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect", "socket.sendto"):
        print("called", event, given, file=sys.stderr)
sys.addaudithook(watch)
from dialeval.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.encoder
@pytest.mark.parametrize(
    "command",
    ["score -m judge,deb -i rows.jsonl -o scores.jsonl", "gate rows.jsonl -b rows.jsonl --margin 0.1 --resamples 100"],
)
def test_nothing_is_sent_that_nobody_asked_for(command: str, tmp_path: Path) -> None:
    rows = [{"context": [f"How is {at}?"], "response": f"{at} is fine.", "id": str(at)} for at in range(30)]
    write_rows(tmp_path / "rows.jsonl", rows)
    online = {name: value for name, value in os.environ.items() if not name.endswith("_OFFLINE")}
    words = [sys.executable, "-c", WATCHED, *command.split()]
    done = subprocess.run(words, cwd=tmp_path, env=online, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "called" not in done.stderr
