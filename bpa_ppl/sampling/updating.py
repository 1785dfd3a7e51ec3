"""`update` and `Sequential`: updates of a posterior with new sentences.

Sequential Monte Carlo (Chopin 2002): the draws of the posterior so far are weighted by the
likelihood of the new sentences, p(λ | A, a) ∝ p(λ | A) p(a | λ), which needs only the draws. If the
weights become unreliable, because their Pareto k̂ exceeds 0.7 or too few draws have most of the
weight, new draws are made.

New draws need the whole density, and so the likelihood of the sentences that the posterior was
adapted to. It is exact if their lists are given, or if there were none, so that the density before
the updates is the prior. Otherwise a Gaussian with the mean and covariance of the posterior that
`adapt` returned stands in for it. The sentences added since then are always exact: a posterior
stores their tables, 4 (Q + 2) bytes per hypothesis, which is 32 kB per sentence for 14 features and
500 hypotheses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.caching import prepare_jax
from bpa_ppl.columns import counted
from bpa_ppl.diagnostics import refuse_unconverged
from bpa_ppl.diagnostics.checks import checked
from bpa_ppl.errors import BpaError, DataError, UsageError, require
from bpa_ppl.models import Lists, Prior, log_linear
from bpa_ppl.models.likelihoods.preference import SITES
from bpa_ppl.nbest import NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.options import UpdateOptions, with_options
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import SAMPLING_TIME, WEIGHTS, importance_weights, kish
from bpa_ppl.posterior.statistics import POOR_PARETO_K, ess, pareto_smoothed
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.registry import SAMPLERS
from bpa_ppl.sampling.adapting import draws_of, initialise_target
from bpa_ppl.sampling.density import evaluate
from bpa_ppl.sampling.sentence_buckets import (
    OF_OBSERVATIONS,
    RATER_NUMBER,
    SCORE,
    WEIGHT,
    ObservedSentences,
    bucket_arrays,
    buckets_from,
    stack_buckets,
)
from bpa_ppl.sampling.sentences import ObservationRecipe
from bpa_ppl.sampling.target import Target
from bpa_ppl.sampling.tracing import tracing

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData
    from bpa_ppl.quality import Oracles

#: New draws are made if the weights leave fewer than this share of the draws, or this number.
_MIN_SHARE, _MIN_DRAWS = 0.1, 100.0
_RATIO, _MEAN, _COVARIANCE = "log_ratio", "summary_mean", "summary_covariance"
_SITES = {WEIGHTS, *SITES}  # that a likelihood depends on
_SITE, _COUNT = "oracle", "adaptation_sentences"
#: Attributes of draws that have been replaced.
_STALE = ("chosen", "chosen_because", "step_setting", "pareto_k", SAMPLING_TIME)


class Step(NamedTuple):
    """One update with some sentences.

    Attributes:
        sentences: how many.
        pareto_k: k̂ of the importance weights after the update.
        ess: the effective number of draws after the update.
        afresh: empty if the weights were reliable; otherwise new draws were made, and this is the
            density that represented the earlier sentences, `exact` or `Gaussian`.
    """

    sentences: int
    pareto_k: float
    ess: float
    afresh: str = ""

    def __str__(self) -> str:
        text = (
            f"{counted(self.sentences, 'sentence')} added: Pareto k̂ {self.pareto_k:.2f}, "
            f"{self.ess:.0f} effective draws"
        )
        if not self.afresh:
            return f"{text}; draws reweighted"
        return f"{text}, too few; new draws, {self.afresh} density of earlier sentences"


@dataclass(frozen=True, eq=False)
class _WeightedDraws:
    """Draws, and their importance weights by the sentences added since (n draws of all chains).

    Attributes:
        draws: as the sampler returned them.
        efficiency: effective draws per draw.
        log_ratio: (n,) log importance weights, not smoothed.
        added: (n, …) log-likelihoods of the sentences added since, one array per step.
    """

    draws: Draws
    efficiency: float
    log_ratio: Float64
    added: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(cls, draws: Draws) -> Self:
        count = len(draws.flat)
        recorded = draws.statistics.get(_RATIO, draws.log_weight)
        log_ratio = np.zeros(count) if recorded is None else np.asarray(recorded, np.float64)
        efficiency = 1.0
        if draws.kind == "chains" or _RATIO in draws.statistics:
            per_draw = np.nan_to_num(ess(draws.weights, "mean")) / count
            efficiency = float(np.clip(per_draw, 0.0, 1.0).min())
        return cls(draws, efficiency, log_ratio.reshape(-1))

    def smoothed(self) -> tuple[Float64, float, float]:
        """Return smoothed log weights (n,), their k̂, and the effective number of draws."""
        if not np.ptp(self.log_ratio):  # the sentences do not depend on the weights
            return self.log_ratio, -np.inf, self.efficiency * len(self.log_ratio)
        log_weight, k_hat = pareto_smoothed(self.log_ratio)
        return log_weight, k_hat, self.efficiency * kish(importance_weights(log_weight))

    def weighted_by(self, log_likelihoods: np.ndarray) -> Self:
        """Return the draws weighted by the likelihood of more sentences, (n, S)."""
        ratio = self.log_ratio + log_likelihoods.sum(axis=1, dtype=np.float64)
        return replace(self, log_ratio=ratio, added=(*self.added, log_likelihoods))

    def reweighted(self, draws: Draws) -> Draws:
        """Return draws with the weights and log-likelihoods of the sentences added since."""
        if not self.added and _RATIO not in self.draws.statistics:
            return draws
        log_weight, k_hat, _ = self.smoothed()
        site, shape = draws.sentence_sites[0], draws.shape
        likelihood, density = dict(draws.log_likelihood), draws.log_density
        if self.added:
            added = np.concatenate(self.added, axis=1).reshape(*shape, -1)
            earlier = likelihood.get(site, added[..., :0])
            likelihood[site] = np.concatenate([earlier, added], axis=-1, dtype=np.float32)
            if density is not None:
                density = density + added.sum(axis=-1, dtype=np.float64)
        return replace(
            draws,
            kind="weighted",
            log_weight=log_weight.reshape(shape),
            log_density=density,
            log_likelihood=likelihood,
            statistics={**draws.statistics, _RATIO: self.log_ratio.reshape(shape)},
            warmup={},
            attrs={**draws.attrs, "pareto_k": k_hat},
        )


class _BaseDensity(NamedTuple):
    """The density of the weights before the added sentences.

    Attributes:
        kind: `exact` or `Gaussian`.
        prior: a Gaussian, the prior or a summary of the posterior; or the error that prevents it.
        sentences: those that the prior does not represent.
    """

    kind: str
    prior: Prior | BpaError
    sentences: ObservedSentences

    @classmethod
    def of(cls, draws: Draws, first: int) -> Self:
        """Return the density of a posterior that was first adapted to so many sentences."""
        mean, covariance = (draws.constants.get(name) for name in (_MEAN, _COVARIANCE))
        kind, nothing = "Gaussian" if first else "exact", ObservedSentences.empty()
        try:
            if first == 0:
                return cls(kind, Prior.recorded(draws), nothing)
            if mean is None or covariance is None:
                return cls(kind, Prior.of(draws), nothing)
            by_name = zip(draws.features, np.ravel(mean).tolist(), strict=False)
            return cls(kind, Prior.gaussian(dict(by_name), covariance), nothing)
        except BpaError as error:
            return cls("Gaussian", error, nothing)


class Sequential:
    """A posterior to which sentences are added, one after the other.

    Compiled once for all sentences of similar length; it stores only the draws and the tables of
    the added sentences. `bpa_ppl.update` is a single step of it.

    Args:
        posterior: from `adapt`, or from an update.
        options: the fields of `bpa_ppl.options.UpdateOptions`, as keyword arguments. `oracle` and
            `progress` belong to each step, and the posterior is not checked.

    Raises:
        DataError: if the posterior does not record how its sentences were observed, or the lists
            are not those that it was adapted to.
        UsageError: if it is a single point, or its draws do not follow the posterior.

    >>> from bpa_ppl import Draws, Oracles
    >>> attrs = {"likelihood": {"name": "oracle"}, "adaptation_sentences": 3}
    >>> values = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> constants = {"canonical": np.zeros(1)}
    >>> start = Draws({"weights": values}, ("LM0",), constants=constants, attrs=attrs)
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> second = Oracles(np.array([1]), np.zeros(1), np.array([1]), "first", "ter", "")
    >>> sequential = Sequential(start)
    >>> print(sequential.add(lists, oracle=second))
    1 sentence added: Pareto k̂ ..., ... effective draws; draws reweighted
    >>> len(sequential.steps), bool(sequential.draws().mean[0] > start.mean[0])
    (1, True)
    """

    def __init__(self, posterior: Posterior, **options: Any):
        self._options = UpdateOptions(**options)
        draws = as_draws(posterior)
        name = str(draws.attrs.get("sampler", ""))
        if draws.kind == "point":
            raise UsageError(
                "the posterior is a single point without draws to reweight: adapt again with a "
                "sampler that draws, such as imh or laplace",
                parameter="posterior",
                code="not-supported",
            )
        if name in SAMPLERS and not SAMPLERS[name].exact:
            raise UsageError(
                f"the draws of {name} do not follow the posterior, so no sentence can be added to "
                "them: adapt again with imh, laplace or nuts",
                parameter="posterior",
                code="conflict",
            )
        self._recipe = ObservationRecipe.of(draws, self._options.metric, self._options.moved_files)
        self._sampler = SAMPLERS.resolve(self._options.sampler)
        self._search: dict[str, Any] = {"jobs": self._options.jobs, "cache": self._options.cache}
        self._steps: list[Step] = []
        recorded, buckets = _recorded_sentences(draws), buckets_from(draws.constants)
        wrong = any(bucket.features.shape[2] != len(draws.features) for bucket in buckets)
        count = draws.attrs.get(_COUNT)
        if wrong or len(buckets) > len(recorded) or not isinstance(count, int) or count < 0:
            raise DataError(
                "the posterior does not record the number of its adaptation sentences, or the "
                "stored sentences are inconsistent: use a posterior from adapt",
                parameter="posterior",
                code="damaged",
            )
        self._added = replace(recorded[len(recorded) - len(buckets) :], buckets=tuple(buckets))
        self._first = count - len(self._added)
        prepare_jax()
        with jax.enable_x64(True):
            self._weighted = _WeightedDraws.of(draws)
            self._base = _BaseDensity.of(draws, self._first)
            if self._options.adaptation_lists is not None:
                sentences = self._adaptation_sentences(self._options.adaptation_lists)
                self._base = _BaseDensity("exact", Prior.recorded(draws), sentences)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The updates so far."""
        return tuple(self._steps)

    def add(
        self, nbest: NBest, *, oracle: Oracles | None = None, progress: bool | Reporter = False
    ) -> Step:
        """Condition on some more sentences, all in one step.

        Args:
            nbest: their lists, with references if the metric needs them.
            oracle: precomputed oracles, or None.
            progress: True draws a bar on standard error.

        Raises:
            DataError: if the lists do not fit the posterior; or if new draws are needed, and the
                model is not the published one, or the sampler fails.
            UsageError: if the metric is not that of the posterior.
        """
        with tracing(), reporter(progress, "update") as report, jax.enable_x64(True):
            observed = self._recipe.observe(nbest, oracle, progress=report, **self._search)
            weighted = self._weighted.weighted_by(
                self._log_likelihoods(observed, self._weighted.draws)
            )
            _, k_hat, size = weighted.smoothed()
            added, kind = self._added + observed, ""
            if k_hat > POOR_PARETO_K or size < max(
                _MIN_SHARE * len(weighted.log_ratio), _MIN_DRAWS
            ):
                weighted, kind = self._new_draws(added, report), self._base.kind
        self._weighted, self._added = weighted, added
        self._steps.append(Step(len(observed), k_hat, size, kind))
        return self._steps[-1]

    def draws(self) -> Draws:
        """Return the posterior given all sentences so far.

        Reweighted draws have Pareto-smoothed importance weights. New draws from a Gaussian summary
        have log-likelihoods of the added sentences only, and statistics of sentences, such as
        PSIS-LOO, then cover only those.
        """
        draws = self._weighted.draws
        since = sum(part.shape[1] for part in self._weighted.added)
        sentences = _recorded_sentences(draws) + self._added[len(self._added) - since :]
        constants = {n: v for n, v in draws.constants.items() if n not in OF_OBSERVATIONS}
        constants |= sentences.constants()
        if self._base.kind == "Gaussian" and isinstance(self._base.prior, Prior):
            constants[_MEAN], constants[_COVARIANCE] = self._base.prior[0], self._base.prior[2]
        attrs = {**draws.attrs, _COUNT: self._first + len(self._added)}
        sampler = draws.attrs.get("sampler")
        steps = [{**step._asdict(), "sampler": sampler} for step in self._steps]
        if steps:
            attrs["updates"] = [*attrs.get("updates", ()), *steps]
            # The comparison with simple baselines and the hashes are of the first sentences alone.
            attrs.pop("baselines", None)
            attrs.pop("data", None)
        return self._weighted.reweighted(
            replace(
                draws,
                sentence_sites=draws.sentence_sites or (_SITE,),
                observed={**draws.observed, _SITE: sentences.index},
                sentence_ids=sentences.ids,
                constants=constants | bucket_arrays(self._added.buckets),
                attrs=attrs,
            )
        )

    def _log_likelihoods(self, sentences: ObservedSentences, draws: Draws) -> np.ndarray:
        """Return the log-likelihood of each of some sentences under every draw, (n, S)."""
        mean = self._recipe.match.free_values
        stacked = self._stacked(sentences)
        lists, observing = self._recipe.likelihood.prepare(stacked)
        # Only the likelihood matters: a program needs a prior, whatever it is.
        lists, prior = jax.device_put((lists, Prior(mean, np.ones_like(mean))))
        target = Target(log_linear, observing, lists, prior, {})
        sites = {name: draws.values[name] for name in _SITES & set(draws.values)}
        result = evaluate(target, sites)[1][_SITE]
        return result.reshape(len(draws.flat), -1)

    def _stacked(self, sentences: ObservedSentences) -> Lists:
        """Return the lists of some sentences in one table."""
        return stack_buckets(
            sentences.buckets,
            len(self._recipe.match.free_values),
            weight=sentences.weight,
            rater=sentences.rater,
            raters=max(len(self._recipe.raters), 1),
        )

    def _new_draws(self, added: ObservedSentences, report: Reporter) -> _WeightedDraws:
        """Draw from the posterior given all added sentences and the earlier ones."""
        old, prior = self._weighted.draws, self._base.prior
        model = str(old.attrs.get("model", log_linear.__name__))
        gaussian = self._base.kind == "Gaussian"
        # A Gaussian summary is of the weights alone.
        known_sites = set(old.sites) <= ({WEIGHTS} if gaussian else _SITES)
        if model != log_linear.__name__ or not known_sites or isinstance(prior, BpaError):
            reason = f": {prior}" if isinstance(prior, BpaError) else ""
            raise DataError(
                "the importance weights of the draws are unreliable, and the model "
                f"{model} cannot be sampled again here{reason}: adapt to all sentences",
                parameter="posterior",
                code="not-supported",
            )
        sentences = self._base.sentences + added
        target = initialise_target(
            self._stacked(sentences),
            prior,
            self._recipe.match,
            self._recipe.likelihood,
            seed=self._options.seed + len(added),
            progress=report,
        )
        draws = draws_of(target, self._sampler.sample(target))
        if gaussian and not any(step.afresh for step in self._steps):
            warn_user(
                f"the first {self._first} sentences are represented by the mean and the covariance "
                "of the posterior's draws: give the adaptation lists for exact draws"
            )
        replaced = ("mode", *OF_OBSERVATIONS)
        constants = {name: value for name, value in old.constants.items() if name not in replaced}
        constants |= {name: value for name, value in draws.constants.items() if name == "mode"}
        return _WeightedDraws.of(
            replace(
                draws,
                prior=old.prior,
                observed={_SITE: sentences.index},
                sentence_ids=sentences.ids,
                fixed=old.fixed,
                coords=old.coords,
                constants=constants | sentences.constants(),
                attrs={
                    **{name: value for name, value in old.attrs.items() if name not in _STALE},
                    "sampler": SAMPLERS.name_of(self._sampler),
                    "settings": self._sampler.settings(),
                    **draws.attrs,
                },
            )
        )

    def _adaptation_sentences(self, lists: NBest) -> ObservedSentences:
        """Return the sentences that the posterior was adapted to, with their lists.

        Raises:
            DataError: if the lists are not those of the adaptation.
        """
        draws, first = self._weighted.draws, self._first
        require(lists, NBest, "the adaptation lists are n-best lists (NBest)", "adaptation_lists")
        if (count := self._recipe.count(lists)) != first:
            raise DataError(
                f"the lists are of {count} sentences, and the posterior was adapted to {first}: "
                "give those, without sentences that were added since",
                lists.origin,
                parameter="adaptation_lists",
                code="wrong-length",
            )
        recorded = _recorded_sentences(draws)
        if len(recorded) < first + len(self._added):
            # New draws from a Gaussian have no log-likelihoods of those sentences to compare.
            return self._recipe.observe(lists, training=True, **self._search)
        sentences = self._recipe.observe_again(lists, recorded[:first], **self._search)
        computed = self._log_likelihoods(sentences, draws)
        stored = np.asarray(draws.pointwise).reshape(len(draws.flat), -1)[:, :first]
        if not np.allclose(computed, stored, rtol=1e-3, atol=1e-2):
            raise DataError(
                "the lists are not those that the posterior was adapted to: the observations have "
                "other probabilities under the same weights; give the same lists and references, "
                "in the same order",
                lists.origin,
                parameter="adaptation_lists",
                code="mismatch",
            )
        return sentences


@with_options(UpdateOptions)
def update(posterior: Posterior, nbest: NBest, options: UpdateOptions) -> InferenceData:
    """Update a posterior with new sentences: p(λ | A, a) ∝ p(λ | A) p(a | λ).

    The likelihood, metric, gains and features are those that the posterior was adapted with. Its
    draws are weighted by the likelihood of the new sentences, with Pareto smoothing. If k̂ exceeds
    0.7, or the weights leave fewer than a tenth of the draws or 100, new draws are made. Their
    density is exact if `adaptation_lists` is given or the posterior was adapted to no sentence;
    otherwise a Gaussian with the mean and covariance that `adapt` returned represents the
    adaptation sentences, with a warning. The sentences added here are exact in any case: the
    posterior stores what the model needs of them, about 32 kB for 500 hypotheses of 14 features.
    What features have learned from the adaptation sentences (`lm=self`) does not change.

    For a stream of sentences `bpa_ppl.sampling.Sequential` does the same step by step, without
    conversions to and from ArviZ.

    Args:
        posterior: from `adapt` with a sampler that draws, or from an update.
        nbest: lists of the new sentences, with references if the metric needs them.
        options: the fields of `bpa_ppl.options.UpdateOptions`, as keyword arguments.

    Returns:
        a posterior as `adapt` returns one, with weighted or new draws. Its attribute `updates`
        describes each step.

    Raises:
        NotConverged: if the posterior fails `check` and `unchecked` is false.
        DataError: if lists and posterior do not fit together, or the posterior does not record how
            its sentences were observed.
        UsageError: if it is a single point, its draws do not follow the posterior, or the metric
            is another one.

    >>> from bpa_ppl import Draws, Oracles
    >>> attrs = {"likelihood": {"name": "oracle"}, "adaptation_sentences": 3}
    >>> values = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> constants = {"canonical": np.zeros(1)}
    >>> start = Draws({"weights": values}, ("LM0",), constants=constants, attrs=attrs)
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> second = Oracles(np.array([1]), np.zeros(1), np.array([1]), "first", "ter", "")
    >>> updated = as_draws(update(start, lists, oracle=second))
    >>> updated.attrs["adaptation_sentences"], bool(updated.mean[0] > start.mean[0])
    (4, True)
    """
    draws = as_draws(posterior)
    if not options.unchecked and draws.kind != "point":
        refuse_unconverged(draws)
    sequential = Sequential(draws, **vars(options))
    sequential.add(nbest, oracle=options.oracle, progress=options.progress)
    return to_arviz(checked(sequential.draws())[0])


def _recorded_sentences(draws: Draws) -> ObservedSentences:
    """Return the sentences whose log-likelihoods a posterior has, without their lists."""
    count = 0 if draws.pointwise is None else draws.pointwise.shape[-1]
    ids = np.arange(count) if draws.sentence_ids is None else np.asarray(draws.sentence_ids)
    index = np.asarray(draws.observed.get(_SITE, np.zeros(count))).astype(np.int64)
    score = np.asarray(draws.constants.get(SCORE, np.full(count, np.nan)))
    weight = np.asarray(draws.constants.get(WEIGHT, np.ones(count)), np.float64)
    rater = np.asarray(draws.constants.get(RATER_NUMBER, np.zeros(count)), np.int64)
    columns = (index, score, ids, weight, rater)
    if any(len(column) != count for column in columns):
        raise DataError(
            f"the posterior has {len(ids)} sentences, {len(index)} oracles and {count} "
            "log-likelihoods, which must be equally many: adapt again",
            parameter="posterior",
            code="damaged",
        )
    return ObservedSentences((), *columns)
