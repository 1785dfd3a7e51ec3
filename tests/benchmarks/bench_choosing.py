"""Settings chosen from the adaptation sentences alone, against the best fixed ones in hindsight.

    python tests/benchmarks/bench_choosing.py [--sizes 10 20 100] [--draws 10] [--held-out]

γ of the margin and σ_T of the prior are chosen together out of 25 pairs. Each draw has its own
adaptation sentences (seeds 0, 1, …, with replacement); the mode of each candidate's posterior
chooses among the 500-best lists of all 500 test sentences, or with `--held-out` those of the second
half of the adaptation sentences, where A is drawn from the first. Printed: mean TER over the three
domains ± the mean of 2 standard deviations, BLEU, and TER less that of the defaults, of

* the defaults, and the pair that is best in hindsight: for all draws of all domains, for each
  domain, and for each draw;
* what leave-one-out chooses, by how many standard errors a candidate must be ahead of the defaults;
* what the marginal likelihood chooses of the five σ_T, with the default γ.
"""

from __future__ import annotations

import argparse
import warnings
from time import perf_counter
from typing import Any, NamedTuple

import jax
import numpy as np
from bench_held_out import Split, half
from bench_likelihoods import DOMAINS
from measuring import lists

import bpa_ppl as bpa
from bpa_ppl.models import Isotropic, Margin
from bpa_ppl.nbest import Float64
from bpa_ppl.quality import Oracles, resolve
from bpa_ppl.sampling.adapting import target_of
from bpa_ppl.sampling.choosing import Choice, Parts, built, chosen, decision, evidence
from bpa_ppl.sampling.imh import IndependenceMetropolis
from bpa_ppl.sampling.mode import find_mode
from bpa_ppl.sampling.sentences import Sentences

PARTS = Parts(Margin(), Isotropic(), IndependenceMetropolis())
AHEAD = (0.0, 1.0, 2.0)


class Judged(NamedTuple):
    """One draw: the choice, and for each candidate evidence, TER and BLEU afterwards."""

    choice: Choice
    evidence: Float64
    ter: Float64
    bleu: Float64


def judge(split: Split, size: int, seed: int) -> Judged:
    """Judge every candidate on one draw, and score it."""
    sample, oracle, worth = split.sample(size, seed, "ter")
    none = np.zeros(size)
    oracles = Oracles(oracle, none, none.astype(int), "canonical", "ter", "")
    known = Sentences(sample, split.match, resolve("ter"), oracles, worth)

    def posterior_of(likelihood: Any, prior: Any) -> Any:
        given = {"likelihood": likelihood, "oracle": oracle, "gains": worth}
        return target_of(sample, split.match, prior, **given)

    choice = chosen(("margin", "prior-variance"), "loo", PARTS, known, posterior_of)
    found = []
    with jax.enable_x64(True):
        for one in choice.candidates:
            prior = built(one.parts.prior, split.match)
            target = posterior_of(one.parts.likelihood, prior)
            mode = find_mode(target.program, target.data, target.start)
            scores = split.scores(split.match.full(np.asarray(mode.position)))
            found.append((evidence(target), *scores[:2]))
    return Judged(choice, *np.array(found).T)


def by_evidence(one: Judged) -> int:
    """Return the candidate of the default γ with the highest marginal likelihood."""
    values = [c.values for c in one.choice.candidates]
    same = [k for k, v in enumerate(values) if v["margin"] == values[0]["margin"]]
    return same[int(np.argmax(one.evidence[same]))]


def table(title: str, judged: dict[str, list[Judged]]) -> None:
    """Print what each way to choose is worth."""
    every = [one for found in judged.values() for one in found]
    ter = {name: np.array([one.ter for one in found]) for name, found in judged.items()}
    overall = int(np.mean([t.mean(axis=0) for t in ter.values()], axis=0).argmin())
    best = {name: int(t.mean(axis=0).argmin()) for name, t in ter.items()}
    candidates = every[0].choice.candidates
    ways = {
        "defaults": lambda name, one: 0,
        f"best of all: {candidates[overall]}": lambda name, one: overall,
        "best of each domain": lambda name, one: best[name],
        "best of each draw": lambda name, one: int(one.ter.argmin()),
        **{
            f"leave-one-out, {ahead:g} SE ahead": (
                lambda name, one, ahead=ahead: decision(one.choice.candidates, ahead)
            )
            for ahead in AHEAD
        },
        "evidence, σ_T alone": lambda name, one: by_evidence(one),
    }
    print(f"\n{title:<52}{'TER':>16}{'BLEU':>8}{'− defaults':>12}{'not the defaults':>18}")
    for way, pick in ways.items():
        rows = {
            n: np.array([(o.ter[k], o.bleu[k], o.ter[k] - o.ter[0], k > 0) for o in found
                         for k in [pick(n, o)]])
            for n, found in judged.items()
        }  # fmt: skip
        mean = np.mean([r.mean(axis=0) for r in rows.values()], axis=0)
        spread = np.mean([2 * r[:, 0].std(ddof=min(1, len(r) - 1)) for r in rows.values()])
        cell = f"{mean[0]:.2f} ± {spread:.2f}"
        print(f"{way:<52}{cell:>16}{mean[1]:>8.2f}{mean[2]:>+12.2f}{mean[3]:>18.0%}", flush=True)


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 20, 100])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--domains", nargs="+", choices=DOMAINS, default=list(DOMAINS))
    parser.add_argument("--held-out", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    splits = {
        name: half(name, False)
        if options.held_out
        else Split(name, lists(name, "adapt"), lists(name, "test"))
        for name in options.domains
    }
    for size in options.sizes:
        start = perf_counter()
        judged = {
            name: [judge(split, size, seed) for seed in range(options.draws)]
            for name, split in splits.items()
        }
        seconds = (perf_counter() - start) / sum(map(len, judged.values()))
        resampled = np.mean(
            [c.resampled / size for found in judged.values() for o in found
             for c in o.choice.candidates]
        )  # fmt: skip
        table(f"|A| = {size}", judged)
        print(f"{seconds:.1f} s a draw; own draws for {resampled:.0%} of the sentences left out")


if __name__ == "__main__":
    main()
