"""Pictures of a posterior, written to files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bpa_ppl.diagnostics.pages.canvas import write_figure
from bpa_ppl.diagnostics.pages.foreign import with_features
from bpa_ppl.diagnostics.pages.sample import sample_of
from bpa_ppl.diagnostics.posterior_page.chain_figures import trace_figure

if TYPE_CHECKING:
    from arviz import InferenceData


def plot_trace(posterior: InferenceData, path: str | Path, *, weights: int = 6) -> None:
    """Write trace and rank plots of the weights whose canonical value moved most.

    Left the trace of each chain, right the ranks of its draws, which are level where the chains
    agree (Vehtari et al. 2021).

    Args:
        posterior: the draws.
        path: the picture to write; its suffix chooses the format.
        weights: how many weights to show.

    Raises:
        DataError: if there are no draws of `weights`, or the file cannot be written.
    """
    sample = sample_of(with_features(posterior))
    figure = trace_figure(sample, sample.moved_most(weights))
    write_figure(figure, path)
