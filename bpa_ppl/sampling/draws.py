"""What every sampler takes and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bpa_ppl.models import Adaptation
from bpa_ppl.progress import Reporter
from bpa_ppl.sampling.density import Model, Sites


@dataclass(frozen=True, eq=False)
class Problem:
    """A posterior to sample: a model, its data, and a seed.

    Attributes:
        model: the NumPyro model.
        data: what it conditions on, on JAX's device.
        start: z at the canonical weights.
        seed: the only source of randomness.
        progress: told how far the sampling is.
    """

    model: Model
    data: Adaptation
    start: Sites
    seed: int
    progress: Reporter


@dataclass(frozen=True, eq=False)
class Draws:
    """The draws of a sampler.

    Attributes:
        sites: for each site of the model, (chains, draws, …).
        stats: for each statistic of the sampler, (chains, draws), under ArviZ's names.
        warmup: the draws of the sites before those kept, likewise.
        constants: what the sampler found beside draws, such as the mode of the weights (Q,).
        attrs: settings and findings in words and numbers, for the posterior's attributes.
    """

    sites: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    warmup: dict[str, np.ndarray] = field(default_factory=dict)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
