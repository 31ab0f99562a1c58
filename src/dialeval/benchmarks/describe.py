"""What a person must know about a benchmark, as plain text."""

from __future__ import annotations

from collections.abc import Iterator

from dialeval.benchmarks.base import BenchmarkInfo


def describe(info: BenchmarkInfo, protocols: tuple[str, ...]) -> str:
    """Everything that the declaration says, one heading per line."""
    return "\n".join(_lines(info, protocols))


def _lines(info: BenchmarkInfo, protocols: tuple[str, ...]) -> Iterator[str]:
    yield f"{info.name}: {info.title}"
    yield f"  {info.rows} rows, kind {info.kind}, level {info.level}, revision {info.revision}"
    yield f"  protocol {info.protocol}" + (f" of {', '.join(protocols)}" if len(protocols) > 1 else "")
    yield f"  licence: {info.licence}"
    yield f"  cite: {info.citation}"
    for source in info.sources:
        yield f"  source: {source.repository}" + (f" at {source.commit}" if source.commit else "")
        for file in source.files:
            yield f"    {file.path} ({file.bytes} bytes, sha256 {file.sha256[:12]}…)"
    for aspect, scale in info.aspects.items():
        main = " (main)" if aspect == info.main_aspect else ""
        yield f"  aspect: {aspect} {scale.low:g} to {scale.high:g}{main}"
    for system in info.systems:
        mark = " (human)" if system in info.human_systems else " (planted)" if system in info.negative_systems else ""
        yield f"  system: {system}{mark}"
    for name, systems in info.exclusions.items():
        default = " (default)" if name == info.default_exclusion else ""
        yield f"  exclusion {name}{default}: {', '.join(systems) or 'nothing'}"
    for name, subset in info.subsets.items():
        yield f"  subset {name}: {subset.why}"
    if not info.tells_apart:
        yield "  every row has the same label; not part of `all`"
    if info.repeats:
        yield f"  repeats rows of: {info.repeats}; not part of `all`, so name it where it is wanted"
    if info.contaminates:
        yield f"  contaminated for checkpoints of: {', '.join(info.contaminates)}"
    for oddity in info.oddities:
        yield f"  note: {oddity}"
