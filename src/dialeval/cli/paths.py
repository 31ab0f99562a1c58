"""Where a run reads and writes: resolved once, all different, and checked before anything is computed or opened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dialeval.io import is_stream


@dataclass(frozen=True)
class RunPaths:
    """The files of one run. Output to a pipe or a device has no file: it is written as it comes."""

    input: Path | None
    output: Path | None
    stream: Path | None
    rejects: Path | None
    summary: Path | None
    #: What else the run reads, by the option that names it.
    reads: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def choose(
        cls,
        input: str,
        output: str,
        *,
        skip_bad: bool,
        rejects: Path | None,
        summary: Path | None,
        needs_summary: bool,
        reads: Mapping[str, str | Path | None] | None = None,
    ) -> RunPaths:
        """Put what was not named beside the output. Of `reads` those count that are files here, not names."""
        if not output:
            raise ValueError("the output has no name; pass a file, or - for standard output")
        is_device = output != "-" and is_stream(Path(output))
        is_file = output != "-" and not is_device
        if skip_bad and rejects is None:
            if not is_file:
                raise ValueError("--skip-bad with output to a pipe needs --rejects FILE, the place for bad rows")
            rejects = Path(f"{output}.rejects.jsonl")
        if needs_summary and summary is None and is_file:
            summary = Path(f"{output}.summary.json")
        return cls(
            input=None if input == "-" else resolved(Path(input)),
            # A link keeps pointing where it did; what it points to is replaced.
            output=resolved(Path(output)) if is_file else None,
            stream=Path(output) if is_device else None,
            rejects=None if rejects is None else resolved(rejects),
            summary=None if summary is None else resolved(summary),
            reads={option: resolved(Path(path)) for option, path in (reads or {}).items() if path and _is_here(path)},
        )

    @property
    def shown_rejects(self) -> str:
        """Where bad rows went, as seen from the working folder if it lies there."""
        if self.rejects is None:
            return ""
        here = Path.cwd()
        return str(self.rejects.relative_to(here) if self.rejects.is_relative_to(here) else self.rejects)

    def before(self) -> dict[Path, list[int] | None]:
        """What stands at the places of the outcome now."""
        from dialeval.scoring.outputs import standing

        return {path: standing(path) for path in (self.output, self.rejects, self.summary) if path is not None}

    def check(self, *, overwrite: bool) -> None:
        """Refuse folders, paths that do not exist, what the run reads, and files that would be lost."""
        self._check_different()
        may_replace = overwrite or self._is_continued()
        for path in filter(None, (self.output, self.rejects, self.summary)):
            if is_stream(path):
                raise ValueError(f"{path} is a device or a pipe; name a file")
            if path.is_symlink():
                raise ValueError(f"{path} is a link that leads nowhere; name a file")
            if path.is_dir():
                raise IsADirectoryError(f"{path} is a folder; name a file in it")
            if not path.parent.is_dir():
                raise FileNotFoundError(f"there is no folder {path.parent}; make it first")
            if path.exists() and not may_replace:
                raise FileExistsError(f"{path} is there already; choose another name or --overwrite")

    def _is_continued(self) -> bool:
        """Whether an interrupted run left finished chunks, and what stands at the output is that run's."""
        from dialeval.scoring.journal import begun
        from dialeval.scoring.run import journal_path, journals_of_workers

        if self.output is None:
            return False
        output = self.output
        journals = (journal_path(output), *journals_of_workers(output))
        found = [table for path in journals if (table := begun(path))]
        return any(not output.exists() or table.may_replace(output) for table in found)

    def _check_different(self) -> None:
        """No file may be written in the place of another one that the run reads or writes, itself or on the way."""
        from dialeval.scoring.outputs import hidden_path
        from dialeval.scoring.run import journal_path

        named = {"--output": self.output, "--rejects": self.rejects, "--summary": self.summary}
        written = {option: path for option, path in named.items() if path is not None}
        for option, path in list(written.items()):
            written[f"what {option} is written to first"] = hidden_path(path)
        if self.output is not None:
            written["the journal of finished rows"] = journal_path(self.output)
        read = {"the input": self.input, **self.reads}
        others = [(option, path) for option, path in read.items() if path is not None]
        for at, (option, path) in enumerate(written.items()):
            for other, there in [*others, *list(written.items())[at + 1 :]]:
                if _are_one(path, there):
                    raise ValueError(f"{path} is both {option} and {other}; choose another file for one of them")


def check_reports(reports: Mapping[str, Path | None], reads: Iterable[str | Path]) -> None:
    """Refuse reports that would take the place of what the run reads, or of one another."""
    named = [(option, path) for option, path in reports.items() if path is not None and not is_stream(path)]
    read = [("what is read", Path(one)) for one in reads]
    for at, (option, path) in enumerate(named):
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a folder; name a file in it")
        for other, there in [*read, *named[at + 1 :]]:
            if _are_one(resolved(path), resolved(there)):
                raise ValueError(f"{path} is both {option} and {other}; choose another file for one of them")


def resolved(path: Path) -> Path:
    """The path with all links followed; one that leads to itself, or to a pipe, which has no path, stays as it is."""
    return path if is_stream(path) else Path(os.path.realpath(path))


def _is_here(path: str | Path) -> bool:
    return os.path.lexists(path)


def _are_one(one: Path, other: Path) -> bool:
    """The same name, or two names of the same file."""
    if one == other:
        return True
    try:
        return one.samefile(other)
    except OSError:
        return False
