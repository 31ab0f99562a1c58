"""Run the examples of `integrations/`, each in an environment of its own, and check what they say against expected.txt.

    python examples/run.py --into .venv-examples            # all of them: make test-examples
    python examples/run.py --into .venv-examples mlflow     # one

What a tool needs is pinned in its requirements.txt (promptfoo: package.json); telemetry is off.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
QUIET = {
    "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "DO_NOT_TRACK": "1", "DEEPEVAL_TELEMETRY_OPT_OUT": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true", "OPIK_ANALYTICS_ENABLE": "false", "OPIK_SENTRY_ENABLE": "false",
    "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_DISABLE_SHARING": "1",
}  # fmt: skip


@dataclass(frozen=True)
class Example:
    """How one tool is run; {here} is the example's folder, {bin} that of its environment's Python."""

    command: Sequence[str]
    #: What is run before, to make the folder `cross-encoder`.
    before: Sequence[str] = ()
    #: What is installed without what it asks for, since that would not go together with what dialeval asks for.
    alone: str = ""
    exit_codes: Sequence[int] = (0,)
    #: From what the command prints and the folder it ran in, the lines to compare.
    lines: Callable[[str, Path], list[str]] = field(default=lambda printed, _: verdicts(printed))


def verdicts(printed: str) -> list[str]:
    """What the examples themselves print, among the tools' own lines."""
    return [line for line in printed.splitlines() if line.startswith(("good ", "bad "))]


def outcome(printed: str, _: Path) -> list[str]:
    """The last line of pytest without the time that it took."""
    passed = [line.partition(" in ")[0].strip("= ") for line in printed.splitlines() if " passed" in line]
    return passed[-1:]


def results(_: str, folder: Path) -> list[str]:
    """What promptfoo wrote of each reply."""
    rows = json.loads((folder / "out.json").read_text("utf-8"))["results"]["results"]
    return [f"{'good' if row['success'] else 'bad '} reply: {row['response']['output']}" for row in rows]


EXAMPLES = {
    "mlflow": Example(["{bin}/python", "{here}/evaluate.py"]),
    "deepeval": Example(
        ["{bin}/python", "-m", "pytest", "-q", "-c", "/dev/null", "{here}/test_replies.py"],
        alone="deepeval", lines=outcome,
    ),
    "opik": Example(["{bin}/python", "{here}/evaluate.py"]),
    "inspect": Example(["{bin}/python", "{here}/task.py"]),
    # It ends with 100 where an assertion fails, as it does here.
    "promptfoo": Example(
        ["node_modules/node/bin/node", "node_modules/promptfoo/dist/src/main.js", "eval", "--no-cache", "-c",
         "{here}/promptfooconfig.yaml", "-o", "out.json"],
        before=["{bin}/dialeval", "export", "judge", "--to", "cross-encoder"],
        exit_codes=(100,), lines=results,
    ),
}  # fmt: skip


def install(name: str, folder: Path) -> None:
    """The environment of one example, where it is not there yet."""
    if (folder / "ready").is_file():
        return
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if line.startswith("torch==")]
    subprocess.run([*pip, *pins], check=True)
    needed = HERE / "integrations" / name / "requirements.txt"
    if alone := EXAMPLES[name].alone:
        lines = needed.read_text("utf-8").splitlines()
        first = [line for line in lines if line.startswith(f"{alone}==")]
        (folder / "needed.txt").write_text("\n".join(line for line in lines if line not in first) + "\n", "utf-8")
        subprocess.run([*pip, "--no-deps", *first], check=True)
        needed = folder / "needed.txt"
    subprocess.run([*pip, "-e", f"{ROOT}[offline]", *(["-r", needed] if needed.is_file() else [])], check=True)
    if (package := HERE / "integrations" / name / "package.json").is_file():
        (folder / "package.json").write_bytes(package.read_bytes())
        scripts = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(scripts, cwd=folder, check=True)
    (folder / "ready").touch()


def run(name: str, folder: Path) -> bool:
    """Whether one example says what it should."""
    example, here = EXAMPLES[name], HERE / "integrations" / name
    before, words = (
        [word.format(here=here, bin=folder / "bin") for word in command]
        for command in (example.before, example.command)
    )
    environment = {**os.environ, **QUIET, "PROMPTFOO_PYTHON": str(folder / "bin" / "python"),
                   "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo"),
                   "CROSS_ENCODER": str(folder / "cross-encoder")}  # fmt: skip
    if before:  # of the weights that there are now
        shutil.rmtree(folder / "cross-encoder", ignore_errors=True)
        subprocess.run(before, cwd=folder, env=environment, check=True, capture_output=True)
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    printed = example.lines(done.stdout, folder) if done.returncode in example.exit_codes else []
    expected = (here / "expected.txt").read_text("utf-8").splitlines()
    if printed == expected:
        print(f"{name}: as expected")
        return True
    print(f"{name}: ended with {done.returncode}, said {printed}, not {expected}\n{done.stdout}\n{done.stderr}")
    return False


def main() -> int:
    """Install and run those that were named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EXAMPLES))
    parser.add_argument("--into", type=Path, required=True, help="folder of the environments")
    given = parser.parse_args()
    passed = []
    for name in given.names or EXAMPLES:
        folder = (given.into / name).resolve()
        install(name, folder)
        passed.append(run(name, folder))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
