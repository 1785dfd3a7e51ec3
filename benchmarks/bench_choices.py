"""Choices by the default likelihood of judged lists, compared with the best simple way.

    python benchmarks/bench_choices.py [--tables NAME …] [--draws 3] [--sets six …]

Tables:
    systems  with the names of systems
    without  without them
    tried    without them, with other likelihoods and prior means, by the modes of `list_modes`
    signs    the same for the sign of the prior mean: that of the sum of the agreements, or the one
             that the lists make more probable, which is the default
    subsets  the same two with pairs of features and some of their subsets of three to five; those
             that lose more than 0.03, compared with the prior mean 0, are measured again with other
             halves of the lists
    rule     the rule `best`, which takes a simple way where leave-one-out shows that it is better:
             how often, and the headroom won there with it and with the default

Data, halves and draws are those of bench_judged.py: seeds 0, 1, … draw the judged lists. Printed is
the share of the headroom won on the test halves with 10, 20 and 50 judged lists, for each
collection, and the regret: the difference from the best of a ridge regression, the best single
feature on the judged lists, the mean of the standardised features, and the previous default, which
was `risk` with the prior mean 0, or with the names of systems `pairs:exponent=0.25,power=0.5`.
Posteriors are modes, with the learned scale of the prior; those of `rule` are drawn.

Sets of features: `all`, `six` and `ref` (42 metrics, 25 of them with references) of WMT 2023;
`weak`, three features of the texts of ten files; `grams`, 15 features, of which twelve are
precision and recall of n-grams against references, or the other candidates; `bad`, the same where
the candidates of two systems are far worse than all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations, product
from typing import Any, NamedTuple

import bench_judged
import list_modes
import measuring
import numpy as np
from bench_judged import COMPUTED, CONSENSUS_SETS, LENGTH_GAP, SIX, SIZES, SUMMARIES, WMT23, Half
from list_modes import JudgedLists, LogDensity, add_standardised, find_mode
from measuring import DATA, Table, few, run_tables

import bpa_ppl as bpa
from bpa_ppl import Isotropic
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.decoding.best import find_better_way
from bpa_ppl.features.matching import measure_agreement
from bpa_ppl.formats.in_memory import concatenate
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.lists.nbest import NBest, centre, measure_deviation, score_differences

WEAK = (*COMPUTED, "chars")
GRAM_FILES = (*CONSENSUS_SETS, SUMMARIES)
#: Words, and characters from 10 on: 15 are sequences of five characters.
ORDERS = (1, 2, 3, 4, 13, 15)
RISK, ROOT, PAIRS, MARGIN, DEFAULT = "risk", "pairs, root", "pairs", "margin", "default"
#: The default likelihood with the prior mean 0, and with the one that choices without the names of
#: systems have.
ZERO, COMMON = "default, prior mean 0", "default, prior mean as without systems"
LIKELIHOODS = {
    RISK: "risk",
    ROOT: "pairs:exponent=0.25,power=0.5",
    PAIRS: "pairs",
    MARGIN: "margin",
    ZERO: None,
    DEFAULT: None,
}
#: Two posteriors, whose standardised scores are added.
BOTH = (PAIRS, MARGIN)
SIMPLE = ("ridge", "feature", "mean")
#: Lists of each file with features of n-grams, of which computing takes a while.
MOST = 400


def count_grams(text: str, order: int) -> Counter[tuple[str, ...]]:
    """Count the sequences of words, or of `order` − 10 characters."""
    units = [*text] if order > 10 else text.split()
    order %= 10
    return Counter(tuple(units[i : i + order]) for i in range(len(units) - order + 1))


def score_grams(texts: list[str], references: Sequence[str]) -> Float64:
    """Return precision and recall of each order, (candidates, 12).

    The best of several references counts; without any, the mean over the other candidates.
    """
    columns = []
    for order in ORDERS:
        own = [count_grams(text.lower(), order) for text in texts]
        others = [count_grams(text.lower(), order) for text in references]
        rows = []
        for place, grams in enumerate(own):
            known = others or own[:place] + own[place + 1 :]
            shared = np.array([(grams & other).total() for other in known])
            recall = shared / np.maximum([other.total() for other in known], 1)
            pair = np.stack([shared / max(grams.total(), 1), recall])
            rows.append(pair.max(axis=1) if others else pair.mean(axis=1))
        columns.append(np.array(rows))
    return np.hstack(columns)


def read_grams(file: str) -> list[Half]:
    """Return the halves of a file with features of n-grams."""
    path = DATA / ("mqm" if file in bench_judged.TED else "judged") / f"{file}.jsonl.gz"
    lists = bpa.read_nbest(path, features="*")
    gain = read_column(lists, bench_judged.JUDGEMENTS.get(file, "mqm"))
    lists = lists.with_extras(gain=gain)
    judged = np.flatnonzero(np.logical_and.reduceat(np.isfinite(gain), lists.offsets[:-1]))
    lists = lists[np.random.default_rng(0).permutation(judged)[:MOST]]
    references = lists.references or [()] * len(lists)
    tables = [score_grams(lists.texts(s), references[s]) for s in range(len(lists))]
    columns = np.column_stack([*(read_column(lists, name) for name in WEAK), np.vstack(tables)])
    names = [*WEAK, *(f"{kind}{order}" for order in ORDERS for kind in ("precision", "recall"))]
    lists = lists.without(*lists.feature_names).without("sources", "references")
    lists = lists.with_features(names, columns).with_extras(mqm=read_column(lists, "gain"))
    return [Half(file, *pair) for pair in measuring.halves(lists)]


def add_bad(half: Half) -> Half:
    """Return a half where two systems are far worse: by 4 deviations of the gain, 2 of features."""
    gain, systems = read_column(half.pool, "gain"), np.array(half.pool.extras["system"])
    bad = np.random.default_rng(1).choice(sorted(set(systems.tolist())), 2, replace=False)
    both = centre(half.pool.features.astype(np.float64), half.pool.sizes).T @ gain
    step = 2 * np.sign(both) * half.pool.spread
    fall = 4 * measure_deviation(half.pool, gain)

    def lower(lists: NBest) -> NBest:
        is_bad = np.isin(np.array(lists.extras["system"]), bad)
        worse = read_column(lists, "gain") - fall * is_bad
        features, names = lists.features - np.outer(is_bad, step), lists.feature_names
        lists = lists.without(*names).with_features(names, features)
        return lists.with_extras(gain=worse, mqm=worse)

    return Half(half.name, lower(half.pool), lower(half.test))


def read_metrics() -> list[Half]:
    """Return the halves of WMT 2023 with all metrics, those with references too."""
    paths = [DATA / "judged" / f"{name}.ref.jsonl.gz" for name in WMT23]
    first, second = (bpa.read_nbest(path, features="*").feature_names for path in paths)
    metrics = [name for name in first if name in second and name.startswith(("qe_", "ref_"))]
    return bench_judged.read_halves(WMT23, (*metrics, *COMPUTED), suffix=".ref")


#: By the name of a set, its collections.
SETS: dict[str, dict[str, Callable[[], list[Half]]]] = {
    "all": {"WMT 2023, 19": partial(bench_judged.read_halves, WMT23)},
    "six": {"WMT 2023, 6": partial(bench_judged.read_halves, WMT23, SIX)},
    "ref": {"WMT 2023, 42": read_metrics},
    "weak": {
        f"{file}, 3": partial(bench_judged.read_halves, (file,), WEAK)
        for file in (*CONSENSUS_SETS, SUMMARIES)
    },
    "grams": {f"{file}, 15": partial(read_grams, file) for file in GRAM_FILES},
    "bad": {
        f"{file}, 15, two bad": lambda file=file: list(map(add_bad, read_grams(file)))
        for file in (SUMMARIES, "webnlg2020", "wmt24esa.en-cs")
    },
}


def win(half: Half, size: int, seed: int, categorical: str | None) -> dict[str, float]:
    """Return the headroom won by each way, with the mode of the posterior."""
    lists = bench_judged.draw_lists(half, size, seed)
    options: dict[str, Any] = {"gain": "gain", "sampler": "map", "categorical": categorical}
    result, scores, scale = {}, {}, None
    for name in (ROOT, DEFAULT) if categorical else LIKELIHOODS:
        prior = "isotropic" if name == DEFAULT else Isotropic(mean=0.0, scale=scale)
        options |= {"likelihood": LIKELIHOODS[name], "prior": prior}
        draws = bpa.as_weight_draws(bpa.adapt(lists, None, **options))
        result[name] = bench_judged.shared_headroom(half, draws)
        if not categorical:  # the scale of the prior is that of all likelihoods
            scale = draws.adaptation.prior.scale
            scores[name] = score_differences(half.test, draws.mean)
    if not categorical:
        both = add_standardised([scores[name] for name in BOTH], half.test)
        result[" | ".join(BOTH)] = half.headroom(half.test.best(both))
    result |= win_simply(half, lists, systems=bool(categorical))
    if categorical:
        result["system"] = half.headroom(bench_judged.best_system(half, lists))
        options["prior"] = "isotropic:mean=0.5"
        draws = bpa.as_weight_draws(bpa.adapt(lists, None, **options))
        result[COMMON] = bench_judged.shared_headroom(half, draws)
    return result


class Tried(NamedTuple):
    """A posterior whose modes are compared.

    Attributes:
        likelihood: of judged lists.
        factor: m, negative if lower values of all features are better and nobody has said so.
        direction: what the prior mean is proportional to.
    """

    likelihood: Callable[[JudgedLists], LogDensity]
    factor: float = 0.0
    direction: str = "agreement"


#: m of the rows with other likelihoods, and of those with wrong signs.
FACTOR = 0.35
FACTORS = {
    "ones": (0.15, 0.25, 0.5),
    "signs": (0.25, 0.5),
    "agreement": (0.0, -FACTOR, 0.25, FACTOR, 0.5, 0.75, 1.0, 1.5),
}
TRIED = {
    "margin": Tried(list_modes.margin),
    f"margin, mean {FACTOR} x agreement": Tried(list_modes.margin, FACTOR),
    "pairs, c = 1/2": Tried(list_modes.pairs),
}
for c, power in ((0.5, 0.75), (0.25, 0.0), (0.25, 0.5), (0.25, 1.0), (0.125, 0.5)):
    likelihood = partial(list_modes.pairs, exponent=c, power=power)
    TRIED[f"pairs, c = {c}, power {power}"] = Tried(likelihood)
for direction, factors in FACTORS.items():
    likelihood = partial(list_modes.pairs, exponent=0.25, power=0.75)
    for factor in factors:
        title = f"default likelihood, mean {factor} x {direction}"
        TRIED[title] = Tried(likelihood, factor, direction)


def win_by_modes(half: Half, size: int, seed: int, _: None) -> dict[str, float]:
    """Return the headroom won by each way that was tried."""
    drawn = bench_judged.draw_lists(half, size, seed)
    lists = JudgedLists(drawn)
    agreement, probability = agree(drawn, lists, np.arange(lists.size))
    directions = {
        "agreement": agreement,
        "signs": np.sign(agreement),
        "ones": np.array([float(name != LENGTH_GAP) for name in drawn.feature_names]),
    }
    scales, modes = {}, {}
    start = np.zeros(lists.size)
    for name, (likelihood, factor, kind) in TRIED.items():
        direction = directions[kind]
        if (kind, factor) not in scales:
            scales[kind, factor], _ = list_modes.learn_scale(lists, direction, factor)
        scale = scales[kind, factor]
        precision = np.eye(lists.size) / scale**2
        modes[name], _ = find_mode(likelihood(lists), precision, factor * scale * direction, start)
    scale, sign = list_modes.learn_sign(lists, agreement, probability, 0.5)
    precision, mean = np.eye(lists.size) / scale**2, 0.5 * sign * scale * agreement
    modes[DEFAULT], _ = find_mode(likelihood(lists), precision, mean, start)
    scale = scales["agreement", 0.0]
    modes[RISK] = list_modes.find_risk_mode(lists, scale, start, modes["margin"])
    mean = FACTOR * scale * agreement
    modes[f"risk, mean {FACTOR} x agreement"] = list_modes.find_risk_mode(
        lists, scale, mean, modes[f"margin, mean {FACTOR} x agreement"]
    )
    scores = {name: half.test.features @ (mode / lists.spread) for name, mode in modes.items()}
    both = [scores[name] for name in ("pairs, c = 1/2", "margin")]
    scores["pairs and margin, scores added"] = add_standardised(both, half.test)
    result = {name: half.headroom(half.test.best(values)) for name, values in scores.items()}
    return result | win_simply(half, drawn)


def agree(drawn: NBest, lists: JudgedLists, columns: Int64) -> tuple[Float64, float]:
    """Return the agreement of features, 0 for constant ones, and the probability of its sign."""
    agreement, varying = np.zeros(len(columns)), np.isfinite(lists.spread[columns])
    names = [drawn.feature_names[k] for k in columns[varying]]
    values, probability = measure_agreement(drawn, names)
    agreement[varying] = [*values.values()]
    return agreement, probability


#: Subsets of each number of features from three on, and how often lists are halved again for those
#: that are measured again.
SUBSETS, AGAIN = few(range(20)), few(range(24))
MEANS = ("prior mean 0", "sign of the sum", "sign by the lists")


def choose_subsets(count: int) -> list[tuple[int, ...]]:
    """Return the pairs of some features, and subsets of three to five of them at random."""
    rng, subsets = np.random.default_rng(0), list(combinations(range(count), 2))
    for size in range(3, min(count, 5) + 1):
        every = list(combinations(range(count), size))
        order = rng.permutation(len(every))[: len(SUBSETS)]
        subsets += [every[k] for k in sorted(order.tolist())]
    return subsets


def win_with(
    half: Half, drawn: NBest, lists: JudgedLists, columns: Int64
) -> tuple[float, float, float]:
    """Return the headroom won with some features by the ways of `MEANS`."""
    agreement, probability = agree(drawn, lists, columns)
    leads = np.ascontiguousarray(lists.leads[:, columns])
    weight = 0.5 / lists.candidates * lists.differences**0.75
    scales = [list_modes.learn_scale(lists, m * agreement, 0.5, columns)[0] for m in (0.0, 1.0)]
    scale, sign = list_modes.learn_sign(lists, agreement, probability, 0.5, columns)
    won = []
    for tau, mean in ((scales[0], 0.0), (scales[1], 0.5), (scale, 0.5 * sign)):
        prior_mean = mean * tau * agreement
        mode, _ = list_modes.find_pairs_mode(leads, weight, prior_mean, tau, np.zeros(len(columns)))
        scores = half.test.features[:, columns] @ (mode / lists.spread[columns])
        won.append(half.headroom(half.test.best(scores)))
    return won[0], won[1], won[2]


def measure_subsets(
    halves: list[Half], subsets: Sequence[tuple[int, ...]], size: int, seeds: range
) -> Float64:
    """Return the headroom won, (subsets, draws, ways)."""
    won = []
    for half, seed in product(halves, seeds):
        drawn = bench_judged.draw_lists(half, size, seed)
        lists = JudgedLists(drawn)
        won.append([win_with(half, drawn, lists, np.array(columns)) for columns in subsets])
    return np.array(won).swapaxes(0, 1)


def halve_again(halves: list[Half], seed: int) -> list[Half]:
    """Return other random halves of the lists that pairs of halves were made of."""
    rng, found = np.random.default_rng(seed), []
    for half in halves[::2]:
        lists = concatenate([half.pool, half.test])
        order = rng.permutation(len(lists))
        found += [Half(half.name, *pair) for pair in measuring.halves(lists[order])]
    return found


def measure_losses(halves: list[Half], subsets: Sequence[tuple[int, ...]], size: int) -> Float64:
    """Return the headroom won less that with the prior mean 0, (subsets, other halves).

    Subsets that were chosen by their loss on test lists are not measured on the same ones again.
    """
    losses = []
    for seed in (1000 + again for again in AGAIN):
        won = measure_subsets(halve_again(halves, seed), subsets, size, range(seed, seed + 1))
        losses.append((won[:, :, 2] - won[:, :, 0]).mean(axis=1))
    return np.column_stack(losses)


def signs(options: Any) -> None:
    """Print the headroom won with all features, by the sign of the prior mean."""
    table = Table("all features, 10 / 20 / 50 lists", *MEANS, width=24)
    total = []
    for title, read in [pair for name in options.sets for pair in SETS[name].items()]:
        halves = read()
        every = [tuple(range(len(halves[0].pool.feature_names)))]
        won = [measure_subsets(halves, every, size, range(options.draws)) for size in SIZES]
        total.append(np.array([of_size[0].mean(axis=0) for of_size in won]))
        table.row(title, *map(write, total[-1].T))
    table.row("all", *map(write, np.mean(total, axis=0).T))


def subsets(options: Any) -> None:
    """Print the headroom won with subsets of features, and where it is less than with mean 0."""
    columns = "subsets", *MEANS, "below", "again", "largest loss"
    table = Table("subsets of features, lists", *columns)
    total: dict[tuple[bool, int], list[Float64]] = {}
    for title, read in [pair for name in options.sets for pair in SETS[name].items()]:
        halves = read()
        chosen = choose_subsets(len(halves[0].pool.feature_names))
        of_pairs = np.array([len(columns) == 2 for columns in chosen])
        for size in SIZES:
            won = measure_subsets(halves, chosen, size, range(options.draws))
            for pairs, kind in ((True, "pairs"), (False, "three to five")):
                places = np.flatnonzero(of_pairs == pairs)
                means = won[places].mean(axis=1)
                total.setdefault((pairs, size), []).append(means.mean(axis=0))
                worse = places[means[:, 2] < means[:, 0] - 0.03]
                low, worst = 0, ""
                if worse.size:
                    change = measure_losses(halves, [chosen[k] for k in worse], size)
                    error = change.std(axis=1) / np.sqrt(change.shape[1])
                    low = int((change.mean(axis=1) < -0.03 - 2 * error).sum())
                    worst = f"{change.mean(axis=1).min():+.3f}"
                row = f"{title}: {kind}, {size}"
                figures = [f"{value:.3f}" for value in means.mean(axis=0)]
                table.row(row, len(places), *figures, len(worse), low, worst)
    for (pairs, size), means in total.items():
        figures = [f"{value:.3f}" for value in np.mean(means, axis=0)]
        table.row(f"all: {'pairs' if pairs else 'three to five'}, {size}", "", *figures, "", "", "")


def win_simply(half: Half, lists: NBest, *, systems: bool = False) -> dict[str, float]:
    """Return the headroom won by simple ways."""
    ways = {
        "ridge": bench_judged.ridge(half, lists, systems=systems),
        "feature": bench_judged.best_feature(half, lists),
        "mean": bench_judged.mean_of_features(half, lists),
    }
    return {name: half.headroom(choice) for name, choice in ways.items()}


def compare(
    options: Any,
    categorical: str | None,
    measure: Callable[[Half, int, int, Any], dict[str, float]] = win,
) -> None:
    """Print the headroom won by each way on each collection, and the regrets."""
    before, seeds = ROOT if categorical else RISK, range(options.draws)
    won: dict[str, dict[str, Float64]] = {}
    for title, read in [pair for name in options.sets for pair in SETS[name].items()]:
        halves = read()
        cells = [
            [measure(half, size, seed, categorical) for half, seed in product(halves, seeds)]
            for size in SIZES
        ]
        won[title] = {
            way: np.array([np.mean([one[way] for one in cell]) for cell in cells])
            for way in cells[0][0]
        }
        print(f"\n{title} features, {len(halves)} halves")
        for way, means in won[title].items():
            print(f"  {way:<44} {write(means)}", flush=True)
    print(
        "\nmean of the collections, mean regret, the worst of it, the worst change from " + before
    )
    for way in next(iter(won.values())):
        best = {t: np.max([w[n] for n in (before, *SIMPLE)], axis=0) for t, w in won.items()}
        means = np.array([ways[way] for ways in won.values()])
        regret = means - np.array([*best.values()])
        change = (means - np.array([ways[before] for ways in won.values()]))[:, -2:]
        print(
            f"  {way:<44} {write(means.mean(axis=0))}   {write(regret.mean(axis=0))}   "
            f"{regret.min():+.3f}   {change.min():+.3f} ({[*won][change.min(axis=1).argmin()]})"
        )


def write(values: Float64) -> str:
    """Return three decimals of each value."""
    return " / ".join(f"{value:.3f}" for value in values)


def without(options: Any) -> None:
    """Print the tables without the names of systems."""
    print("\nwithout the names of systems")
    compare(options, None)


def systems(options: Any) -> None:
    """Print the tables with the names of systems."""
    print("\nwith the names of systems")
    compare(options, "system")


def tried(options: Any) -> None:
    """Print what other likelihoods and prior means would do."""
    print("\nother likelihoods and prior means, without the names of systems")
    compare(options, None, win_by_modes)


def rule(options: Any) -> None:
    """Print how often `best` takes a simple way, and what is won where it does."""
    table = Table("rule best", "taken", "of", "headroom with it", "with the default", "better in")
    total: dict[int, list[tuple[float, float]]] = {size: [] for size in SIZES}
    count = dict.fromkeys(SIZES, 0)
    for title, read in [pair for name in options.sets for pair in SETS[name].items()]:
        halves = read()
        for size in SIZES:
            taken = []
            for half, seed in product(halves, range(options.draws)):
                lists = bench_judged.draw_lists(half, size, seed)
                draws = bpa.as_weight_draws(bpa.adapt(lists, None, gain="gain", seed=seed))
                if find_better_way(draws) is not None:
                    ways = (
                        bpa.rerank(half.test, draws, rule=name, unchecked=True).choice
                        for name in ("best", "mean")
                    )
                    best, mean = map(half.headroom, ways)
                    taken.append((best, mean))
            total[size] += taken
            samples = len(halves) * options.draws
            count[size] += samples
            print_taken(table, f"{title} features, {size} lists", taken, samples)
    for size in SIZES:
        print_taken(table, f"all, {size} lists", total[size], count[size])


def print_taken(
    table: Table, title: str, taken: Sequence[tuple[float, float]], samples: int
) -> None:
    """Print a row of the table of the rule `best`."""
    means = np.mean(taken, axis=0) if taken else np.full(2, np.nan)
    more = f"{np.mean([best > mean for best, mean in taken]):.0%}" if taken else ""
    values = [f"{value:.3f}" for value in means] if taken else ["", ""]
    table.row(title, len(taken), samples, *values, more)


if __name__ == "__main__":
    run_tables(__doc__, (without, systems, tried, signs, subsets, rule), draws=3, sets=tuple(SETS))
