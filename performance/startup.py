"""What a start costs in processor time, beside what the libraries alone cost: `python performance/startup.py`.

Each line is a new process, the least of several runs. Seconds belong to the machine; the last column, the share of a
line in the one that loads the judge and scores with it, travels better. Writes the table of README.md.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path

from measure import processor
from pages import replace_block, table

_COMMAND = (
    "import sys\nsys.argv = ['dialeval', {words}]\nfrom dialeval.cli import main\ntry: main()\nexcept SystemExit: pass"
)
_SCORE = "import dialeval\ndialeval.load({name!r}).score(responses=['Fine, thanks!'], contexts=[['How are you?']])"

STARTS = {
    "python": "pass",
    "dialeval --help": _COMMAND.format(words="'--help'"),
    "dialeval score --help": _COMMAND.format(words="'score', '--help'"),
    "import torch": "import torch",
    "import transformers' BERT": "from transformers import BertModel",
    "load judge": "import dialeval\ndialeval.load('judge')",
    "load density": "import dialeval\ndialeval.load('density')",
    "load judge, one score": _SCORE.format(name="judge"),
}


def processor_time(code: str) -> float:
    """Seconds that a new process and its children spend on the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure, and write the table of README.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="of each line; the least counts")
    runs = max(1, parser.parse_args().runs)
    found = {name: min(processor_time(code) for _ in range(runs)) for name, code in STARTS.items()}
    whole = found["load judge, one score"]
    rows = [(name, f"{seconds:.2f}", f"{seconds / whole:.0%}") for name, seconds in found.items()]
    figures = f"`python performance/startup.py --runs {runs}` on {processor()}.\n\n"
    figures += table(("start", "processor seconds", "share"), rows)
    print(figures)
    replace_block(Path(__file__).with_name("README.md"), "figures of startup.py", figures)


if __name__ == "__main__":
    main()
