"""What every sampler takes and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from bpa_ppl.component import Component
from bpa_ppl.errors import UsageError
from bpa_ppl.models import Likelihood, Lists, Prior
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.progress import Reporter
from bpa_ppl.weights import Match

#: Steps of all chains: days of work, beyond which arrays cannot be indexed either.
_MOST = 10**9

#: A NumPyro program over lists, a prior and a likelihood.
Model = Callable[[Lists, Prior, Likelihood], None]
#: The unconstrained values of the sites of a model, by name.
Sites = dict[str, Any]


class Data(NamedTuple):
    """What a program is run on: arrays alone."""

    lists: Lists
    prior: Prior


@dataclass(frozen=True)
class Program:
    """A model with its likelihood: what is compiled, once for all data of the same shapes."""

    model: Model
    likelihood: Likelihood

    def __call__(self, lists: Lists, prior: Prior) -> None:
        """Run the model."""
        self.model(lists, prior, self.likelihood)


@dataclass(frozen=True, eq=False)
class Target:
    """A posterior to sample.

    Attributes:
        program: the NumPyro program.
        data: what it conditions on, on JAX's devices.
        start: z, the unconstrained values of its sites, at the prior's mean.
        seed: the only source of randomness.
        progress: told how far the sampling is.
        match: the canonical weights, laid beside the features of the lists.
    """

    program: Program
    data: Data
    start: Sites
    seed: int
    progress: Reporter
    match: Match


@dataclass(frozen=True, eq=False)
class Sampled:
    """What a sampler leaves (C chains, D draws).

    Attributes:
        z: for each site of the model its unconstrained values, (C, D, …).
        kind: `chains`, `weighted` or `point`.
        log_density: (C, D) log p(z, data), or None.
        log_weight: (C, D) of draws with importance weights.
        statistics: (C, D) each, under ArviZ's names, such as `acceptance_rate`.
        warmup: the draws before those kept, as in `z`.
        mode: the flat z of the posterior's mode, where the sampler has found it.
        log_likelihood: observed site -> (C, D, …), where the sampler has computed it anyway.
        attrs: findings in words and numbers, for the posterior's attributes. `step_setting` names
            the setting that sizes the steps of a random walk.
    """

    z: Sites
    kind: str = "chains"
    log_density: np.ndarray | None = None
    log_weight: Float64 | None = None
    statistics: dict[str, np.ndarray] = field(default_factory=dict)
    warmup: Sites = field(default_factory=dict)
    mode: Any = None
    log_likelihood: dict[str, np.ndarray] | None = None
    attrs: dict[str, Any] = field(default_factory=dict)


def require_memory(target: Target, draws: int) -> None:
    """Refuse numbers of draws that memory cannot hold, before it is asked for them.

    Each draw takes its values twice, and the log-likelihood of each sentence.

    Args:
        target: what is sampled.
        draws: of all chains, those of the warm-up among them.

    Raises:
        UsageError: if there is less memory than they take.
    """
    import psutil

    values = sum(int(np.size(value)) for value in target.start.values())
    # What domains say as Gaussian terms has no sentences left.
    sentences = len(getattr(target.data.lists, "oracle", ()))
    needed = draws * (16 * values + 4 * sentences)
    free = psutil.virtual_memory().available
    if needed > free:
        raise UsageError(
            f"{draws:,} draws of {values} values take {needed / 1e9:,.1f} GB of memory, and "
            f"{free / 1e9:,.1f} GB are free: lower draws or chains"
        )


class Sampler(Component, frozen=True):
    """A way to draw from a posterior; its fields are its settings.

    Attributes:
        exact: whether the draws, with their importance weights, follow the posterior.
        takes_extra: whether it needs lists of the out-of-domain set (see `fitted`).

    >>> from bpa_ppl.registry import SAMPLERS
    >>> SAMPLERS.resolve("imh", {"draws": 500}).settings()["draws"]
    500
    """

    exact: ClassVar[bool] = True
    takes_extra: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        kept = getattr(self, "warmup", 0) + getattr(self, "draws", 1)
        steps = getattr(self, "chains", 1) * getattr(self, "thinning", 1) * kept
        if steps > _MOST:
            raise UsageError(
                f"{steps:,} steps are asked for, and {_MOST:,} are the most: lower draws, chains, "
                "warmup or thinning"
            )

    def fitted(
        self, lists: NBest, weights: Mapping[str, float], *, fixed: list[str] | None, seed: int
    ) -> Self:
        """Return the sampler with what it learns from the lists of the out-of-domain set.

        Args:
            lists: with references.
            weights: the canonical weights λ_T, by feature name.
            fixed: features that are not adapted; None is `UnknownWordPenalty0`.
            seed: the only source of randomness.

        Raises:
            UsageError: if it learns nothing from them.
        """
        raise UsageError(
            f"the sampler {type(self).__name__} uses no out-of-domain lists: leave them out",
            parameter="extra",
        )

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior.

        Raises:
            DataError: if the posterior cannot be sampled in this way.
            UsageError: if the sampler does not fit the model.
        """
        raise NotImplementedError
