"""The page as an unprivileged user, with no file system to write: in a container, and in what one is made of."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("gradio")

from resources import PATIENCE
from space_server import ROOT, SPACE

pytestmark = pytest.mark.slow

CONTAINERFILE = SPACE / "Containerfile"
#: The file system read-only but for /tmp, which is empty; then the user of the container file, without any privilege.
#: Python may live where only its owner may look: then that folder is shown to everybody, with nothing else in it.
INSIDE = """set -e
hidden=$1 python=$2
shift 2
mount -t tmpfs -o size=1g,mode=1777 tmpfs /tmp
if [ -n "$hidden" ]; then
    mkdir /tmp/python
    mount --bind "$python" /tmp/python
    mount -t tmpfs -o mode=755 tmpfs "$hidden"
    mkdir -p "$python"
    mount --move /tmp/python "$python"
    rmdir /tmp/python
fi
mount -o remount,bind,ro /
for place in $(cut -d' ' -f2 /proc/self/mounts); do
    case $place in / | /tmp | /proc* | /sys* | /dev*) ;; *) mount -o remount,bind,ro "$place" ;; esac
done
exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all "$@"
"""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True)


@cache
def engine() -> str | None:
    """A container engine that answers."""
    for name in ("docker", "podman"):
        if shutil.which(name) and run(name, "info").returncode == 0:
            return name
    return None


def inside(*command: str) -> list[str]:
    """A command that runs another one as it would run in the container."""
    home = Path(sys.base_prefix).resolve()
    hidden = next((str(folder) for folder in reversed(home.parents) if not folder.stat().st_mode & 0o001), "")
    unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-c", INSIDE, "sh"]
    return [*unshare, hidden, str(home), *command]


@cache
def can_unshare() -> bool:
    if not all(map(shutil.which, ("unshare", "setpriv"))):
        return False
    tried = "import subprocess, sys, gradio; subprocess.run([sys.executable, '-c', ''], check=True)"
    return run(*inside(sys.executable, "-c", tried)).returncode == 0


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def well(url: str, process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until the page says that it is."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and (process is None or process.poll() is None):
        with suppress(urllib.error.URLError, ConnectionError), urllib.request.urlopen(f"{url}/health") as answer:
            assert json.load(answer) == {"status": "ok"}
            return
        time.sleep(0.3)
    raise AssertionError("the page did not start")


def previewed(url: str) -> None:
    """A file goes up, and a row is judged: both write what they write below /tmp."""
    head = 'Content-Disposition: form-data; name="files"; filename="rows.jsonl"'
    rows = '{"context": ["a"], "response": "b"}\n'
    body = f"--x\r\n{head}\r\n\r\n{rows}\r\n--x--\r\n".encode()
    sent = urllib.request.Request(f"{url}/gradio_api/upload", body, {"Content-Type": "multipart/form-data; boundary=x"})
    with urllib.request.urlopen(sent) as answer:
        (path,) = json.load(answer)
    assert path.startswith("/tmp/")
    data = json.dumps({"data": [[{"context": ["a"], "response": "b"}], ["density"]]}).encode()
    place = f"{url}/gradio_api/call/score"
    asked = urllib.request.Request(place, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked) as answer:
        event = json.load(answer)["event_id"]
    with urllib.request.urlopen(f"{place}/{event}") as answer:
        shown = answer.read().decode()
    assert "event: complete" in shown
    assert "density" in shown


def test_the_steps_are_those_of_the_container_file() -> None:
    """An unprivileged user by number, which a read-only system cannot look up; nothing written but below /tmp."""
    shown = CONTAINERFILE.read_text()
    assert re.search(r"^USER 10001:10001$", shown, re.MULTILINE)
    assert "GRADIO_TEMP_DIR=/tmp" in shown
    assert "/health" in shown
    for place in re.findall(r"^COPY (.+) \S+$", shown, re.MULTILINE):
        for name in place.split():
            assert (ROOT / name).exists(), name
    documented = (ROOT / "docs" / "space.md").read_text()
    for option in ("--read-only", "--tmpfs /tmp", "--cap-drop ALL", "no-new-privileges"):
        assert option in shown
        assert option in documented


@pytest.mark.encoder
@pytest.mark.skipif("not can_unshare()", reason="needs unshare, setpriv and the right to use them")
def test_without_rights_and_on_a_file_system_that_cannot_be_written() -> None:
    port = free_port()
    own = {
        **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_TEMP_DIR": "/tmp/page",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HOME": "/tmp",
        "HF_HUB_OFFLINE": "1",
    }
    process = subprocess.Popen(inside(sys.executable, "app.py"), cwd=SPACE, env=own, stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        well(url, process)
        shown = Path(f"/proc/{process.pid}/status").read_text()
        assert "Uid:\t10001\t10001\t10001\t10001" in shown
        assert re.search(r"^CapEff:\t0+$", shown, re.MULTILINE)
        previewed(url)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def container(name: str) -> Iterator[str]:
    port = free_port()
    options = ["--read-only", "--tmpfs", "/tmp:size=1g", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    command = [name, "run", "--rm", "-d", "-p", f"127.0.0.1:{port}:7860", *options, "dialeval-page"]
    started = run(*command)
    assert started.returncode == 0, started.stderr
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        run(name, "kill", started.stdout.strip())


@pytest.mark.skipif("engine() is None", reason="no container engine answers here (docker or podman)")
def test_the_container_as_documented() -> None:
    name = engine()
    assert name is not None
    built = run(name, "build", "-f", str(CONTAINERFILE), "-t", "dialeval-page", str(ROOT))
    if built.returncode and "pip install" in built.stderr:
        pytest.skip("the image's packages cannot be fetched from here")
    assert built.returncode == 0, built.stderr
    with container(name) as url:
        well(url)
        previewed(url)
