"""Every door, given what is nearly right: an answer or one sentence, never a traceback, whatever was broken.

`tests/seeds/DOOR/` holds sound files and those that once broke something. Pieces of them are cut out, doubled, swapped
between seeds and changed byte by byte. A few of these run here; `make fuzz` goes on for minutes, and names the file
that it keeps of what broke, which then becomes a seed.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dialeval.agreement.score_files import read_scores
from dialeval.approaches.feature_set import read_side
from dialeval.benchmarks.rowfile import read_file
from dialeval.exchange import BadRow
from dialeval.llm.protocol import Question, read_protocol
from dialeval.llm.reading import NoAnswer, expectation
from dialeval.readers import Rejects, Source
from dialeval.reports.markdown import render_markdown
from dialeval.reports.page import render_page
from dialeval.reports.stored import read_report
from dialeval.scoring.journal import Journal, begun
from dialeval.tuning.opinions import read_opinions
from dialeval.weights.config import CheckpointConfig
from dialeval.weights.find import WEIGHTS, CheckpointError
from dialeval.weights.tokens import check_tokenizer
from dialeval.weights.untrusted import check_files, tensor_shapes

pytestmark = pytest.mark.slow

SEEDS = Path(__file__).parents[1] / "seeds"
#: What a door may say; anything else is a fault.
TOLD = (ValueError, CheckpointError, OSError)
#: Seconds for each door under `make fuzz`; without, so many examples.
SECONDS = float(os.environ.get("DIALEVAL_FUZZ_SECONDS", "0"))
EXAMPLES = 40
#: What readers treat in a way of their own.
PIECES = [
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b"[", b"{", b"}", b",", b"null", b"NaN", b"1e999", b"-1",
    b"\\ud800", b"9" * 400, b"[" * 2000, b"__eou__", b"\x1f\x8b", b"PAR1", b"\xe2\x80\x8b", b"true", b'""', b"{}",
]  # fmt: skip


def rows(path: Path) -> None:
    for _ in Source(str(path)).exchanges(skip_bad=Rejects()):
        pass


def opinions(path: Path) -> None:
    read_opinions(Source(str(path)))


def journal(path: Path) -> None:
    begun(path)
    with Journal(path, {"level": "turn"}, fresh=False) as opened:
        while opened.next_finished() is not None:
            pass
        list(opened.finished())


def checkpoint(path: Path) -> None:
    """One file of a sound folder is exchanged for a broken one."""
    folder = path.with_suffix(".folder")
    shutil.copytree(WEIGHTS / "density-minilm", folder)
    try:
        shutil.copy(path, folder / "config.json")
        check_files(folder)
        CheckpointConfig.read(folder)
    finally:
        shutil.rmtree(folder)


def tokenizer(path: Path) -> None:
    folder = path.with_suffix(".folder")
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / "tokenizer.json")
    check_tokenizer(folder)


def weights(path: Path) -> None:
    tensor_shapes(path)


def scores(path: Path) -> None:
    read_scores(path)


def benchmark(path: Path) -> None:
    read_file(path)


def report(path: Path) -> None:
    """The tables of an earlier run, one of them exchanged for a broken one; its pages are made of what passes."""
    folder = path.with_suffix(".folder")
    shutil.copytree(SEEDS / "report", folder)
    name = next(
        known for known in ("run.json", "overall.jsonl", "halves.jsonl", "agreement.jsonl") if _is_a(known, path)
    )
    try:
        shutil.copy(path, folder / name)
        found = read_report(folder)
        render_markdown(found)
        render_page(found)
    finally:
        shutil.rmtree(folder)


def side(path: Path) -> None:
    read_side(path)


def _is_a(name: str, path: Path) -> bool:
    """By what only that table has; whatever cannot be told apart any more is taken for the results."""
    known = {"run.json": b"settings", "overall.jsonl": b"leader", "halves.jsonl": b"leaked"}
    return name not in known or known[name] in path.read_bytes()


def protocol(path: Path) -> None:
    read_protocol(str(path))


def prices(path: Path) -> None:
    from dialeval.llm.asking import read_price

    read_price(path, "some-model")


def api(path: Path) -> None:
    """A language model's server answers whatever the file says: its first line is the status."""
    pytest.importorskip("openai")
    from dialeval.llm.client import Client, QuestionFailed
    from dialeval.metric import CannotGoOn
    from loopback_llm import Raw, serving

    status, _, body = path.read_bytes().partition(b"\n")
    known = int(status) if status.isdigit() and 200 <= int(status) <= 599 else 200
    question = Question([{"role": "user", "content": "How good is it?"}], ("content",))
    with serving(lambda *_: Raw(known, body)) as loopback, pytest.MonkeyPatch.context() as changed:
        changed.setenv("A_KEY", "sk-key")
        try:
            answer = Client("m", loopback.url, "A_KEY", 60.0, 0).ask(question, {"logprobs": 2})
        except (QuestionFailed, CannotGoOn):
            return
    # What passes is what it is taken for, wherever it goes from here.
    assert all(isinstance(one, str) for one in (*answer.texts, answer.finish, answer.served, answer.fingerprint))
    "".join(answer.texts).encode()  # nothing that no file can hold
    assert isinstance(answer.tokens_in, int)
    assert answer.tokens_in >= 0 <= answer.tokens_out
    for one in answer.logprobs or []:
        for token in (one, *one["top_logprobs"]):
            assert isinstance(token["token"], str)
            assert token["logprob"] <= 0.0
    if answer.logprobs:
        with suppress(NoAnswer):
            expectation(answer.texts[0], answer.logprobs, 1, 5)


#: door -> what reads it, and by how much less often it is tried because a try is slow.
DOORS: dict[str, tuple[Callable[[Path], None], int]] = {
    "rows": (rows, 1),
    "opinions": (opinions, 1),
    "journal": (journal, 1),
    "scores": (scores, 1),
    "checkpoint": (checkpoint, 2),
    "weights": (weights, 1),
    "tokenizer": (tokenizer, 10),
    "benchmark": (benchmark, 1),
    "report": (report, 10),
    "side": (side, 1),
    "protocol": (protocol, 1),
    "prices": (prices, 1),
    "api": (api, 2),
}


def broken(chance: random.Random, seed: bytes, other: bytes) -> bytes:
    """A few changes to one seed."""
    data = bytearray(seed)
    for _ in range(chance.randrange(1, 5)):
        at, upto = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        upto = min(upto, at + 200)
        how = chance.randrange(6)
        if how == 0:
            del data[at:upto]
        elif how == 1:
            data[at:at] = data[at:upto]
        elif how == 2:
            data[at:at] = chance.choice(PIECES)
        elif how == 3 and at < len(data):
            data[at] = chance.randrange(256)
        elif how == 4:
            start = chance.randrange(len(other) + 1)
            data[at:upto] = other[start : start + 100]
        else:
            del data[at:]
    return bytes(data)


def survives(work: Callable[[Path], None], path: Path) -> None:
    with suppress(*TOLD):
        work(path)


@pytest.mark.parametrize("door", DOORS)
def test_seeds(door: str, tmp_path: Path) -> None:
    work, _ = DOORS[door]
    seeds = sorted((SEEDS / door).iterdir())
    assert seeds
    for seed in seeds:
        survives(work, Path(shutil.copy(seed, tmp_path / seed.name)))


@pytest.mark.parametrize("door", DOORS)
def test_what_is_nearly_right(door: str, tmp_path: Path) -> None:
    work, slowness = DOORS[door]
    seeds = sorted((SEEDS / door).iterdir())
    # Always the same few in the suite; others each time where there is time for them.
    first = random.SystemRandom().randrange(2**32) if SECONDS else 0
    until = time.monotonic() + SECONDS
    for number in itertools.count():
        if (time.monotonic() > until) if SECONDS else number >= EXAMPLES // slowness:
            break
        chance = random.Random(f"{door} {first + number}")
        seed, other = chance.choice(seeds), chance.choice(seeds)
        path = tmp_path / f"{number}{seed.suffix}"
        content = broken(chance, seed.read_bytes(), other.read_bytes())
        path.write_bytes(content)
        try:
            survives(work, path)
        except Exception as error:
            kept = SEEDS / door / f"found-{first + number}{seed.suffix}"
            if SECONDS:
                kept.write_bytes(content)
            raise AssertionError(f"{door}: {type(error).__name__}: {error}; kept as {kept}") from error
        path.unlink(missing_ok=True)


def test_a_fault_would_be_noticed(tmp_path: Path) -> None:
    """A door that lets another error through fails; one that says a sentence does not."""

    def raises(path: Path) -> None:
        raise KeyError("no sentence")

    def tells(path: Path) -> None:
        raise BadRow(0, "a sentence")

    survives(tells, tmp_path)
    with pytest.raises(KeyError):
        survives(raises, tmp_path)
