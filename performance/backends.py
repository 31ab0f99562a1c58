"""Would another back end be worth shipping? DENSITY through torch, OpenVINO and ONNX Runtime, end to end.

    pip install openvino onnxruntime onnx onnxscript   # whatever is missing is named and left out
    python performance/backends.py

Rows of a benchmark that people rated, the library's own batches; only the network's forward pass
changes hands. Writes backends.json beside this file and the table in docs/precision.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmark_rows import BENCHMARK, Rated, rated_rows
from measure import processor
from numpy.typing import NDArray
from pages import replace_block, table
from rich.console import Console
from scipy.stats import spearmanr
from speed import run, seconds
from torch import Tensor, nn

from dialeval.approaches.density import Density
from dialeval.engine.encoding import has_fast_bfloat16
from dialeval.weights.config import current_versions

PAGE = Path(__file__).resolve().parent.parent / "docs" / "precision.md"
#: What a back end must gain over torch's best to be worth a dependency.
WORTH = 1.3
#: Correlations with people that differ by less count as equal.
EQUAL = 0.005
PACKAGES = {"openvino": ("openvino",), "onnxruntime": ("onnxruntime", "onnx", "onnxscript")}

Arrays = dict[str, NDArray[np.int64]]
Pass = Callable[[Arrays], NDArray[np.float32]]


class Outside(nn.Module):
    """A forward pass that another library computes, in the place of a network."""

    def __init__(self, compute: Pass) -> None:
        super().__init__()
        self.compute = compute

    def forward(self, **inputs: Tensor) -> Tensor:
        """The result is copied: a back end may write the next one into the same memory."""
        return torch.from_numpy(np.array(self.compute({name: tensor.numpy() for name, tensor in inputs.items()})))


def _example(network: nn.Module) -> dict[str, Tensor]:
    ids = torch.arange(1000, 1000 + 2 * 16).reshape(2, 16)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}


def through_openvino(network: nn.Module, precision: str) -> Pass:
    """The traced network, compiled for batches of any shape."""
    import openvino

    with torch.inference_mode():
        model = openvino.convert_model(network, example_input=_example(network))
    compiled = openvino.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": precision})
    return lambda inputs: compiled(inputs)[0]


def through_onnx(network: nn.Module) -> Pass:
    """The exported network on ONNX Runtime's CPU provider."""
    import onnxruntime

    example = _example(network)
    batch, width = torch.export.Dim("batch", min=1, max=4096), torch.export.Dim("width", min=8, max=512)
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        path = Path(folder) / "network.onnx"
        shapes = {name: {0: batch, 1: width} for name in example}
        torch.onnx.export(network, (), str(path), kwargs=example, dynamic_shapes=shapes, dynamo=True, verbose=False)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    taken = {one.name for one in session.get_inputs()}
    return lambda inputs: session.run(None, {name: array for name, array in inputs.items() if name in taken})[0]


def ways(native_bfloat16: bool) -> dict[str, Callable[[], Density]]:
    """Loaders of DENSITY on every back end and precision that makes sense on this machine; torch float32 first."""

    def outside(convert: Callable[[nn.Module], Pass]) -> Density:
        metric = Density(device="cpu")
        metric.encoder.network = Outside(convert(metric.network))
        return metric

    found: dict[str, Callable[[], Density]] = {"torch float32": lambda: Density(device="cpu")}
    if native_bfloat16:
        found["torch bfloat16"] = lambda: Density(device="cpu", dtype="bfloat16")
        found["openvino bfloat16"] = lambda: outside(lambda network: through_openvino(network, "bf16"))
    found["openvino float32"] = lambda: outside(lambda network: through_openvino(network, "f32"))
    found["onnxruntime float32"] = lambda: outside(through_onnx)
    return found


def missing(way: str) -> str | None:
    """Which packages a way lacks, as a sentence."""
    lacking = []
    for package in PACKAGES.get(way.split()[0], ()):
        try:
            version(package)
        except PackageNotFoundError:
            lacking.append(package)
    return f"{', '.join(lacking)} not installed" if lacking else None


def measure(load: Callable[[], Density], rated: Rated, reference: NDArray[np.float32] | None) -> dict[str, Any]:
    """Rate end to end, cosine of the network's rows to float32, correlation with people."""
    metric = load()
    rows = metric.encoder.encode(rated.exchanges).rows
    values = metric.values_of(rows)
    taken = seconds(lambda: run(metric, rated.exchanges))
    against = rows if reference is None else reference
    cosine = (rows * against).sum(axis=1) / (np.linalg.norm(rows, axis=1) * np.linalg.norm(against, axis=1))
    return {
        "rows_per_second": len(rows) / taken,
        "least_cosine": float(cosine.min()),
        "spearman_people": float(spearmanr(values, rated.ratings).statistic),
        "rows": rows,
    }


def verdict(measured: dict[str, Any]) -> str:
    """Whether any back end earns its place here."""
    torch_ways = {name: one["rows_per_second"] for name, one in measured.items() if name.startswith("torch")}
    others = {name: one for name, one in measured.items() if not name.startswith("torch")}
    if not others:
        return "No other back end could be measured."
    best = max(torch_ways, key=lambda name: torch_ways[name])
    people = measured["torch float32"]["spearman_people"]
    told = []
    for name, one in others.items():
        ratio, drift = one["rows_per_second"] / torch_ways[best], abs(one["spearman_people"] - people)
        earns = ratio >= WORTH and drift <= EQUAL
        told.append(
            f"{name} scores {ratio:.2f} times as many rows per second as {best}, with a correlation that differs by "
            f"{drift:.4f}: {'worth shipping' if earns else 'not shipped'}"
        )
    return f"Asked for: {WORTH} times, and correlations within {EQUAL}. " + "; ".join(told) + "."


def figures(outcome: dict[str, Any]) -> str:
    """The table of docs/precision.md and the verdict."""
    machine = outcome["machine"]
    rows = [
        (name, f"{one['rows_per_second']:.1f}", f"{one['least_cosine']:.6f}", f"{one['spearman_people']:.4f}")
        for name, one in outcome["measured"].items()
    ]
    header = ("DENSITY through", "rows/s", "least cosine of features to float32", "Spearman with people")
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    notes = [f"{name}: {why}." for name, why in outcome["left_out"].items()]
    units = "with" if machine["native_bfloat16"] else "without"
    told = (
        f"`{outcome['command']}`: {outcome['rows']} rows of {outcome['benchmark']} on {machine['processor']}, "
        f"{machine['threads']} threads, {units} bfloat16 units; {versions}."
    )
    return "\n\n".join([told, table(header, rows), verdict(outcome["measured"]), *notes])


def main() -> None:
    """Measure what is installed, write the file and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300, help="rows of the benchmark (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("backends.json"))
    parser.add_argument("--page", type=Path, default=PAGE, help="the page whose table is replaced")
    arguments = parser.parse_args()
    rated, console = rated_rows(arguments.rows), Console(stderr=True)
    native = has_fast_bfloat16(torch.device("cpu"))
    measured: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    reference = None
    for name, load in ways(native).items():
        if why := missing(name):
            left_out[name] = why
            continue
        with console.status(name):
            try:
                found = measure(load, rated, reference)
            except Exception as error:  # converters fail in many ways; which one is a finding
                if reference is None:
                    raise
                left_out[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
                continue
        own = found.pop("rows")
        reference = own if reference is None else reference
        measured[name] = found
        console.print(f"{name}: {found['rows_per_second']:.1f} rows/s", markup=False)
    versions = {"torch": current_versions()["torch"]}
    versions |= {name: version(name) for name in PACKAGES if missing(name) is None}
    outcome = {
        "command": f"python performance/backends.py --rows {arguments.rows}",
        "benchmark": BENCHMARK,
        "rows": arguments.rows,
        "machine": {
            "processor": processor(),
            "threads": torch.get_num_threads(),
            "native_bfloat16": native,
            "versions": versions,
        },
        "measured": measured,
        "left_out": left_out,
    }
    arguments.out.write_text(json.dumps(outcome, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    replace_block(arguments.page, "figures of backends.py", figures(outcome))
    console.print(verdict(measured), markup=False)


if __name__ == "__main__":
    main()
