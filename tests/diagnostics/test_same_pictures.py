"""The same figure gives the same bytes: no clock inside, and no name made by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpa_ppl.diagnostics.pages.figures import empty_figure, write_figure
from bpa_ppl.diagnostics.pages.page import drawn


def picture() -> Any:
    figure, axes = empty_figure(1, 1, 2.0)
    axes[0, 0].hist(np.random.default_rng(0).normal(size=100))
    axes[0, 0].plot([0.0, 1.0], [1.0, 0.0], "o")
    return figure


def test_pictures_inside_a_page_are_the_same() -> None:
    for kind in ("svg", "png"):
        assert drawn(picture(), "two lines", kind=kind) == drawn(picture(), "two lines", kind=kind)


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_pictures_beside_a_page_are_the_same(kind: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_figure(picture(), tmp_path / f"{name}.{kind}")
    one, two = ((tmp_path / f"{name}.{kind}").read_bytes() for name in ("one", "two"))
    assert one == two
    assert b"CreationDate" not in one
    assert b"<dc:date>" not in one
