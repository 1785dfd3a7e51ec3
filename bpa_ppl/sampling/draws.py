"""What every sampler takes and what it returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bpa_ppl.models import Adaptation
from bpa_ppl.nbest import Float32
from bpa_ppl.progress import Reporter
from bpa_ppl.sampling.density import Model, Sites


@dataclass(frozen=True, eq=False)
class Problem:
    """A posterior to sample.

    Attributes:
        model: the NumPyro model.
        data: what it conditions on, on JAX's devices.
        start: z, the unconstrained values of its sites, at the canonical weights.
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
        z: for each site of the model its unconstrained values, (chains, draws, …).
        stats: for each statistic of the sampler, (chains, draws), under ArviZ's names.
        warmup: the draws before those kept, as in `z`.
        mode: the flat z of the posterior's mode, where the sampler has found it.
        attrs: findings in words and numbers, for the posterior's attributes.
        log_likelihood: (chains, draws, sentences) where the sampler has computed it anyway.
    """

    z: Sites
    stats: dict[str, np.ndarray]
    warmup: Sites = field(default_factory=dict)
    mode: Any = None
    attrs: dict[str, Any] = field(default_factory=dict)
    log_likelihood: Float32 | None = None
