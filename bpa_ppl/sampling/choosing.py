"""Settings of the model chosen from the adaptation sentences alone.

Each candidate of a grid is judged by leaving one sentence out after the other: what the posterior
of the others would translate it with, and what that is worth. The posteriors without a sentence
are importance samples of one, smoothed as Vehtari et al. (2017; 2024) do it. Beside it stands the
marginal likelihood by Laplace's approximation (Tierney & Kadane 1986; MacKay 1992).

What a few sentences gain says little: a candidate replaces the defaults only where it is ahead of
them by two standard errors of the difference, sentence by sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import msgspec
import numpy as np

from bpa_ppl.errors import DataError, UsageError, one_of
from bpa_ppl.models import (
    Hope,
    Likelihood,
    Lists,
    Margin,
    Prior,
    PriorFamily,
    Risk,
    Soft,
    in_order,
)
from bpa_ppl.models.likelihoods.base import decided
from bpa_ppl.models.lists import PADDING
from bpa_ppl.models.priors.isotropic import Isotropic, completed
from bpa_ppl.models.probabilities import log_probabilities, padded
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.notes import held
from bpa_ppl.posterior.draws import WEIGHTS, importance_weights
from bpa_ppl.posterior.statistics import pareto_smoothed, unseen
from bpa_ppl.progress import Reporter
from bpa_ppl.sampling.base import Data, Sampler, Target
from bpa_ppl.sampling.density import anatomy, constrained_draws, shaped
from bpa_ppl.sampling.heuristic import Heuristic
from bpa_ppl.sampling.mode import require_mode
from bpa_ppl.sampling.placement import place
from bpa_ppl.sampling.proposals import POOR_PARETO_K, propose, student
from bpa_ppl.sampling.sentences import Sentences
from bpa_ppl.weights import Match

CRITERIA = ("loo", "evidence")
#: Standard errors by which a candidate must be ahead of the defaults. On sentences held out, 10 to
#: adapt to, the best of 25 candidates as it is loses 0.4 TER against the defaults.
AHEAD = 2.0
_DRAWS = 500
#: Of the Student t around the mode: its tails reach the posteriors without a sentence.
_DEGREES = 8.0


class Parts(NamedTuple):
    """What a posterior is made of, as far as something about it may be chosen."""

    likelihood: Likelihood
    prior: PriorFamily | Prior
    sampler: Sampler


class Setting(NamedTuple):
    """One that can be chosen.

    Attributes:
        part: where it stands, a field of `Parts`.
        field: of the component there.
        kinds: the components that have it.
        values: what is tried, the default first.
        unit: `edit` where the values are in edits, and so scaled to the gain; `default` where they
            are multiples of what the component itself takes for this gain; else nothing.
    """

    part: str
    field: str
    kinds: tuple[type, ...]
    values: tuple[float, ...]
    unit: str = ""

    def tried(self, parts: Parts, edit: float) -> list[float]:
        """Return the values to try, in the unit that the setting has."""
        one = 1.0
        if self.unit == "edit":
            one = 1 / edit
        if self.unit == "default":
            one = getattr(parts.likelihood.scaled(edit), self.field)
        return [decided(value * one) for value in self.values]

    def set(self, parts: Parts, value: float) -> Parts:
        """Return the parts with one value of it."""
        made = msgspec.structs.replace(getattr(parts, self.part), **{self.field: value})
        return parts._replace(**{self.part: made})


_MULTIPLES = (1.0, 0.25, 0.5, 2.0, 4.0)
#: By the name under which it is asked for.
SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        "margin": Setting("likelihood", "gamma", (Margin,), (2.0, 0.0, 1.0, 4.0, 8.0), "edit"),
        "kappa": Setting("likelihood", "kappa", (Hope, Risk), _MULTIPLES, "default"),
        "tau": Setting("likelihood", "tau", (Soft,), _MULTIPLES, "default"),
        "prior-variance": Setting("prior", "variance", (Isotropic,), (0.1, 0.01, 0.03, 0.3, 1.0)),
        "delta": Setting(
            "sampler", "delta", (Heuristic,), (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
        ),
    }
)


class Candidate(NamedTuple):
    """One set of values, and how it was judged.

    Attributes:
        values: name, as in `SETTINGS` -> its value, in the unit that the setting has.
        parts: the posterior with these values.
        gain: (S,) what each sentence gains by the posterior of the others; or None.
        evidence: log p(A) by Laplace's approximation; or None.
        resampled: how many sentences needed draws of their own.
    """

    values: dict[str, float]
    parts: Parts
    gain: Any = None
    evidence: float | None = None
    resampled: int = 0

    @property
    def score(self) -> float:
        """What is highest for the one that is chosen."""
        return float(self.gain.mean()) if self.evidence is None else self.evidence

    def __str__(self) -> str:
        return ", ".join(f"{name} {value:g}" for name, value in self.values.items())


class Choice(NamedTuple):
    """What was chosen.

    Attributes:
        by: the criterion, of `CRITERIA`.
        number: which of the candidates.
        candidates: all of them; the one of the defaults is the first.
    """

    by: str
    number: int
    candidates: list[Candidate]

    @property
    def best(self) -> Candidate:
        """The candidate that was chosen."""
        return self.candidates[self.number]

    def record(self) -> dict[str, Any]:
        """Return what a posterior records of it: plain values."""
        rows = [
            {**one.values, self.by: float(f"{one.score:.6g}"), "resampled": one.resampled}
            for one in self.candidates
        ]
        return {"by": self.by, "chosen": self.best.values, "because": str(self), "table": rows}

    def __str__(self) -> str:
        first = self.candidates[0]
        top = max(self.candidates, key=lambda one: one.score)
        what = "log evidence" if self.by == "evidence" else "mean gain of a sentence left out"
        if self.number:
            return f"chose {self.best}: {what} {top.score:.3f} against {first.score:.3f} of {first}"
        if top is first:
            return f"kept {first}: {what} {first.score:.3f}, the highest of {len(self.candidates)}"
        return (
            f"kept {first}: {what} {first.score:.3f}; {top} has {top.score:.3f}, ahead by "
            f"{lead(top, first):.1f} standard errors, and {AHEAD:g} are asked for"
        )


def lead(one: Candidate, other: Candidate) -> float:
    """Return by how many standard errors a candidate gains more than another one.

    >>> parts = Parts(Margin(), Isotropic(), Heuristic())
    >>> first, second = (Candidate({}, parts, np.array(g)) for g in ([0, 0, 0, 0], [1, 1, 0, 2]))
    >>> round(lead(second, first), 2)
    2.45
    """
    apart = one.gain - other.gain
    error = apart.std(ddof=1) / np.sqrt(len(apart))
    if not error:
        return np.inf if apart.mean() > 0 else 0.0
    return float(apart.mean() / error)


def decision(candidates: Sequence[Candidate], ahead: float = AHEAD) -> int:
    """Return which candidate to take: the best, unless it is hardly ahead of the first."""
    best = int(np.argmax([one.score for one in candidates]))
    if candidates[best].evidence is not None or best == 0:
        return best
    return best if lead(candidates[best], candidates[0]) > ahead else 0


def to_choose(names: str | Iterable[str], by: str, parts: Parts) -> tuple[str, ...]:
    """Return the names of the settings to choose, each once.

    Raises:
        UsageError: if there is no such setting or criterion, the parts do not have it, it is given
            already, or the criterion cannot choose it.
    """
    one_of(by, CRITERIA, "criterion of choice")
    wanted = tuple(dict.fromkeys([names] if isinstance(names, str) else names))
    for name in wanted:
        setting = SETTINGS[one_of(name, tuple(SETTINGS), "setting to choose")]
        part = getattr(parts, setting.part)
        if not isinstance(part, setting.kinds):
            kinds = " or ".join(kind.__name__.lower() for kind in setting.kinds)
            raise UsageError(
                f"{name} is a setting of the {setting.part} {kinds}: name that {setting.part}, or "
                f"leave {name} out of what is chosen"
            )
        if not np.array_equal(getattr(part, setting.field), _default(part, setting.field)):
            raise UsageError(f"{name} is both given and to be chosen: leave one of them out")
        if by == "evidence" and name != "prior-variance":
            raise UsageError(
                f"evidence compares priors, and {name} changes the likelihood: choose it by loo"
            )
    return wanted


def _default(part: Any, field: str) -> Any:
    return next(f.default for f in msgspec.structs.fields(type(part)) if f.name == field)


def chosen(
    wanted: Iterable[str],
    by: str,
    parts: Parts,
    known: Sentences,
    posterior_of: Callable[[Likelihood, Prior], Target],
    progress: Reporter = lambda done, total, note: None,
) -> Choice:
    """Judge every candidate, and choose.

    Args:
        wanted: from `to_choose`.
        by: `loo` or `evidence`.
        parts: the posterior, with the defaults of what is not wanted.
        known: the adaptation sentences, with gains.
        posterior_of: makes the posterior of a likelihood and a prior.
        progress: told of each candidate.

    Raises:
        DataError: if there are fewer than two different sentences, or a posterior has no mode.
        UsageError: if the model observes nothing sentence by sentence.
    """
    group = copies(known.nbest)
    if len(set(group.tolist())) < 2:
        raise DataError(
            "what is chosen from the sentences needs two different ones or more: give more, or "
            "leave the choice out",
            known.nbest.origin,
        )
    tried, judged = list(_candidates(wanted, parts, known.edit)), list[Candidate]()
    lists = _Padded(known)
    with jax.enable_x64(True):
        for candidate in tried:
            progress(len(judged), len(tried), str(candidate))
            prior = built(candidate.parts.prior, known.match)
            target = posterior_of(candidate.parts.likelihood, prior)
            if by == "evidence":
                judged.append(candidate._replace(evidence=evidence(target)))
            else:
                judged.append(_left_out(candidate, target, lists, group))
    return Choice(by, decision(judged), judged)


def _candidates(wanted: Iterable[str], parts: Parts, edit: float) -> Iterator[Candidate]:
    """Yield the candidates of a grid, that of the defaults first."""
    names = tuple(wanted)
    for values in product(*(SETTINGS[name].tried(parts, edit) for name in names)):
        made = parts
        for name, value in zip(names, values, strict=True):
            made = SETTINGS[name].set(made, value)
        yield Candidate(dict(zip(names, values, strict=True)), made)


def built(family: PriorFamily | Prior, match: Match) -> Prior:
    """Return the prior of the free features, and say nothing.

    Raises:
        DataError: if it does not fit them.
    """
    if isinstance(family, Prior):
        with held():
            return completed(family, match)[0]
    return family.build(match).matched(match.free_names)


def evidence(target: Target) -> float:
    """Return log p(A) by Laplace's approximation, log p(A, z*) + ½ log |2π Σ|.

    Raises:
        DataError: if the posterior has no mode that is found.
    """
    mode = require_mode(target)
    return float(np.linalg.slogdet(2 * np.pi * mode.covariance)[1] / 2 - mode.potential_energy)


def copies(nbest: NBest) -> Int64:
    """Return a number for each sentence, (S,), which is that of its copies too.

    A sample with replacement holds some sentences twice; they are left out together.
    """
    rows = [nbest.rows(s) for s in range(len(nbest))]
    keys = [(nbest.features[r].tobytes(), nbest.string_index[r].tobytes()) for r in rows]
    number = {key: n for n, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[key] for key in keys], np.int64)


def _left_out(candidate: Candidate, target: Target, lists: _Padded, group: Int64) -> Candidate:
    """Return a candidate with what each sentence gains by the posterior of the others."""
    gain, resampled = np.empty(len(group)), 0
    posterior = LeftOut(target, candidate.parts.sampler)
    for number in range(group.max() + 1):
        members = np.flatnonzero(group == number)
        weights, log_weight, again = posterior.without(members)
        gain[members] = lists.gained(members[0], weights, log_weight, posterior.exponent)
        resampled += again * len(members)
    return candidate._replace(gain=gain, resampled=resampled)


class LeftOut:
    """Posteriors without some of the sentences, as draws with importance weights.

    The draws are of a Student t around the mode of all sentences, which is wide enough for most of
    these posteriors; where the Pareto k̂ of the importance weights says that it is not, new draws
    are taken around the mode of the others. Those of `heuristic` are its own.

    Args:
        target: the posterior of all sentences.
        sampler: whose draws decide.
        draws: how many.

    Raises:
        DataError: if the posterior has no mode that is found.
        UsageError: if the model observes nothing sentence by sentence.
    """

    def __init__(self, target: Target, sampler: Sampler, draws: int = _DRAWS):
        self._target, self._draws, self.exponent = target, draws, 1.0
        self._finite = isinstance(sampler, Heuristic)
        if self._finite:
            found = sampler.sample(replace(target, progress=lambda done, total, note: None))
            log_ratio: Any = found.log_weight
            likelihood: Any = found.log_likelihood
            self.exponent = found.attrs["likelihood_exponent"]
            self._weights = _weights(target, found.z)
        else:
            self._mode = require_mode(target)
            proposals = propose(target, student(self._mode, _DEGREES), 1, draws)
            log_ratio, likelihood = proposals.log_ratio, proposals.log_likelihood
            self._weights = _weights(target, proposals.z)
        self._log_ratio, self._log_likelihood = log_ratio[0], _pointwise(target, likelihood)

    def without(self, members: Int64) -> tuple[Float64, Float64, bool]:
        """Return the posterior without some sentences.

        Returns:
            (D, Q) draws of the weights, (D,) the logarithms of their importance weights, and
            whether the draws are new ones.
        """
        seen = self._log_likelihood[:, members].sum(axis=1)
        if self._finite:  # a sum over a given set of vectors is no estimate: nothing to smooth
            return self._weights, self._log_ratio - self.exponent * seen, False
        smoothed, k_hat = unseen(self._log_ratio, seen)
        if k_hat <= POOR_PARETO_K:
            return self._weights, smoothed, False
        return *self._resampled(members), True

    def _resampled(self, members: Int64) -> tuple[Float64, Float64]:
        start = shaped(self._mode.position, self._target.start)
        lists, prior = self._target.data
        data = place(Data(silenced(lists, members), prior))
        target = replace(self._target, data=data, start=start)
        found = propose(target, student(require_mode(target), _DEGREES), 1, self._draws)
        return _weights(target, found.z), pareto_smoothed(found.log_ratio[0])[0]


def _weights(target: Target, z: Any) -> Float64:
    return np.asarray(constrained_draws(target.program, target.data, z)[WEIGHTS])[0]


def _pointwise(target: Target, log_likelihood: Any) -> Float64:
    """Return the log-likelihood of each sentence, (D, S)."""
    sites = anatomy(target.program, target.data).per_sentence
    if not sites:
        raise UsageError(
            "the model observes nothing in a plate over sentences, so that none can be left out: "
            "choose prior-variance by evidence"
        )
    parts = [np.asarray(log_likelihood[site][0], np.float64) for site in sites]
    return np.sum(parts, axis=0)


def silenced(lists: Lists, sentences: Int64) -> Lists:
    """Return lists of the same shapes in which some sentences say nothing: of one hypothesis each.

    So what was compiled for all sentences serves for those that are left.

    Args:
        lists: as a likelihood has prepared them.
        sentences: their positions in the n-best table.
    """
    places, first, buckets = in_order(lists)[sentences], 0, []
    for bucket in lists.buckets:
        blocks, each = bucket.base.shape[:2]
        own = places[(places >= first) & (places < first + blocks * each)] - first
        block, at = np.divmod(own, each)
        features, base = np.array(bucket.features), np.array(bucket.base)
        features[block, :, at], base[block, at], base[block, at, 0] = 0.0, PADDING, 0.0
        gain = None if bucket.gain is None else np.array(bucket.gain)
        if gain is not None:
            gain[block, at] = 0.0
        buckets.append(bucket._replace(features=features, base=base, gain=gain))
        first += blocks * each
    return lists._replace(buckets=tuple(buckets))


class _Padded:
    """The lists of the sentences laid out for the predictive, each as long as the longest."""

    def __init__(self, known: Sentences):
        nbest, self._match = known.nbest, known.match
        assert known.gains is not None  # the caller asked for them
        self._features, self._base = padded(nbest, len(nbest), int(nbest.sizes.max()))
        self._gains = [known.gains[nbest.rows(s)] for s in range(len(nbest))]

    def gained(
        self, sentence: int, weights: Float64, log_weight: Float64, exponent: float
    ) -> float:
        """Return what the predictive's choice for a sentence is worth."""
        full = self._match.full(weights).astype(np.float32)
        share = importance_weights(log_weight).astype(np.float32)
        votes = _votes(self._features[sentence], self._base[sentence], full, share, exponent)
        return float(self._gains[sentence][int(np.argmax(votes))])


@jax.jit
def _votes(features: Any, base: Any, weights: Any, share: Any, exponent: Any) -> Any:
    """Return Σ_λ w(λ) p(e|f,λ)^(1/δ) of the hypotheses of a list, (N,): see `Predictive`."""
    return jax.numpy.exp(exponent * log_probabilities(features, weights, base)) @ share
