"""Candidates of neural systems with expert judgements: how much of the headroom the choices win.

    python tests/benchmarks/bench_judged.py [--draws 10] [--tables defaults references …]

The protocol and the data are those of `../shared/data/judged`: each half of a domain is once the
pool that judged lists are drawn from and once the test set. Printed is the share of the way from a
random candidate to the best one, ± twice the standard deviation over the draws, next to the simple
ways to choose: the consensus, the mean of the standardised features, and the best feature and the
best system by the same judged lists.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from measuring import DATA

import bpa_ppl as bpa
from bpa_ppl.nbest import Float64, Int64, NBest
from bpa_ppl.quality import column_of
from bpa_ppl.weights import spread_within

WMT23 = ("wmt23.en-de", "wmt23.zh-en")
OTHERS = ("bio.de-en", "bio.en-fr", "bio.fr-en", "wmt21.en-de")
TED = ("ted.en-de", "ted.zh-en")
#: The features that most people have.
FEW = ("qe_CometKiwi", "qe_prismSrc", "qe_KG-BERTScore", "consensus_chrf", "length_gap", "chars")
#: Features that follow the protocol, by label or name.
COMPUTED = ("consensus_chrf", "length_gap")
LOWER = "length_gap"

Chosen = Callable[["Half", NBest], Int64]


@dataclass(frozen=True, eq=False)
class Half:
    """One half of a domain to draw judged lists from, and the other one to test on.

    Attributes:
        name: of file and domain.
        pool, test: the halves.
        gain: (candidates,) MQM of the test half.
    """

    name: str
    pool: NBest
    test: NBest
    gain: Float64

    def mean_gain(self, choice: Int64) -> float:
        """Return the mean MQM of choices from the test half."""
        return float(self.gain[self.test.offsets[:-1] + choice].mean())

    def headroom(self, choice: Int64) -> float:
        """Return the share of the way from a random candidate to the best one."""
        starts = self.test.offsets[:-1]
        random = float((np.add.reduceat(self.gain, starts) / self.test.sizes).mean())
        best = float(np.maximum.reduceat(self.gain, starts).mean())
        return (self.mean_gain(choice) - random) / (best - random)


def halves(
    files: tuple[str, ...],
    names: tuple[str, ...] = (),
    *,
    folder: str = "judged",
    suffix: str = "",
    gain: str = "mqm",
) -> list[Half]:
    """Return the halves of every domain, each once to adapt to and once to test on.

    Args:
        files: names of files.
        names: of the features; none takes all quality metrics without references and `COMPUTED`.
        folder: of the data.
        suffix: of the files.
        gain: the column that the lists of the pool are judged by.
    """
    found = []
    for file in files:
        lists = bpa.read_nbest(DATA / folder / f"{file}{suffix}.jsonl.gz")
        judged = np.add.reduceat(~np.isfinite(column_of(lists, "mqm")), lists.offsets[:-1]) == 0
        lists = lists[np.flatnonzero(judged)]
        domains = np.array(lists.sentence_extras.get("domain", ["all"] * len(lists)))
        of_file = names or tuple(n for n in lists.feature_names if n.startswith("qe_")) + COMPUTED
        columns = {name: column_of(lists, name) for name in dict.fromkeys([*of_file, "mqm", gain])}
        bare = lists.without_features(lists.feature_names).without("sources", "references")
        bare = bare.with_features(list(of_file), np.column_stack([columns[n] for n in of_file]))
        for domain in dict.fromkeys(domains.tolist()):
            where = np.flatnonzero(domains == domain)
            rows = np.concatenate([np.arange(len(lists.features))[lists.rows(s)] for s in where])
            own, mqm = bare[where], columns["mqm"][rows]
            own = own.with_extras(**{"mqm": mqm, gain: columns[gain][rows]})
            order = np.random.default_rng(5).permutation(len(own))
            parts = order[: len(own) // 2], order[len(own) // 2 :]
            for k in (0, 1):
                test = own[parts[1 - k]]
                found.append(Half(f"{file} {domain}", own[parts[k]], test, column_of(test, "mqm")))
    return found


def drawn(half: Half, size: int, seed: int) -> NBest:
    """Return judged lists from the pool, without replacement."""
    size = min(size, len(half.pool))
    rng = np.random.default_rng(seed)
    return half.pool[rng.choice(len(half.pool), size, replace=False)]


def adapted(half: Half, lists: NBest, weights: Any = None, **options: Any) -> Int64:
    """Adapt with a column of judgements as the gain, and rerank."""
    if not len(lists):  # the pool gives the spread of the features
        lists, options = half.pool, {**options, "prior_only": True}
    posterior = bpa.adapt(lists, weights, **{"metric": "mqm", **options})
    return bpa.rerank(half.test, posterior, unchecked=True).choice


def best_feature(half: Half, lists: NBest) -> Int64:
    """Choose by the feature that is best on the judged lists."""
    gain, starts = column_of(lists, "mqm"), lists.offsets[:-1]
    worth = [gain[starts + lists.best(column)].mean() for column in lists.features.T]
    return half.test.best(half.test.features[:, int(np.argmax(worth))])


def best_system(half: Half, lists: NBest) -> Int64:
    """Choose the candidate of the system that is best on the judged lists."""
    systems, gain = np.array(lists.extras["system"]), column_of(lists, "mqm")
    best = max(sorted(set(systems.tolist())), key=lambda name: gain[systems == name].mean())
    return half.test.best(np.array(half.test.extras["system"]) == best)


def mean_of_features(half: Half, _: NBest) -> Int64:
    """Choose by the mean of the standardised features but the gap of the length."""
    scale = np.where(np.array(half.test.feature_names) == LOWER, 0.0, 1 / spread_within(half.test))
    return half.test.best(half.test.features @ scale)


def consensus(half: Half, _: NBest) -> Int64:
    """Choose by the mean chrF against the other candidates."""
    return half.test.best(column_of(half.test, "consensus_chrf"))


SIMPLE: dict[str, Chosen] = {
    "best feature on A": best_feature,
    "best system on A": best_system,
}


def line(
    name: str,
    choose: Chosen,
    parts: list[Half],
    sizes: tuple[int, ...],
    draws: int,
    *,
    score: Callable[[Half, Int64], float] = Half.headroom,
    pool: Callable[[Half, int, int], NBest] = drawn,
) -> None:
    """Print what choices from the test halves win, for each number of judged lists."""
    shown = []
    for size in sizes:
        seeds = range(draws if size else 1)
        won = np.array(
            [
                [score(half, choose(half, pool(half, size, seed))) for half in parts]
                for seed in seeds
            ]
        )
        spread = 2 * won.mean(axis=1).std(ddof=1) if len(won) > 1 else 0.0
        shown.append(f"{size:>4}: {won.mean():.3f} ± {spread:.3f}")
    print(f"{name:<34} " + "   ".join(shown), flush=True)


def defaults(draws: int) -> None:
    """All quality metrics, and the features that most people have."""
    for title, names in (("all metrics", ()), ("six features", FEW)):
        parts = halves(WMT23, names)
        print(f"\n{title}, {len(parts)} halves")
        line("consensus alone", consensus, parts, (0,), draws)
        line("mean of standardised features", mean_of_features, parts, (0,), draws)
        for name, choose in SIMPLE.items():
            line(name, choose, parts, (10, 20, 50), draws)
        line("default", adapted, parts, (10, 20, 50), draws)


def equal(draws: int) -> None:
    """Equal weights to start from, with no judgement and with some."""
    parts = halves(WMT23)
    print("\nweights='equal'")
    chosen = partial(adapted, weights="equal", lower_is_better=[LOWER])
    line("default", chosen, parts, (0, 10, 20, 50), draws)


def references(draws: int) -> None:
    """References instead of judges: the gain is a metric against them, the test is by MQM."""
    print("\nthe gain is a metric against references")
    for metric in ("ref_COMET", "ref_BLEURT-20", "ref_MetricX-23", "ref_chrF"):
        parts = halves(WMT23, suffix=".ref", gain=metric)
        line(metric, partial(adapted, metric=metric), parts, (10, 20, 50), draws)


def learned(draws: int) -> None:
    """A prior learned from the other six domains."""
    parts = halves(WMT23)
    posteriors = {}
    for half in parts[::2]:
        lists = NBest.concatenate([half.pool, half.test], renumber=True)
        posteriors[half.name] = bpa.adapt(lists, None, metric="mqm")
    priors = {
        name: bpa.learn_prior([one for other, one in posteriors.items() if other != name])
        for name in posteriors
    }
    print("\nprior learned from the other domains")

    def choose(half: Half, lists: NBest) -> Int64:
        return adapted(half, lists, prior=priors[half.name])

    line("default", choose, parts, (0, 10, 20, 50), draws)


def asked(half: Half, clicks: int, seed: int) -> NBest:
    """Return the pool with the answers to random pairs of its candidates, as a judge gives them."""
    pool, rng = half.pool, np.random.default_rng(seed)
    gain = column_of(pool, "mqm")
    preferences: list[list[list[int]]] = [[] for _ in range(len(pool))]
    ties: list[list[list[int]]] = [[] for _ in range(len(pool))]
    for _ in range(clicks):
        s = int(rng.integers(len(pool)))
        first, second = (int(i) for i in rng.choice(pool.sizes[s], 2, replace=False))
        apart = gain[pool.offsets[s] + first] - gain[pool.offsets[s] + second]
        if apart == 0:
            ties[s].append([first, second])
        else:
            preferences[s].append([first, second] if apart > 0 else [second, first])
    return pool.without("mqm").with_sentence_extras(preferences=preferences, ties=ties)


def preferences(draws: int) -> None:
    """Random pairs of candidates; the answer may be that there is no difference."""
    print("\nrandom pairs")
    choose = partial(adapted, metric="ter", likelihood="preference")
    line("default", choose, halves(WMT23), (50, 100), draws, pool=asked)


def ted(draws: int) -> None:
    """Talks: consensus, length and the system alone; mean MQM."""
    parts = halves(TED, COMPUTED, folder="mqm")
    mean = Half.mean_gain
    print("\nTED talks, mean MQM")
    line("consensus alone", consensus, parts, (0,), draws, score=mean)
    line("best system on A", best_system, parts, (20, 100), draws, score=mean)
    default = partial(adapted, categorical="system")
    line("default", default, parts, (20, 100), draws, score=mean)

    def with_canonical(half: Half, lists: NBest) -> Int64:
        spread = spread_within(half.pool)[half.pool.feature_names.index("consensus_chrf")]
        canonical = {"consensus_chrf": 0.5 / spread}
        variances = {"consensus_chrf": 0.1 / spread**2}
        return default(half, lists, canonical, defaults={LOWER: 0.0}, prior_variance=variances)

    line("consensus 0.5 canonical", with_canonical, parts, (20, 100), draws, score=mean)
    said = [compared(half, drawn(half, 20, seed)) for half in parts for seed in range(draws)]
    simple, feature = np.mean(said, axis=0)
    print(f"by leave-one-out at 20 a simple way is ahead in {simple:.0%} of {len(said)} runs,")
    print(f"the consensus alone in {feature:.0%}")


def compared(half: Half, lists: NBest) -> tuple[bool, bool]:
    """Return whether the comparison has any baseline ahead, and whether the consensus alone is."""
    posterior = bpa.adapt(lists, None, metric="mqm", categorical="system")
    found = bpa.compare_baselines(lists, posterior)
    (alone,) = (row for row in found.rows if row.kind == "feature" and row.name == "consensus_chrf")
    return bool(found.is_beaten), alone.difference < 0


def others(draws: int) -> None:
    """Medical texts, and news and talks of another year: a single system may be the best choice."""
    for part in pairwise_halves(OTHERS):
        print(f"\n{part[0].name}")
        line("consensus alone", consensus, part, (0,), draws)
        line("best system on A", best_system, part, (20, 50), draws)
        line("default", partial(adapted, categorical="system"), part, (20, 50), draws)


def pairwise_halves(files: tuple[str, ...]) -> Iterator[list[Half]]:
    """Yield the two halves of each domain."""
    parts = halves(files, COMPUTED)
    for k in range(0, len(parts), 2):
        yield parts[k : k + 2]


def likelihoods(draws: int) -> None:
    """The likelihoods on pools alone: judged lists and held-out lists are parts of the same half.

    No test half is looked at, so that the default can be chosen by this table.
    """
    sets = {
        "WMT 2023, all metrics": halves(WMT23),
        "WMT 2023, six features": halves(WMT23, FEW),
        "TED talks": halves(TED, COMPUTED, folder="mqm"),
        "medical texts and WMT 2021": halves(OTHERS, COMPUTED),
    }
    for title, parts in sets.items():
        print(f"\n{title}: {len(parts)} pools, held-out lists")
        for name in ("risk", "margin", "oracle"):
            won = {size: [] for size in (10, 20)}
            for size, seed in product(won, range(draws)):
                parted = [held_out(half, size, seed) for half in parts]
                scores = [h.headroom(adapted(h, h.pool, likelihood=name)) for h in parted]
                won[size].append(float(np.mean(scores)))
            cells = [
                f"{n:>4}: {np.mean(w):.3f} ± {2 * np.std(w, ddof=1):.3f}" for n, w in won.items()
            ]
            print(f"{name:<34} " + "   ".join(cells), flush=True)


def held_out(half: Half, size: int, seed: int) -> Half:
    """Return judged lists from a pool, and the rest of the pool to test on."""
    order = np.random.default_rng(seed).permutation(len(half.pool))
    rest = half.pool[order[size:]]
    return Half(half.name, half.pool[order[:size]], rest, column_of(rest, "mqm"))


def checks(draws: int) -> None:
    """How many posteriors pass their check, over all data, and how long `adapt` takes."""
    few = halves(WMT23, FEW)
    sets = [*halves(WMT23), *few, *halves(TED, COMPUTED, folder="mqm"), *halves(OTHERS, COMPUTED)]
    passed, seconds = [], []
    for seed in range(draws):
        for number, half in enumerate(sets):
            size = (5, 10, 20, 50, 100)[(seed + number) % 5]
            lists = drawn(half, size, seed)
            start = perf_counter()
            posterior = bpa.adapt(lists, None, metric="mqm", seed=seed)
            seconds.append(perf_counter() - start)
            passed.append(bool(bpa.check(posterior)))
    print(f"\n{sum(passed)} of {len(passed)} posteriors pass; adapt: {np.median(seconds):.2f} s")


TABLES = {
    table.__name__: table
    for table in (
        defaults,
        equal,
        references,
        learned,
        preferences,
        ted,
        others,
        likelihoods,
        checks,
    )
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    chosen = parser.parse_args()
    logging.getLogger("bpa_ppl").addHandler(logging.NullHandler())
    for name in chosen.tables:
        TABLES[name](chosen.draws)


if __name__ == "__main__":
    main()
