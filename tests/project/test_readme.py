"""Every command of the README, as it stands there; those that no test can run are listed with the reason."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dialeval import benchmarks
from dialeval.checkpoints.catalogue import checkpoints
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.checkpoints.find import embedded_checkpoints
from dialeval.hub.card import facts
from dialeval.io.files import read_json_lines

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
INSTALLS = "installs packages from a network"
#: Lines of shell, by their text without the comment.
NOT_RUN = {
    "git clone https://github.com/dialeval/dialeval && cd dialeval": "needs a network",
    "make demo": "test_demo.py runs what it runs",
    "make test": "is this suite",
    "pip install torch": INSTALLS,
    "pip install 'dialeval[offline,evaluate] @ git+https://github.com/dialeval/dialeval'": INSTALLS,
    "pip install -e '.[offline,training]'": INSTALLS,
    "make space": "does not end; test_space_browser.py visits the page",
}
#: What a test adds to a command of so long a training.
SHORTER = {"python training/density.py": " --set training.epochs=0.05 --set validation.contexts=10"
           " --set validation.candidates=4 --set fit.held_out_pairs=20"}  # fmt: skip
#: Beginnings of commands that read the benchmarks' files.
READS_BENCHMARKS = ("dialeval agreement --metrics",)


def commands(block: str) -> list[str]:
    """Commands of a block of shell, with continued lines joined and comments gone."""
    joined = re.sub(r"\s*\\\n\s*", " ", block)
    return [shown for line in joined.splitlines() if (shown := re.sub(r"(^|\s+)#.*$", "", line).strip())]


def runnable(language: str, block: str) -> list[str]:
    if language == "python":
        return [block]
    return [command for command in commands(block) if command not in NOT_RUN]


def cases() -> list[object]:
    """A case per block: what one block makes, its later commands use."""
    found = []
    for number, (language, block) in enumerate(BLOCKS):
        assert language in ("bash", "python"), f"a block of {language}: say how it is tested"
        if shown := runnable(language, block):
            marks = [pytest.mark.data] if any(one.startswith(READS_BENCHMARKS) for one in shown) else []
            found.append(pytest.param(language, shown, marks=marks, id=f"{number}-{shown[0].split()[0]}"))
    return found


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like a clone, so that what the commands write does not land in this one."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("examples", "training", "metrics", "src", "docs"):
        (folder / name).symlink_to(ROOT / name)
    return folder


@pytest.mark.slow
@pytest.mark.encoder
@pytest.mark.parametrize(("language", "message"), cases())
def test_what_the_readme_says_runs(language: str, message: list[str], clone: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HF_EVALUATE_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    for one in message:
        one += next((more for beginning, more in SHORTER.items() if one.startswith(beginning)), "")
        command = [sys.executable, "-c", one] if language == "python" else ["bash", "-o", "pipefail", "-c", one]
        done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{one}\n{done.stdout}\n{done.stderr}"
        shown = re.findall(r"^# (\d\.\d\d  .*)$", one, flags=re.MULTILINE) if language == "python" else []
        assert not shown or done.stdout.splitlines() == shown


def test_the_first_python_stands_within_the_first_lines() -> None:
    lines = README.splitlines()
    assert len(lines) <= 150
    assert lines.index("```python") < 20


def test_agreement_is_what_the_results_say() -> None:
    rows = read_json_lines(ROOT / "results" / "overall.jsonl")
    means = {row["metric"]: f"{row['mean']:.2f}".lstrip("0") for row in rows}
    for title, metric in {"JUDGE": "judge", "CMN": "cmn", "DENSITY": "density", "DEB": "deb", "QuantiDCE": "quantidce",
                          "BERTScore": "bertscore", "BLEU-2": "bleu2"}.items():  # fmt: skip
        (line,) = [one for one in README.splitlines() if re.match(rf"\| \**{title}\**,? ?.*\|", one)]
        assert line.split("|")[-2].strip(" *") == means[metric], line


def test_the_judge_beside_a_language_model_is_what_the_results_say() -> None:
    seven = {"convai2_grade", "dailydialog_grade", "empathetic_grade", "dailydialog_zhao", "persona_usr", "fed_turn",
             "fed_dialogue"}  # fmt: skip
    mains = {name: benchmarks.info(name).main_aspect for name in seven}
    values = {
        row["benchmark"]: row["value"]
        for row in read_json_lines(ROOT / "results" / "agreement.jsonl")
        if row["metric"] == "judge"
        and row["statistic"] == "spearman"
        and row["protocol"] == "standard"
        and row["level"] == ("dialogue" if row["benchmark"] == "fed_dialogue" else "turn")
        and mains.get(row["benchmark"]) == row["aspect"]
    }
    assert set(values) == seven
    published = json.loads((ROOT / "results" / "published.json").read_text())["spearman"]
    assert set(published) == seven
    middle = sum(sum(ends) / 2 for ends in published.values()) / 7
    told = f"reaches {middle:.3f} (middle of its range), where JUDGE reaches {sum(values.values()) / 7:.3f}"
    assert told.replace("0.", ".") in " ".join(README.split())
    assert f"| {middle:.2f} |".replace("0.", ".") in next(one for one in README.splitlines() if "| LLM-Eval" in one)


def test_non_commercial_corpora_of_the_weights_are_named() -> None:
    box = README[README.index("## Limits and licence") :]
    known = {corpus: facts()["corpora"][corpus] for listed in checkpoints().values() for corpus in listed.corpora}
    used = [about for about in known.values() if "NC" in about["licence"]]
    assert used
    for about in used:
        assert re.split(r"[ ,:]", about["title"])[0] in box
        # A research-only corpus names no licence of its own.
        assert all(licence in box for licence in re.findall(r"CC BY-NC(?:-SA)? 4\.0", about["licence"]))


def test_the_box_says_how_much_is_read() -> None:
    assert "a part and its context have 128 tokens and four turns (the large ones: 512 and six; CMN: 160" in " ".join(
        README.split()
    )
    others = {"cmn": (160, None), **{f"{name}-large": (512, 6) for name in ("judge", "deb", "density", "quantidce")}}
    for name, folder in embedded_checkpoints().items():
        layout = CheckpointConfig.read(folder).layout
        assert (layout.max_length, layout.turns) == others.get(name, (128, 4)), name
