"""What a worker's process runs: one request after the other, until the page hangs up."""

from __future__ import annotations

import os
import resource
import sys
import traceback
from multiprocessing.connection import Connection
from typing import Any

from limits import Refused
from workers import receive, send

_PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Answer requests that come over the line whose number was given."""
    line, memory = Connection(int(sys.argv[1])), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    # A dump of a visitor's texts helps nobody.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            name, arguments = receive(line)
        except EOFError:
            return
        send(line, _answered(line, name, arguments))


def _answered(line: Connection, name: str, arguments: list[Any]) -> list[Any]:
    # Not before it is needed: reading a file takes no network, so a worker that only previews stays small.
    from work import WORK

    def progress(what: str, done: int, of: int) -> None:
        send(line, ["progress", what, done, of])

    try:
        value = WORK[name](progress, *arguments)
    except Refused as error:
        return ["refused", str(error)]
    except MemoryError:
        return ["refused", "this needs more memory than the page gives to one request"]
    except Exception:
        # The visitor learns nothing of how the page is made; who runs it does.
        traceback.print_exc()
        return ["refused", "something went wrong here; whoever runs this page finds it in the log"]
    return ["done", value, _resident()]


def _resident() -> int:
    """Bytes in memory; nothing where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * _PAGE
    except OSError:
        return 0


if __name__ == "__main__":
    main()
