"""Heavy work in processes of their own, so that what one visitor brings can be stopped, and stops nobody else.

A worker that takes too long is ended, and one that has grown or died is replaced. What goes between the processes is
JSON: a worker reads visitors' files, so nothing that it says is trusted to be more than data.
"""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import queue
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from limits import Refused

_CHILD = Path(__file__).with_name("worker.py")
#: How often to look at a worker's clock, and how many times its seconds may pass on everybody's clock.
_LOOK, _PATIENCE = 0.5, 20
#: Called with what is being done, the steps done and all steps.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Allowance:
    """What a worker may take: seconds of the processor for a request, so that a busy machine makes no request fail,
    bytes of address space, and bytes in memory after which it is replaced."""

    seconds: float
    memory: int
    grown: int = 2**31


class _Gone(Exception):
    """The worker ended in the middle of its work."""


class _Worker:
    """One process, and the line to it."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._line, theirs = multiprocessing.Pipe()
        cores = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // 2))
        self._process = subprocess.Popen(
            [sys.executable, str(_CHILD), str(theirs.fileno()), str(allowance.memory)],
            env={**os.environ, "OMP_NUM_THREADS": cores},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            # Ctrl-C is for the page, which then closes the line.
            start_new_session=True,
        )
        theirs.close()
        self.is_usable = True

    def ask(self, name: str, arguments: list[Any], progress: Progress | None) -> Any:
        """One request; whatever goes wrong, `is_usable` says whether there may be another."""
        try:
            try:
                message = json.dumps([name, arguments])
            except RecursionError:
                raise Refused("the request is nested too deeply; pass plain lists and texts") from None
            self._line.send_bytes(message.encode())
            begun, until = self._processor_seconds(), time.monotonic() + _PATIENCE * self._allowance.seconds
            while True:
                if not self._line.poll(_LOOK):
                    if self._processor_seconds() - begun < self._allowance.seconds and time.monotonic() < until:
                        continue
                    self.end()
                    raise Refused(
                        f"this took more than {self._allowance.seconds:g} seconds of computing and was stopped; "
                        "`dialeval score` on a machine of your own has no such limit"
                    )
                kind, *parts = receive(self._line)
                if kind == "progress":
                    if progress is not None:
                        progress(*parts)
                    continue
                break
        except (EOFError, OSError):
            self.end()
            raise _Gone from None
        if kind == "refused":
            raise Refused(parts[0])
        value, size = parts
        if size > self._allowance.grown:
            self.end()
        return value

    def _processor_seconds(self) -> float:
        """What the process has computed so far; nothing where the system does not tell, and then the clock decides."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """Stop the process at once, and leave nothing of it."""
        self.is_usable = False
        self.kill()
        self._line.close()

    def kill(self) -> None:
        """Stop the process at once; who waits for its answer is told that it is gone."""
        self._process.kill()
        self._process.wait()


class Pool:
    """So many workers; each is started when it is first needed."""

    def __init__(self, size: int, allowance: Allowance) -> None:
        self.size = size
        self._allowance = allowance
        # The one that worked last goes first: what it has loaded need not be loaded again.
        self._free: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        self._started: set[_Worker] = set()
        for _ in range(size):
            self._free.put(None)
        atexit.register(self.close)

    def ask(self, name: str, *arguments: Any, progress: Progress | None = None) -> Any:
        """Have a function of `work.py` called, or raise `Refused` with what to tell the visitor."""
        worker = self._free.get()
        try:
            if worker is None:
                worker = _Worker(self._allowance)
                self._started.add(worker)
            return worker.ask(name, list(arguments), progress)
        except _Gone:
            raise Refused(
                "this needed more memory than the page gives to one request, or ended the process that worked on it"
            ) from None
        finally:
            if worker is not None and not worker.is_usable:
                self._started.discard(worker)
                worker = None
            self._free.put(worker)

    def close(self) -> None:
        """End all workers, also those at work."""
        for worker in list(self._started):
            worker.kill()


def send(line: Connection, message: Any) -> None:
    """One message; lone surrogates, which visitors can send, go through as escapes."""
    line.send_bytes(json.dumps(message).encode())


def receive(line: Connection) -> Any:
    """The next message."""
    return json.loads(line.recv_bytes())
