"""What a start costs in processor time, beside what the libraries alone cost: `python performance/startup.py`.

Each line is a new process, the least of several runs. Seconds belong to the machine; the last column, the share of a
line in the one that loads the judge and scores with it, travels better. Behind the table: the rate of our own BERT over
that of transformers', which has the same weights and computes the first token alone, too. Writes both to README.md.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

from measure import processor
from pages import README, replace_block
from rows import generated

from dialeval.io.tables import markdown_table

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
    "load judge on transformers' BERT": (
        "from dialeval.judge.network import JudgeNetwork\n"
        "JudgeNetwork.from_pretrained('judge-minilm', device='cpu', trainable=True)"
    ),
}
#: Rows for the rates of the two encoders, and how often each of them has its turn.
ROWS, TURNS = 600, 5


def processor_time(code: str) -> float:
    """Seconds that a new process and its children spend on the processor."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def gain_of_own_bert(dtype: str) -> float:
    """How many times as fast as transformers' BERT ours encodes: the least of several times of each, in turns."""
    import torch

    from dialeval.encoders.batching import FirstToken, PairEncoder
    from dialeval.encoders.layout import PairTokenizer
    from dialeval.judge.network import JudgeNetwork

    encoders = {}
    for trainable in (False, True):  # what is to be trained is transformers'
        network = JudgeNetwork.from_pretrained("judge-minilm", device="cpu", trainable=trainable).eval()
        network.requires_grad_(False).encoder.to(getattr(torch, dtype))
        tokenizer = PairTokenizer(network.tokenizer, network.config.layout)
        encoders[trainable] = PairEncoder(FirstToken(network.encoder), tokenizer)
    rows, least = generated(ROWS), dict.fromkeys(encoders, float("inf"))
    for _ in range(TURNS):
        for trainable, encoder in encoders.items():
            encoder.forget()
            started = time.process_time()
            encoder.encode(rows)
            least[trainable] = min(least[trainable], time.process_time() - started)
    return least[True] / least[False]


def main() -> None:
    """Measure, and write the table of README.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="of each line; the least counts")
    runs = max(1, parser.parse_args().runs)
    seconds_of = {name: min(processor_time(code) for _ in range(runs)) for name, code in STARTS.items()}
    whole = seconds_of["load judge, one score"]
    rows = [(name, f"{seconds:.2f}", f"{seconds / whole:.0%}") for name, seconds in seconds_of.items()]
    figures = f"`python performance/startup.py --runs {runs}` on {processor()}.\n\n"
    figures += "\n".join(markdown_table(("start", "processor seconds", "share"), rows))
    gains = ", ".join(f"{gain_of_own_bert(dtype):.2f} in {dtype}" for dtype in ("float32", "bfloat16"))
    figures += f"\n\nRate of our own BERT over transformers' with the same weights, {ROWS} rows: {gains}."
    print(figures)
    replace_block(README, "figures of startup.py", figures)


if __name__ == "__main__":
    main()
