"""The suite against named alternatives on the same weights and rows, each in a process of its own.

    python performance/suite.py                      # about ten minutes on two cores
    python performance/suite.py --instructions avx2  # as a processor without AVX-512 computes
    python performance/suite.py --rows 100           # a quick look

Writes a table of README.md. Measure on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from contenders import ALTERNATIVES, CONTENDERS, METRICS, RIVALS
from pages import README, replace_block
from rich.console import Console

from dialeval.io.tables import markdown_table

HERE = Path(__file__).parent
#: Everything on the CPU and nothing fetched, whatever machine this is.
_OFFLINE = {"CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", "DISABLE_TQDM": "1"}
#: What oneDNN, ATen and MKL may use: everything, or what other processors have.
INSTRUCTIONS: Mapping[str, Mapping[str, str]] = {
    "all": {},
    "vnni": {
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI",
        "ATEN_CPU_CAPABILITY": "avx512",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512_E1",
    },
    "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
}


def in_own_process(what: str, rows: int = 2, instructions: str = "all") -> dict[str, Any]:
    """What `measure.py` prints; a failure becomes a note that quotes the last line of its error."""
    command = [sys.executable, str(HERE / "measure.py"), what, "--rows", str(rows)]
    environment = os.environ | _OFFLINE | INSTRUCTIONS[instructions]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return {"missing": f"failed at {rows:,} rows (status {done.returncode}): {last}"}
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def order(precisions: Sequence[str]) -> list[str]:
    """Each metric next to its closest alternative, so that both see the machine in the same state."""
    names: list[str] = []
    for metric in METRICS:
        names += [*(f"{metric}_{precision}" for precision in precisions), RIVALS[metric][0]]
    return list(dict.fromkeys([*names, *ALTERNATIVES]))


def figures(measured: Mapping[str, Mapping[str, float]], rows: int) -> str:
    """Rates and memory, and how many times as many encoder passes a second as each alternative does."""
    lines = []
    for name, result in measured.items():
        contender = CONTENDERS[name]
        passes = contender.passes / result["seconds"]
        ratios = []
        for rival in RIVALS.get(name.rpartition("_")[0], ()):
            if rival in measured:
                times = passes * measured[rival]["seconds"] / CONTENDERS[rival].passes
                ratios.append(f"**{times:.2f}** × {CONTENDERS[rival].title}")
        rate = f"{rows / result['seconds']:.1f}"
        lines.append((contender.title, str(contender.passes), rate, f"{result['peak_mb']:.0f}", "; ".join(ratios)))
    return "\n".join(
        markdown_table(("what", "passes per row", "rows/s", "peak MB", "encoder passes per second"), lines)
    )


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000, help="default: %(default)s")
    parser.add_argument("--instructions", choices=INSTRUCTIONS, default="all", help="default: %(default)s")
    arguments = parser.parse_args()
    if arguments.rows < 20:
        parser.error(f"--rows is {arguments.rows}; below 20 nothing but start-up would be measured")
    console = Console(stderr=True)
    if (load := os.getloadavg()[0]) > 0.5:
        console.print(f"load is {load:.1f}: something else is running here, and the figures will show it")
    machine = in_own_process("machine", instructions=arguments.instructions)
    if "missing" in machine:
        raise SystemExit(machine["missing"])
    measured: dict[str, dict[str, float]] = {}
    missing: dict[str, str] = {}
    for name in order(machine["precisions"]):
        with console.status(name):
            result = in_own_process(name, arguments.rows, arguments.instructions)
        if "missing" in result:
            missing[name] = result["missing"]
        else:
            measured[name] = result
        console.print(name, result, markup=False)
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    text = (
        f"`python performance/suite.py --rows {arguments.rows} --instructions {arguments.instructions}` on "
        f"{machine['processor']}, {machine['threads']} thread(s). {versions}.\n\n" + figures(measured, arguments.rows)
    )
    for name, reason in missing.items():
        text += f"\n\nNot measured: {CONTENDERS[name].title}: {reason}"
    replace_block(README, f"figures of suite.py, {arguments.instructions}", text)
    console.print(text, markup=False)


if __name__ == "__main__":
    main()
