"""What the tabs share: the metrics, one set for each kind of work, and the templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, wraps
from inspect import signature
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import gradio as gr
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from limits import Problem, in_page_words
from pydantic import ConfigDict, ValidationError, validate_call

import dialeval
from dialeval.registry import metric_class, ready_approaches
from dialeval.registry.interface import Level, Metric

HERE = Path(__file__).parent
#: Every value is escaped, and a name that a template misses is an error, not a gap.
TEMPLATES = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=True, undefined=StrictUndefined)
Answer = TypeVar("Answer")
#: Texts never wait for a file: each kind of work has its own judge, and its own place in the queue.
_LOCKS = {"texts": Lock(), "files": Lock()}


@cache
def judge(kind: str) -> Metric:
    """The judge of a kind of work."""
    return dialeval.load("judge", dtype="float32")


@cache
def others() -> Mapping[str, Metric]:
    """Every other metric that judges single replies without a download; some want references."""
    classes = {name: metric_class(name)[0].info for name in ready_approaches()}
    names = [name for name, info in classes.items() if info.level is Level.TURN]
    return dialeval.load([name for name in names if name != "judge"], dtype="float32")


def one_at_a_time(kind: str, work: Callable[[], Answer]) -> Answer:
    """Encoders keep their last batch, so that two threads must not share one."""
    with _LOCKS[kind]:
        return work()


def for_programs(answer: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """An endpoint that takes what its types say, and tells in a sentence what is wrong with anything else."""
    strict, names = validate_call(config=ConfigDict(strict=True))(answer), list(signature(answer).parameters)

    @wraps(answer)
    def checked(*given: Any) -> dict[str, Any]:
        try:
            return strict(*given)
        except ValidationError as error:
            (first, *rest), message = error.errors()[0]["loc"], error.errors()[0]["msg"]
            place = names[int(first)] + "".join(f"[{part!r}]" for part in rest)
            text = f"{place}: {message}."
        except ValueError as error:  # a Problem, or what the library says of a row
            text = in_page_words(error, {})
        raise gr.Error(text, print_exception=False)

    return checked


def html(template: str, **values: Any) -> str:
    """A part of the page."""
    return f'<div class="part">{TEMPLATES.get_template(f"{template}.html").render(**values)}</div>'


def note(problem: Problem) -> str:
    """What is wrong, read out by screen readers; `FOCUS` moves to the field."""
    return html("note", text=str(problem), field=problem.field)


def ready_to_copy(command: str = "", lines: str = "", *, visible: bool = True) -> tuple[gr.Textbox, gr.Textbox]:
    """Two boxes for what gives the same result without the page."""
    shell = gr.Textbox(command, label="Command", buttons=["copy"], interactive=False, lines=2, visible=visible)
    return shell, gr.Textbox(lines, label="Python", buttons=["copy"], interactive=False, lines=5, visible=visible)


#: Moves to the field that a note names.
FOCUS = """() => { const one = document.querySelector('.note[data-field]:not(:empty)');
  const field = one && document.getElementById(one.dataset.field);
  if (field && field.offsetParent) (field.querySelector('textarea, input, button') || field).focus(); }"""


def share(value: float) -> int:
    """A value between 0 and 1 as a width in per cent."""
    return round(100 * min(1.0, max(0.0, value)))


def grade(value: float) -> str:
    """Weak, fair or good: the thirds of what the judge learned from."""
    return "weak" if value < 1 / 3 else "fair" if value < 2 / 3 else "good"
