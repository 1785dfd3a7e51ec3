"""Likelihood: the probability of the adaptation sentences, given weights."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from bpa_ppl.components import Component, Registry
from bpa_ppl.errors import UsageError
from bpa_ppl.models.likelihoods.lists import Lists

if TYPE_CHECKING:
    from bpa_ppl.lists.nbest import NBest


class Observations(Protocol):
    """What a likelihood observes: `Observed` of `bpa_ppl.adapting.observe`."""

    @property
    def lists(self) -> NBest:
        """The lists of which a candidate was observed."""

    @property
    def edit(self) -> float | None:
        """The difference in gain that equals one edit of TER; None if gains are not known."""

    @property
    def named_raters(self) -> Mapping[str, int]:
        """The number of answers of each rater who has a name."""


class Likelihood(Component, frozen=True):
    """p(A | λ), or a replacement for it, as a factor for each adaptation sentence.

    Settings that are None have defaults, such as in the unit of the gain: see `defaults`.

    Attributes:
        observes: `oracles`; `gains`, if it needs the gain of each candidate; or `preferences`, the
            choices of `bpa_ppl.gains.preferences.choice_sets`.
        generative: whether it is a distribution of the observed row, which can be simulated; it
            then observes a site `oracle`.
        dims: the names of the dimensions of its own sites, by site.

    >>> from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
    >>> likelihood = LIKELIHOODS.resolve("margin", {"gamma": 1.5})
    >>> likelihood.gamma, likelihood.observes, likelihood.generative
    (1.5, 'gains', False)
    """

    observes: ClassVar[Literal["oracles", "gains", "preferences"]] = "oracles"
    generative: ClassVar[bool] = False
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = MappingProxyType({})

    def defaults(self, observed: Observations) -> Likelihood:
        """Return the likelihood with a value for each setting that is None."""
        return self

    def evidence(self, *, canonical: bool) -> Likelihood:
        """Return the likelihood whose evidence learns the scale: see `bpa_ppl.adapting.prior`."""
        return LIKELIHOODS.resolve("pairs" if self.observes == "gains" else "oracle")

    @property
    def asks_ties(self) -> bool:
        """Whether "no difference" is a possible answer to a comparison that nobody gave."""
        return False

    def observes_answers(self, *, of_two: bool) -> bool:
        """Return whether it observes answers of judges; `of_two` is that of `Judged`."""
        return self.observes == "preferences"

    def log_concave_start(self) -> Likelihood | None:
        """Return a log-concave likelihood whose mode starts the search; None to start anywhere."""
        return None

    def prepare(self, lists: Lists) -> tuple[Lists, Likelihood]:
        """Return the lists to condition on, with constant settings, and the likelihood for them."""
        return lists, self

    def sample_parameters(self) -> Likelihood:
        """Sample its parameters, before the plate, and return the likelihood with their values."""
        return self

    def observe(self, lists: Lists, weights: Any) -> None:
        """Observe the data of `prepare` in a plate, given λ, (Q,), or (K, Q) by domain."""
        raise NotImplementedError


class ScoreFactor(Likelihood, frozen=True):
    """Observes prepared lists by a function of the scores of each, which is not a distribution.

    Args:
        function: of the scores and of further columns, see `choice.per_list`.
        columns: their names in the buckets.
    """

    function: Any
    columns: tuple[str, ...]

    def observe(self, lists: Lists, weights: Any) -> None:
        """Add a factor for each list; its name is `oracle`, (S,)."""
        import numpyro

        from bpa_ppl.models.likelihoods.choice import per_sentence

        numpyro.factor("oracle", per_sentence(self.function, lists, weights, self.columns))


def round_setting(value: float) -> float:
    """Round a setting to the three digits that are recorded.

    >>> round_setting(2 / 0.7461)
    2.68
    """
    return float(f"{value:.3g}")


def buckets_with(lists: Lists, column: str, name: str) -> tuple[dict[str, Any], ...]:
    """Return the buckets of lists that were tabulated with a column, such as `gain`.

    Raises:
        UsageError: if they were not.
    """
    if any(column not in bucket for bucket in lists.buckets):
        parameter = "gains" if column == "gain" else column
        message = f"the likelihood {name} needs {parameter}: give it to tabulate"
        raise UsageError(message, parameter=parameter, code="missing-setting")
    return lists.buckets


class OfOracles(Likelihood, frozen=True, kw_only=True):
    """A likelihood that observes the best candidate of each list.

    Args:
        ties: how ties between the best candidates are broken: `canonical`, by the canonical scores
            or, without canonical weights, by the totals of the lists; or `shared`, where each of
            the k tied candidates counts 1/k. None is `canonical` where there are canonical weights
            or totals, else `shared`. With `canonical`, candidates of equal scores share as well.
    """

    ties: Literal["canonical", "shared"] | None = None


class NoLikelihood(Likelihood, frozen=True):
    """p(A | λ) = 1: the lists give the features and their spread, and the posterior is the prior.

    They need neither references nor judgements.

    >>> from bpa_ppl import adapt, as_weight_draws, from_lists
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> posterior = adapt(lists, {"LM0": 0.5}, likelihood=NoLikelihood(), sampler="map")
    >>> as_weight_draws(posterior).mean.tolist()
    [0.5]
    """

    def observe(self, lists: Lists, weights: Any) -> None:
        """Observe nothing."""


LIKELIHOODS: Registry[Likelihood] = Registry(
    "likelihood",
    "bpa_ppl.likelihoods",
    Likelihood,
    {
        "oracle": "bpa_ppl.models.likelihoods.oracle:Oracle",
        "margin": "bpa_ppl.models.likelihoods.oracle:Margin",
        "risk": "bpa_ppl.models.likelihoods.oracle:Risk",
        "pairs": "bpa_ppl.models.likelihoods.pairs:Pairs",
        "preference": "bpa_ppl.models.likelihoods.preference:Preference",
        "none": "bpa_ppl.models.likelihoods.likelihood:NoLikelihood",
    },
)
