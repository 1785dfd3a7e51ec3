"""NUTS of nutpie, written in Rust."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from bpa_ppl.components import Count
from bpa_ppl.errors import DataError
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.sampling.sampler import Sampler
from bpa_ppl.sampling.target import Sampled, Target, unflatten

#: Statistics that nutpie names as ArviZ does.
_STATISTICS = ("energy", "n_steps", "diverging")


class Nutpie(Sampler, frozen=True):
    """NUTS of nutpie (Seyboldt et al.), which tunes its metric by draws and gradients.

    Each chain runs in a thread and starts near the mean of the prior. The package is in the extra
    `compare`; it needs an ArviZ below 1, and so Python 3.11.

    Args:
        warmup: draws that tune a chain.
        draws: kept draws of each chain.
        chains: number of chains.
        target_accept: acceptance that the warm-up aims at.
    """

    packages: ClassVar[tuple[str, ...]] = ("nutpie",)
    warmup: Count = 400
    draws: Count = 1000
    chains: Count = 4
    target_accept: Annotated[float, Meta(gt=0, lt=1)] = 0.8

    def sample(self, target: Target) -> Sampled:
        """Draw by nutpie."""
        self.require_packages()
        starts = target.initial_positions(self.chains, target.seed)
        target.progress(0, 1, "nutpie")
        model = import_module("nutpie.compiled_pyfunc").from_pyfunc(
            ndim=target.dimension,
            make_logp_fn=lambda: target.value_and_gradient,
            make_expand_fn=lambda *_: lambda z: {WEIGHTS: np.array(z)},
            expanded_dtypes=[np.dtype("float64")],
            expanded_shapes=[(target.dimension,)],
            expanded_names=[WEIGHTS],
            make_initial_point_fn=lambda seed: starts[seed % self.chains],
        )
        target.value_and_gradient(starts[0])  # compiled before the threads begin
        run = import_module("nutpie").sample(
            model,
            draws=self.draws,
            tune=self.warmup,
            chains=self.chains,
            seed=target.seed,
            target_accept=self.target_accept,
            progress_bar=False,
            blocking=False,
        )
        try:
            draws = as_draws(run.wait())
        except RuntimeError as error:
            raise DataError(
                f"nutpie failed: {error}; use the sampler nuts",
                parameter="sampler",
                code="not-supported",
            ) from error
        except BaseException:  # Ctrl-C included
            run.cancel()
            raise
        target.progress(1, 1, "nutpie")
        statistics = draws.statistics
        return Sampled(
            z=unflatten(draws.weights, target.start),
            log_density=statistics["logp"],
            statistics={name: statistics[name] for name in _STATISTICS}
            | {"acceptance_rate": statistics["mean_tree_accept"]},
            warmup=unflatten(draws.warmup[WEIGHTS], target.start),
        )
