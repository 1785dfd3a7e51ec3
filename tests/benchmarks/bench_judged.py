"""Choosing among the outputs of neural systems, after adaptation to expert judgements.

    python tests/benchmarks/bench_judged.py [--tables NAME ...] [--draws 10]

The data and the protocol are those of `judged/` in the data folder: each half of a domain is once
the pool that judged lists are drawn from, and once the test set. Printed is the share of the
headroom (a random candidate has 0, the best one 1), or the mean MQM for talks, ± two standard
deviations over the draws, by the number of judged lists.

Tables:
    defaults     all quality metrics, or six common features; compared with simple alternatives
    equal        equal weights to start from
    references   the gain is a metric with references instead of judgements
    learned      a prior learned from the other domains
    preferences  answers to random pairs of candidates
    ted          talks, with consensus, length gap and the systems as features
    others       medical texts and WMT 2021, with the same features
    likelihoods  the likelihoods, on pools only
    checks       how many posteriors pass their check, and the median time of `adapt`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from measuring import DATA, best_time, run_tables

import bpa_ppl as bpa
from bpa_ppl.judging import headroom
from bpa_ppl.nbest import Int64, NBest
from bpa_ppl.quality import column_of
from bpa_ppl.weights import spread_within

WMT23 = ("wmt23.en-de", "wmt23.zh-en")
OTHERS = ("bio.de-en", "bio.en-fr", "bio.fr-en", "wmt21.en-de")
TED = ("ted.en-de", "ted.zh-en")
CONSENSUS, LENGTH_GAP = "consensus_chrf", "length_gap"
COMPUTED = (CONSENSUS, LENGTH_GAP)
SIX = ("qe_CometKiwi", "qe_prismSrc", "qe_KG-BERTScore", *COMPUTED, "chars")
SIZES = (10, 20, 50)

Chooser = Callable[["Half", NBest], Int64]


@dataclass(frozen=True, eq=False)
class Half:
    """One half of a domain to draw judged lists from, and the other half to test on.

    Attributes:
        name: the file and the domain.
        pool: the lists to draw from.
        test: the test lists.
    """

    name: str
    pool: NBest
    test: NBest

    def mean_mqm(self, choice: Int64) -> float:
        """Return the mean MQM of the chosen test candidates."""
        return float(column_of(self.test, "mqm")[self.test.offsets[:-1] + choice].mean())

    def headroom(self, choice: Int64) -> float:
        """Return the share of the way from a random candidate to the best one."""
        return headroom(self.test, choice, "mqm")


def read_halves(
    files: tuple[str, ...],
    names: tuple[str, ...] = (),
    *,
    folder: str = "judged",
    suffix: str = "",
    gain: str = "mqm",
    judgement: str = "mqm",
) -> list[Half]:
    """Return the halves of every domain, each once as the pool and once as the test set.

    Args:
        files: the names of the files.
        names: the features; none uses all metrics without references, and `COMPUTED`.
        folder: the folder of the files.
        suffix: the end of their names.
        gain: the column by which the lists of the pool are judged.
        judgement: the column of the files that becomes `mqm`.
    """
    halves = []
    for file in files:
        lists = bpa.read_nbest(DATA / folder / f"{file}{suffix}.jsonl.gz")
        lists = lists.with_extras(mqm=column_of(lists, judgement))
        missing = np.add.reduceat(~np.isfinite(column_of(lists, "mqm")), lists.offsets[:-1])
        lists = lists[np.flatnonzero(missing == 0)]
        metrics = [name for name in lists.feature_names if name.startswith("qe_")]
        features = list(names) or [*metrics, *COMPUTED]
        columns = np.column_stack([column_of(lists, name) for name in features])
        extras = {name: column_of(lists, name) for name in ("mqm", gain)}
        domains = np.array(lists.sentence_extras.get("domain", ["all"] * len(lists)))
        lists = lists.without_features(lists.feature_names).without("sources", "references")
        lists = lists.with_features(features, columns).with_extras(**extras)
        for domain in dict.fromkeys(domains.tolist()):
            positions = np.flatnonzero(domains == domain)
            order = positions[np.random.default_rng(5).permutation(len(positions))]
            parts = lists[order[: len(order) // 2]], lists[order[len(order) // 2 :]]
            halves += [Half(f"{file} {domain}", *pair) for pair in (parts, parts[::-1])]
    return halves


def draw_lists(half: Half, size: int, seed: int) -> NBest:
    """Draw judged lists from the pool, without replacement."""
    size = min(size, len(half.pool))
    return half.pool[np.random.default_rng(seed).choice(len(half.pool), size, replace=False)]


def adapt(half: Half, lists: NBest, weights: Any = None, **options: Any) -> Int64:
    """Adapt with a column of judgements as the gain, and rerank the test lists."""
    if not len(lists):  # the pool gives the spread of the features
        lists, options = half.pool, {**options, "prior_only": True}
    posterior = bpa.adapt(lists, weights, **{"metric": "mqm", **options})
    return bpa.rerank(half.test, posterior, unchecked=True).choice


def best_feature(half: Half, lists: NBest) -> Int64:
    """Choose by the feature that is best on the judged lists."""
    mqm, starts = column_of(lists, "mqm"), lists.offsets[:-1]
    means = [mqm[starts + lists.best(column)].mean() for column in lists.features.T]
    return half.test.best(half.test.features[:, int(np.argmax(means))])


def best_system(half: Half, lists: NBest) -> Int64:
    """Choose the candidate of the system that is best on the judged lists."""
    systems, mqm = np.array(lists.extras["system"]), column_of(lists, "mqm")
    best = max(sorted(set(systems.tolist())), key=lambda name: mqm[systems == name].mean())
    return half.test.best(np.array(half.test.extras["system"]) == best)


def mean_of_features(half: Half, _: NBest) -> Int64:
    """Choose by the mean of the standardised features except the length gap."""
    names = np.array(half.test.feature_names)
    scale = np.where(names == LENGTH_GAP, 0.0, 1 / spread_within(half.test))
    return half.test.best(half.test.features @ scale)


def consensus(half: Half, _: NBest) -> Int64:
    """Choose by the mean chrF against the other candidates."""
    return half.test.best(column_of(half.test, CONSENSUS))


def print_row(
    name: str,
    choose: Chooser,
    halves: list[Half],
    sizes: tuple[int, ...],
    draws: int,
    *,
    score: Callable[[Half, Int64], float] = Half.headroom,
    draw: Callable[[Half, int, int], NBest] = draw_lists,
) -> None:
    """Print the scores of the choices from the test lists, for each number of judged lists."""
    cells = []
    for size in sizes:
        means = [
            np.mean([score(half, choose(half, draw(half, size, seed))) for half in halves])
            for seed in range(draws if size else 1)
        ]
        cells.append(cell(size, means))
    print(f"{name:<34} " + "   ".join(cells), flush=True)


def cell(size: int, means: list[Any]) -> str:
    """Format the mean of all draws ± two standard deviations."""
    spread = 2 * np.std(means, ddof=min(1, len(means) - 1))
    return f"{size:>4}: {np.mean(means):.3f} ± {spread:.3f}"


def defaults(options: Any) -> None:
    """Print the scores of the default and of simple alternatives."""
    for title, names in (("all metrics", ()), ("six features", SIX)):
        halves = read_halves(WMT23, names)
        print(f"\n{title}, {len(halves)} halves")
        print_row("consensus alone", consensus, halves, (0,), options.draws)
        print_row("mean of standardised features", mean_of_features, halves, (0,), options.draws)
        print_row("best feature on judged lists", best_feature, halves, SIZES, options.draws)
        print_row("best system on judged lists", best_system, halves, SIZES, options.draws)
        print_row("default", adapt, halves, SIZES, options.draws)


def equal(options: Any) -> None:
    """Print the scores with equal weights to start from."""
    print("\nweights='equal'")
    choose = partial(adapt, weights="equal", lower_is_better=[LENGTH_GAP])
    print_row("default", choose, read_halves(WMT23), (0, *SIZES), options.draws)


def references(options: Any) -> None:
    """Print the scores with the gain of a metric with references."""
    print("\nthe gain is a metric with references")
    for metric in ("ref_COMET", "ref_BLEURT-20", "ref_MetricX-23", "ref_chrF"):
        halves = read_halves(WMT23, suffix=".ref", gain=metric)
        print_row(metric, partial(adapt, metric=metric), halves, SIZES, options.draws)


def learned(options: Any) -> None:
    """Print the scores with a prior learned from the other domains."""
    halves = read_halves(WMT23)
    posteriors = {}
    for half in halves[::2]:
        lists = NBest.concatenate([half.pool, half.test], renumber=True)
        posteriors[half.name] = bpa.adapt(lists, None, metric="mqm")
    priors = {
        name: bpa.learn_prior([one for other, one in posteriors.items() if other != name])
        for name in posteriors
    }
    print("\nprior learned from the other domains")

    def choose(half: Half, lists: NBest) -> Int64:
        return adapt(half, lists, prior=priors[half.name])

    print_row("default", choose, halves, (0, *SIZES), options.draws)


def answer_pairs(half: Half, answers: int, seed: int) -> NBest:
    """Return the pool with answers to random pairs of its candidates, as a judge gives them."""
    pool, rng = half.pool, np.random.default_rng(seed)
    mqm = column_of(pool, "mqm")
    preferences: list[list[list[int]]] = [[] for _ in range(len(pool))]
    ties: list[list[list[int]]] = [[] for _ in range(len(pool))]
    for _ in range(answers):
        s = int(rng.integers(len(pool)))
        first, second = (int(i) for i in rng.choice(pool.sizes[s], 2, replace=False))
        difference = mqm[pool.offsets[s] + first] - mqm[pool.offsets[s] + second]
        if difference == 0:
            ties[s].append([first, second])
        else:
            preferences[s].append([first, second] if difference > 0 else [second, first])
    return pool.without("mqm").with_sentence_extras(preferences=preferences, ties=ties)


def preferences(options: Any) -> None:
    """Print the scores with answers to random pairs, which may be `no difference`."""
    print("\nanswers to random pairs")
    choose = partial(adapt, metric="ter", likelihood="preference")
    halves = read_halves(WMT23)
    print_row("default", choose, halves, (50, 100), options.draws, draw=answer_pairs)


def ted(options: Any) -> None:
    """Print the mean MQM for talks."""
    halves = read_halves(TED, COMPUTED, folder="mqm")
    draws, mean, sizes = options.draws, Half.mean_mqm, (20, 100)
    print("\nTED talks, mean MQM")
    print_row("consensus alone", consensus, halves, (0,), draws, score=mean)
    print_row("best system on judged lists", best_system, halves, sizes, draws, score=mean)
    default = partial(adapt, categorical="system")
    print_row("default", default, halves, sizes, draws, score=mean)

    def with_canonical(half: Half, lists: NBest) -> Int64:
        spread = spread_within(half.pool)[half.pool.feature_names.index(CONSENSUS)]
        canonical = {CONSENSUS: 0.5 / spread}
        variances = {CONSENSUS: 0.1 / spread**2}
        return default(half, lists, canonical, defaults={LENGTH_GAP: 0.0}, prior_variance=variances)

    print_row("canonical weight of the consensus", with_canonical, halves, sizes, draws, score=mean)
    runs = [compare_at_20(half, seed) for half in halves for seed in range(draws)]
    simple, alone = np.mean(runs, axis=0)
    print(f"20 judged lists, by leave-one-out: a simple way is ahead in {simple:.0%} of the runs,")
    print(f"the consensus alone in {alone:.0%}")


def compare_at_20(half: Half, seed: int) -> tuple[bool, bool]:
    """Return whether any baseline is ahead of the adapted weights, and whether the consensus is."""
    lists = draw_lists(half, 20, seed)
    posterior = bpa.adapt(lists, None, metric="mqm", categorical="system")
    result = bpa.compare_baselines(lists, posterior)
    row = next(r for r in result.rows if r.kind == "feature" and r.name == CONSENSUS)
    return result.is_beaten, row.difference < 0


def others(options: Any) -> None:
    """Print the scores for each domain of medical texts and WMT 2021."""
    halves = read_halves(OTHERS, COMPUTED)
    for pair in zip(halves[::2], halves[1::2], strict=True):
        print(f"\n{pair[0].name}")
        print_row("consensus alone", consensus, list(pair), (0,), options.draws)
        print_row("best system on judged lists", best_system, list(pair), (20, 50), options.draws)
        choose = partial(adapt, categorical="system")
        print_row("default", choose, list(pair), (20, 50), options.draws)


def likelihoods(options: Any) -> None:
    """Print the scores of the likelihoods on pools alone.

    Judged lists and held-out lists are parts of the same half, so the default can be chosen by this
    table.
    """
    sets = {
        "WMT 2023, all metrics": read_halves(WMT23),
        "WMT 2023, six features": read_halves(WMT23, SIX),
        "TED talks": read_halves(TED, COMPUTED, folder="mqm"),
        "medical texts and WMT 2021": read_halves(OTHERS, COMPUTED),
    }
    for title, halves in sets.items():
        print(f"\n{title}: {len(halves)} pools, held-out lists")
        for name in ("risk", "margin", "oracle"):
            cells = []
            for size in (10, 20):
                means = []
                for seed in range(options.draws):
                    splits = [split_pool(half, size, seed) for half in halves]
                    scores = [s.headroom(adapt(s, s.pool, likelihood=name)) for s in splits]
                    means.append(np.mean(scores))
                cells.append(cell(size, means))
            print(f"{name:<34} " + "   ".join(cells), flush=True)


def split_pool(half: Half, size: int, seed: int) -> Half:
    """Return judged lists from a pool, with the rest of the pool as the test lists."""
    order = np.random.default_rng(seed).permutation(len(half.pool))
    return Half(half.name, half.pool[order[:size]], half.pool[order[size:]])


def checks(options: Any) -> None:
    """Print how many posteriors of 5 to 100 lists pass their check, over all data."""
    halves = [*read_halves(WMT23), *read_halves(WMT23, SIX), *read_halves(OTHERS, COMPUTED)]
    halves += read_halves(TED, COMPUTED, folder="mqm")
    passed, seconds = [], []
    for seed in range(options.draws):
        for number, half in enumerate(halves):
            lists = draw_lists(half, (5, 10, 20, 50, 100)[(seed + number) % 5], seed)
            timed = best_time(partial(bpa.adapt, lists, None, metric="mqm", seed=seed))
            seconds.append(timed.seconds)
            passed.append(bool(bpa.check(timed.result)))
    print(f"\n{sum(passed)} of {len(passed)} posteriors pass; adapt: {np.median(seconds):.2f} s")


if __name__ == "__main__":
    tables = (defaults, equal, references, learned, preferences, ted, others, likelihoods, checks)
    run_tables(__doc__, {table.__name__: table for table in tables}, draws=10)
