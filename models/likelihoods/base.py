"""Likelihood: the probability of the adaptation sentences, given weights."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from msgspec.structs import replace

from bpa_ppl.arrays import Float64
from bpa_ppl.component import Component
from bpa_ppl.errors import UsageError
from bpa_ppl.models.lists import Lists
from bpa_ppl.registry import Registry


class Likelihood(Component, frozen=True):
    """p(A | λ), or a replacement for it, as a factor for each adaptation sentence.

    Settings that are None have defaults in the unit of the gain: see `with_defaults`.

    Attributes:
        observes: `oracles`; `gains`, if it needs the gain of each hypothesis; or `preferences`, the
            choices of `bpa_ppl.quality.preferences.choice_sets`.
        generative: whether it is a distribution of the observed row, which can be simulated; it
            then observes a site `oracle`.
        dims: the names of the dimensions of its own sites, by site.

    >>> from bpa_ppl.models.likelihoods.base import LIKELIHOODS
    >>> likelihood = LIKELIHOODS.resolve("margin", {"gamma": 1.5})
    >>> likelihood.settings(), likelihood.observes, likelihood.generative
    ({'gamma': 1.5}, 'gains', False)
    """

    observes: ClassVar[Literal["oracles", "gains", "preferences"]] = "oracles"
    generative: ClassVar[bool] = False
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})

    def with_defaults(self, edit: float) -> Likelihood:
        """Return the likelihood with a number for every setting that is None.

        Args:
            edit: the difference in gain that equals one edit: 1 for TER; for any other gain its
                standard deviation within the lists, because that of edits is about one (1.0 to
                1.14 on three domains).
        """
        return self

    def log_concave_start(self) -> Likelihood | None:
        """Return a log-concave likelihood at whose mode the search for the mode begins.

        None if this likelihood is log-concave itself, so that the search may begin anywhere.
        """
        return None

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Fold constant settings into the lists, once and in NumPy.

        Another value of such a setting then needs no new compilation.

        Returns:
            the lists to condition on, and the likelihood that observes them.
        """
        return lists, self

    def sample_parameters(self) -> Likelihood:
        """Sample the likelihood's own parameters, and return it with their values.

        A model calls it before the plate over sentences. Most likelihoods have no parameter.
        """
        return self

    def observe(self, lists: Lists, weights: Any) -> None:
        """Observe the data in NumPyro, within a plate over sentences.

        Args:
            lists: from `prepare`.
            weights: (Q,) λ of the free features, or (K, Q), one vector per domain.
        """
        raise NotImplementedError


class ScoreFactor(Likelihood, frozen=True):
    """Observes prepared lists by a function of the scores of each, which is no distribution.

    Args:
        function: of the scores and of further columns, see `bpa_ppl.models.choice.per_list`.
        columns: their names in the buckets.
    """

    function: Any
    columns: tuple[str, ...]

    def observe(self, lists: Lists, weights: Any) -> None:
        """Add a factor for each list; its name is `oracle`, (S,)."""
        import numpyro

        from bpa_ppl.models.choice import per_sentence

        numpyro.factor("oracle", per_sentence(self.function, lists, weights, self.columns))


def round_setting(value: float) -> float:
    """Round a setting to the three digits that are recorded.

    >>> round_setting(2 / 0.7461)
    2.68
    """
    return float(f"{value:.3g}")


def buckets_with_gains(lists: Lists, name: str) -> tuple[dict[str, Any], ...]:
    """Return the buckets of lists that were tabulated with gains.

    Raises:
        UsageError: if they were not.
    """
    if any("gain" not in bucket for bucket in lists.buckets):
        problem = f"the likelihood {name} needs gains: give them to tabulate"
        raise UsageError(problem, parameter="gains", code="missing-setting")
    return lists.buckets


class OfLoss(Likelihood, frozen=True):
    """A likelihood of how much worse the candidates of a list are than the best one."""

    observes = "gains"
    #: The setting that multiplies the loss, and its default per edit.
    factor: ClassVar[tuple[str, float]]

    def with_defaults(self, edit: float) -> OfLoss:
        """Return the likelihood with a number for its factor."""
        name, value = self.factor
        unset = getattr(self, name) is None
        return replace(self, **{name: round_setting(value / edit)}) if unset else self

    def loss(self, bucket: dict[str, Any]) -> Float64:
        """Return the best gain of a list minus that of each row, times the factor, (B, S, N).

        0 in rows beyond the list, so that nothing depends on them.
        """
        used, (name, default) = bucket["hypothesis"] >= 0, self.factor
        gain = np.where(used, bucket["gain"].astype(np.float64), -np.inf)
        best = gain.max(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):  # padding sentences have no best hypothesis
            deficit = np.where(used, best - gain, 0.0)
        factor = getattr(self, name)
        return np.asarray((default if factor is None else factor) * deficit)


LIKELIHOODS: Registry[Likelihood] = Registry(
    "likelihood",
    "bpa_ppl.likelihoods",
    Likelihood,
    {
        "oracle": "bpa_ppl.models.likelihoods.oracle:Oracle",
        "margin": "bpa_ppl.models.likelihoods.margin:Margin",
        "risk": "bpa_ppl.models.likelihoods.risk:Risk",
        "pairs": "bpa_ppl.models.likelihoods.pairs:Pairs",
        "preference": "bpa_ppl.models.likelihoods.preference:Preference",
    },
)
