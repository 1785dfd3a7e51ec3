"""Sentences with their observations: oracles and gains, or preferences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.caching import content_hash, key_of
from bpa_ppl.columns import counted
from bpa_ppl.errors import DataError, require
from bpa_ppl.models.likelihoods.base import Likelihood
from bpa_ppl.models.likelihoods.preference import RATERS, Preference
from bpa_ppl.nbest import NBest, deviation_within
from bpa_ppl.notes import log_info
from bpa_ppl.progress import Reporter, reporter
from bpa_ppl.quality.base import Metric
from bpa_ppl.quality.column import judged_lists
from bpa_ppl.quality.oracle import Oracles, oracles, oracles_and_gains
from bpa_ppl.quality.preferences import ChoiceSets, choice_sets, has_preferences
from bpa_ppl.quality.rater_agreement import AGREEMENT, Agreement, agreement
from bpa_ppl.quality.scoring import gains
from bpa_ppl.quality.ter import TER
from bpa_ppl.weights import Match

#: The sentence extra that names the domain of a sentence.
DOMAIN = "domain"
#: The constants of a posterior with one value per observation; the last two only if they matter.
_SCORE, _WEIGHT, _RATER = "oracle_score", "observation_weight", "observation_rater"


class Sentences(NamedTuple):
    """The observations that likelihoods use.

    Attributes:
        nbest: the lists, with the features that are adapted.
        metric: of the gains; None if neither oracles nor gains are computed.
        oracles: the best hypotheses.
        gains: (hypotheses,) the gain of each; None if not needed.
        choices: the preferences that the lists were made from; None for sentences.
        agreement: of the raters of preferences; None if fewer than two have names.
    """

    nbest: NBest
    metric: Metric | None
    oracles: Oracles
    gains: Float64 | None
    choices: ChoiceSets | None = None
    agreement: Agreement | None = None

    def resolve_defaults(self, likelihood: Likelihood) -> Likelihood:
        """Return the likelihood with its default settings derived from the gains or the raters."""
        if isinstance(likelihood, Preference):
            return likelihood.for_raters(len(self.choices.named_raters) if self.choices else 0)
        if self.gains is None or likelihood.observes == "oracles":
            return likelihood
        edit = 1.0
        if not isinstance(self.metric, TER) and len(self.nbest):
            edit = deviation_within(self.nbest, self.gains) or 1.0
        return likelihood.with_defaults(edit)

    def record(self) -> dict[str, Any]:
        """Return the attributes of a posterior that describe criterion and preferences."""
        count = {"adaptation_sentences": len(self.nbest)}
        if self.choices is not None:
            named = self.choices.named_raters
            return {
                "comparisons": self.choices.counts,
                **({RATERS: named} if named else {}),
                **({} if self.agreement is None else {AGREEMENT: self.agreement.record()}),
                **count,
            }
        return {
            "oracle_metric": self.oracles.metric,
            "oracle_ties": self.oracles.ties,
            "oracle_signature": self.oracles.signature,
            **count,
        }

    def hashes(self) -> dict[str, str]:
        """Return short hashes of the data: the same for other file names, formats or compression.

        `texts` are the ids and candidates of the lists, `features` the values that are adapted;
        the others are what was observed, and the references that it was scored with.
        """
        nbest = self.nbest
        order = np.argsort(nbest.feature_names)
        names = [nbest.feature_names[column] for column in order]
        raters: Any = (None, None, ())
        if self.choices is not None:
            raters = self.choices.weight, self.choices.rater, self.choices.raters
        content: dict[str, list[Any]] = {
            "features": [key_of(names), nbest.features[:, order]],
            "oracles": [self.oracles.index, self.oracles.share, *raters[:2], key_of(raters[2])],
        }
        if self.gains is not None and self.choices is None:
            content["gains"] = [self.gains]
        if self.metric is not None and "references" in self.metric.needs and nbest.references:
            content["references"] = [key_of(nbest.references)]
        others = {name: _short_hash(parts) for name, parts in content.items()}
        return {"texts": content_hash(nbest), **others}

    def constants(self) -> dict[str, npt.NDArray[Any]]:
        """Return the sentence scores of the oracles, or weights and raters of preferences."""
        if self.choices is not None:
            weight, rater = self.choices.weight, self.choices.rater
            weights = {_WEIGHT: weight} if (weight != 1).any() else {}
            return weights | ({_RATER: rater} if rater.any() else {})
        return {_SCORE: self.oracles.score}


def _short_hash(parts: Iterable[Any]) -> str:
    """Return a hash of texts and arrays; None is skipped."""
    content = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            content.update(f"{part.dtype.str}{part.shape}".encode())
            content.update(np.ascontiguousarray(part).data)
        elif part is not None:
            content.update(part.encode())
    return content.hexdigest()[:16]


def observe_sentences(
    likelihood: Likelihood,
    nbest: NBest,
    match: Match,
    metric: Metric,
    oracle: Oracles | None,
    *,
    ties: str,
    canonical: bool,
    jobs: int,
    progress: bool | Reporter,
) -> Sentences:
    """Return the sentences with what the likelihood observes: preferences, oracles or gains.

    Args:
        likelihood: what it observes.
        nbest: the lists, with the features that are adapted.
        match: the canonical weights, matched to them.
        metric: of oracles and gains.
        oracle: precomputed oracles, or None.
        ties: as for `oracles`.
        canonical: whether there are canonical weights, whose scores break ties; without them the
            total scores of the lists do.
        jobs: as for `oracles`.
        progress: as for `oracles`.

    Raises:
        DataError: if a sentence lacks data that the metric needs, or a preference is invalid.
    """
    if likelihood.observes == "preferences":
        return preference_sentences(nbest, likelihood)
    options: dict[str, Any] = {"jobs": jobs}
    with_gains, values = likelihood.observes == "gains", None
    if not len(nbest):
        # Without sentences nothing is scored, and no reference is needed.
        empty, none = np.zeros(0), np.zeros(0, int)
        values = empty if with_gains else None
        if oracle is None:
            oracle = Oracles(none, empty, none, ties, metric.key, "")
    elif oracle is None:
        if has_preferences(nbest):
            log_info("the preferences are not used: only the likelihood preference observes them")
        count, nbest = len(nbest), judged_lists(nbest, metric)[0]
        if skipped := count - len(nbest):
            reason = "fewer than two candidates are judged" if metric.columns else "no reference"
            log_info(f"{counted(skipped, 'list')} left out: {reason}")
        options |= {"ties": ties, "preference": nbest.scores(match.values) if canonical else None}
        with reporter(progress, "oracles") as report:
            if with_gains:
                oracle, values = oracles_and_gains(nbest, metric, progress=report, **options)
            else:
                oracle = oracles(nbest, metric, progress=report, **options)
    elif with_gains:
        with reporter(progress, "gains") as report:
            values = gains(nbest, metric, progress=report, **options)
    require(oracle, Oracles, "oracles come from the function oracles", "oracle")
    return Sentences(nbest, metric, oracle, values)


def preference_sentences(nbest: NBest, likelihood: Likelihood) -> Sentences:
    """Return the choices that the preferences of some lists represent, as sentences.

    The agreement of raters is logged.

    Args:
        nbest: lists with all their features, whose sentences carry preferences.
        likelihood: of preferences; "no difference" is a possible answer if it has a ν, or if it is
            one of the answers.

    Raises:
        DataError: if there is no preference, or one is invalid.

    >>> lists = NBest.from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> lists = lists.with_sentence_extras(preferences=[[[2, 0], [2, 1]]])
    >>> sentences = preference_sentences(lists, Preference())
    >>> observed = sentences.oracles.index.tolist(), sentences.choices.counts["preferences"]
    >>> sentences.nbest.texts(1), *observed
    (['c', 'b'], [0, 0], 2)
    """
    has_nu = isinstance(likelihood, Preference) and likelihood.nu is not None
    choices = choice_sets(nbest, ties=has_nu)
    no_score = np.full(len(choices.chosen), np.nan)
    chosen = Oracles(choices.chosen, no_score, np.ones_like(choices.chosen), "", "", "")
    agreed = agreement(nbest) if len(choices.named_raters) > 1 else None
    if agreed is not None:
        log_info(str(agreed))
    return Sentences(choices.nbest, None, chosen, choices.tie, choices, agreed)


def domain_numbers(nbest: NBest) -> Int64 | None:
    """Return the number of the domain of each list, in alphabetical order of the domains.

    None if the lists name no domains.

    Raises:
        DataError: if some lists name one and others do not.

    >>> lists = NBest.from_lists([["a"], ["b"]], [[[0.0]], [[1.0]]], ["LM0"])
    >>> domain_numbers(lists.with_sentence_extras(domain=["web", "news"]))
    array([1, 0])
    """
    if DOMAIN not in nbest.sentence_extras:
        return None
    names = nbest.sentence_extras[DOMAIN]
    for ident, name in zip(nbest.sentence_ids, names, strict=True):
        if name is None or name != name:
            raise DataError(
                f"list {ident} has no {DOMAIN}, which the model needs: give it to every list",
                nbest.origin,
                parameter=DOMAIN,
                code="missing-column",
            )
    return np.asarray(np.unique(np.asarray(names), return_inverse=True)[1])
