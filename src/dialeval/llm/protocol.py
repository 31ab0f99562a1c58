"""Protocols: what a language model is asked, on which scale, and in which form it answers.

A protocol is a YAML file of the package (`llm_eval`, `g_eval`, `pairwise`) or of yours:

    name: mine
    answer: json                  # json (all aspects at once), number (one aspect), choice (A, B or tie)
    scale: [1, 5]
    max_tokens: 200
    turn:                         # for single replies; `dialogue:` for whole dialogues, in the same form
      aspects:
        kindness: Is the reply kind?
      prompt: |
        $aspects ... $context ... $response ... $form

Placeholders: $aspects, $low, $high, $form, $context, $facts, $references, and $response; $first and $second of a
choice; $dialogue of a whole dialogue. A dollar sign is written $$.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Literal, get_args

from dialeval.io import read_small

AnswerForm = Literal["json", "number", "choice"]

_SHARED = {"aspects", "low", "high", "form", "facts"}
_FIELDS = {"name", "title", "citation", "answer", "scale", "max_tokens", "samples", "turn", "dialogue"}
#: Names that become columns and keys of JSON.
_NAME = re.compile(r"[A-Za-z]\w*")
#: Columns of a panel and of a choice, which an aspect must not take.
RESERVED = frozenset({"vote", "spread", "as_first", "as_second"})


@dataclass(frozen=True)
class LlmTask:
    """What is asked of a reply, or of a whole dialogue."""

    aspects: Mapping[str, str]
    prompt: Template


@dataclass(frozen=True)
class Protocol:
    """A way to ask: the file's content, checked, and a digest of all of it."""

    name: str
    title: str
    answer: AnswerForm
    low: float
    high: float
    max_tokens: int
    samples: int
    turn: LlmTask | None
    dialogue: LlmTask | None
    digest: str
    citation: str = ""

    def task(self, *, whole: bool) -> LlmTask | None:
        """The task of whole dialogues, or of single replies."""
        return self.dialogue if whole else self.turn


def names() -> list[str]:
    """The protocols of the package."""
    return sorted(one.name.removesuffix(".yaml") for one in _folder().iterdir() if one.name.endswith(".yaml"))


def read_protocol(wanted: str | Path) -> Protocol:
    """A protocol of the package by name, or from a file (a name with a dot or a slash, or a `Path`)."""
    text = str(wanted)
    if not isinstance(wanted, Path) and text in names():
        return parse_protocol(_folder().joinpath(f"{text}.yaml").read_text(encoding="utf-8"), text)
    path = Path(wanted).expanduser()
    if not isinstance(wanted, Path) and "." not in text and "/" not in text:
        raise ValueError(f"there is no protocol {text!r}; there are {', '.join(names())}, or pass a file of your own")
    try:
        return parse_protocol(read_small(path), str(wanted))
    except OSError as error:
        raise ValueError(f"protocol {wanted} cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise ValueError(f"protocol {wanted} is no text in UTF-8") from None


def parse_protocol(text: str, where: str) -> Protocol:
    """Check the text of a protocol; what is wrong is told in one sentence with the name of the file."""
    import yaml

    try:
        fields = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"protocol {where} is no YAML ({' '.join(str(error).split())})") from None
    if not isinstance(fields, dict):
        raise ValueError(f"protocol {where} holds no fields; it needs name, answer, scale, and turn or dialogue")
    try:
        return _checked(fields)
    except ValueError as error:
        raise ValueError(f"protocol {where}: {error}") from None


def _checked(fields: Mapping[str, Any]) -> Protocol:
    if unknown := sorted(set(map(str, fields)) - _FIELDS):
        raise ValueError(f"there is no field {unknown[0]!r}; there are {', '.join(sorted(_FIELDS))}")
    name, answer = fields.get("name"), fields.get("answer", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"name is {name!r}; it is a word of letters, digits and underscores")
    if answer not in get_args(AnswerForm):
        raise ValueError(f"answer is {answer!r}; it is one of {', '.join(get_args(AnswerForm))}")
    form: AnswerForm = answer
    low, high = _scale(fields.get("scale"), form)
    parts = {part: _task(fields[part], part, form) for part in ("turn", "dialogue") if part in fields}
    if not parts:
        raise ValueError("there is neither turn nor dialogue; give what is asked of replies, of dialogues, or both")
    if answer == "choice" and "dialogue" in parts:
        raise ValueError("a choice is between two replies; leave dialogue out")
    return Protocol(
        name=name,
        title=str(fields.get("title", name)),
        answer=form,
        low=low,
        high=high,
        max_tokens=_count(fields, "max_tokens", 200),
        samples=_count(fields, "samples", 20),
        turn=parts.get("turn"),
        dialogue=parts.get("dialogue"),
        digest=hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest(),
        citation=str(fields.get("citation", "")),
    )


def _scale(value: Any, answer: str) -> tuple[float, float]:
    if answer == "choice":
        return 0.0, 1.0
    numbers = isinstance(value, list) and len(value) == 2 and all(type(one) in (int, float) for one in value)
    if not numbers or not value[0] < value[1]:
        raise ValueError(f"scale is {value!r}; it is the lowest and the highest score, for example [1, 5]")
    return float(value[0]), float(value[1])


def _task(fields: Any, part: str, answer: str) -> LlmTask:
    aspects = fields.get("aspects") if isinstance(fields, dict) else None
    if not isinstance(aspects, dict) or not aspects or set(fields) != {"aspects", "prompt"}:
        raise ValueError(f"{part} needs aspects (each a name and a question) and a prompt, and nothing else")
    for name, question in aspects.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name in RESERVED:
            raise ValueError(f"{part}: {name!r} cannot be the name of an aspect; choose another word")
        if not isinstance(question, str) or not question.strip():
            raise ValueError(f"{part}: aspect {name} has no question")
    if answer != "json" and len(aspects) != 1:
        raise ValueError(f"{part}: an answer that is a {answer} is about one aspect, and there are {len(aspects)}")
    if not isinstance(fields["prompt"], str):
        raise ValueError(f"{part}: the prompt is a {type(fields['prompt']).__name__}; write it as text")
    return LlmTask(aspects, _template(fields["prompt"], part, answer))


def _template(text: str, part: str, answer: str) -> Template:
    template = Template(text)
    if not template.is_valid():
        raise ValueError(f"{part}: a dollar sign of the prompt begins no placeholder; write $$ for the sign itself")
    needed = {"dialogue"} if part == "dialogue" else {"first", "second"} if answer == "choice" else {"response"}
    allowed = _SHARED | needed | (set() if part == "dialogue" else {"context", "references"})
    found = set(template.get_identifiers())
    if unknown := sorted(found - allowed):
        raise ValueError(f"{part}: there is no ${unknown[0]}; there are ${', $'.join(sorted(allowed))}")
    if lacking := sorted(needed - found):
        raise ValueError(f"{part}: the prompt does not show ${lacking[0]}, which is to be judged")
    return template


def _count(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name, default)
    if type(value) is not int or value < 1:
        raise ValueError(f"{name} is {value!r}; it is a whole number from 1 on")
    return value


def _folder() -> Any:
    return resources.files("dialeval.llm") / "protocols"
