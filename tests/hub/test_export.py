"""A judge as a plain cross-encoder: other libraries load it and give the same numbers as the judge's own head."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

from dialeval.core.exchange import Exchange
from dialeval.hub.export import export_judge
from dialeval.judge.metric import Judge
from shell import invoke
from small_checkpoints import small_checkpoint
from tiny_words import WORDS


@pytest.fixture(scope="module")
def exported(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("export")
    judge = small_checkpoint("judge", tiny_encoder, folder / "judge")
    invoke("export", "judge", "--checkpoint", judge, "--to", folder / "out")
    return judge, folder / "out"


def rows(count: int) -> list[Exchange]:
    draw = random.Random(0)

    def text() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 6)))

    return [Exchange((text(),), text()) for _ in range(count)]


def test_other_libraries_give_the_numbers_of_the_head(exported: tuple[Path, Path]) -> None:
    judge, folder = Judge(exported[0], device="cpu"), exported[1]
    made = rows(1000)
    own: Any = judge.encoded(made)[0].logits["follows"]
    pairs = [(row.context[0], row.response) for row in made]
    theirs = CrossEncoder(str(folder), device="cpu").predict(pairs)
    np.testing.assert_allclose(theirs, own, atol=1e-5)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        few = tokenizer(*map(list, zip(*pairs[:8], strict=True)), padding=True, return_tensors="pt")
        np.testing.assert_allclose(model(**few).logits[:, 0], own[:8], atol=1e-5)
    classify = pipeline("text-classification", model=str(folder), function_to_apply="none")
    said = classify([{"text": context, "text_pair": reply} for context, reply in pairs[:3]])
    np.testing.assert_allclose([answer["score"] for answer in said], own[:3], atol=1e-5)
    assert said[0]["label"] == "relevance"


def test_turns_are_joined_by_one_token(exported: tuple[Path, Path]) -> None:
    judge = Judge(exported[0], device="cpu")
    tokenizer = AutoTokenizer.from_pretrained(exported[1])
    between = judge.layout.separator
    if between.strip():
        assert len(tokenizer(between, add_special_tokens=False)["input_ids"]) == 1
    assert tokenizer.model_max_length == judge.layout.max_length
    assert "What the judge adds is not in it" in (exported[1] / "README.md").read_text()


def test_only_a_judge_is_exported(tmp_path: Path) -> None:
    assert "deb" in invoke("export", "deb", "--to", tmp_path / "new", code=2).stderr


def test_a_folder_that_could_not_be_finished_is_not_there(
    exported: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("transformers.PreTrainedTokenizerBase.save_pretrained", full)
        with pytest.raises(OSError, match="No space left"):
            export_judge(exported[0], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    assert (export_judge(exported[0], tmp_path / "out") / "README.md").is_file()
