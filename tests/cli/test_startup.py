"""What a cold start imports, counted in modules: a count is the same on every machine, seconds are not."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dialeval
import overlap_metric
from dialeval.cli import COMMANDS, app_for, build_app
from shell import invoke
from small_checkpoints import small_checkpoint

#: Each of these costs a tenth of a second or much more.
HEAVY = frozenset(
    "accelerate datasets evaluate gradio huggingface_hub matplotlib nltk numpy pandas peft pyarrow ray sacrebleu "
    "scipy sentence_transformers sklearn tensorboard tokenizers torch torch._dynamo transformers "
    "transformers.models.bert.modeling_bert".split()
)
#: What reading and running a checkpoint cannot do without; transformers 5.0 brings scikit-learn along.
TO_SCORE = frozenset("accelerate huggingface_hub numpy scipy tokenizers torch transformers".split()) | (
    frozenset({"sklearn"}) if tuple(map(int, version("transformers").split(".")[:2])) < (5, 1) else frozenset()
)


def imported(code: str) -> tuple[set[str], int]:
    """The heavy libraries that a new process has imported after some code, and how many modules there are in all."""
    line = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout.splitlines()[-1])
    return {name for name in HEAVY if name in modules}, len(modules)


def test_the_package_imports_nothing_heavy() -> None:
    heavy, count = imported("import dialeval; dir(dialeval); dialeval.__version__")
    assert heavy == set()
    # A bare interpreter has some 80 modules; pathlib or inspect alone would bring thirty more.
    assert count < 130


def test_the_list_of_metrics_needs_no_torch() -> None:
    assert imported("import dialeval; dialeval.available(); dialeval.Exchange(('Hi!',), 'Hello!')")[0] <= {"numpy"}


@pytest.mark.slow
def test_scoring_without_a_model_imports_none(tmp_path: Path) -> None:
    # What the command imports on the way to a metric is up to the metric.
    (tmp_path / "rows.jsonl").write_text('{"context": ["a b"], "response": "a"}\n')
    words = ["score", "-m", "overlap", "-i", str(tmp_path / "rows.jsonl"), "-o", str(tmp_path / "scores.csv")]
    heavy, _ = imported(
        f"import sys; sys.path.insert(0, {str(Path(overlap_metric.__file__).parent)!r}); sys.argv[1:] = {words!r}\n"
        "import dialeval.hub.evaluate_module, overlap_metric; overlap_metric.register()\n"
        "from dialeval.cli import build_app\nbuild_app()(standalone_mode=False)"
    )
    assert heavy <= {"numpy"}


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    commands = [["--help"], *([name.replace("_", "-"), "--help"] for name in COMMANDS)]
    heavy, count = imported(
        "from typer.testing import CliRunner\nfrom dialeval.cli import build_app\n"
        f"for options in {commands}:\n    result = CliRunner().invoke(build_app(), options)\n"
        "    assert result.exit_code == 0, result.output"
    )
    assert heavy == set()
    assert count < 500


@pytest.mark.slow
def test_the_overview_and_one_command_look_at_no_other() -> None:
    code = "import sys\nsys.argv = ['dialeval', {arguments}]\nfrom dialeval.cli import main\ntry:\n    main()\n"
    code += "except SystemExit as end:\n    assert not end.code"
    overview, _ = imported(code.format(arguments="'--help'"))
    assert overview == set()
    line = f"{code.format(arguments=chr(39) + 'gate' + chr(39) + ', ' + chr(39) + '--help' + chr(39))}\n"
    line += "assert not [name for name in sys.modules if name.startswith('dialeval.cli.') and 'agreement' in name]"
    assert imported(line)[0] == set()


def test_the_overview_is_that_of_the_whole_command() -> None:
    whole = CliRunner().invoke(build_app(), ["--help"], prog_name="dialeval", color=False)
    quick = CliRunner().invoke(app_for(["--help"]), ["--help"], prog_name="dialeval", color=False)
    assert quick.output == whole.output
    assert all(name.replace("_", "-") in quick.output for name in COMMANDS)
    # What was left out for the overview is there for whoever builds the command in the same process.
    assert "--help" in invoke("benchmarks", "list", "--help").output
    assert "dailydialog_zhao" in invoke("benchmarks", "list").output
    printed = CliRunner().invoke(app_for(["--version"]), ["--version"])
    assert (printed.output, printed.exit_code) == (f"dialeval {dialeval.__version__}\n", 0)


@pytest.mark.slow
@pytest.mark.encoder
def test_a_first_score_imports_what_the_checkpoint_needs(tiny_encoder: Path, tmp_path: Path) -> None:
    """An adapter of somebody's own, and the judge's layers."""
    folder = small_checkpoint("density", tiny_encoder, tmp_path / "density")
    heavy, _ = imported(
        f"import dialeval\nfor name, folder in (('density', {str(folder)!r}), ('judge', None)):\n"
        "    metric = dialeval.load(name, checkpoint=folder, device='cpu')\n"
        "    assert len(metric.score(responses=['i am fine'], contexts=[['how are you']])) == 1"
    )
    assert heavy <= TO_SCORE
