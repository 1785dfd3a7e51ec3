"""Figures: the weights that moved most, and the same bytes for the same figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference_model
from external_posterior import autoregressive, external_posterior
from matplotlib.figure import Figure

from bpa_ppl import adapt
from bpa_ppl.diagnostics import plot_trace
from bpa_ppl.diagnostics.pages.figures import empty_figure, write_figure
from bpa_ppl.diagnostics.pages.page import drawn

NAMES = ("LM0", "TM0", "WP0")


def test_fewer_weights_make_a_lower_picture(tmp_path: Path) -> None:
    posterior = external_posterior(autoregressive(0.1, 2, 200, 3, seed=1), NAMES)
    heights = []
    for weights in (1, 3):
        plot_trace(posterior, tmp_path / "trace.png", weights=weights)
        header = (tmp_path / "trace.png").read_bytes()[:24]
        assert header.startswith(b"\x89PNG")
        heights.append(int.from_bytes(header[20:], "big"))
    assert heights[0] < heights[1]


def test_the_weights_with_the_largest_shifts_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.axes import Axes

    shown: list[str] = []
    monkeypatch.setattr(Axes, "set_ylabel", lambda self, label, **_: shown.append(label))
    pool = reference_model.pairs(np.tile([0.0, 3.0, 0.0], (30, 1)), NAMES)
    oracle = reference_model.given(*[0] * 30)
    posterior = adapt(pool, dict.fromkeys(NAMES, 0.2), sampler="imh", oracle=oracle, draws=200)
    plot_trace(posterior, tmp_path / "trace.pdf", weights=1)
    assert "TM0" in shown
    assert not {"LM0", "WP0"} & set(shown)


def picture() -> Figure:
    figure, ((axes,),) = empty_figure(1, 1, 2.0)
    axes.hist(np.random.default_rng(0).normal(size=100))
    axes.plot([0.0, 1.0], [1.0, 0.0], "o")
    return figure


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_the_same_picture_has_the_same_bytes(kind: str, tmp_path: Path) -> None:
    if kind != "pdf":  # in a page
        assert drawn(picture(), "two lines", kind=kind) == drawn(picture(), "two lines", kind=kind)
    for name in ("one", "two"):
        write_figure(picture(), tmp_path / f"{name}.{kind}")
    one, two = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"CreationDate" not in one
    assert b"<dc:date>" not in one
