"""A learned metric that is added word by word as CONTRIBUTING says is known wherever metrics of our own are."""

import re
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval import papers, registry
from dialeval.checkpoints.config import CheckpointConfig
from dialeval.hub.card import render_card
from dialeval.papers import network_class
from shell import write_rows
from training_runs import RECIPES, ROOT, TRAINING, run_here, settings

SECTION = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Add a learned metric\n")[1].split("\n## ")[0]
CODE, LINE, RECIPE, COMMANDS, TEST = re.findall(r"```\w+\n(.*?)```", SECTION, re.DOTALL)
TALKS = [
    line.split(" | ")
    for line in """
What would you like to eat tonight? | I would love some fish and chips. | Maybe a pizza?
When does the next train to London leave? | There is one at half past six. | At noon, from platform two.
My sister is getting married in June. | How lovely! Who is she going to marry? | Will it be a big wedding?
I have had a terrible headache all day. | Take an aspirin and lie down for a while. | You ought to see a doctor.
Could you help me with my homework? | Sure, which exercise are you stuck on? | Yes, show me the first one.
How much is this blue shirt? | It costs thirty dollars. | It is on sale for twenty.
Where did you grow up? | In a small village by the lake. | I grew up in Madrid with my aunt.
The printer is broken again. | I will call the technician to look at it. | Use the one downstairs.
""".strip().splitlines()
]


def groups() -> list[dict[str, Any]]:
    kinds = ("positive_responses", "random_negative_responses", "adversarial_negative_responses")
    return [
        {"id": f"g{at}", "context": talk[:1], **{kind: TALKS[at - back][1:] for back, kind in enumerate(kinds)}}
        for at, talk in enumerate(TALKS)
    ]


@pytest.mark.slow
@pytest.mark.encoder
def test_a_learned_metric_as_contributing_adds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fits.py").write_text(CODE)
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(tmp_path)])
    (entry,) = eval(f"dict({{{LINE.strip()}}})", vars(registry)).items()
    monkeypatch.setitem(registry.REGISTRY, *entry)
    recipe = tmp_path / "fits-minilm.yaml"
    recipe.write_text(RECIPE.replace("based_on: ", f"based_on: {RECIPES}/"))
    corpora = tmp_path / "corpora"
    write_rows(corpora / "pp" / "dev.jsonl", groups())
    (corpora / "overlaps.json").write_text("{}")
    chosen = ["leave_out=overlaps.json", "augmentation=[]", "groups={name: pp, split: dev, held_out: 0.25, seed: 0}"]
    chosen += ["training.steps=60", "training.batch_size=16", "training.warmup=2", "training.evaluate_every=20"]
    (command,) = [line.split() for line in COMMANDS.splitlines() if line.startswith("python training/baselines.py")]
    out = tmp_path / command[command.index("--out") + 1]
    given = {"training/baselines.py": TRAINING / "baselines.py", "training/recipes/fits-minilm.yaml": recipe}
    given |= {"CORPORA": corpora, command[-1]: out}
    run_here([*(str(given.get(word, word)) for word in command[1:]), "--cpu", *settings(chosen)])
    (out / "checkpoint" / "layers.safetensors").unlink()  # as the last of the commands does

    assert "probability that a reply fits its context" in render_card(CheckpointConfig.read(out / "checkpoint"))
    load = dialeval.load
    monkeypatch.setattr(dialeval, "load", lambda name: load(name, checkpoint=out / "checkpoint"))
    scope: dict[str, Any] = {}
    exec(TEST, scope)
    scope["test_an_answer_fits_better_than_a_random_reply"]()


@pytest.mark.parametrize("approach", ["bleu2", "python:os:system", "nothing"])
def test_a_checkpoint_names_no_code(approach: str) -> None:
    with pytest.raises(ValueError, match=approach):
        network_class(approach)
