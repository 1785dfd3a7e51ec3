"""One more sentence: a posterior that learns from sentences as they come.

Sequential Monte Carlo (Chopin 2002): the draws of the posterior so far are weighed by the
likelihood of the new sentences, p(λ | A, a) ∝ p(λ | A) p(a | λ), which needs nothing but the draws.
Where the weights can no longer be trusted, because their Pareto k̂ exceeds 0.7 or too few draws
carry them, draws are made afresh.

Fresh draws need the whole density, and so the likelihood of the sentences that the posterior was
adapted to. It is known exactly where their lists are given, and where there were none, so that
what came before is the prior. Else it is taken from a Gaussian with the mean and covariance of the
posterior as `adapt` left it. The sentences added since then enter exactly in any case: a posterior
carries what its model sees of them, 4 (Q + 2) bytes a hypothesis, which for 14 features and 500
hypotheses is 32 kB a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import log_likelihood

from bpa_ppl.caching import enable_jax_cache
from bpa_ppl.errors import BpaError, DataError, UsageError, require
from bpa_ppl.models import Likelihood, Prior, log_linear
from bpa_ppl.models.likelihoods.preference import LOG_NU
from bpa_ppl.nbest import Float64, NBest
from bpa_ppl.notes import warn_user
from bpa_ppl.posterior import Draws, as_draws, importance_weights, kish
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import ess, pareto_smoothed
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.registry import SAMPLERS
from bpa_ppl.sampling.adapting import begun, draws_of
from bpa_ppl.sampling.base import Data, Program, Sampler, Target
from bpa_ppl.sampling.growing import OneList, restored, stacked, stored
from bpa_ppl.sampling.proposals import POOR_PARETO_K
from bpa_ppl.sampling.recorded import Recorded, Seen

if TYPE_CHECKING:
    from bpa_ppl.features.recipes import MovedFiles
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.quality import Metric, Oracles

#: Draws are made afresh when the weights rest on fewer than this share of them, or this many.
_SHARE, _FEWEST = 0.1, 100.0
#: Draws evaluated side by side: their scores of one list still fit into a cache.
_DRAWS = 256
_RATIO, _MEAN, _COVARIANCE = "log_ratio", "summary_mean", "summary_covariance"
_SITES = {WEIGHTS, LOG_NU}  # on which a likelihood depends
_SITE, _COUNT = "oracle", "adaptation_sentences"
#: Findings on draws that are no longer there.
_STALE = ("chosen", "chosen_because", "step_setting", "pareto_k")


class Step(NamedTuple):
    """How some sentences were added.

    Attributes:
        sentences: how many.
        pareto_k: k̂ of the importance weights that they gave to the draws.
        ess: how many independent draws those weights leave.
        afresh: empty where the weights could be trusted; else draws were made afresh, and this is
            what stood for the sentences before, their `exact` density or a `Gaussian`.
    """

    sentences: int
    pareto_k: float
    ess: float
    afresh: str = ""

    @classmethod
    def recorded(cls, attrs: Mapping[str, Any]) -> Step:
        """Return the step that a posterior records in its attribute `updates`.

        >>> print(Step.recorded({"sentences": 1, "pareto_k": 0.2, "ess": 900.0, "afresh": ""}))
        1 sentence added: Pareto k̂ 0.20, 900 effective draws; draws reweighted
        """
        return cls(**{name: attrs[name] for name in cls._fields})

    def __str__(self) -> str:
        counted = f"{self.sentences} sentence{'s' * (self.sentences > 1)} added"
        worth = f"Pareto k̂ {self.pareto_k:.2f}, {self.ess:.0f} effective draws"
        if not self.afresh:
            return f"{counted}: {worth}; draws reweighted"
        return f"{counted}: {worth}, too few; drawn afresh, {self.afresh} before them"


@dataclass(frozen=True, eq=False)
class _Weighed:
    """Draws as they were made, and what weighs them since (n draws over all chains).

    Attributes:
        draws: as they were made.
        values: site -> (blocks, `_DRAWS`, …) on JAX's device, the last block filled up.
        efficiency: independent draws behind each of them.
        log_ratio: (n,) logarithms of the importance weights, not smoothed.
        since: (n, …) log-likelihoods of sentences that were added since, a step each.
    """

    draws: Draws
    values: dict[str, Any]
    efficiency: float
    log_ratio: Float64
    since: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(cls, draws: Draws) -> Self:
        count = len(draws.flat)
        recorded = draws.statistics.get(_RATIO, draws.log_weight)
        log_ratio = np.zeros(count) if recorded is None else np.asarray(recorded, np.float64)
        efficiency = 1.0
        if draws.kind == "chains" or _RATIO in draws.statistics:
            each = np.nan_to_num(ess(draws.weights, "mean")) / count
            efficiency = float(np.clip(each, 0.0, 1.0).min())
        order = np.arange(-(-count // _DRAWS) * _DRAWS).reshape(-1, _DRAWS) % count
        flat = {n: np.concatenate(draws.values[n]) for n in _SITES & set(draws.values)}
        values = {name: jnp.asarray(value[order]) for name, value in flat.items()}
        return cls(draws, values, efficiency, log_ratio.reshape(-1))

    @property
    def moved(self) -> bool:
        """Whether sentences have weighed the draws since they were made."""
        return bool(self.since) or _RATIO in self.draws.statistics

    def smoothed(self) -> tuple[Float64, float, float]:
        """Return smoothed log weights (n,), their k̂, and how many independent draws they leave."""
        if not np.ptp(self.log_ratio):  # what was seen says nothing about the weights
            return self.log_ratio, -np.inf, self.efficiency * len(self.log_ratio)
        log_weight, k_hat = pareto_smoothed(self.log_ratio)
        return log_weight, k_hat, self.efficiency * kish(importance_weights(log_weight))

    def weighed_by(self, log_likelihoods: np.ndarray) -> Self:
        """Return the draws weighed by the likelihood of sentences more, (n, S)."""
        ratio = self.log_ratio + log_likelihoods.sum(axis=1, dtype=np.float64)
        return replace(self, log_ratio=ratio, since=(*self.since, log_likelihoods))


class Sequential:
    """A posterior to which sentences are added, one after the other.

    Compiled once for all sentences of similar length; nothing but the draws and what the model
    sees of the added sentences is kept. `bpa_ppl.update` is a single step of it.

    Args:
        posterior: from `adapt`, or from an update.
        adaptation_lists: the lists that `adapt` was given, with references: fresh draws then follow
            the posterior exactly.
        metric: the criterion, where it is none by name or has settings of its own.
        moved_files: as for `rerank`.
        sampler: of fresh draws: `imh`, `laplace`, another one by name, or one with its settings.
        seed: of fresh draws.
        jobs: processes of the search for oracles.
        cache: whether the gains of its sentences are kept on the disk.

    Raises:
        DataError: if the posterior does not say how its sentences were observed, or the adaptation
            lists are not those that it was adapted to.
        UsageError: if it is a single point, or its draws do not follow the posterior.

    >>> from bpa_ppl import Draws, Oracles
    >>> attrs = {"likelihood": {"name": "oracle"}, "adaptation_sentences": 3}
    >>> drawn = np.random.default_rng(0).normal(size=(4, 500, 1))
    >>> constants = {"canonical": np.zeros(1)}
    >>> before = Draws({"weights": drawn}, ("LM0",), constants=constants, attrs=attrs)
    >>> lists = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> second = Oracles(np.array([1]), np.zeros(1), np.array([1]), "first", "ter", "")
    >>> growing = Sequential(before)
    >>> print(growing.add(lists, oracle=second))
    1 sentence added: Pareto k̂ ..., ... effective draws; draws reweighted
    >>> len(growing.steps), bool(growing.draws().mean[0] > before.mean[0])
    (1, True)
    """

    def __init__(
        self,
        posterior: Posterior,
        *,
        adaptation_lists: NBest | None = None,
        metric: str | Metric | None = None,
        moved_files: MovedFiles | None = None,
        sampler: str | Sampler = "imh",
        seed: int = 0,
        jobs: int = 1,
        cache: bool = True,
    ):
        draws = as_draws(posterior)
        _require_sample(draws)
        self._recorded = Recorded.of(draws, metric, moved_files)
        self._engine, self._seed = SAMPLERS.resolve(sampler), seed
        self._search: dict[str, Any] = {"jobs": jobs, "cache": cache}
        self._steps: list[Step] = []
        self._added = _carried(draws)
        self._first = _counted(draws) - len(self._added)
        enable_jax_cache()
        with jax.enable_x64(True):
            self._weighed = _Weighed.of(draws)
            self._before = _Before.of(draws, self._first)
            if adaptation_lists is not None:
                self._before = self._exactly(adaptation_lists, self._first)

    @property
    def steps(self) -> tuple[Step, ...]:
        """How sentences were added, in order."""
        return tuple(self._steps)

    def add(
        self,
        nbest: NBest,
        *,
        oracle: Oracles | None = None,
        progress: bool | Reporter = False,
    ) -> Step:
        """Condition on some sentences more, all in one step.

        Args:
            nbest: their lists, with references if the metric needs them.
            oracle: oracles found before.
            progress: True draws a bar on standard error.

        Raises:
            DataError: if the lists do not fit the posterior; or if draws have to be made afresh,
                and the model is not the published one, or the sampler fails.
            UsageError: if the metric is not that of the posterior.
        """
        with reporter(progress, "update") as report, jax.enable_x64(True):
            seen = self._recorded.observe(nbest, oracle, progress=report, **self._search)
            weighed = self._weighed.weighed_by(self._log_likelihoods(seen))
            _, k_hat, size = weighed.smoothed()
            added, afresh = self._added + seen, ""
            if k_hat > POOR_PARETO_K or size < max(_SHARE * len(weighed.log_ratio), _FEWEST):
                weighed, afresh = self._afresh(added, report), self._before.kind
        self._weighed, self._added = weighed, added
        self._steps.append(Step(len(seen), k_hat, size, afresh))
        return self._steps[-1]

    def draws(self) -> Draws:
        """Return the posterior given all sentences so far.

        Reweighted draws have Pareto-smoothed importance weights. Draws made afresh from a Gaussian
        summary know the log-likelihoods of the added sentences alone: what is said of sentences,
        such as PSIS-LOO, is then said of those.
        """
        now, draws = self._weighed, self._weighed.draws
        seen = _sentences(draws) + self._added.last(sum(part.shape[1] for part in now.since))
        made = replace(
            draws,
            sentence_sites=draws.sentence_sites or (_SITE,),
            observed={**draws.observed, _SITE: seen.index},
            sentence_ids=seen.ids,
            constants=self._constants(draws, seen),
            attrs=self._attrs(draws),
        )
        return _reweighted(made, now) if now.moved else made

    def _constants(self, draws: Draws, seen: Seen) -> dict[str, Any]:
        """Return the constants of the posterior, with what later updates need."""
        rest = {n: v for n, v in draws.constants.items() if n != "oracle_score"}
        if np.isfinite(seen.score).all():
            rest["oracle_score"] = seen.score
        return rest | self._before.stored() | stored(self._added.lists)

    def _attrs(self, draws: Draws) -> dict[str, Any]:
        """Return the attributes of the posterior, with the record of all updates."""
        attrs = dict(draws.attrs)
        told = [{**step._asdict(), "sampler": attrs.get("sampler")} for step in self._steps]
        attrs[_COUNT] = self._first + len(self._added)
        return attrs | ({"updates": [*attrs.get("updates", ()), *told]} if told else {})

    def _log_likelihoods(self, seen: Seen, blocks: int | None = None) -> np.ndarray:
        """Return the log-likelihood of each of some sentences under every draw, (n, S)."""
        features = self._recorded.match.free_values
        # Only the likelihood is asked for: the prior is there because a program takes one.
        prior = Prior(features, np.ones_like(features))
        program, data = _laid_out(self._recorded.likelihood, seen.lists, prior)
        some = {name: value[:blocks] for name, value in self._weighed.values.items()}
        found = _log_likelihoods(program, data, some)
        count = len(self._weighed.log_ratio)
        return np.asarray(found).reshape(-1, found.shape[-1])[:count, : len(seen)]

    def _afresh(self, added: Seen, report: Reporter) -> _Weighed:
        """Return draws of the posterior given all that was added, and what came before."""
        old = self._weighed.draws
        model = str(old.attrs.get("model", log_linear.__name__))
        # A Gaussian summary is of the weights alone.
        known = {WEIGHTS} if self._before.kind == "Gaussian" else _SITES
        if model != log_linear.__name__ or not set(old.sites) <= known:
            raise DataError(
                "the importance weights of the draws cannot be trusted any more, and draws of the "
                f"model {model} cannot be made afresh here: adapt to all sentences"
            )
        seen = self._before.known + added
        prior = self._before.prior()
        target = _target(self._recorded, seen, prior, self._seed + len(added), report)
        made = draws_of(target, self._engine.sample(target))
        if self._before.kind == "Gaussian" and not any(step.afresh for step in self._steps):
            warn_user(
                f"of the first {self._first} sentences the posterior knows no more than the mean "
                "and the covariance of its draws: give the adaptation lists for exact draws"
            )
        kept = {n: v for n, v in old.attrs.items() if n not in _STALE}
        named = {"sampler": SAMPLERS.name_of(self._engine), "settings": self._engine.settings()}
        mode = {n: v for n, v in made.constants.items() if n == "mode"}
        scores = {"oracle_score": seen.score}
        return _Weighed.of(
            replace(
                made,
                prior=old.prior,
                observed={_SITE: seen.index},
                sentence_ids=seen.ids,
                fixed=old.fixed,
                constants={n: v for n, v in old.constants.items() if n != "mode"} | mode | scores,
                attrs={**kept, **named, **made.attrs},
            )
        )

    def _exactly(self, lists: NBest, first: int) -> _Before:
        """Return the exact density of what came before, from the lists of its sentences."""
        draws = self._weighed.draws
        require(lists, NBest, "adaptation lists are n-best lists (NBest)", "adaptation_lists")
        if (count := self._recorded.observations(lists)) != first:
            raise DataError(
                f"the adaptation lists are of {count} sentences, and the posterior was adapted to "
                f"{first}: give those, and not what was added since",
                lists.origin,
                parameter="adaptation_lists",
            )
        recorded = _sentences(draws)
        if len(recorded) < first + len(self._added):
            # Draws made afresh from a Gaussian do not know those sentences.
            seen = self._recorded.observe(lists, own=True, **self._search)
            return _Before("exact", Prior.recorded(draws), seen)
        seen = self._recorded.observe_again(lists, recorded.first(first), **self._search)
        here = self._log_likelihoods(seen, blocks=1)
        there = np.asarray(draws.pointwise).reshape(len(draws.flat), -1)[: len(here), :first]
        if not np.allclose(here, there, rtol=1e-3, atol=1e-2):
            raise DataError(
                "the adaptation lists are not those that the posterior was adapted to: the same "
                "weights give other probabilities; give the same lists and references, in the same "
                "order",
                lists.origin,
                parameter="adaptation_lists",
            )
        return _Before("exact", Prior.recorded(draws), seen)


@dataclass(frozen=True, eq=False)
class _Before:
    """What is known of the density before the added sentences.

    Attributes:
        kind: `exact` or `Gaussian`.
        density: a Gaussian, the prior or a summary of the posterior; or why there is none.
        known: the sentences that it does not stand for.
    """

    kind: str
    density: Prior | BpaError
    known: Seen

    @classmethod
    def of(cls, draws: Draws, first: int) -> Self:
        """Return what a posterior tells that was adapted to so many sentences at first."""
        try:
            if first == 0:
                return cls("exact", Prior.recorded(draws), Seen.none())
            mean, covariance = (draws.constants.get(name) for name in (_MEAN, _COVARIANCE))
            if mean is None or covariance is None:
                return cls("Gaussian", Prior.of(draws), Seen.none())
            named = dict(zip(draws.features, np.ravel(mean).tolist(), strict=False))
            return cls("Gaussian", Prior.gaussian(named, covariance), Seen.none())
        except BpaError as error:
            return cls("Gaussian", error, Seen.none())

    def prior(self) -> Prior:
        """Return the density as a prior of what is added.

        Raises:
            DataError: if there is none.
        """
        if isinstance(self.density, BpaError):
            raise DataError(
                "the importance weights of the draws cannot be trusted any more, and what came "
                f"before has no summary ({self.density}): adapt to all sentences"
            )
        return self.density._replace(names=None)

    def stored(self) -> dict[str, Any]:
        """Return the summary as arrays by name, for a posterior to carry."""
        if self.kind == "exact" or isinstance(self.density, BpaError):
            return {}
        return {_MEAN: self.density.mean, _COVARIANCE: self.density.covariance}


def _require_sample(draws: Draws) -> None:
    """Raise a UsageError unless the draws are a sample of the posterior."""
    name = str(draws.attrs.get("sampler", ""))
    if draws.kind == "point":
        raise UsageError(
            "the posterior holds a single point and no draws that a sentence could weigh: adapt "
            "again with a sampler that draws, such as imh or laplace"
        )
    if name in SAMPLERS and not SAMPLERS[name].exact:
        raise UsageError(
            f"the draws of {name} do not follow the posterior, so that no sentence can be added "
            "to them: adapt again with imh, laplace or nuts"
        )


def _counted(draws: Draws) -> int:
    """Return how many sentences the posterior is of."""
    count = draws.attrs.get(_COUNT)
    if not isinstance(count, int) or count < 0:
        raise DataError(
            "the posterior does not record how many sentences it was adapted to: use one that "
            "adapt made"
        )
    return count


def _sentences(draws: Draws) -> Seen:
    """Return the sentences whose log-likelihoods a posterior knows, without their lists."""
    known = draws.pointwise
    count = 0 if known is None else known.shape[-1]
    none = np.full(count, np.nan)
    ids = np.arange(count) if draws.sentence_ids is None else np.asarray(draws.sentence_ids)
    index = np.asarray(draws.observed.get(_SITE, none * 0)).astype(np.int64)
    score = np.asarray(draws.constants.get("oracle_score", none))
    if not len(ids) == len(index) == len(score) == count:
        raise DataError(
            "the posterior is damaged: its sentences, their oracles and their log-likelihoods are "
            f"{len(ids)}, {len(index)} and {count}; adapt again"
        )
    return Seen((), index, score, ids)


def _carried(draws: Draws) -> Seen:
    """Return the sentences that were added to a posterior, which are its last ones."""
    lists = restored(draws.constants)
    if any(len(one.features) != len(draws.features) for one in lists):
        raise DataError("the sentences that the posterior carries do not fit: adapt again")
    known = _sentences(draws)
    if len(lists) > len(known):
        raise DataError("the posterior carries sentences that it does not name: adapt again")
    return replace(known.last(len(lists)), lists=tuple(lists))


def _reweighted(draws: Draws, now: _Weighed) -> Draws:
    """Return draws weighed by what was added since they were made."""
    log_weight, k_hat, _ = now.smoothed()
    site = draws.sentence_sites[0]
    likelihood, density = dict(draws.log_likelihood), draws.log_density
    if now.since:
        added = np.concatenate(now.since, axis=1).reshape(*draws.shape, -1)
        before = likelihood.get(site, added[..., :0])
        likelihood[site] = np.concatenate([before, added], axis=-1, dtype=np.float32)
        total = added.sum(axis=-1, dtype=np.float64)
        density = None if density is None else density + total
    return replace(
        draws,
        kind="weighted",
        log_weight=log_weight.reshape(draws.shape),
        log_density=density,
        log_likelihood=likelihood,
        statistics={**draws.statistics, _RATIO: now.log_ratio.reshape(draws.shape)},
        warmup={},
        attrs={**draws.attrs, "pareto_k": k_hat},
    )


def _laid_out(
    likelihood: Likelihood, lists: Sequence[OneList], prior: Prior
) -> tuple[Program, Data]:
    """Return a program and what it is run on, with the settings of the likelihood folded in."""
    prepared, observing = likelihood.prepare(stacked(lists, len(prior.mean)))
    return Program(log_linear, observing), jax.device_put(Data(prepared, prior))


def _target(recorded: Recorded, seen: Seen, prior: Prior, seed: int, report: Reporter) -> Target:
    """Return the posterior of the published model given some sentences."""
    return begun(
        lambda likely: _laid_out(likely, seen.lists, prior),
        recorded.likelihood,
        seed,
        report,
        recorded.match,
    )


@partial(jax.jit, static_argnums=0)
def _log_likelihoods(program: Program, data: Data, values: dict[str, jax.Array]) -> jax.Array:
    """Return log-likelihoods of sentences under blocks of draws, (B, D, …) ↦ (B, D, S) float32."""

    def one(draw: dict[str, jax.Array]) -> jax.Array:
        sites = log_likelihood(program, draw, *data, batch_ndims=0)
        result: jax.Array = sum(sites.values()).astype(jnp.float32)
        return result

    result: jax.Array = jax.lax.map(jax.vmap(one), values)
    return result
