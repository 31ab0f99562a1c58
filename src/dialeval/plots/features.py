"""A matrix of features in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from dialeval.plots.figures import new_figure
from dialeval.statistics.correlation import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def feature_map(
    features: ArrayLike,
    labels: Sequence[str] | None = None,
    *,
    method: Literal["pca", "tsne"] = "pca",
    title: str = "",
    seed: int = 0,
) -> Figure:
    """A matrix of features in two dimensions. t-SNE starts from PCA, so that the seed alone decides."""
    matrix = np.asarray(features, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] < 3 or matrix.shape[1] < 2:
        raise ValueError(f"features have the shape {matrix.shape}; give at least 3 rows of at least 2 dimensions")
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if len(bad):
        raise ValueError(f"row {bad[0]} of the features is not finite; leave it out")
    owners = np.array([""] * len(matrix) if labels is None else [str(label) for label in labels], dtype=object)
    if len(owners) != len(matrix):
        raise ValueError(f"there are {len(matrix)} rows of features and {len(owners)} labels; give one per row")
    points = _flattened(matrix, method, seed)
    figure = new_figure(5.5, 5.0)
    axes = figure.subplots()
    for name in dict.fromkeys(owners.tolist()):
        own = owners == name
        axes.plot(points[own, 0], points[own, 1], ".", markersize=4, alpha=0.6, label=name or None)
    if labels is not None:
        axes.legend(frameon=False, fontsize="small")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(title or {"pca": "PCA", "tsne": "t-SNE"}[method], fontsize="medium", loc="left")
    return figure


def _flattened(matrix: Floats, method: str, seed: int) -> Floats:
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if method == "pca":
        return np.asarray(PCA(n_components=2, random_state=seed).fit_transform(matrix))
    # Perplexity must stay below the number of rows; 30 is the usual choice.
    perplexity = min(30.0, (len(matrix) - 1) / 3)
    return np.asarray(TSNE(n_components=2, init="pca", perplexity=perplexity, random_state=seed).fit_transform(matrix))


def read_features(path: Path) -> tuple[Floats, list[str] | None]:
    """A matrix `features`, and `labels` if there are any, from an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            labels = [str(label) for label in arrays["labels"]] if "labels" in arrays else None
            return np.asarray(arrays["features"], dtype=np.float64), labels
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is no .npz file with an array `features` ({error}); save one with numpy.savez"
        ) from None
