"""Where a run writes, checked before anything is computed or overwritten."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class RunPaths:
    """The files of one run. Output to a pipe or a device has no file: it is written as it comes."""

    input: Path | None
    output: Path | None
    stream: Path | None
    rejects: Path | None
    summary: Path | None

    @classmethod
    def choose(
        cls, input: str, output: str, *, skip_bad: bool, rejects: Path | None, summary: Path | None, needs_summary: bool
    ) -> RunPaths:
        """Put what was not named beside the output."""
        if not output:
            raise ValueError("the output has no name; pass a file, or - for standard output")
        is_device = output != "-" and Path(output).exists() and not (Path(output).is_file() or Path(output).is_dir())
        is_file = output != "-" and not is_device
        if skip_bad and rejects is None:
            if not is_file:
                raise ValueError("--skip-bad with output to a pipe needs --rejects FILE, the place for bad rows")
            rejects = Path(f"{output}.rejects.jsonl")
        if needs_summary and summary is None and is_file:
            summary = Path(f"{output}.summary.json")
        return cls(
            input=None if input == "-" else Path(input),
            # A link keeps pointing where it did; what it points to is replaced.
            output=Path(output).resolve() if is_file else None,
            stream=Path(output) if is_device else None,
            rejects=rejects,
            summary=summary,
        )

    def check(self, *, overwrite: bool) -> None:
        """Refuse folders, paths that do not exist, the input itself, and files that would be lost."""
        from dialeval.scoring.run import journal_path, journals_of_workers

        # As long as there is a journal, the files named beside it belong to its run.
        is_begun = self.output is not None and (
            journal_path(self.output).exists() or bool(journals_of_workers(self.output))
        )
        written = [path for path in (self.output, self.rejects, self.summary) if path is not None]
        if len({path.resolve() for path in written}) < len(written):
            raise ValueError("two of --output, --rejects and --summary are the same file; choose different ones")
        for path in written:
            if path.is_dir():
                raise IsADirectoryError(f"{path} is a folder; name a file in it")
            if not path.parent.is_dir():
                raise FileNotFoundError(f"there is no folder {path.parent}; make it first")
            if path.exists():
                if self.input is not None and self.input.exists() and path.samefile(self.input):
                    raise ValueError(f"{path} is the input; choose another file to write to")
                if not overwrite and not is_begun:
                    raise FileExistsError(f"{path} is there already; choose another name or --overwrite")
