"""The side-by-side page in a process of its own, as a visitor meets it, and a browser to meet it with."""

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path

from resources import PATIENCE

ROOT = Path(__file__).parents[2]
SPACE = ROOT / "spaces" / "side_by_side"
if str(SPACE) not in sys.path:  # its modules lie side by side, as on the Hub
    sys.path.insert(0, str(SPACE))


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


@cache
def address() -> str:
    """Where the page answers; started once for all tests, stopped at the end."""
    port = free_port()
    home = tempfile.mkdtemp(prefix="dialeval-space-")
    log = Path(home) / "log.txt"
    page = {"SERVER_NAME": "127.0.0.1", "SERVER_PORT": str(port), "TEMP_DIR": f"{home}/gradio"}
    page |= {"ANALYTICS_ENABLED": "False"}
    environment = {**os.environ, **{f"GRADIO_{name}": value for name, value in page.items()}}
    environment |= {"TMPDIR": home, "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "app.py"]
    with log.open("w") as stream:
        process = subprocess.Popen(command, cwd=SPACE, env=environment, stdout=stream, stderr=subprocess.STDOUT)

    def stop() -> None:
        process.terminate()
        process.wait()
        shutil.rmtree(home, ignore_errors=True)

    atexit.register(stop)
    url = f"http://127.0.0.1:{port}"
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            urllib.request.urlopen(f"{url}/config").close()
        except urllib.error.URLError:
            time.sleep(0.1)
        else:
            return url
    raise RuntimeError(f"the page did not start:\n{log.read_text()}")
