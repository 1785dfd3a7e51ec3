"""Constants held against sentences that are neither adapted to nor tested on.

    python tests/benchmarks/bench_held_out.py [--tables NAME …] [--draws 10] [--both]

Tables: `gamma` (γ of the margin under each gain, in edits: for gains other than TER per standard
deviation within the lists), `risk` (κ), and `strength` and `shrinkage` of learned priors (with the
margin, learned from the first halves of the two other domains, 100 sentences each).

A is drawn with replacement (seeds 0, 1, …; the same for every row) from the first 250 adaptation
sentences of a domain, and what the mode of the posterior chooses is scored on the other 250;
`--both` does the same the other way round too, and takes the mean. No test sentence is looked at.
Printed: TER ± 2 standard deviations over the draws / BLEU / words of the outputs over those of the
references, each the mean over the domains; `sum` is the mean TER over the sizes plus half of the
mean ± (one standard deviation): less is better.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import jax
import numpy as np
from bench_likelihoods import DOMAINS, Material, cell, summary
from measuring import canonical, lists

import bpa_ppl as bpa
from bpa_ppl.models import Isotropic, Likelihood, Margin, Prior, Risk
from bpa_ppl.models.likelihoods.base import round_setting
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.quality import TER, gains, statistics
from bpa_ppl.sampling.adapting import target_of
from bpa_ppl.sampling.mode import find_mode
from bpa_ppl.weights import deviation_within, match

SIZES = (10, 20, 50, 100)
GAINS = ("ter", "bleu", "chrf", "ter+bleu")
GAMMAS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
STRENGTHS = (1.0, 2.5, 5.0, 10.0, 20.0)
SHRINKAGES = (0.0125, 0.025, 0.05, 0.1, 0.2)
LEARNED_FROM = 100
_APART = 1000  # between the seeds of other domains' sentences and those of A


class PerEdit(Margin, frozen=True):
    """The margin with γ in edits: for other gains per standard deviation within the lists."""

    edits: float = 0.0

    def scaled(self, edit: float) -> Margin:
        """Return the margin with γ in the unit of the gain."""
        return Margin(gamma=round_setting(self.edits / edit))


class Split:
    """Sentences of a domain to adapt to, and others to be scored on."""

    def __init__(self, domain: str, pool: NBest, held: NBest, swapped: bool = False):
        self.domain, self.pool, self.swapped = domain, pool, swapped
        self.match = match(canonical(), self.pool)
        self.prior = Isotropic().build(self.match).matched(self.match.free_names)
        self.scores = Material(
            pool, held, statistics(held, "ter"), statistics(held, "bleu")
        ).of_weights
        self.known = cache(self._known)
        self.posterior, self.learned = cache(self._posterior), cache(self._learned)

    def _known(self, metric: str) -> tuple[Int64, Float64]:
        """Return oracle and gains of each sentence of the pool: scored once for all draws."""
        preference = self.pool.scores(self.match.values)
        return bpa.oracles(self.pool, metric, preference=preference).index, gains(self.pool, metric)

    def mode(
        self,
        size: int,
        seed: int,
        likelihood: Likelihood,
        metric: str = "ter",
        prior: Prior | None = None,
    ) -> Any:
        """Return the target of one draw, and its mode."""
        sample, oracle, worth = self.sample(size, seed, metric)
        edit = 1.0 if metric == TER.key else deviation_within(sample, worth)
        likely = likelihood.with_defaults(edit)
        before = prior or self.prior
        given = {"oracle": oracle, "gains": worth if likely.observes == "gains" else None}
        with jax.enable_x64(True):
            target = target_of(sample, self.match, before, likelihood=likely, **given)
            return target, find_mode(target.program, target.data, target.start)

    def sample(self, size: int, seed: int, metric: str) -> tuple[NBest, Int64, Float64]:
        """Return the sentences of one draw, their oracles and gains."""
        taken = np.random.default_rng(seed).integers(len(self.pool), size=size)
        oracle, worth = self.known(metric)
        own = np.concatenate([worth[self.pool.rows(s)] for s in taken])
        return self.pool.select(taken), oracle[taken], own

    def _posterior(self, seed: int) -> Any:
        """Return the posterior of 100 sentences, for the priors of other domains."""
        taken = np.random.default_rng(_APART + seed).integers(len(self.pool), size=LEARNED_FROM)
        sample, likely = self.pool.select(taken), Margin(gamma=2.0)
        return bpa.adapt(sample, canonical(), sampler="laplace", likelihood=likely, seed=seed)

    def _learned(self, seed: int, **settings: float) -> Prior:
        """Return the prior learned from the two other domains."""
        others = [half(name, self.swapped) for name in DOMAINS if name != self.domain]
        prior = bpa.learn_prior({one.domain: one.posterior(seed) for one in others}, **settings)
        return prior.matched(self.match.free_names)

    def weights(self, *arguments: Any, **options: Any) -> Float64:
        """Return the weights of all features at the mode of one draw."""
        return self.match.full(np.asarray(self.mode(*arguments, **options)[1].position))


@cache
def half(domain: str, swapped: bool) -> Split:
    """Return half of a domain to adapt to, and the other half to be scored on."""
    pool = lists(domain, "adapt")
    parts = pool[: len(pool) // 2], pool[len(pool) // 2 :]
    return Split(domain, *(parts[::-1] if swapped else parts), swapped=swapped)


OfDraw = Callable[[Split, int, int], Float64]


def table(title: str, rows: Iterable[tuple[str, OfDraw]], options: Any, sizes: Any = SIZES) -> None:
    """Print one row for each name and what finds the weights of a draw."""
    print(f"\n{title:<24}" + "".join(f"{f'|A| = {n}':>36}" for n in sizes) + f"{'sum':>9}")
    sides = (False, True) if options.both else (False,)
    for name, of_draw in rows:
        found = []
        for size in sizes:
            domains = [
                np.array([one.scores(of_draw(one, size, seed)) for seed in range(options.draws)])
                for one in (half(domain, side) for domain in options.domains for side in sides)
            ]
            found.append(summary(domains))
        ter, spread = np.mean(found, axis=0)[:2]
        cells = "".join(f"{cell(values):>36}" for values in found)
        print(f"{name:<24}{cells}{ter + spread / 2:>9.2f}", flush=True)


def of(likelihood: Likelihood, metric: str = "ter") -> OfDraw:
    """Return what adapts with one likelihood."""
    return lambda one, size, seed: one.weights(size, seed, likelihood, metric)


def gamma(options: Any) -> None:
    """Print γ of the margin under each gain."""
    for gain in options.gains:
        rows = [(f"γ = {edits:g}", of(PerEdit(edits=edits), gain)) for edits in GAMMAS]
        table(f"margin, gain {gain}", rows, options)


def of_settings(
    kind: Callable[..., Likelihood], setting: str, values: Iterable[float]
) -> Callable[[Any], None]:
    """Return what prints the rows of one likelihood."""

    def rows(options: Any) -> None:
        named = [(f"{setting} = {value:g}", of(kind(**{setting: value}))) for value in values]
        base = ("margin, γ = 2", of(Margin(gamma=2.0)))
        published = ("published", of(Margin(gamma=0.0)))
        table(kind.__name__, [published, base, *named], options)

    return rows


def of_learned(**settings: float) -> OfDraw:
    """Return what adapts with a learned prior and the margin; to no sentence by the prior alone."""

    def weights(one: Split, size: int, seed: int) -> Float64:
        prior = one.learned(seed, **settings)
        if not size:
            return one.match.full(prior.mean)
        return one.weights(size, seed, Margin(gamma=2.0), prior=prior)

    return weights


def strength(options: Any) -> None:
    """Print what a learned prior is worth, by how strongly Σ is shrunk."""
    rows = [(f"strength = {value:g}", of_learned(strength=value)) for value in STRENGTHS]
    table("learned prior", rows, options, (0, *SIZES))


def shrinkage(options: Any) -> None:
    """Print the same by what Σ is shrunk to."""
    rows = [(f"shrinkage = {value:g}", of_learned(shrinkage=value)) for value in SHRINKAGES]
    table("learned prior", rows, options, (0, *SIZES))


TABLES: dict[str, Callable[[Any], None]] = {
    "gamma": gamma,
    "risk": of_settings(Risk, "kappa", (1.0, 2.0, 4.0, 8.0)),
    "strength": strength,
    "shrinkage": shrinkage,
}


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--gains", nargs="+", choices=GAINS, default=list(GAINS))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=list(DOMAINS))
    parser.add_argument("--both", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    for name in options.tables:
        TABLES[name](options)


if __name__ == "__main__":
    main()
