"""What options hold: lists, pairs, separators."""

from __future__ import annotations

from pathlib import Path


def flowing(text: str) -> str:
    """Help text without the line breaks inside its paragraphs, which typer would keep."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def listed(options: list[str] | None) -> list[str]:
    """Values that may be given as several options, separated by commas, or both."""
    return [part.strip() for option in options or [] for part in option.split(",") if part.strip()]


def pairs(options: list[str] | None, *, flag: str = "--columns", form: str = "FIELD=COLUMN") -> dict[str, str]:
    """Options such as `FIELD=COLUMN` as a mapping."""
    mapping = {}
    for option in listed(options):
        field, equals, column = option.partition("=")
        if not (field and equals and column):
            example = "; write for instance response=reply" if flag == "--columns" else ""
            raise ValueError(f"{flag} {option!r} is not {form}{example}")
        mapping[field.strip()] = column.strip()
    return mapping


def checkpoints(options: list[str] | None, metrics: list[str]) -> dict[str, str]:
    """Which metric gets which checkpoint; with a single metric its name may be left out."""
    chosen: dict[str, str] = {}
    for option in options or []:
        name, equals, checkpoint = option.partition("=")
        if equals and name in metrics:
            chosen[name] = checkpoint
        elif len(metrics) == 1:
            chosen[metrics[0]] = option
        else:
            raise ValueError(f"--checkpoint {option!r} does not say for which metric; write METRIC=CHECKPOINT")
    return chosen


def unescaped(separator: str) -> str:
    """A separator as a shell can pass it: line breaks and tabs as backslash sequences."""
    return separator.replace("\\n", "\n").replace("\\t", "\t")


def command_line(arguments: list[str], *, program: str = "dialeval") -> str:
    """The command as it may stand beside results: ready for a shell, without the folders of this machine."""
    import shlex

    from dialeval.io import near, without_machine

    # An argument that is a path from end to end may hold blanks, too.
    shown = (near(Path(one)) if Path(one).is_absolute() else without_machine(one) for one in arguments)
    return f"{program} {shlex.join(shown)}"
