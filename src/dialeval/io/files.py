"""The outside world: files that appear whole or not at all, names that are safe to show, network hosts."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from dialeval.io.harmless import excerpt, one_line, without_secrets


class WriteError(OSError):
    """A file could not be written; the message names it and says what to do."""


def safe_name(text: str) -> str:
    """A file name without characters that file systems mind, and none that leads out of its folder."""
    return re.sub(r"[^\w.-]+", "_", text).lstrip(".")[:120] or "_"


def inside(folder: Path, name: str | Path) -> Path:
    """A path below `folder` whose name comes from data; one that leads elsewhere, by its dots or a link, is refused."""
    path = folder / name
    home, target = Path(os.path.realpath(folder)), Path(os.path.realpath(path))  # of a circle, where it begins
    if target == home or not target.is_relative_to(home):
        raise ValueError(f"{str(name)[:100]!r} leads out of its folder; choose a plain name")
    return path


#: An absolute path inside a text; what follows a colon twice over is an address.
_PATH = re.compile(r"(?<![\w/.~-])/(?:[^/\s'\",;:#?]+/)+[^/\s'\",;:#?]*")


def without_machine(text: str) -> str:
    """A text for others to read: paths relative to the working folder, of those elsewhere only the last name."""
    return _PATH.sub(lambda match: near(Path(match[0])), text)


def near(path: Path) -> str:
    """An absolute path as seen from the working folder; of one elsewhere, the last name."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def cache_directory() -> Path:
    """`$DIALEVAL_CACHE`, else `dialeval` in the user's cache folder."""
    chosen = os.environ.get("DIALEVAL_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared).expanduser() if shared else Path.home() / ".cache") / "dialeval"


def is_stream(path: Path) -> bool:
    """Whether a device or a pipe is there: written as it comes, and never replaced by a file."""
    return path.exists() and not path.is_file() and not path.is_dir()


@contextmanager
def atomic_file(path: Path, hidden: Path) -> Iterator[Path]:
    """Hand out `hidden`, beside `path`, to write to; it takes the place of `path` if all goes well.

    While it is written only its owner may read it (0600); then it gets the mode that any new file would
    have had. What an interrupted run, or somebody else, left under its name is removed, never followed;
    what another process is still writing there is not: the second one is refused.
    """
    if is_stream(path):
        raise ValueError(f"{path} is a device or a pipe and cannot be replaced; choose a file")
    _remove_left(path, hidden)
    descriptor = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        lock(descriptor)
        usual = os.fstat(descriptor).st_mode & 0o777
        os.chmod(hidden, 0o600)
        yield hidden
        os.fsync(descriptor)
        os.chmod(hidden, usual)
        os.replace(hidden, path)
    except BaseException as error:
        name_place(error, path)
        # Once renamed there is nothing of ours under that name, but perhaps something of somebody else's.
        with suppress(OSError):
            hidden.unlink(missing_ok=True)
        raise
    finally:
        # Data is already flushed; a close error must not mask an earlier one.
        with suppress(OSError):
            os.close(descriptor)


def name_place(error: BaseException, path: Path) -> None:
    """What the system says of a write or a flush does not tell of which file it speaks."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = str(path)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Libraries written in Rust tell of a full disk in errors of their own, which are made the system's again."""
    try:
        yield
    except OSError as error:
        name_place(error, path)
        raise
    except Exception as error:
        if (code := re.search(r"\(os error (\d+)\)", str(error))) is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from error


def _remove_left(path: Path, hidden: Path) -> None:
    try:
        descriptor = os.open(hidden, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return
    except OSError:  # a link or something else that cannot be read, and so is not being written by one of us
        hidden.unlink(missing_ok=True)
        return
    try:
        if not lock(descriptor):
            raise ValueError(f"another process is writing {path}; wait for it, or choose another name")
        hidden.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> bool:
    """Hold a file until its descriptor is closed; False if another process does. Where there are no locks, True."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # Windows, and file systems without locks
        return True
    return True


def place_beside(path: Path) -> Path:
    """A hidden name beside `path`, where this process makes what will take its place."""
    return path.with_name(f".{path.stem}.{os.getpid()}-{secrets.token_hex(4)}{path.suffix}")


def hidden_names(path: Path) -> re.Pattern[str]:
    """What `place_beside` makes of a path, with the process that made it."""
    return re.compile(rf"\.{re.escape(path.stem)}\.(\d+)-[0-9a-f]{{8}}{re.escape(path.suffix)}")


def left_beside(path: Path) -> list[Path]:
    """Such places of processes that were killed, and no links; none where nobody knows which of them still run."""
    pattern, names = hidden_names(path), os.listdir(path.parent) if os.name == "posix" else []
    named = [(pattern.fullmatch(name), name) for name in names]
    dead = [path.with_name(name) for match, name in named if match and not _runs(int(match[1]))]
    return [place for place in dead if not place.is_symlink()]


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # somebody else's, or a number that no process has
        return True
    return True


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Hand out a path beside `path` to write to, and put what was written in its place if all went well."""
    temporary = place_beside(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError, ValueError):  # a folder that cannot be listed; a process on another machine
            for left in left_beside(path):
                _remove_left(path, left)
        with atomic_file(path, temporary):
            yield temporary
    except OSError as error:
        failure = WriteError(
            f"{path} cannot be written ({error.strerror or error}); make room or choose another folder, "
            "then run the same command again: what was finished is kept"
        )
        failure.errno = error.errno
        raise failure from error


def write_atomically(path: Path, lines: Iterable[str]) -> None:
    """Write a text file line by line; to a device or a pipe as it comes."""
    with (
        nullcontext(path) if is_stream(path) else replacing(path) as place,
        disk_errors(path),
        place.open("w", encoding="utf-8", errors="backslashreplace") as stream,  # a name of a file may hold any bytes
    ):
        stream.writelines(f"{line}\n" for line in lines)


#: Of a file that is read as a whole, and that somebody wrote by hand.
MAX_SMALL_BYTES = 2**24


def read_small(path: Path) -> str:
    """The text of a file of settings; a device without an end, or a file of another kind, is not read to its end."""
    with path.open("rb") as stream:
        content = stream.read(MAX_SMALL_BYTES + 1)
    if len(content) > MAX_SMALL_BYTES:
        raise ValueError(f"{path} is larger than {MAX_SMALL_BYTES // 2**20} MiB; is this the right file?")
    return content.decode("utf-8")


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says. Whatever is wrong with it is a `JSONDecodeError`, also what Python itself cannot take."""
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None
    except ValueError:
        raise json.JSONDecodeError("a number of thousands of digits", "", 0) from None


def read_yaml(path: str | Path, what: str) -> dict[str, Any]:
    """The fields of a small YAML or JSON file."""
    try:
        text = read_small(Path(path).expanduser())
    except OSError as error:
        raise ValueError(f"{what} {path} cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} {path} is not UTF-8 ({error.reason}); save it as UTF-8") from None
    return yaml_fields(text, f"{what} {path}")


def yaml_fields(text: str, what: str) -> dict[str, Any]:
    """The fields of a text in YAML or JSON."""
    import yaml

    try:
        aliases = any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader))
        twice = "" if aliases else _standing_twice(yaml.compose(text, yaml.SafeLoader))
        fields = None if aliases or twice else yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        # Its constructors raise what comes: of an empty number, of a month that no year has.
        raise ValueError(f"{what} is not YAML ({excerpt(' '.join(str(error).split()))})") from None
    if aliases:  # a few lines of which can stand for gigabytes
        raise ValueError(f"{what} refers to a part of itself with a star; write it out")
    if twice:
        raise ValueError(f"{what} has {one_line(repr(twice))} twice in one place; leave one of them out")
    if not isinstance(fields, dict):
        raise ValueError(f"{what} has no fields; write NAME: VALUE")
    return fields


def _standing_twice(node: Any) -> str:
    """A name that stands twice in one mapping of a document, whose last value would count in silence; or nothing."""
    inner = node.value if isinstance(getattr(node, "value", None), list) else []
    names = Counter(str(part[0].value) for part in inner if isinstance(part, tuple))
    twice = next((name for name, count in names.items() if count > 1), "")
    values = (part[1] if isinstance(part, tuple) else part for part in inner)
    return twice or next(filter(None, map(_standing_twice, values)), "")


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a file that dialeval wrote.

    Lines end where it ended them: a text may hold other characters that Unicode calls line ends.
    """
    return [parse_json(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


_NETWORK_PATIENCE = 2.0


def is_reachable(endpoint: str) -> bool:
    """Whether anything answers at the endpoint; the Hub client itself would retry for most of a minute."""
    if any(os.environ.get(name) for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY")):
        return True
    try:
        address = address_parts(endpoint)
        port = address.port or (443 if address.scheme == "https" else 80)
        with socket.create_connection((address.hostname or "", port), timeout=_NETWORK_PATIENCE):
            return True
    except (OSError, ValueError):
        return False


def address_parts(text: str) -> SplitResult:
    """The parts of an address; ValueError where no server can have such a host or port."""
    parts = urlsplit(text)
    (parts.hostname or "").encode("idna")
    parts.port  # noqa: B018 (it is read from the text here)
    if any(character.isspace() for character in text):
        raise ValueError("an address has no white space")
    return parts


#: Of a library's error, and of what is shown of it.
_LONGEST, _LONGEST_LINE = 20_000, 400


def first_line(error: BaseException) -> str:
    """The first line of a library's error, which is what fits into ours; a Hub's may quote the token."""
    lines = without_secrets(str(error)[:_LONGEST], hub_tokens()).strip().splitlines()
    return excerpt(lines[0], most=_LONGEST_LINE) if lines else type(error).__name__


def hub_tokens() -> list[str]:
    """The token that the Hub's client has stored, where it has one."""
    if "huggingface_hub" not in sys.modules:  # nobody has asked the Hub anything
        return []
    with suppress(Exception):  # a token that cannot be read is not sent
        return [token] if (token := sys.modules["huggingface_hub"].get_token()) else []
    return []


def plain(value: Any) -> Any:
    """A value for JSON, which has neither NaN nor arrays: None, and lists."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def progress_bar(label: str, total: int | None, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Done, rate and time left on standard error, in a log now and then a line; takes how many more are done."""
    if not shown:
        yield lambda more: None
        return
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        reach(done, total, 0)

    with progress_counter(label, label) as reach:
        reach(0, total, 0)
        yield advance


#: Takes how many are done, of how many, and how many of those an earlier run had done.
Reach = Callable[[int, int | None, int], None]


@contextmanager
def progress_counter(label: str, before: str) -> Iterator[Reach]:
    """The same. Until it is called the bar says what comes `before`."""
    from rich.console import Console

    label, before = one_line(label), one_line(before)  # names of files and metrics
    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield ProgressLines(label).reach
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[pace]}"), TimeElapsedColumn())
    with Progress(TextColumn("{task.description}", markup=False), *columns, console=console, transient=True) as bar:
        work, begun = bar.add_task(before, total=None, pace=""), time.monotonic()

        def show(done: int, total: int | None, kept: int) -> None:
            nonlocal begun
            begun = begun if done > kept else time.monotonic()
            remaining = pace(done - kept, None if total is None else total - done, time.monotonic() - begun)
            bar.update(work, description=label, completed=done, total=total, pace=remaining)

        yield show


def pace(done: int, left: int | None, seconds: float) -> str:
    """Rows a second and the time to go; nothing before any are done.

    >>> pace(20, 400, 10.0)
    '2/s, 0:03:20 to go'
    """
    if not done:
        return ""
    rate = done / max(seconds, 1e-3)
    to_go = "" if left is None else f", {timedelta(seconds=round(left / rate))} to go"
    return f"{rate:.2g}/s{to_go}" if rate < 10 else f"{rate:,.0f}/s{to_go}"


class ProgressLines:
    """Progress in logs: a line after some seconds, then each time that twice as long has passed, or ten minutes."""

    LONGEST = 600.0

    def __init__(self, label: str, *, first: float = 5.0) -> None:
        self.label, self.first, self.due = label, first, first
        self.begun = time.monotonic()

    def reach(self, done: int, total: int | None, kept: int) -> None:
        """So many are done; the end itself is told by whoever shows the outcome."""
        if done <= kept:
            self.begun, self.due = time.monotonic(), self.first
            return
        seconds = time.monotonic() - self.begun
        if done != total and seconds >= self.due:
            self.due = seconds + min(seconds, self.LONGEST)
            of, left = ("", None) if total is None else (f" of {total:,}", total - done)
            print(f"{self.label}: {done:,}{of}, {pace(done - kept, left, seconds)}", file=sys.stderr, flush=True)


def replace_file(path: Path, write: Any) -> None:
    """Write beside the target and rename, so that a reader never sees half a file."""
    with atomic_file(path, path.with_name(f".{path.name}.{os.getpid()}")) as hidden:
        write(hidden)
