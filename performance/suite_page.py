"""Tables and plot of the speed page, from what `suite.py` measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pages import replace_block, table

BLOCK = "figures of suite.py"


def write_page(outcome: dict[str, Any], template: Path, target: Path) -> str:
    """Put the figures into the page (or a copy of it elsewhere) and return them."""
    text = figures(outcome)
    page = template.read_text(encoding="utf-8")
    if target != template:
        target.write_text(page, encoding="utf-8")
    replace_block(target, BLOCK, text)
    return text


def figures(outcome: dict[str, Any]) -> str:
    """Everything between the two marks of the page."""
    measured, machine = outcome["measured"], outcome["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    parts = [
        f"`{outcome['command']}` on {machine['processor']}, {machine['threads']} threads, "
        f"{'with' if machine['native_bfloat16'] else 'without'} bfloat16 units, load before the run "
        f"{machine['load_before']}. {versions}.",
        _ratio_table(outcome),
        _growth_table(measured),
        "![seconds over rows](suite.png)",
    ]
    if notes := [f"* {one['title']}: {one['note']}" for one in measured.values() if one["note"]]:
        parts.append("Not measured, or not in full:\n\n" + "\n".join(notes))
    return "\n\n".join(parts)


def _ratio_table(outcome: dict[str, Any]) -> str:
    measured = outcome["measured"]
    rows = []
    for one in outcome["ratios"]:
        mine, rival = measured[one["metric"]], measured[one["against"]]
        same = "same" if mine["passes"] == rival["passes"] else f"{mine['passes']} to {rival['passes']}"
        rates = [_rate(side, one["rows"]) for side in (mine, rival)]
        rows.append((mine["title"], rival["title"], same, f"{one['rows']:,}", *rates, f"**{one['ratio']:.2f}**"))
    header = ("metric", "against", "passes per row", "rows", "rows/s", "its rows/s", "times as fast")
    return table(header, rows)


def _growth_table(measured: dict[str, Any]) -> str:
    rows = []
    for one in measured.values():
        if not one["points"]:
            continue
        last, growth = one["points"][-1], one["growth"]
        fitted = ("–", "–", "–")
        if growth:
            fitted = (
                f"{growth['exponent']:.2f}",
                _duration(growth["seconds_per_million_rows"]),
                f"{growth['mb_per_thousand_rows']:.1f}",
            )
        rows.append((one["title"], f"{last['rows']:,}", _rate(one, last["rows"]), f"{last['peak_mb']:.0f}", *fitted))
    header = (
        "what",
        "largest size",
        "rows/s there",
        "peak MB there",
        "exponent of time",
        "a million rows (extrapolated)",
        "MB per 1,000 more rows",
    )
    return table(header, rows)


def _rate(side: dict[str, Any], rows: int) -> str:
    (seconds,) = [point["seconds"] for point in side["points"] if point["rows"] == rows]
    return f"{rows / seconds:.1f}"


def _duration(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"


def draw(outcome: dict[str, Any], path: Path) -> None:
    """Seconds over rows, both logarithmic; the suite solid, alternatives dashed."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5.5), layout="constrained")
    for one in outcome["measured"].values():
        if one["points"]:
            xs, ys = ([point[key] for point in one["points"]] for key in ("rows", "seconds"))
            axes.plot(xs, ys, "-o" if one["ours"] else "--s", label=one["title"], markersize=4, linewidth=1.4)
    axes.set(xscale="log", yscale="log", xlabel="rows", ylabel="seconds", title="Time over rows, same encoder weights")
    axes.grid(visible=True, which="both", alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)
    figure.savefig(path, dpi=130)
    plt.close(figure)
