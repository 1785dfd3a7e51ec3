"""Observe the lists: score their candidates and find the best ones, or read preferences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl._runtime.cache import prepare_jax
from bpa_ppl._runtime.messages import log_info
from bpa_ppl._runtime.progress import reporter
from bpa_ppl.adaptation_record import Agreement, ObservedRecord
from bpa_ppl.adapting.prepare import Prepared
from bpa_ppl.errors import DataError
from bpa_ppl.gains.example import describe_oracle, describe_pair, describe_preference
from bpa_ppl.gains.gains import scores_and_gains
from bpa_ppl.gains.metric import Metric
from bpa_ppl.gains.oracles import Oracles, choose_oracles, rank_candidates
from bpa_ppl.gains.preferences import ChoiceSets, agreement, choice_sets
from bpa_ppl.gains.ter import TER
from bpa_ppl.lists.nbest import NBest, content_hash, measure_deviation, score_differences
from bpa_ppl.models.likelihoods.likelihood import Likelihood
from bpa_ppl.models.likelihoods.lists import Lists, tabulate
from bpa_ppl.weight_draws import DOMAIN, RATER
from bpa_ppl.weights import CANONICAL, Match, match

#: The constants of a posterior with one value per observation; the last two only if they matter.
_SCORE, _WEIGHT, _RATER = "oracle_score", "observation_weight", "observation_rater"


@dataclass(frozen=True, eq=False, kw_only=True)
class Observed:
    """What was observed of lists: their best candidates by a gain, or those that a judge preferred.

    Attributes:
        lists: with the features that are adapted; of preferences one list for each comparison.
        gain: of the candidates; None for preferences, like the two following ones.
        oracles: the best candidates.
        gains: (candidates,) the gain of each; None if the likelihood needs only the oracles.
        choices: the comparisons; None for gains.
        agreement: of the raters; None if fewer than two have names.
        example: one sentence about a pair of candidates of which one is better; empty if there is
            none.

    >>> from bpa_ppl import from_lists
    >>> from bpa_ppl.adapting.prepare import prepare
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> observed = observe(prepare(lists, gain="ter", likelihood="margin"))
    >>> observed.chosen.tolist(), observed.gains.tolist(), observed.edit
    ([1], [-1.0, 0.0], 1.0)
    >>> lists = from_lists([["a", "b", "c"]], [[[0.0], [1.0], [5.0]]], ["LM0"])
    >>> lists = lists.with_sentence_extras(preferences=[[[2, 0], [2, 1]]])
    >>> observed = observe(prepare(lists, likelihood="preference"))
    >>> observed.lists.texts(1), observed.chosen.tolist(), observed.choices.counts["preferences"]
    (['c', 'b'], [0, 0], 2)
    """

    lists: NBest
    gain: Metric | None = None
    oracles: Oracles | None = None
    gains: Float64 | None = None
    choices: ChoiceSets | None = None
    agreement: Agreement | None = None
    example: str = ""

    @property
    def chosen(self) -> Int64:
        """(lists,) the position of the candidate that was observed."""
        if self.choices is not None:
            return self.choices.chosen
        return self._best.index

    @property
    def _best(self) -> Oracles:
        """The oracles, where gains were observed."""
        assert self.oracles is not None
        return self.oracles

    @property
    def edit(self) -> float | None:
        """The difference in gain that equals one edit of TER; None if gains are not known.

        For other gains it is their standard deviation within the lists, because that of edits is
        about one (1.0 to 1.14 on three domains).
        """
        if self.gains is None:
            return None
        if isinstance(self.gain, TER) or not len(self.lists):
            return 1.0
        return measure_deviation(self.lists, self.gains) or 1.0

    @property
    def named_raters(self) -> Mapping[str, int]:
        """The number of answers of each rater who has a name."""
        return {} if self.choices is None else self.choices.named_raters

    @property
    def coords(self) -> dict[str, tuple[str, ...]]:
        """Labels of dimensions of sites: the domains and, of preferences, the raters."""
        raters = () if self.choices is None else self.choices.raters
        return {RATER: raters, DOMAIN: _domain_names(self.lists)}

    def table(self, match: Match | None = None, *, domains: bool = False) -> Lists:
        """Return the lists as arrays: the data of a model.

        Args:
            match: the weights, matched to the lists; None starts all at 0, and fixes none.
            domains: whether the model reads the domain of each list.

        Raises:
            DataError: if some lists name a domain and others do not.
        """
        match = _match_at_zero(self.lists) if match is None else match
        domain, choices = _number_domains(self.lists) if domains else None, self.choices
        if choices is None:
            more: dict[str, Any] = {"gains": self.gains, "share": self._best.share}
        else:
            more = {"tie": choices.tie, "weight": choices.weight, "rater": choices.rater}
        return tabulate(self.lists, match, self.chosen, domain=domain, **more)

    def record(self) -> ObservedRecord:
        """Return what a posterior records of its observations."""
        sentences, choices = len(self.lists), self.choices
        if choices is not None:
            return ObservedRecord(
                kind="preferences",
                sentences=sentences,
                comparisons=choices.counts,
                raters=choices.named_raters,
                agreement=self.agreement,
            )
        kind: Literal["oracles", "gains", "nothing"] = "oracles" if self.gains is None else "gains"
        return ObservedRecord(
            kind=kind if sentences else "nothing",
            sentences=sentences,
            gain=self._best.gain,
            ties=self._best.ties,
            signature=self._best.signature,
        )

    def hashes(self) -> dict[str, str]:
        """Return short hashes of the data: the same for other file names, formats or compression.

        `texts` are the ids and candidates of the lists, `features` the values that are adapted;
        the others are what was observed, and the references that it was scored with.
        """
        choices, gain = self.choices, self.gain
        if choices is not None:
            raters = _hash_content(choices.raters)
            observed = (choices.chosen, choices.weight, choices.rater, raters)
            return _hash_observed(self.lists, {"oracles": observed})
        names = (self.chosen, self._best.share, _hash_content(()))
        content: dict[str, Iterable[Any]] = {"oracles": names}
        if self.gains is not None:
            content["gains"] = [self.gains]
        if gain is not None and "references" in gain.needs and self.lists.references:
            content["references"] = [_hash_content(self.lists.references)]
        return _hash_observed(self.lists, content)

    def constants(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a posterior keeps for each list: the sentence scores of the oracles.

        Of answers, their weights and raters, if they matter.
        """
        if self.choices is None:
            return {_SCORE: self._best.score}
        weight, rater = self.choices.weight, self.choices.rater
        weights = {_WEIGHT: weight} if (weight != 1).any() else {}
        return weights | ({_RATER: rater} if rater.any() else {})

    def without_features(self, names: Iterable[str]) -> Observed:
        """Return the same observations of lists without some features."""
        return replace(self, lists=self.lists.without(*names))


def observe(prepared: Prepared) -> Observed:
    """Find what the likelihood observes: the best candidates and gains, or preferences.

    Raises:
        DataError: if a list lacks data that the gain needs, a preference is invalid, or all
            candidates of each list are equally good.

    The data of a NumPyro model, without the other steps of `adapt`:

    >>> import numpyro
    >>> from bpa_ppl import Prior, from_lists
    >>> from bpa_ppl.models.likelihoods.oracle import Oracle
    >>> from bpa_ppl.models.log_linear import log_linear
    >>> from bpa_ppl.adapting.prepare import prepare
    >>> lists = from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    >>> observed = observe(prepare(lists, gain="ter"))
    >>> data = observed.table(), Prior.isotropic({"LM0": 0.5}), Oracle()
    >>> sorted(numpyro.handlers.trace(numpyro.handlers.seed(log_linear, 0)).get_trace(*data))
    ['oracle', 'sentence', 'weights']
    """
    observed = _observe(prepared)
    prepare_jax()
    if observed.oracles is not None:
        _require_differences(observed.lists, observed.oracles)
    return observed


def _observe(prepared: Prepared) -> Observed:
    lists, gain, best = prepared.judged.lists, prepared.gain, prepared.oracles
    with_gains, gains = prepared.likelihood.observes == "gains", np.zeros(0)
    scores: Float64 | None = None
    if best is None and not len(lists):  # nothing is searched for
        none = np.zeros(0, np.int64)
        best = Oracles(none, np.zeros(0), none, prepared.ties, gain.key, "")
    elif prepared.likelihood.observes == "preferences":
        return _observe_preferences(lists, prepared.likelihood)
    elif prepared.judged.gains is not None:
        scores = gains = prepared.judged.gains
    elif best is None or (with_gains and len(lists)):
        with reporter(prepared.settings.progress, "oracles" if best is None else "gains") as report:
            scores, gains = scores_and_gains(
                lists, gain, jobs=prepared.settings.jobs, progress=report
            )
        scores = gain.signed(scores)
    if best is None:
        assert scores is not None
        canonical = prepared.match.origin == CANONICAL
        preference = score_differences(lists, prepared.match.values) if canonical else None
        ranking = rank_candidates(lists, None if prepared.ties == "shared" else preference)
        best = choose_oracles(lists, gain, scores, ranking, prepared.ties, lists.references)
    example = describe_oracle(lists, best)
    if scores is not None:
        example = describe_pair(lists, gain, scores)
    gains_observed = gains if with_gains else None
    return Observed(lists=lists, gain=gain, oracles=best, gains=gains_observed, example=example)


def _observe_preferences(lists: NBest, likelihood: Likelihood) -> Observed:
    """Return the preferences of some lists; the agreement of raters is logged."""
    choices = choice_sets(lists, ties=likelihood.asks_ties)
    agreed = agreement(choices.answers) if len(choices.named_raters) > 1 else None
    if agreed is not None:
        log_info(str(agreed))
    example = describe_preference(lists, choices.answers)
    return Observed(lists=choices.lists, choices=choices, agreement=agreed, example=example)


def _require_differences(lists: NBest, best: Oracles) -> None:
    """Refuse lists without any information; log how many have tied best candidates.

    Raises:
        DataError: if all candidates of each list are equally good.
    """
    sizes = lists.sizes
    if (sizes > 1).any() and (best.tied == sizes).all():
        raise DataError(
            f"all candidates have the same {best.gain} in each of {len(sizes)} lists, so "
            "nothing can be learned from them: give lists whose candidates differ, or choose "
            "another metric",
            lists.origin,
            code="no-data",
        )
    if best.share is not None:
        shared = np.add.reduceat(best.share > 0, lists.offsets[:-1])
        log_info(
            f"{int((shared > 1).sum())} of {len(sizes)} lists have several best candidates by "
            f"{best.gain}, {shared.mean():.1f} of {sizes.mean():.1f} on average: they share "
            "the observation"
        )


def _match_at_zero(lists: NBest) -> Match:
    return match(dict.fromkeys(lists.feature_names, 0.0), lists, fixed=())


def _hash_observed(lists: NBest, observed: Mapping[str, Iterable[Any]]) -> dict[str, str]:
    order = np.argsort(lists.feature_names)
    names = [lists.feature_names[column] for column in order]
    content = {"features": [_hash_content(names), lists.features[:, order]], **observed}
    others = {name: _short_hash(parts) for name, parts in content.items()}
    return {"texts": content_hash(lists), **others}


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


def _hash_content(content: object) -> str:
    """Return the hash of content made of lists, tuples, texts and numbers.

    >>> _hash_content([["a", "b"]]) == _hash_content([["a"], ["b"]])
    False
    """
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _domain_names(lists: NBest) -> tuple[str, ...]:
    """Return the names of the domains of lists, in their order; empty if they name none.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"], ["b"]], [[[0.0]], [[1.0]]], ["LM0"])
    >>> _domain_names(lists.with_sentence_extras(domain=["web", "news"]))
    ('news', 'web')
    """
    names = lists.sentence_extras.get(DOMAIN, ())
    return () if None in names else tuple(map(str, np.unique(np.asarray(names)).tolist()))


def _number_domains(lists: NBest) -> Int64 | None:
    """Return the number of the domain of each list, in alphabetical order of the domains.

    None if the lists name no domains.

    Raises:
        DataError: if some lists name one and others do not.

    >>> from bpa_ppl import from_lists
    >>> lists = from_lists([["a"], ["b"]], [[[0.0]], [[1.0]]], ["LM0"])
    >>> _number_domains(lists.with_sentence_extras(domain=["web", "news"]))
    array([1, 0])
    """
    if DOMAIN not in lists.sentence_extras:
        return None
    names = lists.sentence_extras[DOMAIN]
    for ident, name in zip(lists.sentence_ids, names, strict=True):
        if name is None or name != name:
            raise DataError(
                f"list {ident} has no {DOMAIN}, which the model needs: give it to every list",
                lists.origin,
                parameter=DOMAIN,
                code="missing-column",
            )
    return np.asarray(np.unique(np.asarray(names), return_inverse=True)[1])
