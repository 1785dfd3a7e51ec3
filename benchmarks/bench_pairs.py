"""Pairs of which one is chosen: intervals of the weights, and calibration of the probabilities.

    python benchmarks/bench_pairs.py [--tables NAME ...] [--draws 20] [--names NAME ...]

Tables:
    intervals    how many 95 % intervals contain the true weights: 100 simulated answers, weights of
                 one size with random signs, four or nine features; and how many posteriors pass
                 their check
    calibration  share of right choices, mean probability, expected calibration error and log loss
                 on new pairs, after 10, 20 and 50 labels
    priors       mean log loss and calibration error over all collections for priors of the scale,
                 and the log evidence of 50 labels with log τ ~ N(μ, σ²), whose μ and σ are those
                 that are best for the other collections; by importance sampling, 150 test pairs
                 a draw
    limit        the increase of the log loss from that with the most probable scale, with the prior
                 in use, and for several correlations of weights with the prior of any form for
                 which the largest increase is smallest, as found with the test labels from several
                 starts

The expected calibration error is the mean absolute difference of the probability of the choice and
the frequency with which it is right, in ten bins from ½ to 1, weighted by their counts; the pairs
of all draws are in the same bins.

Collections:
    RewardBench   2,755 pairs of answers, nine reward models
    LLMBar        226 of them that were made to mislead
    weak          simulated: three judges who are right in 55 to 65 %, and whose errors have the
                  correlation 0.3
    arena         simulated: three good judges, see `bench_asking`
    nine          simulated: nine judges who are right in 60 to 65 %, see `bench_confidence`
    safety        740 pairs of RewardBench
    WMT 2023      a random pair of translations of each list, Chinese to English, six features
    texts         the same of WMT 2024 and medical texts with three features of the texts, in
                  `priors` alone

Each half of a real collection is once the pool and once the test set, in half of the draws each;
simulated collections have 1,000 or 2,000 test pairs a draw.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from bench_asking import samples
from bench_confidence import TESTED, simulated_pairs
from bench_judged import COMPUTED, SIX, SIZES, read_halves
from bench_judging import covered
from list_modes import choices, find_mode
from measuring import Table, answered_pairs, few, run_tables
from scipy.optimize import minimize
from scipy.special import expit, gammaln, log_expit, logsumexp, softmax
from scipy.stats import norm

import bpa_ppl as bpa
from bpa_ppl import NBest
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.models.priors.isotropic import LOG_DEVIATION, PAIRS_FACTOR

#: log τ, in units of τ₀ = 1 / √(2 K).
LOG_SCALES = np.arange(-4, 5.01, 0.25)
DRAWS, DEGREES = 256, 10.0


class Given(NamedTuple):
    """What follows from each scale.

    Attributes:
        log_evidence: (scales,) of the answers.
        probability: (scales, test pairs) of the right candidate.
    """

    log_evidence: Float64
    probability: Float64

    def predict(self, log_prior: Float64, *, plug_in: bool = False) -> Float64:
        """Return the probabilities with a prior of the scale, or with the most probable scale."""
        joint = self.log_evidence + log_prior
        if plug_in:
            return np.asarray(self.probability[joint.argmax()])
        return np.asarray(np.exp(joint - logsumexp(joint)) @ self.probability)

    def loss(self, log_prior: Float64) -> tuple[float, Float64]:
        """Return the mean log loss on the test pairs, and its derivative by the log prior."""
        share = softmax(self.log_evidence + log_prior)
        p = share @ self.probability
        return -float(np.log(p).mean()), share - share * (self.probability / p).mean(axis=1)

    def log_marginal(self, log_prior: Float64) -> float:
        """Return the log evidence of the answers, integrated over the scale."""
        return float(logsumexp(self.log_evidence + log_prior - logsumexp(log_prior)))


def normal(mean: float, deviation: float) -> Float64:
    """Return log p(log τ) but for a constant, for log τ / τ₀ ~ N(mean, deviation²)."""
    return np.asarray(-((LOG_SCALES - mean) ** 2) / 2 / deviation**2)


def infer(lead: Float64, test: Float64, correlation: float, rng: np.random.Generator) -> Given:
    """Return evidence and predictions given each scale.

    Args:
        lead: (n, K) the features of the chosen candidate less those of the other one.
        test: (m, K) the same of the right candidates of test pairs.
        correlation: of weights a priori, as a share of that of the features.
        rng: of the importance sample.
    """
    spread = np.sqrt((lead**2).mean(axis=0)) / 2
    x, new = (values[:, spread > 0] / spread[spread > 0] for values in (lead, test))
    size = x.shape[1]
    units = x / np.sqrt((x**2).mean(axis=0))
    prior = (1 - correlation) * np.eye(size) + correlation * units.T @ units / len(units)
    inverse, log_determinant = np.linalg.inv(prior), np.linalg.slogdet(prior)[1]
    z = rng.normal(size=(DRAWS // 2, size))
    z *= np.sqrt(DEGREES / rng.chisquare(DEGREES, (DRAWS // 2, 1)))
    z = np.concatenate([z, -z])
    log_q = -(DEGREES + size) / 2 * np.log1p((z**2).sum(axis=1) / DEGREES)
    log_q += gammaln((DEGREES + size) / 2) - gammaln(DEGREES / 2)
    log_q -= size / 2 * np.log(DEGREES * np.pi)
    weights, evidence, probability = np.zeros(size), [], []
    for scale in np.sqrt(0.5 / size) * np.exp(LOG_SCALES):
        precision = inverse / scale**2
        weights, curvature = find_mode(choices(x), precision, np.zeros(size), weights)
        factor = np.linalg.cholesky(curvature)
        drawn = weights + np.linalg.solve(factor.T, z.T).T
        log_w = log_expit(drawn @ x.T).sum(axis=1) - log_q - np.log(np.diag(factor)).sum()
        log_w -= np.einsum("nk,kl,nl->n", drawn, precision, drawn) / 2
        log_w -= size / 2 * np.log(2 * np.pi * scale**2) + log_determinant / 2
        evidence.append(logsumexp(log_w) - np.log(DRAWS))
        probability.append(np.exp(log_w - logsumexp(log_w)) @ expit(drawn @ new.T))
    return Given(np.array(evidence), np.array(probability))


TEXTS = {"WMT 2024, texts": "wmt24esa.en-cs", "medical, texts": "bio.de-en"}
#: The correlation of weights as a share of that of the features, μ and σ.
TRIED = [(0.0, 0.0, 1.0), *product((0.5, 0.75), (-0.25, 0.0, 0.25), (1.0, 1.25, 1.5))]
#: The correlations, as such shares, with which the best prior of the scale is searched.
LIMIT_SHARES = (0.0, 0.5, 0.75, 0.95)
NAMES = ("RewardBench", "LLMBar", "weak", "arena", "nine", "safety", "WMT 2023")
BINS = 10
#: Of the smooth maximum of the increases of the log loss.
_SHARPNESS = 300.0


def pairs_of(chosen: Float64, other: Float64) -> NBest:
    """Return pairs, (n, K) each, with a gain of 1 for the chosen one; every other one is second."""
    first = np.arange(len(chosen)) % 2 == 0
    both = np.stack([chosen, other], axis=1)
    return answered_pairs(np.where(first[:, None, None], both, both[:, ::-1]), first)


def weak_judges(count: int, seed: int, judges: int = 3, shared: float = 0.3) -> NBest:
    """Return pairs with the grades of judges, right in 55 to 65 %, with correlated errors."""
    rng = np.random.default_rng([seed, 7])
    lead = norm.ppf(rng.uniform(0.55, 0.65, judges))
    covariance = shared + (1 - shared) * np.eye(judges)
    difference = lead + rng.multivariate_normal(np.zeros(judges), covariance, count)
    return pairs_of(difference / 2, -difference / 2)


def random_pairs(lists: NBest, seed: int) -> NBest:
    """Return a random pair of candidates of different gain from each list that has one."""
    rng, gain = np.random.default_rng([seed, 3]), read_column(lists, "mqm")
    rows = []
    for start, size in zip(lists.offsets[:-1], lists.sizes, strict=True):
        first, second = start + rng.choice(size, 2, replace=False)
        if gain[first] != gain[second]:
            rows.append((first, second) if gain[first] > gain[second] else (second, first))
    better, worse = np.transpose(rows)
    features = lists.features.astype(np.float64)
    return pairs_of(features[better], features[worse])


def draw_samples(name: str, size: int, draws: int) -> Iterator[tuple[NBest, NBest]]:
    """Yield pairs to adapt on, and test pairs."""
    if name in ("weak", "nine"):
        make = weak_judges if name == "weak" else simulated_pairs
        for seed in range(draws):
            lists = make(size + TESTED, seed)
            yield lists[:size], lists[size:]
    elif name == "WMT 2023" or name in TEXTS:
        names = SIX if name == "WMT 2023" else (*COMPUTED, "chars")
        halves = read_halves((TEXTS.get(name, "wmt23.zh-en"),), names)
        for seed in range(draws):
            half = halves[seed % len(halves)]
            lists = random_pairs(half.pool, seed)
            rng = np.random.default_rng(seed)
            chosen = rng.choice(len(lists), min(size, len(lists)), replace=False)
            yield lists[chosen], random_pairs(half.test, seed)
    else:
        yield from samples(name, size, draws)


def expected_calibration_error(right: Float64, probability: Float64) -> float:
    """Return the weighted difference of probability and frequency in bins from ½ to 1."""
    place = np.minimum(((probability - 0.5) * 2 * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(place, probability - right)).sum() / len(right))


def calibration(options: Any) -> None:
    """Print accuracy, mean probability, calibration error and log loss."""
    columns = "right", "probability", "calibration error", "log loss", "± 2 se"
    for name in options.names:
        table = Table(name, *columns)
        for size in SIZES:
            p, losses = [], []
            for lists, test in draw_samples(name, size, options.draws):
                posterior = bpa.adapt(lists, None, gain="gain")
                choices = bpa.rerank(test, posterior, unchecked=True)
                of_chosen = choices.probabilities[read_column(test, "gain") == 1]
                p.append(of_chosen)
                losses.append(-np.log(np.clip(of_chosen, 1e-9, 1)).mean())
            joint = np.concatenate(p)
            right, best = (joint > 0.5) + 0.5 * (joint == 0.5), np.maximum(joint, 1 - joint)
            error = expected_calibration_error(right, best)
            spread = 2 * np.std(losses, ddof=1) / np.sqrt(len(losses))
            values = right.mean(), best.mean(), error, np.mean(losses), spread
            table.row(f"{size} labels", *(f"{value:.3f}" for value in values))


def lead(lists: NBest) -> Float64:
    """Return the features of the chosen candidates less those of the others, (n, K)."""
    features = lists.features.astype(np.float64).reshape(len(lists), 2, -1)
    first = read_column(lists, "gain").reshape(-1, 2)[:, :1] == 1
    difference = features[:, 0] - features[:, 1]
    return np.asarray(np.where(first, difference, -difference))


def infer_all(
    names: Sequence[str], shares: Sequence[float], draws: int
) -> dict[tuple[float, str, int], list[Given]]:
    """Return evidence and predictions of all samples.

    Args:
        names: of the collections.
        shares: the correlations of weights as shares of those of the features.
        draws: of each collection and size.
    """
    result: dict[tuple[float, str, int], list[Given]] = {}
    for share, name, size in product(shares, names, SIZES):
        cell = result[share, name, size] = []
        for number, (lists, test) in enumerate(draw_samples(name, size, draws)):
            rng = np.random.default_rng([number, 13])
            chosen = rng.choice(len(test), min(len(test), 150), replace=False)
            cell.append(infer(lead(lists), lead(test)[chosen], share, rng))
    return result


def limit(options: Any) -> None:
    """Print the increase of the log loss with the prior in use, and with the best ones found."""
    given = infer_all(options.names, LIMIT_SHARES, options.draws)
    cells = list(product(options.names, SIZES))
    before = np.array([mean_loss_plugged_in(given[0.0, *cell]) for cell in cells])

    def measure(log_prior: Float64, share: float) -> tuple[Float64, Float64]:
        """Return the increase in each cell, and its derivatives, (cells, scales)."""
        pairs = [[one.loss(log_prior) for one in given[share, *cell]] for cell in cells]
        losses = np.array([np.mean([loss for loss, _ in cell]) for cell in pairs])
        slopes = np.array([np.mean([slope for _, slope in cell], axis=0) for cell in pairs])
        return losses - before, slopes

    def smooth_maximum(log_prior: Float64, share: float) -> tuple[float, Float64]:
        increase, slopes = measure(log_prior, share)
        value = logsumexp(_SHARPNESS * increase) / _SHARPNESS
        return float(value), softmax(_SHARPNESS * increase) @ slopes

    used = normal(float(np.log(PAIRS_FACTOR)), LOG_DEVIATION)
    starts = [normal(*at) for at in product((-1.0, 0.0, 1.0), (0.5, 1.5))]
    rows = [("prior in use", used, 0.5)]
    for share in LIMIT_SHARES:
        search = partial(minimize, smooth_maximum, args=(share,), jac=True, method="L-BFGS-B")
        best = min(map(search, (used, *starts)), key=lambda result: float(result.fun)).x
        rows.append((f"best prior found, correlation {share}", best, share))
    table = Table("increase of the log loss", *(f"{size} labels" for size in SIZES))
    for title, log_prior, share in rows:
        increase = measure(log_prior, share)[0].reshape(-1, len(SIZES))
        for name, row in zip(options.names, increase, strict=True):
            table.row(f"{title}, {name}", *(f"{value:+.3f}" for value in row))
        table.row(f"{title}, largest", *(f"{value:+.3f}" for value in increase.max(axis=0)))


def mean_loss_plugged_in(given: Sequence[Given]) -> float:
    """Return the mean log loss of several samples with the most probable scale."""
    p = [one.predict(normal(0, 1), plug_in=True) for one in given]
    return -float(np.mean([np.log(one).mean() for one in p]))


def priors(options: Any) -> None:
    """Print what other priors of the scale would do."""
    names, shares = (*options.names, *TEXTS), sorted({share for share, *_ in TRIED})
    given = infer_all(names, shares, options.draws)
    columns = [f"{what}, {size}" for what in ("log loss", "calibration error") for size in SIZES]
    table = Table("correlation, μ, σ", *columns)
    rows = [("the most probable τ", *TRIED[0], True)]
    rows += [
        (f"{share} of it, N({mu}, {sigma}²)", share, mu, sigma, False) for share, mu, sigma in TRIED
    ]
    for title, share, mu, sigma, plug_in in rows:
        cells = np.empty((2, len(SIZES), len(names)))
        for (i, size), (j, name) in product(enumerate(SIZES), enumerate(names)):
            log_prior = normal(mu, sigma)
            found = given[share, name, size]
            p = np.concatenate([one.predict(log_prior, plug_in=plug_in) for one in found])
            best = np.maximum(p, 1 - p)
            error = expected_calibration_error(np.asarray(p > 0.5, float), best)
            cells[:, i, j] = -np.log(np.clip(p, 1e-9, 1)).mean(), error
        table.row(title, *(f"{value:.4f}" for value in cells.mean(axis=2).ravel()))
    table = Table("evidence of 50 labels", "all: μ", "all: σ", "of the one left out")
    grid = list(product(np.arange(-1, 1.01, 0.1), np.arange(0.6, 2.01, 0.1)))
    for share in shares:
        evidence = np.array(
            [
                [
                    np.mean(
                        [one.log_marginal(normal(*at)) for one in given[share, name, SIZES[-1]]]
                    )
                    for at in grid
                ]
                for name in names
            ]
        )
        best = grid[int(evidence.mean(axis=0).argmax())]
        others = [np.delete(evidence, k, axis=0).mean(axis=0).argmax() for k in range(len(names))]
        left_out = np.mean([evidence[k, at] for k, at in enumerate(others)])
        table.row(f"correlation {share}", *(f"{value:.2f}" for value in (*best, left_out)))


def simulated_answers(truth: Float64, answers: int, seed: int) -> NBest:
    """Return pairs of which one was chosen by the weights.

    Args:
        truth: (K,) the weights, for features of variance 1.
        answers: how many.
        seed: of features and answers.
    """
    rng = np.random.default_rng([seed, 11])
    features = rng.normal(size=(2, answers, len(truth)))
    first = rng.random(answers) < expit((features[0] - features[1]) @ truth)
    chosen, other = (np.where(first[:, None], *features[::step]) for step in (1, -1))
    return pairs_of(chosen, other)


def intervals(options: Any) -> None:
    """Print how often intervals have the true weights, and how many posteriors pass their check."""
    table = Table("pairs, 100 answers", "covered", "of", "share", "passed", "data sets")
    count = 2 * options.draws + 10
    for features, size in few([*product((4, 9), (0.3, 1.0, 1.5))]):
        inside, passed = 0, 0
        for seed in range(count):
            truth = size * np.random.default_rng([seed, 12]).choice([-1.0, 1.0], size=features)
            lists = simulated_answers(truth, 100, seed)
            draws = bpa.as_weight_draws(bpa.adapt(lists, None, gain="gain", seed=seed))
            inside, passed = inside + covered(draws, truth), passed + bool(bpa.check(draws))
        total = features * count
        row = f"{features} weights of size {size}"
        table.row(row, inside, total, f"{inside / total:.3f}", passed, count)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")
    logging.getLogger("bpa_ppl").setLevel("ERROR")
    run_tables(__doc__, (intervals, calibration, priors, limit), draws=20, names=NAMES)
