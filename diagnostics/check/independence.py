"""Whether chains are independent of each other: R-hat and the effective draws count on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.messages import format_count
from bpa_ppl.components import Share
from bpa_ppl.diagnostics.check.diagnostic import FEWEST, Diagnostic, Run
from bpa_ppl.posterior.record import Finding

#: With fewer draws a chain has too few ranks for correlations.
_SHORTEST = 50
#: At most so many numbers are compared, and so many pairs of chains, of all variables together.
_MOST_NUMBERS, _MOST_PAIRS = 1_000_000, 4_000_000
#: A variable that is one number in a larger share of a chain has no correlation that can be tested.
_MOSTLY = 0.8
#: Share of the correlation of all draws that their second half has at least.
_LATE = 2 / 3
#: Chains are copies if their draws are correlated as much in every variable.
_COPIED = 0.9
#: Chains are copies, too, if they have this share of the draws of the shorter one in common, of at
#: least so many; draws must be so often different that they do not coincide by chance.
_IN_COMMON, _FEWEST_IN_COMMON, _DIFFERENT = 0.25, 10, 0.9
#: Draws are equal if they are in so many variables.
_COMPARED = 10
#: Lags at which the autocorrelation may rise; with more chains as many as there are.
_LAGS = 32
#: The least rise of an autocorrelation. That of antithetic proposals in pairs rises by 0.1 at lag
#: three, and mixing chains whose autocorrelation is smaller hardly changes any diagnostic.
_LEAST_RISE = 0.2
#: The last lag at which the autocorrelation of a sampler may rise.
_BY_SAMPLERS = 3
#: Mixed chains are independent at lags between the multiples of their number, up to this |z|; or
#: they are at different places, and this share of a difference of the first lags remains later.
_BETWEEN_Z, _REMAINS = 4.5, 0.75
_ONCE = "keep each run once, and give each chain its own random key"


class Dependence(NamedTuple):
    """What chains have in common.

    Attributes:
        p_value: of independent chains, of all chains and variables together.
        chain: the last of the chains that depend on each other.
        problem: what is wrong, and after a colon what to do.
    """

    p_value: float
    chain: int
    problem: str


class IndependentChains(Diagnostic, frozen=True):
    """Whether chains are independent of each other; reported if they are not.

    See `find_dependence`.

    Args:
        limit: the level of each of both tests, of all chains and variables together.
    """

    title = "independent chains (p)"
    least = True
    limit: Share = 0.001

    def applies(self, run: Run) -> bool:
        return run.draws.kind != "point" and run.draws.shape[1] >= FEWEST

    def measure(self, run: Run) -> Finding | None:
        if run.draws.kind == "chains":
            found = find_dependence(run.values, run.names, self.limit)
        else:
            found = find_common_draws(list(run.values), run.names, self.limit)
        if found is None:
            return None
        where = run.chain_labels[found.chain]
        return self.finding(found.p_value, f"≥ {self.limit:g}", False, found.problem, where)


def find_dependence(
    chains: Float64, names: Sequence[str], level: float = 0.001
) -> Dependence | None:
    """Return what chains have in common; None if they seem to be independent.

    Chains have draws in common (`find_common_draws`), or are mixed: an array of the shape (draws,
    chains) was given the shape (chains, draws) without moving its axes. Each chain then has the
    draws of all chains in turn, and its autocorrelation rises at a lag.

    Args:
        chains: (C, D, K) the draws.
        names: (K,) of the variables.
        level: of each of both tests, of all chains and variables together.

    The last of four chains is the first one with noise; four chains are mixed:

    >>> steps = np.random.default_rng(0).normal(size=(4, 1020, 1))
    >>> chains = np.cumsum(steps, axis=1)[:, 20:] - np.cumsum(steps, axis=1)[:, :-20]
    >>> find_dependence(chains, ["x"])
    >>> noisy = chains[[0, 1, 2, 0]] + 0.5 * steps[:, 20:]
    >>> find_dependence(noisy, ["x"]).problem[:50]
    'chains 0 and 3 are copies of one run, or have the '
    >>> find_dependence(chains.swapaxes(0, 1).reshape(4, 1000, 1), ["x"]).problem[:50]
    'chains are mixed, as draws of x are most alike 4 i'
    """
    found = find_common_draws(list(chains), names, level), _find_mixed(chains, names, level)
    return min(filter(None, found), key=lambda one: one.p_value, default=None)


def find_common_draws(
    chains: Sequence[Float64], names: Sequence[str], level: float = 0.001, first: int | None = None
) -> Dependence | None:
    """Return which chains have draws in common; None if there are none.

    Of each pair of chains and each variable, the correlation of the normal scores of ranks at the
    same iteration is tested. Its standard error is √(Σ ρ(k) ρ'(k) / n), summed over all lags of
    both autocorrelations (Bartlett 1946): the test is Student's, as of n / Σ independent pairs,
    with Bonferroni correction. Chains with one start drift together, so that the second half of
    the draws must show it, too. Copies with another first draw, or in another order, are found by
    equal draws.

    Args:
        chains: (D, K) the draws of each.
        names: (K,) of the variables.
        level: of the test, of all chains and variables together.
        first: if given, only pairs of one of so many first chains and one of the others count.
    """
    i, j = np.triu_indices(len(chains), 1)
    if first is not None:
        i, j = (side[(i < first) & (j >= first)] for side in (i, j))
    chains, names = _select_variables(chains, names)
    if not len(i) or not names:
        return None
    p_values, correlations = (np.full((len(names), len(i)), of) for of in (1.0, 0.0))
    if (length := min(map(len, chains))) >= _SHORTEST:
        scores = _score(np.stack([chain[:length] for chain in chains]))
        correlation, p_value = _correlate(scores)
        late = _correlate(scores[..., length // 2 :])[0]
        holds = late * np.sign(correlation) >= _LATE * np.abs(correlation)
        p_values = np.where(holds, p_value * p_values.size, 1.0)[:, i, j]
        correlations = correlation[:, i, j]
    equal = _have_equal_draws(chains)[i, j]
    p_values[:, equal] = 0.0
    found = (p_values < level).any(axis=0)
    if not found.any():
        return None
    k, pair = divmod(int(p_values.argmin()), len(i))
    subject = f"chains {i[pair]} and {j[pair]}"
    if found.all() and len(i) > 1:
        subject = "all chains"
    elif more := int(found.sum()) - 1:
        subject += f", and {format_count(more, 'other pair')},"
    if equal[pair]:
        cause = "have the same draws, as they are copies of one run, or have the same random key"
    else:
        copies = np.abs(correlations[:, pair]).min() >= _COPIED
        cause = (
            f"{'are copies of one run, or ' if copies else ''}have the same random key (correlation"
            f" {correlations[k, pair]:.2f} of {names[k]} at the same iteration)"
        )
    return Dependence(float(p_values[k, pair]), int(j[pair]), f"{subject} {cause}: {_ONCE}")


def _find_mixed(chains: Float64, names: Sequence[str], level: float) -> Dependence | None:
    """Return how chains are mixed; None if the autocorrelation rises at no lag.

    It rises at lag k if it is larger than at each smaller lag, and than each product ρ(i) ρ(k − i),
    by so many standard errors that the level holds for all lags and variables. Of a reversible
    chain it is a mean of powers λᵏ, and can rise at lag two, as of NUTS, where some λ are negative;
    of proposals in pairs it can at three. Mixed chains have more: see `_are_mixed`.
    """
    from scipy.special import ndtr

    kept, names = _select_variables(list(chains), names)
    lags = min(max(_LAGS, len(kept)), len(kept[0]) // 4)
    if not names or len(kept[0]) < _SHORTEST:
        return None
    scores = _score(np.stack(kept))
    chains_that_move = np.fmax(scores.any(axis=-1).sum(axis=1), 1)
    rho = np.fft.irfft(_spectrum(scores))[..., : lags + 1].sum(axis=1) / chains_that_move[:, None]
    error = np.sqrt((1 + 2 * np.cumsum(rho[:, 1:] ** 2, axis=1)) / scores[0].size)
    rise = np.full((len(names), lags + 1), -np.inf)
    for k in range(2, lags + 1):
        before = rho[:, 1:k]
        least = np.maximum(before, before * before[:, ::-1]).max(axis=1)
        by = rho[:, k] - least
        if (by >= _LEAST_RISE).any():
            is_rise = by >= _LEAST_RISE
            if k <= _BY_SAMPLERS:
                is_rise &= _are_mixed(rho, error[:, -1], k)
            rise[:, k] = np.where(is_rise, by / error[:, k - 2], -np.inf)
    place, lag = divmod(int(rise.argmax()), lags + 1)
    p_value = float(ndtr(-rise[place, lag])) * rise[:, 2:].size
    if not p_value < level:
        return None
    problem = (
        f"chains are mixed, as draws of {names[place]} are most alike {lag} iterations apart "
        f"(autocorrelation {rho[place, lag]:.2f}): transpose before you reshape, by "
        "draws.swapaxes(0, 1)"
    )
    return Dependence(p_value, 0, problem)


def _are_mixed(rho: Float64, error: Float64, count: int) -> npt.NDArray[np.bool_]:
    """Return which variables have autocorrelations that mixed chains can have, (K,).

    At lags that are not a multiple of the number of chains, draws are from different chains. Either
    they are independent, in all variables; or the chains are at different places, and the
    autocorrelations at multiples and at other lags differ at distant lags as much as at the first.

    Args:
        rho: (K, L + 1) the autocorrelations.
        error: (K,) the standard error of those of independent draws, which chains with slow
            movements raise.
        count: the number of mixed chains.
    """
    lags = np.arange(rho.shape[1])
    between = lags % count > 0
    if (np.abs(rho[:, between]) < _BETWEEN_Z * error[:, None]).all():
        return np.ones(len(rho), bool)
    distant = lags >= max(count, rho.shape[1] // 2)
    if not (distant & ~between).any() or not (distant & between).any():
        return np.zeros(len(rho), bool)
    within, others = (rho[:, distant & of].mean(axis=1) for of in (~between, between))
    first = rho[:, count] - rho[:, 1:count].mean(axis=1)
    return np.asarray(within - others >= _REMAINS * first)


def _select_variables(
    chains: Sequence[Float64], names: Sequence[str]
) -> tuple[list[Float64], list[str]]:
    """Return the draws and names of variables that vary and are finite; of very many only some."""
    flat = np.concatenate(chains)
    usable = np.flatnonzero(np.isfinite(flat).all(axis=0) & (np.ptp(flat, axis=0) > 0))
    most = min(_MOST_NUMBERS // len(flat), _MOST_PAIRS // len(chains) ** 2)
    if len(usable) > max(most, 1):
        usable = usable[np.linspace(0, len(usable) - 1, max(most, 1)).astype(int)]
    return [chain[:, usable] for chain in chains], [names[k] for k in usable.tolist()]


def _score(chains: Float64) -> Float64:
    """Return standardised normal scores of the ranks within each chain, (C, D, K) ↦ (K, C, D).

    They are 0 where a chain mostly is one number.
    """
    from scipy.special import ndtri
    from scipy.stats import rankdata

    values = np.moveaxis(chains, -1, 0)
    scores = ndtri((rankdata(values, axis=-1) - 0.375) / (values.shape[-1] + 0.25))
    scores -= scores.mean(axis=-1, keepdims=True)
    middle = np.median(values, axis=-1, keepdims=True)
    deviation = np.where((values == middle).mean(axis=-1) > _MOSTLY, np.inf, scores.std(axis=-1))
    return np.asarray(scores / np.where(deviation > 0, deviation, np.inf)[..., None])


def _spectrum(scores: Float64) -> Float64:
    """Return the spectra of scores: Fourier transforms of the autocorrelations, (…, D) ↦ (…, F)."""
    length = scores.shape[-1]
    return np.asarray(np.abs(np.fft.rfft(scores, 2 * length)) ** 2 / length)


def _correlate(scores: Float64) -> tuple[Float64, Float64]:
    """Return the correlations of chains at the same iteration, and their p-values, (K, C, C)."""
    from scipy.special import stdtr

    length = scores.shape[-1]
    scores = scores - scores.mean(axis=-1, keepdims=True)
    deviation = scores.std(axis=-1, keepdims=True)
    scores = scores / np.where(deviation > 0, deviation, np.inf)
    correlation = np.clip(scores @ scores.swapaxes(-1, -2) / length, -1.0, 1.0)
    spectrum = _spectrum(scores)
    weight = np.full(spectrum.shape[-1], 1 / length)  # of positive and negative frequencies
    weight[[0, -1]] /= 2
    sums = (spectrum * weight) @ spectrum.swapaxes(-1, -2)  # of the products of autocorrelations
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = np.where(sums > 0, length / sums, 0.0) - 2
        t = np.abs(correlation) * np.sqrt(degrees / (1 - correlation**2))
        p_value = 2 * stdtr(degrees, -t)
    return correlation, np.where(degrees > 1, p_value, 1.0)


def _have_equal_draws(chains: Sequence[Float64]) -> npt.NDArray[np.bool_]:
    """Return which chains have a quarter of the draws of the shorter one in common, (C, C).

    Equal draws in succession, as after rejected proposals, are one, and so are returns to the last
    but one, as of proposals in pairs. Of chains whose draws are not nearly all different, such as
    those of rounded values, nothing is said.
    """
    from scipy.sparse import csr_array

    flat = np.concatenate([chain[:, :_COMPARED] for chain in chains])
    labels = np.unique(flat, axis=0, return_inverse=True)[1].reshape(-1)
    parts = np.split(labels, np.cumsum([len(chain) for chain in chains])[:-1])
    visits, different = [], []
    for part in parts:
        moves = part[np.diff(part, prepend=-1) != 0]
        returns = np.zeros(len(moves), bool)
        returns[2:] = moves[2:] == moves[:-2]
        visits.append(np.unique(moves[~returns]))
        different.append(len(visits[-1]) >= _DIFFERENT * np.count_nonzero(~returns))
    sizes = np.array([len(visit) for visit in visits])
    places = np.concatenate([[0], np.cumsum(sizes)])
    table = csr_array((np.ones(places[-1]), np.concatenate(visits), places))
    common = (table @ table.T).toarray()
    needed = np.fmax(_IN_COMMON * np.minimum.outer(sizes, sizes), _FEWEST_IN_COMMON)
    return np.asarray((common >= needed) & np.logical_and.outer(different, different))
