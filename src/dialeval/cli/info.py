"""`dialeval info`: what is installed, what was found, and where. The first thing to put in a bug report."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dialeval.io.harmless import one_line

if TYPE_CHECKING:
    import torch
    from rich.console import Console

_LIBRARIES = (
    "torch", "transformers", "datasets", "huggingface-hub", "peft", "safetensors", "numpy", "scipy", "scikit-learn",
    "evaluate", "accelerate", "pandas", "pyarrow", "gradio", "ray", "openai",
)  # fmt: skip


def info(
    checkpoint: Annotated[
        str | None,
        typer.Argument(metavar="[CHECKPOINT]", help="A folder, an embedded name or a Hub id; shows it alone."),
    ] = None,
) -> None:
    """Show versions, devices, metrics, and which weights were found where; or what one checkpoint is.

    Nothing is downloaded, except a checkpoint named by its Hub id.

    [bold]Examples[/bold]

    $ dialeval info > info.txt   (paths are written in full, for a bug report)

    $ DIALEVAL_HOME=/data/dialeval dialeval info   (what is found with other folders)

    $ dialeval info runs/mine/checkpoint   (what one checkpoint is, and what it was trained on)
    """
    from rich.console import Console

    from dialeval.io.tables import Table, show

    # A pipe has no width; cutting paths to eighty columns there would make them useless.
    console = Console(width=None if Console().is_terminal else 200, soft_wrap=True)
    if checkpoint is not None:
        _show(console, "Checkpoint", _checkpoint(checkpoint))
        return
    _show(console, "Versions", _versions())
    _show(console, "Devices", _devices())
    _show(console, "Weights", _weights())
    _show(console, "Folders", _folders())
    header = ("metric", "judges", "better", "range", "needs", "extra")
    show([Table(header, list(_metrics()), left=range(len(header)), title="Metrics")])


def _show(console: Console, title: str, facts: Mapping[str, str]) -> None:
    console.print(f"[bold]{title}[/bold]")
    for name, value in facts.items():
        console.print(one_line(f"  {name:<18} {value}"), highlight=False, markup=False)


def _checkpoint(source: str) -> dict[str, str]:
    """What a checkpoint says of itself, read as data: no weights are loaded."""
    from dialeval.checkpoints.catalogue import checkpoint_named
    from dialeval.checkpoints.config import CheckpointConfig
    from dialeval.checkpoints.find import find_checkpoint, parts_of, weights_digest
    from dialeval.registry import REGISTRY

    listed = checkpoint_named(source)
    if listed is None and source in REGISTRY and not Path(source).exists():
        raise ValueError(f"{source} is a metric without a checkpoint; `dialeval info` lists metrics")
    located = find_checkpoint(source, default=source)
    config = CheckpointConfig.read(located.folder)
    size = sum(path.stat().st_size for path in parts_of(located.folder) if path.is_file())
    layout, training = config.layout, config.training
    facts = {
        "name": config.name or located.folder.name,
        "approach": f"{config.approach}: dialeval.load({config.approach!r}, checkpoint={source!r})",
        "found": f"{located.origin}, {located.folder}",
        "weights": f"{weights_digest(located.folder, config.encoder.layers)[:12]}, {size / 1e6:.1f} MB",
        "base encoder": f"{config.encoder.id}, {config.encoder.tuning}",
        "tokens": f"{layout.max_length} for facts, context and reply"
        + (f", {layout.facts_budget} of them kept for facts" if layout.facts_budget else "")
        + (f", {layout.response_budget} for the reply" if layout.response_budget else "")
        + (f"; of the context the last {layout.turns} turns" if layout.turns else ""),
        **_training(training),
        "trained on benchmarks": ", ".join(config.contaminated_by) or "no benchmark that it declares",
        "made with": ", ".join(f"{name} {version}" for name, version in config.versions.items()),
    }
    return {name: fact for name, fact in facts.items() if fact}


def _training(record: Mapping[str, Any]) -> dict[str, str]:
    """What a checkpoint says of its training, which is anything that somebody wrote there."""
    from dialeval.hub.card import licence_of

    stages = record.get("stages", ())
    try:
        return {
            "licence": licence_of(record),
            "stages": "; ".join(f"{stage['name']}: {stage['steps']:,} steps" for stage in stages) or "unknown",
            "hours": f"{sum(stage['hours'] for stage in stages):g}" if stages else "unknown",
            "corpora": ", ".join(str(name) for name in record.get("corpora", ())) or "unknown",
            "rated rows": ", ".join(f"{name} {count:,}" for name, count in record.get("rated_rows", {}).items()),
        }
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
        return {"training": "recorded in a form that is not known here"}


def _versions() -> dict[str, str]:
    from dialeval.version import __version__

    versions = {"dialeval": __version__, "python": f"{platform.python_version()} on {platform.platform()}"}
    for library in _LIBRARIES:
        try:
            versions[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            versions[library] = "not installed"
    return versions


def _devices() -> dict[str, str]:
    import torch

    from dialeval.encoders.batching import choose_device, choose_precision

    devices = {"cpu": torch.device("cpu")}
    devices |= {f"cuda:{index}": torch.device("cuda", index) for index in range(torch.cuda.device_count())}
    if torch.backends.mps.is_available():
        devices["mps"] = torch.device("mps")
    dtypes = {
        name: f"{_device_name(device)}; dtype auto is {choose_precision('auto', device)}"
        for name, device in devices.items()
    }
    return {**dtypes, "default": str(choose_device())}


def _device_name(device: torch.device) -> str:
    import torch

    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    if device.type == "cpu":
        return f"{torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
    return "Apple GPU"


def _weights() -> dict[str, str]:
    from dialeval.checkpoints.catalogue import base_encoders, checkpoints
    from dialeval.checkpoints.find import cached, embedded_checkpoints
    from dialeval.checkpoints.packages import installed
    from dialeval.version import how_to_install

    embedded = embedded_checkpoints()
    weights = {
        name: f"{listed.licence}, " + (f"embedded in {embedded[name]}" if name in embedded else "on the Hub")
        for name, listed in checkpoints().items()
    }
    encoders = {}
    for name, listed in base_encoders().items():
        located = cached(name, None)
        where = f"{located.origin}, {located.folder}" if located else installed(listed)
        encoders[name.split("/")[-1]] = where or f"not here; {how_to_install(listed.extra)} brings it"
    return {**weights, **encoders}


def _folders() -> dict[str, str]:
    from huggingface_hub import constants

    from dialeval.hub.modules import modules_cache

    return {
        "Hub cache": constants.HF_HUB_CACHE,
        "Hub": "not asked (HF_HUB_OFFLINE)" if constants.HF_HUB_OFFLINE else constants.ENDPOINT,
        "evaluate modules": str(modules_cache()),
        "current": str(Path.cwd()),
        "threads": f"OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'not set')}, {os.cpu_count()} cores",
    }


def _metrics() -> list[tuple[str, ...]]:
    from dialeval.registry import REGISTRY, find_plugins, metric_class

    find_plugins()
    rows: list[tuple[str, ...]] = []
    for name, entry in REGISTRY.items():
        extra = entry.extra or ("" if entry.package is None else f"of {entry.package}")
        try:
            info = metric_class(name)[0].info
        except (ImportError, AttributeError, ValueError) as error:  # no extra, or somebody's own metric is broken
            rows.append((name, "", "", "", str(error), extra))
            continue
        low, high = info.range
        better = "higher" if info.higher_is_better else "lower"
        needs = ", ".join(sorted(info.needs))
        rows.append((name, str(info.level), better, f"{low:g} to {high:g}", needs, extra))
    return rows
