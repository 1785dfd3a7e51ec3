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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from bpa_ppl.arrays import Float64
from bpa_ppl.caching import prepare_jax
from bpa_ppl.columns import counted
from bpa_ppl.diagnostics import refuse_unconverged
from bpa_ppl.diagnostics.checks import checked
from bpa_ppl.errors import BpaError, DataError, UsageError, require
from bpa_ppl.labels import places_of
from bpa_ppl.models import LIKELIHOODS, Likelihood, Lists, Preparation, Prior, log_linear
from bpa_ppl.models.likelihoods.preference import LOG_NU, RATER, SITES
from bpa_ppl.models.lists import COLUMNS, list_rows, stack_lists, with_shares
from bpa_ppl.nbest import NBest, check_features
from bpa_ppl.notes import log_info, warn_user
from bpa_ppl.options import with_options
from bpa_ppl.posterior import Draws, as_draws
from bpa_ppl.posterior.adapter import to_arviz
from bpa_ppl.posterior.draws import SAMPLING_TIME, WEIGHTS, importance_weights, kish
from bpa_ppl.posterior.statistics import POOR_PARETO_K, ess, pareto_smoothed
from bpa_ppl.progress import Reporter, inherited_progress, reporter
from bpa_ppl.quality import METRICS, Oracles, resolve
from bpa_ppl.quality.column import judged_lists
from bpa_ppl.quality.preferences import choice_sets, has_preferences
from bpa_ppl.quality.scoring import no_references
from bpa_ppl.sampling.adapting import draws_of, initialise_target
from bpa_ppl.sampling.base import SAMPLERS
from bpa_ppl.sampling.density import evaluate
from bpa_ppl.sampling.options import UpdateOptions
from bpa_ppl.sampling.repeating import OPTIONS
from bpa_ppl.sampling.sentences import (
    OF_OBSERVATIONS,
    RATER_NUMBER,
    SCORE,
    WEIGHT,
    preference_sentences,
    score_sentences,
    weight_constants,
)
from bpa_ppl.sampling.target import Target
from bpa_ppl.sampling.tracing import tracing
from bpa_ppl.weights import Match

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData
    from bpa_ppl.quality import Metric

#: New draws are made if the weights leave fewer than this share of the draws, or this number.
_MIN_SHARE, _MIN_DRAWS = 0.1, 100.0
_RATIO, _MEAN, _COVARIANCE = "log_ratio", "summary_mean", "summary_covariance"
_SITES = {WEIGHTS, *SITES}  # that a likelihood depends on
_SITE, _COUNT = "oracle", "adaptation_sentences"
_STORED = "added_{}"
#: Attributes of draws that have been replaced.
_STALE = ("chosen", "chosen_because", "step_setting", "pareto_k", SAMPLING_TIME)


#: The columns of some observations, (S,) each: `index`, the observed hypothesis; `score`, the
#: sentence score of the oracle, nan if it is not recorded; `ids` of the sentences, as in the file;
#: `weight`, the exponent of the probability; and `rater`, a number.
Columns = dict[str, npt.NDArray[Any]]
#: The rows of one list, see `list_rows`.
Rows = dict[str, Any]


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


class Sequential:
    """A posterior to which sentences are added, one after the other.

    Compiled once for all sentences of similar length; it stores only the draws and the tables of
    the added sentences. `bpa_ppl.update` is a single step of it.

    Args:
        posterior: from `adapt`, or from an update.
        options: the fields of `bpa_ppl.sampling.options.UpdateOptions`, as keyword arguments.
            `oracle` and `progress` belong to each step, and the posterior is not checked.

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
        recorded, canonical = draws.attrs.get("likelihood"), draws.canonical
        if not isinstance(recorded, dict) or "name" not in recorded or canonical is None:
            raise DataError(
                "the posterior does not record its likelihood and its canonical weights, so no "
                "sentence can be added to it: use a posterior from adapt whose model observes its "
                "likelihood",
                parameter="posterior",
            )
        self._posterior = self._draws = draws
        settings = dict(recorded)
        self._likelihood: Likelihood = LIKELIHOODS.resolve(settings.pop("name"), settings)
        # The free features in the order of the posterior, then the fixed ones.
        names = (*draws.features, *draws.fixed)
        free = np.arange(len(names)) < len(draws.features)
        self._match = Match(names, np.append(canonical, draws.fixed.values_array), free)
        self._preparation = Preparation.recorded(draws, self._options.moved_files)
        self._sampler = SAMPLERS.resolve(self._options.sampler)
        self._steps: list[Step] = []
        columns, self._rows = _recorded_columns(draws), rows_from(draws.constants)
        wrong = any(len(row["features"]) != len(draws.features) for row in self._rows)
        count, known = draws.attrs.get(_COUNT), len(columns["index"])
        if wrong or len(self._rows) > known or not isinstance(count, int) or count < 0:
            raise DataError(
                "the posterior does not record the number of its adaptation sentences, or the "
                "stored sentences are inconsistent: use a posterior from adapt",
                parameter="posterior",
                code="damaged",
            )
        self._first = count - len(self._rows)
        prepare_jax()
        with jax.enable_x64(True):
            self._efficiency = _efficiency(draws)
            # The density before the added sentences: a Gaussian, or the error that prevents it, and
            # the earlier sentences that it does not represent.
            self._kind = "Gaussian" if self._first else "exact"
            self._prior: Prior | BpaError
            try:
                self._prior = _summary(draws) if self._first else Prior.recorded(draws)
            except BpaError as error:
                self._kind, self._prior = "Gaussian", error
            self._earlier: tuple[Columns, list[Rows]] = {n: c[:0] for n, c in columns.items()}, []
            if self._options.adaptation_lists is not None:
                self._earlier = self._adaptation_sentences(self._options.adaptation_lists)
                self._kind, self._prior = "exact", Prior.recorded(draws)

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
            columns, rows = self._observe(nbest, oracle, progress=report)
            log_likelihoods = self._log_likelihoods(columns, rows, self._draws)
            draws, all_rows, kind = self._draws, [*self._rows, *rows], ""
            columns = _joined(_recorded_columns(draws), columns)
            ratio = _log_ratio(draws) + log_likelihoods.sum(axis=1, dtype=np.float64)
            log_weight, k_hat = ratio, -np.inf
            if np.ptp(ratio):  # else the sentences do not depend on the weights
                log_weight, k_hat = pareto_smoothed(ratio)
            size = self._efficiency * kish(importance_weights(log_weight))
            if k_hat > POOR_PARETO_K or size < max(_MIN_SHARE * len(ratio), _MIN_DRAWS):
                added = {
                    name: column[len(column) - len(all_rows) :] for name, column in columns.items()
                }
                draws, kind = self._new_draws(added, all_rows, report), self._kind
                self._efficiency = _efficiency(draws)
            else:
                draws = _reweighted(draws, columns, log_likelihoods, ratio, log_weight, k_hat)
        self._draws, self._rows = draws, all_rows
        self._steps.append(Step(len(rows), k_hat, size, kind))
        return self._steps[-1]

    def draws(self) -> Draws:
        """Return the posterior given all sentences so far.

        Reweighted draws have Pareto-smoothed importance weights. New draws from a Gaussian summary
        have log-likelihoods of the added sentences only, and statistics of sentences, such as
        PSIS-LOO, then cover only those.
        """
        draws, constants = self._draws, {**self._draws.constants, **stored_rows(self._rows)}
        if self._kind == "Gaussian" and isinstance(self._prior, Prior):
            constants[_MEAN], constants[_COVARIANCE] = self._prior.mean, self._prior.covariance
        attrs = {**draws.attrs, _COUNT: self._first + len(self._rows)}
        sampler = draws.attrs.get("sampler")
        steps = [{**step._asdict(), "sampler": sampler} for step in self._steps]
        if steps:
            attrs["updates"] = [*attrs.get("updates", ()), *steps]
            # The comparison with simple baselines and the hashes are of the first sentences alone.
            for name in ("baselines", "data", OPTIONS):
                attrs.pop(name, None)
        return replace(draws, constants=constants, attrs=attrs)

    def _observe(
        self,
        nbest: NBest,
        oracle: Oracles | None = None,
        *,
        training: bool = False,
        progress: bool | Reporter = False,
    ) -> tuple[Columns, list[Rows]]:
        """Observe some sentences in the way that the posterior records; see `add`.

        Args:
            nbest: their lists.
            oracle: precomputed oracles, or None.
            training: whether the posterior was adapted to these sentences.
            progress: of the search for oracles.
        """
        with inherited_progress(progress):
            lists = self._prepared(nbest, training)
        recorded, likelihood = self._posterior, self._likelihood
        if likelihood.observes == "preferences":
            ties = likelihood.settings().get("nu") is not None or LOG_NU in recorded.sites
            sentences = preference_sentences(lists, likelihood, ties=ties, raters=self._raters)
        else:
            if has_preferences(lists):
                log_info(
                    f"{lists.origin}: preferences not used: the posterior is updated with gains"
                )
            needed = likelihood.observes == "gains" or oracle is None
            metric = self._metric(lists) if needed else None
            if metric is not None and (training or oracle is None):
                lists = judged_lists(lists, metric)[0]
            sentences = score_sentences(
                likelihood,
                lists,
                self._match,
                metric,
                oracle,
                ties=str(recorded.attrs.get("oracle_ties", "canonical")),
                canonical=self._canonical,
                jobs=self._options.jobs,
                progress=progress,
            )
        best, choices = sentences.oracles, sentences.choices
        columns = {
            "index": best.index,
            "score": best.score,
            "ids": sentences.nbest.sentence_ids,
            "weight": np.ones(len(best.index)) if choices is None else choices.weight,
            "rater": np.zeros(len(best.index), np.int64) if choices is None else choices.rater,
        }
        rows = list_rows(
            sentences.nbest, self._match, best.index, gains=sentences.gains, share=best.share
        )
        return columns, [rows(sentence) for sentence in range(len(sentences.nbest))]

    @property
    def _raters(self) -> tuple[str, ...]:
        """The names of the raters who have own slip rates in the posterior."""
        return self._posterior.coords.get(RATER, ())

    @property
    def _canonical(self) -> bool:
        """Whether there were canonical weights, whose scores break ties."""
        return "canonical_weights" not in self._posterior.attrs

    def _prepared(self, lists: NBest, training: bool) -> NBest:
        """Return the lists with the columns of the posterior, in its order."""
        what = "sentences are n-best lists (NBest): read a file with read_nbest"
        require(lists, NBest, what, "nbest")
        if not len(lists):
            problem = "there is no sentence to add: the lists are empty"
            raise UsageError(problem, parameter="nbest", code="no-data")
        prepare, names = self._preparation, self._match.names
        nbest = prepare.for_training(lists).nbest if training else prepare(lists)
        check_features(nbest, names, "nbest")
        columns = places_of(names, nbest.feature_names)
        return replace(nbest, features=nbest.features[:, columns], feature_names=names)

    def _metric(self, nbest: NBest) -> Metric:
        """Return the metric after checking that the posterior's oracles were found by it."""
        attrs, metric = self._posterior.attrs, self._options.metric or self._preparation.gain
        name: Any = attrs.get("oracle_metric")
        if metric is None and name in METRICS:
            metric = METRICS.resolve(name)
        if metric is None:
            raise UsageError(
                "the posterior was adapted to a metric that has no name: give the same metric",
                parameter="metric",
                code="missing-setting",
            )
        metric = resolve(metric, nbest)
        if "references" in metric.needs and nbest.references is None:
            raise no_references(nbest.origin)

        def fixed_parts(signature: str) -> set[str]:
            # Lists of one criterion may differ in the number of references and the version.
            parts = signature.split("|")
            return {part for part in parts if not part.startswith(("nrefs:", "version:"))}

        signature = metric.signature(nbest.references or [()] * len(nbest), sentence=True)
        recorded = str(attrs.get("oracle_signature", ""))
        if recorded and fixed_parts(signature) != fixed_parts(recorded):
            raise UsageError(
                f"the posterior was adapted to another metric, {recorded}, than "
                f"{signature}: give the same metric",
                parameter="metric",
                code="mismatch",
            )
        return metric

    def _log_likelihoods(self, columns: Columns, rows: Sequence[Rows], draws: Draws) -> np.ndarray:
        """Return the log-likelihood of each of some sentences under every draw, (n, S)."""
        mean = self._match.free_values
        lists, observing = self._likelihood.prepare(self._stacked(columns, rows))
        # Only the likelihood matters: a program needs a prior, whatever it is.
        lists, prior = jax.device_put((lists, Prior(mean, np.ones_like(mean))))
        target = Target(log_linear, observing, lists, prior, {})
        sites = {name: draws.values[name] for name in _SITES & set(draws.values)}
        result = evaluate(target, sites)[1][_SITE]
        return result.reshape(len(draws.flat), -1)

    def _stacked(self, columns: Columns, rows: Sequence[Rows]) -> Lists:
        """Return the lists of some sentences in one table."""
        size, raters = len(self._match.free_values), max(len(self._raters), 1)
        return stack_lists(rows, size, columns["weight"], columns["rater"], raters)

    def _new_draws(self, added: Columns, rows: Sequence[Rows], report: Reporter) -> Draws:
        """Draw from the posterior given all added sentences and the earlier ones."""
        old, prior = self._draws, self._prior
        model = str(old.attrs.get("model", log_linear.__name__))
        gaussian = self._kind == "Gaussian"
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
        columns = _joined(self._earlier[0], added)
        target = initialise_target(
            self._stacked(columns, [*self._earlier[1], *rows]),
            prior,
            self._match,
            self._likelihood,
            seed=self._options.seed + len(rows),
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
        return replace(
            draws,
            prior=old.prior,
            observed={_SITE: columns["index"]},
            sentence_ids=columns["ids"],
            fixed=old.fixed,
            coords=old.coords,
            constants=constants | _constants(columns),
            attrs={
                **{name: value for name, value in old.attrs.items() if name not in _STALE},
                "sampler": SAMPLERS.name_of(self._sampler),
                "settings": self._sampler.settings(),
                **draws.attrs,
            },
        )

    def _adaptation_sentences(self, lists: NBest) -> tuple[Columns, list[Rows]]:
        """Return the sentences that the posterior was adapted to, with their lists.

        Raises:
            DataError: if the lists are not those of the adaptation.
        """
        draws, first = self._posterior, self._first
        require(lists, NBest, "the adaptation lists are n-best lists (NBest)", "adaptation_lists")
        of_preferences = self._likelihood.observes == "preferences"
        count = len(choice_sets(lists).chosen) if of_preferences else len(lists)
        if count != first:
            raise DataError(
                f"the lists are of {count} sentences, and the posterior was adapted to {first}: "
                "give those, without sentences that were added since",
                lists.origin,
                parameter="adaptation_lists",
                code="wrong-length",
            )
        columns = _recorded_columns(draws)
        if len(columns["index"]) < first + len(self._rows):
            # New draws from a Gaussian have no log-likelihoods of those sentences to compare.
            return self._observe(lists, training=True)
        columns = {name: column[:first] for name, column in columns.items()}
        oracle, index = None, columns["index"]
        if self._canonical and not of_preferences and draws.attrs.get("oracle_ties") != "shared":
            oracle = Oracles(index, columns["score"], np.ones_like(index), "", "", "")
        again, rows = self._observe(lists, oracle, training=True)
        columns |= {name: again[name] for name in ("weight", "rater")}
        computed = self._log_likelihoods(columns, rows, draws)
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
        return columns, rows


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
        options: the fields of `bpa_ppl.sampling.options.UpdateOptions`, as keyword arguments.

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


def _summary(draws: Draws) -> Prior:
    """Return the Gaussian that represents the sentences that a posterior was adapted to."""
    mean, covariance = (draws.constants.get(name) for name in (_MEAN, _COVARIANCE))
    if mean is None or covariance is None:
        return Prior.of(draws)
    by_name = zip(draws.features, np.ravel(mean).tolist(), strict=False)
    return Prior.gaussian(dict(by_name), covariance)


def _log_ratio(draws: Draws) -> Float64:
    """Return the log importance weights of draws, (n,), not smoothed."""
    recorded = draws.statistics.get(_RATIO, draws.log_weight)
    count = len(draws.flat)
    return np.zeros(count) if recorded is None else np.asarray(recorded, np.float64).reshape(count)


def _efficiency(draws: Draws) -> float:
    """Return the effective draws per draw of a sampler, whatever their importance weights are."""
    if draws.kind != "chains" and _RATIO not in draws.statistics:
        return 1.0
    per_draw = np.nan_to_num(ess(draws.weights, "mean")) / len(draws.flat)
    return float(np.clip(per_draw, 0.0, 1.0).min())


def _reweighted(
    draws: Draws,
    columns: Columns,
    log_likelihoods: np.ndarray,
    ratio: Float64,
    log_weight: Float64,
    k_hat: float,
) -> Draws:
    """Return draws with more sentences.

    Args:
        draws: as they were.
        columns: of all sentences whose log-likelihoods the draws have, and of the new ones.
        log_likelihoods: (n, S) of the new ones.
        ratio: (n,) log importance weights with the new sentences.
        log_weight: (n,) the same, smoothed.
        k_hat: of the smoothing.
    """
    sites, shape, density = draws.sentence_sites or (_SITE,), draws.shape, draws.log_density
    added = log_likelihoods.reshape(*shape, -1)
    earlier = draws.log_likelihood.get(sites[0], added[..., :0])
    joined = np.concatenate([earlier, added], axis=-1, dtype=np.float32)
    constants = {n: v for n, v in draws.constants.items() if n not in OF_OBSERVATIONS}
    return replace(
        draws,
        kind="weighted",
        log_weight=log_weight.reshape(shape),
        log_density=None if density is None else density + added.sum(axis=-1, dtype=np.float64),
        log_likelihood={**draws.log_likelihood, sites[0]: joined},
        statistics={**draws.statistics, _RATIO: ratio.reshape(shape)},
        warmup={},
        sentence_sites=sites,
        observed={**draws.observed, _SITE: columns["index"]},
        sentence_ids=columns["ids"],
        constants=constants | _constants(columns),
        attrs={**draws.attrs, "pareto_k": k_hat},
    )


def _recorded_columns(draws: Draws) -> Columns:
    """Return the sentences whose log-likelihoods a posterior has."""
    count = 0 if draws.pointwise is None else draws.pointwise.shape[-1]
    ids = np.arange(count) if draws.sentence_ids is None else np.asarray(draws.sentence_ids)
    constants = draws.constants
    columns = {
        "index": np.asarray(draws.observed.get(_SITE, np.zeros(count))).astype(np.int64),
        "score": np.asarray(constants.get(SCORE, np.full(count, np.nan))),
        "ids": ids,
        "weight": np.asarray(constants.get(WEIGHT, np.ones(count)), np.float64),
        "rater": np.asarray(constants.get(RATER_NUMBER, np.zeros(count)), np.int64),
    }
    if any(len(column) != count for column in columns.values()):
        raise DataError(
            f"the posterior has {len(ids)} sentences, {len(columns['index'])} oracles and {count} "
            "log-likelihoods, which must be equally many: adapt again",
            parameter="posterior",
            code="damaged",
        )
    return columns


def _joined(first: Columns, second: Columns) -> Columns:
    return {name: np.concatenate([column, second[name]]) for name, column in first.items()}


def _constants(columns: Columns) -> dict[str, npt.NDArray[Any]]:
    """Return scores, weights and raters as a posterior stores them."""
    scores = {SCORE: columns["score"]} if np.isfinite(columns["score"]).all() else {}
    return scores | weight_constants(columns["weight"], columns["rater"])


def stored_rows(rows: Sequence[Rows]) -> dict[str, npt.NDArray[Any]]:
    """Return the rows of lists as arrays by name, for a posterior to store; see `rows_from`."""
    if not rows:
        return {}
    rows = with_shares(rows)
    stored = {n: np.concatenate([row[n] for row in rows], -1) for n in rows[0] if n != "hypothesis"}
    stored["size"] = np.array([len(row["base"]) for row in rows])
    return {_STORED.format(name): values for name, values in stored.items()}


def rows_from(constants: Mapping[str, Any]) -> list[Rows]:
    """Return the rows of lists that a posterior stores.

    Raises:
        DataError: if their arrays do not fit together.

    >>> one = {"features": np.zeros((2, 3)), "base": np.zeros(3), "hypothesis": np.arange(3)}
    >>> [row["features"].shape for row in rows_from(stored_rows([one, one]))]
    [(2, 3), (2, 3)]
    """
    sizes = np.asarray(constants.get(_STORED.format("size"), ()), np.int64)
    stored = {name: constants.get(_STORED.format(name)) for name in COLUMNS}
    columns = {name: np.asarray(v) for name, v in stored.items() if v is not None}
    lengths = {values.shape[-1] for values in columns.values()}
    if len(sizes) and (lengths != {int(sizes.sum())} or sizes.min() < 1):
        problem = "the sentences stored in the posterior are inconsistent: adapt again"
        raise DataError(problem, parameter="posterior", code="damaged")
    ends = np.cumsum(sizes).tolist()
    return [
        {name: values[..., end - size : end] for name, values in columns.items()}
        | {"hypothesis": np.arange(size)}
        for end, size in zip(ends, sizes.tolist(), strict=True)
    ]
