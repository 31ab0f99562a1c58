"""Ctrl-C at any moment: one line, 130. An import hook presses it, so that the moment is exact on any machine."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from resources import PATIENCE

pytestmark = pytest.mark.slow

TRAINING = Path(__file__).resolve().parents[2] / "training"

#: Runs a module or a script, and presses Ctrl-C when a certain module is looked for.
PRESS = """
import os, runpy, signal, sys
what, at, *rest = sys.argv[1:]
class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == at:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Presses())
sys.argv = [what, *rest]
if what.endswith(".py"):
    sys.path.insert(0, os.path.dirname(what))
    runpy.run_path(what, run_name="__main__")
else:
    runpy.run_module(what, run_name="__main__", alter_sys=True)
"""


def pressed(*arguments: str) -> subprocess.CompletedProcess[str]:
    # A shell's background jobs ignore SIGINT, and so would everything that the tests start there.
    return subprocess.run(
        [sys.executable, "-c", PRESS, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        check=False,
    )


@pytest.mark.parametrize(
    "at", ["dialeval.cli", "typer", "dialeval.cli.score", "dialeval.registry.interface", "dialeval.readers"]
)
def test_the_command(at: str, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"context": ["Hi!"], "response": "Hello."}\n')
    printed = pressed("dialeval", at, "score", "-m", "llm", "-i", str(tmp_path / "rows.jsonl"), "-o", "-")
    assert (printed.returncode, printed.stderr.strip(), printed.stdout) == (130, "interrupted", "")


@pytest.mark.parametrize("at", ["numpy", "torch", "accelerate", "common", "stages"])
def test_training(at: str) -> None:
    printed = pressed(str(TRAINING / "deb.py"), at, "--help")
    assert (printed.returncode, printed.stderr.strip()) == (130, "interrupted")


WRAPPED = """
import os, signal, sys
from dialeval.io import interrupts
from dialeval.cli import ErrorsInOneSentence
import typer
app = typer.Typer(cls=ErrorsInOneSentence)
@app.command()
def one() -> None:
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise {error}("what a library makes of it")
@app.command()
def other() -> None: ...
interrupts.leave_at_once()
with interrupts.listening():
    app(["one"])
"""


@pytest.mark.parametrize("error", ["ImportError", "RuntimeError", "SystemError", "ValueError", "OSError", "TypeError"])
def test_what_a_library_makes_of_an_interrupt(error: str) -> None:
    printed = subprocess.run(
        [sys.executable, "-c", WRAPPED.replace("{error}", error)], capture_output=True, text=True, timeout=PATIENCE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler), check=False,
    )  # fmt: skip
    assert (printed.returncode, printed.stderr.strip()) == (130, "interrupted")
