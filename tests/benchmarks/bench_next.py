"""Active-learning curves: which sentences to have translated next, against random ones.

    python tests/benchmarks/bench_next.py [--domains NAME …] [--draws 10] [--step 10]

Each draw begins with 10 random sentences of the 500 of a domain (seeds 0, 1, …, the same for every
row) and asks for `--step` more at a time, up to 100, by the posterior given those before; sentences
are added one by one (`Sequential`). Printed: test TER of the posterior mean ± 2 standard deviations
over the draws / BLEU / length, and how many words of reference were asked for in all. Rows:
`random`; `information`, the expected information gain; `… a word`, divided by the words of the
source;
`information, published`, by a posterior of the same sentences with the published likelihood, which
is one of data, while they are adapted to with the other; `entropy` of the predictive; `longest`
source.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from bench_features import scores_of
from measuring import DATA, canonical, lists

import bpa_ppl as bpa
from bpa_ppl import NBest
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.models import Likelihood, Margin, Oracle
from bpa_ppl.sampling import Sequential
from bpa_ppl.sampling.laplace import Laplace

FIRST, SIZES = 10, (20, 50, 100)
PUBLISHED = "information, published"
ROWS = ("random", "information", "information a word", PUBLISHED, "entropy", "longest")
SAMPLER = Laplace(draws=1000)
LIKELIHOODS: dict[str, Likelihood] = {"margin": Margin(gamma=2.0), "published": Oracle()}


class Domain(NamedTuple):
    """A pool that knows what hypotheses are worth, words of source and reference, a test set."""

    pool: NBest
    words: np.ndarray
    cost: np.ndarray
    test: NBest

    @classmethod
    def of(cls, name: str) -> Domain:
        """Read a domain; what a hypothesis is worth is computed once, and then is a column."""
        pool = lists(name, "adapt")
        words = [len(line.split()) for line in read_lines(DATA / name / "adapt.src")]
        cost = [len(texts[0].split()) for texts in pool.references]
        known = pool.with_extras(worth=bpa.gains(pool))
        return cls(known, np.array(words), np.array(cost), lists(name, "test"))


def curve(domain: Domain, row: str, likelihood: Likelihood, step: int, seed: int) -> np.ndarray:
    """Return TER, BLEU, length and words asked for, (sizes, 4), of one draw."""
    rng = np.random.default_rng(seed)
    asked = rng.permutation(len(domain.pool))[:FIRST].tolist()
    first = domain.pool.select(asked)
    growing, found = begun(first, likelihood, seed), []
    asking = begun(first, Oracle(), seed) if row == PUBLISHED else growing
    while len(asked) < max(SIZES):
        left = np.setdiff1d(np.arange(len(domain.pool)), asked)
        chosen = left[order(domain, row, left, asking, rng)[:step]]
        for sentence in chosen.tolist():
            for one in {growing, asking}:
                one.add(domain.pool[sentence])
        asked += chosen.tolist()
        if len(asked) in SIZES:
            weights = growing.draws().at_point("mean")
            scores = scores_of(domain.test, [weights[n] for n in domain.test.feature_names])
            found.append((*scores, domain.cost[asked].sum()))
    return np.array(found)


def begun(first: NBest, likelihood: Likelihood, seed: int) -> Sequential:
    """Return the posterior of the first sentences, to be added to."""
    posterior = bpa.adapt(
        first, canonical(), sampler=SAMPLER, likelihood=likelihood, metric="worth", seed=seed
    )
    return Sequential(posterior, adaptation_lists=first, sampler=SAMPLER, seed=seed)


def order(
    domain: Domain, row: str, left: np.ndarray, asking: Sequential, rng: np.random.Generator
) -> np.ndarray:
    """Return the order in which to ask for the sentences that are left."""
    if row == "random":
        return rng.permutation(len(left))
    if row == "longest":
        return np.argsort(-domain.words[left], kind="stable")
    asked = bpa.next_sentences(
        domain.pool.select(left),
        asking.draws(),
        criterion=row.replace(",", "").split()[0],
        draws=128,
        unchecked=True,
    )
    if not row.endswith("a word"):
        return asked.ranking
    return np.argsort(-asked.information / domain.words[left], kind="stable")


def table(name: str, rows: list[str], likelihood: str, step: int, draws: int) -> None:
    """Print the curves of one domain."""
    domain = Domain.of(name)
    heads = "".join(f"{f'|A| = {size}':>40}" for size in SIZES)
    print(f"\n{f'{name}, {likelihood}':<22}{heads}", flush=True)
    for row in rows:
        of_draw = partial(curve, domain, row, LIKELIHOODS[likelihood], step)
        found = np.array([of_draw(seed) for seed in range(draws)])
        mean, spread = found.mean(axis=0), 2 * found.std(axis=0, ddof=min(1, draws - 1))
        cells = [
            f"{ter:.2f} ± {around:.2f} / {bleu:.1f} / {length:.3f}, {words:.0f} words"
            for (ter, bleu, length, words), around in zip(mean, spread[:, 0], strict=True)
        ]
        print(f"{row:<22}" + "".join(f"{cell:>40}" for cell in cells), flush=True)


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--domains", nargs="+", default=["medical", "captions", "conversation"])
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=ROWS)
    parser.add_argument("--likelihood", default="margin", choices=list(LIKELIHOODS))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--step", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    for name in options.domains:
        table(name, options.rows, options.likelihood, options.step, options.draws)


if __name__ == "__main__":
    main()
