"""The papers' tables beside ours, and studies of what the metrics stand on: `python -m reproduce`."""

import sys
from pathlib import Path

# Dialogues are read by what training reads them with.
sys.path.append(str(Path(__file__).resolve().parents[1] / "training"))
