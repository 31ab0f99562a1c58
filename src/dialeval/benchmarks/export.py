"""A benchmark as a folder that `datasets.load_dataset` reads, with a card that says whose data it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

from dialeval.benchmarks.base import Benchmark, BenchmarkInfo
from dialeval.io import disk_errors

Format = Literal["parquet", "jsonl"]


def export(benchmark: Benchmark, folder: Path, *, form: Format = "parquet") -> Path:
    """Write the rows and a dataset card into a new or empty folder; returns the file of rows.

    The rows get their final name last, so an interrupted export never looks like a finished one.
    """
    rows = folder / f"{benchmark.info.name}.{form}"
    partial = folder / f"{rows.name}.part"
    if folder.exists():
        found = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
        # What an interrupted export of the same rows left is ours to write over.
        if found - ({partial.name, "README.md"} if partial.name in found else set()):
            raise FileExistsError(f"{folder} is not an empty folder; choose another one for {benchmark.info.name}")
    folder.mkdir(parents=True, exist_ok=True)
    with disk_errors(rows):
        if form == "parquet":
            benchmark.dataset.to_parquet(str(partial))
        else:
            benchmark.dataset.to_json(str(partial), force_ascii=False)
        (folder / "README.md").write_text(card(benchmark.info, rows.name), encoding="utf-8")
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(partial, rows)
    return rows


def card(info: BenchmarkInfo, data_file: str) -> str:
    """The dataset card: a header that `datasets` reads, then what a person must know."""
    header = {
        "pretty_name": info.title,
        "license": "other",
        "license_name": info.licence,
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": data_file}]}],
        "tags": ["dialogue-evaluation"],
    }
    yaml = "\n".join(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in header.items())
    aspects = [f"- {name}: {scale.low:g} to {scale.high:g}" for name, scale in info.aspects.items()]
    sections = {
        "Licence": [f"As stated by the source: {info.licence}.", "This export gives no further rights."],
        "Source": _source_lines(info),
        "Aspects": aspects,
        "Worth knowing": [f"- {oddity}" for oddity in info.oddities],
        "Citation": [info.citation, *(["", "```bibtex", info.bibtex, "```"] if info.bibtex else [])],
    }
    text = "\n\n".join("\n".join([f"## {title}", "", *lines]) for title, lines in sections.items() if lines)
    summary = f"{info.rows} rows, level {info.level}, protocol {info.protocol}, revision {info.revision}."
    return f"---\n{yaml}\n---\n\n# {info.title}\n\n{summary} Exported by dialeval.\n\n{text}\n"


def _source_lines(info: BenchmarkInfo) -> list[str]:
    lines = []
    for source in info.sources:
        if source.commit:
            lines.append(f"- https://github.com/{source.repository} at commit {source.commit}")
        lines.extend(f"  - `{file.path}` (sha256 {file.sha256})" for file in source.files)
    return lines
