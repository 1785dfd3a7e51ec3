"""The picture of the draws: it is drawn, and of the weights that moved most."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reference_model
from external_posterior import autoregressive, external_posterior

from bpa_ppl import adapt
from bpa_ppl.diagnostics import plot_trace

NAMES = ("LM0", "TM0", "WP0")


def test_a_picture_is_written(tmp_path: Path) -> None:
    posterior = external_posterior(autoregressive(0.1, 4, 200, 3, seed=1), NAMES)
    plot_trace(posterior, tmp_path / "trace.png")
    assert (tmp_path / "trace.png").read_bytes().startswith(b"\x89PNG")


def test_fewer_weights_make_a_lower_picture(tmp_path: Path) -> None:
    posterior = external_posterior(autoregressive(0.1, 2, 200, 3, seed=1), NAMES)
    heights = []
    for weights in (1, 3):
        plot_trace(posterior, tmp_path / "trace.png", weights=weights)
        header = (tmp_path / "trace.png").read_bytes()[16:24]
        heights.append(int.from_bytes(header[4:], "big"))
    assert heights[0] < heights[1]


def test_the_weights_with_the_largest_shifts_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.axes import Axes

    shown: list[str] = []
    monkeypatch.setattr(Axes, "set_ylabel", lambda self, label, **_: shown.append(label))
    pool = reference_model.pairs(np.tile([0.0, 3.0, 0.0], (30, 1)), NAMES)
    posterior = adapt(
        pool,
        dict.fromkeys(NAMES, 0.2),
        sampler="imh",
        oracle=reference_model.given(*[0] * 30),
        draws=200,
    )
    plot_trace(posterior, tmp_path / "trace.pdf", weights=1)
    assert "TM0" in shown
    assert not {"LM0", "WP0"} & set(shown)
