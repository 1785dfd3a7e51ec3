"""Pictures of the draws of the weights."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpa_ppl.formats.streams import atomic_path
from bpa_ppl.posterior import draws, feature_names, import_arviz

if TYPE_CHECKING:
    from arviz import InferenceData


def plot_trace(posterior: InferenceData, path: str | Path, *, weights: int = 6) -> None:
    """Write trace and rank plots of the weights whose canonical value moved most.

    Left the density and the trace of each chain, right the ranks of its draws, which are level
    where the chains agree (Vehtari et al. 2021).

    Args:
        posterior: the draws.
        path: the picture to write; its suffix chooses the format.
        weights: how many weights to show.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    shown = _most_moved(posterior, weights)
    figure, axes = plt.subplots(
        len(shown), 2, figsize=(11, 1.7 * len(shown)), squeeze=False, layout="constrained"
    )
    values = posterior["posterior"]["weights"]
    for (left, right), name in zip(axes, shown, strict=True):
        chosen = values.sel({values.dims[-1]: name})
        _trace(left, chosen, name)
        import_arviz().plot_rank({name: chosen.values}, kind="bars", ax=right)
        right.set_title("")
    axes[0, 0].set_title("trace", fontsize="medium")
    axes[0, 1].set_title("ranks by chain", fontsize="medium")
    with atomic_path(path) as beside:
        figure.savefig(beside, dpi=120)
    plt.close(figure)


def _trace(axis: Any, chosen: Any, name: str) -> None:
    for chain in chosen.values:
        axis.plot(chain, linewidth=0.5, alpha=0.7)
    axis.set_ylabel(name, rotation=0, ha="right", va="center")
    axis.margins(x=0)


def _most_moved(posterior: InferenceData, count: int) -> list[str]:
    names = feature_names(posterior)
    sample = draws(posterior)
    if "constant_data" not in posterior or "canonical" not in posterior["constant_data"]:
        return list(names[:count])
    shift = abs(sample.mean(axis=0) - posterior["constant_data"]["canonical"].values)
    order = (shift / (sample.std(axis=0) + 1e-12)).argsort()[::-1]
    return [names[i] for i in sorted(order[:count])]
