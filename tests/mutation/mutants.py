"""Would the tests notice? Change one small thing of a file at a time (mutmut) and run the tests that concern it.

    python tests/mutation/mutants.py papers/density.py encoders/layout.py
    python tests/mutation/mutants.py --all --sample 60 --table docs/reliability.md

One process at low priority. A run that is stopped goes on with the same command; a file that changed starts
anew, and where only tests or other files changed what survived is tried again. Of a file with many mutants a seeded
sample is tried. mutmut changes what stands in functions, not constants and declarations of modules and classes.
"""

import argparse
import ast
import hashlib
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from targets import TARGETS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MEMORY = 6 * 2**30
SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/dialeval/{file}"]
also_copy = ["tests", "training", "metrics"]
pytest_add_cli_args = ["-p", "quick", "-p", "no:cacheprovider", "-m", "not encoder and not data and not browser"]
pytest_add_cli_args_test_selection = [{tests}]
timeout_constant = 12.0
timeout_multiplier = 5.0

[tool.pytest.ini_options]
pythonpath = ["tests/support"]
markers = [{markers}]
filterwarnings = ["ignore::DeprecationWarning"]
"""
MARKERS = ("encoder", "data", "browser", "slow")
#: Run in the folder of the mutants, because mutmut reads its settings there.
_NAMES = """
import json, sys
from pathlib import Path
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import get_mutant_name
path = Path(sys.argv[1])
made = mutate_file_contents(str(path), path.read_text("utf-8"), None, None).mutant_names
print(json.dumps([get_mutant_name(path, name) for name in made]))
"""
TABLE_HEAD = (
    "| file | mutants | tried | killed | of these by time | survived | of these in words only |\n"
    "|---|--:|--:|--:|--:|--:|--:|\n"
)


@dataclass(frozen=True)
class Outcome:
    """What became of the mutants of one file."""

    file: str
    total: int
    tried: int
    killed: int
    timed_out: int  #: of the killed
    survivors: dict[str, bool]  #: by name, whether only a string differs

    def row(self) -> str:
        """A line of the table."""
        words = sum(self.survivors.values())
        counts = (self.total, self.tried, self.killed, self.timed_out, len(self.survivors), words)
        return f"| `{self.file}` | " + " | ".join(f"{count:,}" for count in counts) + " |"


def main() -> None:
    """Every file asked for, one after another; the table after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help=f"one of {', '.join(TARGETS)}")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--sample", type=int, default=60, help="mutants tried per file (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=20, help="at most this long for a file (default: %(default)s)")
    parser.add_argument("--work", type=Path, default=ROOT / ".mutants", help="where mutants are kept")
    parser.add_argument("--table", type=Path, help="write the rows into the table of this page")
    parser.add_argument("--show", action="store_true", help="print what survived")
    arguments = parser.parse_args()
    files = list(TARGETS) if arguments.all else arguments.files
    unknown = [file for file in files if file not in TARGETS]
    if unknown or not files:
        parser.error(f"{', '.join(unknown) or 'no file'}: give one of {', '.join(TARGETS)}, or --all")
    os.nice(max(0, 15 - os.nice(0)))  # in all, however it was started
    for file in files:
        folder = prepare(file, arguments.work.resolve())
        run(file, folder, arguments.sample, arguments.seed, arguments.minutes)
        outcome = read(file, folder, show=arguments.show)
        print(TABLE_HEAD + outcome.row(), flush=True)
        if arguments.table and outcome.tried:
            write_row(arguments.table, outcome)


def prepare(file: str, work: Path) -> Path:
    """A folder for the mutants of one file, emptied if what stands in it belongs to another state of that file."""
    folder = work / file.removesuffix(".py").replace("/", "-")
    own = ROOT / "src" / "dialeval" / file
    sources = _digest([own])
    around = _digest([*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))])
    known = json.loads((folder / "state.json").read_text()) if (folder / "state.json").is_file() else {}
    if known and known.get("sources") != sources:
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if known.get("around") != around:
        forget_survivors(folder / "mutants" / "src" / "dialeval" / f"{file}.meta")
        shutil.rmtree(folder / "mutants" / "tests", ignore_errors=True)
        (folder / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
    (folder / "state.json").write_text(json.dumps({"sources": sources, "around": around}))
    for name in ("src", "tests", "training", "metrics"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(ROOT / name)
    folder_of = {path.name: path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    listed = ", ".join(f'"{folder_of[name]}"' for name in TARGETS[file] if name in folder_of)
    markers = ", ".join(f'"{name}"' for name in MARKERS)
    (folder / "pyproject.toml").write_text(SETTINGS.format(file=file, tests=listed, markers=markers))
    return folder


def forget_survivors(meta: Path) -> None:
    """What the tests did not notice is tried again."""
    if meta.is_file():
        found = json.loads(meta.read_text())
        codes = found["exit_code_by_key"]
        found["exit_code_by_key"] = {name: code if code in _KILLED else None for name, code in codes.items()}
        meta.write_text(json.dumps(found))


def run(file: str, folder: Path, sample: int, seed: int, minutes: float) -> None:
    """Try those of the sample that were not tried yet."""
    names = mutant_names(file, folder)
    chosen = sorted(random.Random(seed).sample(names, min(sample, len(names))))
    (folder / "sample.json").write_text(json.dumps({"total": len(names), "chosen": chosen}))
    codes = _codes(file, folder)
    left = [name for name in chosen if codes.get(name) in (None, _INTERRUPTED)]
    if not left:
        return
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    command = [sys.executable, "-c", "from mutmut.__main__ import cli; cli()", "run", "--max-children", "1", *left]
    with (folder / "log.txt").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, preexec_fn=_bound_memory
        )
        try:
            process.wait(60 * minutes)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.send_signal(signal.SIGINT)
            process.wait()
    if process.returncode:
        print(f"{file}: mutmut ended with {process.returncode}; see {folder / 'log.txt'}", file=sys.stderr)


def mutant_names(file: str, folder: Path) -> list[str]:
    """All mutants that mutmut makes of a file, in one order."""
    printed = subprocess.run(
        [sys.executable, "-c", _NAMES, f"src/dialeval/{file}"],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    names: list[str] = json.loads(printed.stdout.splitlines()[-1])
    return names


#: Exit codes of a mutant that ran out of time; of a failed test, of an internal error of pytest, and of crashes.
_OUT_OF_TIME = (36, -24, 24, 152, 255)
_KILLED = (1, 3, -11, -9, *_OUT_OF_TIME)
_INTERRUPTED = 2


def read(file: str, folder: Path, *, show: bool) -> Outcome:
    """Count; what no test reaches has survived."""
    sample = json.loads((folder / "sample.json").read_text())
    codes = _codes(file, folder)
    tried = {name: codes[name] for name in sample["chosen"] if codes.get(name) not in (None, _INTERRUPTED)}
    functions = _functions(folder / "mutants" / "src" / "dialeval" / file)
    survivors = {}
    for name in (name for name, code in tried.items() if code not in _KILLED):
        mutant = name.rpartition(".")[2]
        before, after = (functions[one] for one in (re.sub(r"__mutmut_\d+$", "__mutmut_orig", mutant), mutant))
        survivors[name] = _without_words(before) == _without_words(after)
        if show:
            print(f"--- {name} (exit {tried[name]})")
            old, new = (ast.unparse(one).replace(one.name, "").splitlines() for one in (before, after))
            print(*(f"  - {line.strip()}" for line in old if line not in new), sep="\n")
            print(*(f"  + {line.strip()}" for line in new if line not in old), sep="\n")
    timed_out = sum(code in _OUT_OF_TIME for code in tried.values())
    return Outcome(file, sample["total"], len(tried), len(tried) - len(survivors), timed_out, survivors)


def write_row(page: Path, outcome: Outcome) -> None:
    """Put a file's row into the page's table, in the order of the targets."""
    before, _, rest = page.read_text("utf-8").partition(TABLE_HEAD)
    if not rest:
        raise SystemExit(f"{page} holds no table that begins\n{TABLE_HEAD}")
    known = list(itertools.takewhile(lambda line: line.startswith("| `"), rest.splitlines(keepends=True)))
    after = rest.removeprefix("".join(known))
    rows = {line.split("`")[1]: line for line in known}
    rows[outcome.file] = outcome.row() + "\n"
    page.write_text(before + TABLE_HEAD + "".join(rows[file] for file in TARGETS if file in rows) + after, "utf-8")


def _codes(file: str, folder: Path) -> dict[str, int | None]:
    meta = folder / "mutants" / "src" / "dialeval" / f"{file}.meta"
    codes: dict[str, int | None] = json.loads(meta.read_text())["exit_code_by_key"] if meta.is_file() else {}
    return codes


def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    return {
        node.name: node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)
    }


def _without_words(function: ast.FunctionDef) -> str:
    """The function's tree with its name and its strings blanked."""
    tree = ast.parse(ast.unparse(function))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
        if isinstance(node, ast.FunctionDef):
            node.name = ""
    return ast.dump(tree)


def _digest(paths: Sequence[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def _bound_memory() -> None:
    """Some mutants ask for all the memory there is."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))


if __name__ == "__main__":
    main()
