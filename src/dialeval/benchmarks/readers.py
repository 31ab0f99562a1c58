"""The readers of the benchmarks' raw formats; `catalogue.yaml` names them. `base.Reader` says what a raw row has."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dialeval.benchmarks.benchmark import REPLY_KINDS, BenchmarkInfo, Files, Row, labelled_replies
from dialeval.benchmarks.rowfile import read_file
from dialeval.io.files import parse_json

_SPEAKER = re.compile(r"^(User|System):", flags=re.MULTILINE)


def grade(info: BenchmarkInfo, files: Files, *, corpus: str, judged_as: str) -> Iterable[Row]:
    """One JSON of all judgements, and a file of references per system. Systems in the order of the declaration.

    Contexts are taken per system, because two systems of this release answered other contexts.
    """
    judged = parse_json(files["evaluation/human_score/human_judgement.json"].read_text(encoding="utf-8"))
    for system in info.systems:
        path = files[f"evaluation/eval_data/{corpus}/{system}/human_ref.txt"]
        items = [item for item in judged if item["Dataset"] == judged_as and item["DialogModel"] == system]
        for item, reference in zip(items, path.read_text(encoding="utf-8").splitlines(), strict=True):
            yield {
                "context": [turn.strip() for turn in item["Context"].split("|||")],
                "response": item["Response"].strip(),
                "references": [reference.strip()],
                "system": system,
                # The list of ratings is stored as text inside the JSON.
                "ratings": {"coherence": parse_json(item["HumanScores"])},
            }


def zhao(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """One row per item; turns are separated by line breaks."""
    for item in _json(files):
        yield {
            "context": [turn.strip() for turn in item["context"].split("\n")],
            "response": item["response"].strip(),
            "references": [reference.strip() for reference in item["reference"]],
            "system": item["model"],
            # This track calls "appropriateness" what the original paper calls the overall score.
            "ratings": {
                "overall" if aspect == "appropriateness" else aspect: values
                for aspect, values in item["annotations"].items()
            },
        }


def usr(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """One item per context, one row per reply; the original human reply is the reference of all of them."""
    for item in _json(files):
        context = [turn.strip() for turn in item["context"].strip().split("\n")]
        facts = [line.removeprefix("your persona:").strip() for line in item["fact"].strip().split("\n")]
        replies = [(reply, reply["model"], reply["response"].strip()) for reply in item["responses"]]
        (reference,) = [text for _, model, text in replies if model == "Original Ground Truth"]
        for reply, model, text in replies:
            ratings = {aspect: reply[aspect] for aspect in info.aspects}
            row = {"context": context, "response": text, "references": [reference], "facts": facts}
            yield {**row, "system": model, "ratings": ratings}


def fed_turns(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """The items with a response; the whole dialogue comes after its judged turns.

    Turns of one dialogue share their beginning, so their group is the dialogue, not only the context;
    two dialogues in which the same context was judged are one group.
    """
    group_of: dict[str, str] = {}
    waiting: list[Any] = []
    dialogues = 0
    for item in _json(files):
        if "response" in item:
            waiting.append(item)
            continue
        shared = [group_of[turn["context"]] for turn in waiting if turn["context"] in group_of]
        group = shared[0] if shared else f"{info.name}-dialogue-{dialogues:05d}"
        for turn in waiting:
            group_of[turn["context"]] = group
            context, response = turns_of(turn["context"])[1], turns_of(turn["response"])[1][0]
            yield {
                "context": context,
                "response": response,
                "following": _following([*context, response], item["context"]),
                "system": turn["system"],
                "group": group,
                "ratings": ratings_of(turn["annotations"]),
            }
        waiting = []
        dialogues += 1


def fed_dialogues(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """The items without a response: whole dialogues, with everything both speakers said."""
    for item in _json(files):
        if "response" not in item:
            speakers, dialogue = turns_of(item["context"])
            row = {"dialogue": dialogue, "speakers": speakers, "system": item["system"]}
            yield {**row, "ratings": ratings_of(item["annotations"])}


def dstc9(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """A file per chatbot; neighbouring items with the same text are one dialogue, judged by several people."""
    for system in info.systems:
        items = parse_json(files[f"FlowScore/data/{system}.json"].read_text(encoding="utf-8"))
        for transcript, judged in itertools.groupby(items, key=lambda item: item["context"]):
            judgements = list(judged)
            speakers, dialogue = turns_of(transcript)
            names = {aspect: "human (overall)" if aspect == "overall" else aspect for aspect in info.aspects}
            answers = {aspect: [judgement[name] for judgement in judgements] for aspect, name in names.items()}
            row = {"dialogue": dialogue, "speakers": speakers, "system": system}
            yield {**row, "ratings": ratings_of(answers)}


def dailydialogpp(info: BenchmarkInfo, files: Files, *, all_positives: bool = False) -> Iterable[Row]:
    """One row per reply; see `labelled_replies` for which positives become references."""
    for number, item in enumerate(_lines(files)):
        replies = {
            kind: [reply.strip() for reply in item.get(f"{word}_responses", ())] for kind, word in REPLY_KINDS.items()
        }
        context = [turn.strip() for turn in item["context"]]
        yield from labelled_replies(f"{info.name}-{number:05d}", context, replies, all_positives=all_positives)


def released(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """Every position of every line, in file order; the texts stay exactly as FBD's script reads them.

    The context is one joined string. The files carry mean scores only, so there are no single ratings.
    """
    for item in _lines(files):
        for system, reply, scores in zip(info.systems, item["hyps"], item["human_scores"], strict=True):
            yield {
                "context": [item["src"]],
                "response": reply,
                "references": item["refs"],
                "system": system,
                "scores": dict(zip(info.aspects, scores, strict=True)),
            }


def rowfile(info: BenchmarkInfo, files: Files) -> Iterable[Row]:
    """A file in the format of anybody's benchmark."""
    return read_file(_only(files))[1]


def turns_of(transcript: str) -> tuple[list[str], list[str]]:
    """Speakers and turns. A line without a speaker continues the turn above it; a turn may be empty."""
    opening, *parts = _SPEAKER.split(transcript)
    if opening.strip() or not parts:
        raise ValueError(f"a transcript starts with {transcript[:20]!r} instead of a speaker")
    return parts[::2], [turn.strip() for turn in parts[1::2]]


def ratings_of(annotations: Mapping[str, Sequence[Any]]) -> dict[str, list[float]]:
    """The ratings that are numbers; annotators could also answer that a question does not apply."""
    return {
        aspect: [float(value) for value in values if isinstance(value, int | float)]
        for aspect, values in annotations.items()
    }


def _following(begun: list[str], dialogue: str) -> str | None:
    """What the user said after a judged turn; None where the dialogue as it was kept ends with that turn."""
    speakers, whole = turns_of(dialogue)
    goes_on = whole[: len(begun)] == begun and speakers[len(begun) :][:1] == ["User"]
    return whole[len(begun)] or None if goes_on else None


def _only(files: Files) -> Path:
    (path,) = files.values()
    return path


def _json(files: Files) -> Any:
    return parse_json(_only(files).read_text(encoding="utf-8"))


def _lines(files: Files) -> Iterator[Any]:
    with _only(files).open(encoding="utf-8") as lines:
        yield from map(parse_json, lines)
