"""Comparisons of samplers with fewer splits of the reference, which take most of their time."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest

from bpa_ppl.diagnostics.comparison import statistics


@pytest.fixture(scope="module", autouse=True)
def few_splits() -> Iterator[None]:
    """The smallest p-value is 0.004 then; a sampler is accused below 0.005."""
    with patch.object(statistics, "SPLITS", 249):
        yield
