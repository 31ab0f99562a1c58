"""Two rows, and what a module of `evaluate` says of them with word overlap behind it."""

from __future__ import annotations

PREDICTIONS = ["the bus", "nobody"]
CONTEXTS = [["the bus is late", "again"], ["who"]]
RESULT = {
    "density": 0.2,
    "scores": [0.4, 0.0],
    "signature": "metric:overlap|weight:1.0",
    "n_truncated": 0,
    "n_empty": 0,
}
