"""Choosing among the outputs of neural systems, after adaptation to expert judgements.

    python benchmarks/bench_judged.py [--tables NAME ...] [--draws 10] [--collections all]

The data and the protocol are described in `judged/` in the data folder: each half of a domain is
once the pool that judged lists are drawn from, and once the test set. The tables show the share of
the headroom (0 for a random candidate, 1 for the best one) ± two standard deviations over the
draws, by the number of judged lists.

Tables:
    collections  the default on collections of every kind, with and without the systems, compared
                 with the best single system, a ridge regression and the consensus; `--collections`
                 selects some: many, six, consensus, summaries, preferences
    defaults     all quality metrics, or six common features; compared with simple alternatives
    equal        starting from equal weights
    references   a metric with references as the gain, instead of judgements
    learned      a prior learned from the other domains
    preferences  answers to random pairs of candidates
    others       medical texts and WMT 2021, with the same features
    indicators   without the systems, with them, and by default, with modes of the posterior
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any
from unittest.mock import patch

import measuring
import numpy as np
from measuring import DATA, few, print_cells, run_tables
from scipy.stats import norm, rankdata
from sklearn.linear_model import BayesianRidge

import bpa_ppl as bpa
from bpa_ppl import concatenate
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.adapting import build
from bpa_ppl.evaluation.headroom import headroom_won
from bpa_ppl.features.indicators import Indicators
from bpa_ppl.gains.judged import average_best
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.weights import StartingWeights

WMT23 = ("wmt23.en-de", "wmt23.zh-en")
OTHERS = ("bio.de-en", "bio.en-fr", "bio.fr-en", "wmt21.en-de")
TED = ("ted.en-de", "ted.zh-en")
#: Computed texts and summaries too, with other judgements than MQM.
CONSENSUS_SETS = ("wmt21.en-de", *TED, *OTHERS[:3], "bio.es-en", "wmt24esa.en-cs", "webnlg2020")
CONSENSUS_SETS = few(CONSENSUS_SETS)
SUMMARIES = "thumb.summeval"
JUDGEMENTS = {"wmt24esa.en-cs": "esa", "webnlg2020": "human", SUMMARIES: "human"}
REWARDS, HARD = "rewardbench.dev", ("llmbar-adver-neighbor", "llmbar-adver-GPTInst")
CONSENSUS, LENGTH_GAP = "consensus_chrf", "length_gap"
COMPUTED = (CONSENSUS, LENGTH_GAP)
SIX = ("qe_CometKiwi", "qe_prismSrc", "qe_KG-BERTScore", *COMPUTED, "chars")
SIZES = few((10, 20, 50))

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
        return float(read_column(self.test, "mqm")[self.test.offsets[:-1] + choice].mean())

    def headroom(self, choice: Int64) -> float:
        """Return the share of the way from a random candidate to the best one."""
        return headroom_won(self.test, choice, "mqm")


def read_halves(
    files: tuple[str, ...],
    names: tuple[str, ...] = (),
    *,
    suffix: str = "",
    gain: str | None = None,
    add: tuple[str, ...] = (),
) -> list[Half]:
    """Return the halves of every domain, each once as the pool and once as the test set.

    The human judgements are the column `mqm`, and those to adapt to `gain`.

    Args:
        files: the names of the files.
        names: the features; none uses all metrics without references, and `COMPUTED`.
        suffix: the end of their names.
        gain: the column by which the lists of the pool are judged; None is the human judgement.
        add: sources of features that are computed from the texts.
    """
    halves = []
    for file in files:
        path = DATA / ("mqm" if file in TED else "judged") / f"{file}{suffix}.jsonl.gz"
        lists = bpa.read_nbest(path, features="*")
        lists = lists.with_extras(mqm=read_column(lists, JUDGEMENTS.get(file, "mqm")))
        missing = np.add.reduceat(~np.isfinite(read_column(lists, "mqm")), lists.offsets[:-1])
        lists = lists[np.flatnonzero(missing == 0)]
        metrics = [name for name in lists.feature_names if name.startswith("qe_")]
        features = list(names) or [*metrics, *COMPUTED]
        columns = np.column_stack([read_column(lists, name) for name in features])
        extras = {"mqm": read_column(lists, "mqm"), "gain": read_column(lists, gain or "mqm")}
        domains = np.array(lists.sentence_extras.get("domain", ["all"] * len(lists)))
        lists = lists.without(*lists.feature_names).without("sources", "references")
        lists = lists.with_features(features, columns).with_extras(**extras)
        for source in add:
            lists = bpa.add_features(lists, source)
        for domain in dict.fromkeys(domains.tolist()):
            pairs = measuring.halves(lists, domains == domain)
            halves += [Half(f"{file} {domain}", *pair) for pair in pairs]
    return halves


def draw_lists(half: Half, size: int, seed: int) -> NBest:
    """Draw judged lists from the pool, without replacement."""
    return measuring.draw_lists(half.pool, size, seed)


def adapt(half: Half, lists: NBest, weights: Any = None, **options: Any) -> Int64:
    """Adapt with a column of judgements as the gain, and rerank the test lists."""
    if not len(lists):  # the pool gives the spread of the features
        lists, options = half.pool, {**options, "likelihood": "none"}
    posterior = bpa.adapt(lists, weights, **{"gain": "gain", **options})
    return bpa.rerank(half.test, posterior, unchecked=True).choice


def best_feature(half: Half, lists: NBest) -> Int64:
    """Choose by the feature that is best on the judged lists."""
    gain, starts = read_column(lists, "gain"), lists.offsets[:-1]
    means = [gain[starts + lists.best(column)].mean() for column in lists.features.T]
    return half.test.best(half.test.features[:, int(np.argmax(means))])


def best_system(half: Half, lists: NBest) -> Int64:
    """Choose the candidate of the system that is best on the judged lists."""
    systems, gain = np.array(lists.extras["system"]), read_column(lists, "gain")
    best = max(sorted(set(systems.tolist())), key=lambda name: gain[systems == name].mean())
    return half.test.best(np.array(half.test.extras["system"]) == best)


def mean_of_features(half: Half, _: NBest) -> Int64:
    """Choose by the mean of the standardised features except the length gap."""
    names = np.array(half.test.feature_names)
    scale = np.where(names == LENGTH_GAP, 0.0, 1 / half.test.spread)
    return half.test.best(half.test.features @ scale)


def consensus(half: Half, _: NBest) -> Int64:
    """Choose by the mean chrF against the other candidates."""
    return half.test.best(read_column(half.test, CONSENSUS))


def print_row(
    name: str,
    choose: Chooser,
    halves: list[Half],
    sizes: tuple[int, ...],
    draws: int,
    *,
    draw: Callable[[Half, int, int], NBest] = draw_lists,
) -> None:
    """Print the scores of the choices from the test lists, for each number of judged lists."""
    cells = []
    for size in sizes:
        means = [
            np.mean([half.headroom(choose(half, draw(half, size, seed))) for half in halves])
            for seed in range(draws if size else 1)
        ]
        cells.append(cell(size, means))
    print_cells(name, cells)


def cell(size: int, means: list[Any]) -> str:
    """Format the mean of all draws ± two standard deviations."""
    spread = 2 * np.std(means, ddof=min(1, len(means) - 1))
    return f"{size:>4}: {np.mean(means):.3f} ± {spread:.3f}"


def ridge(half: Half, lists: NBest, systems: bool = False) -> Int64:
    """Choose by a ridge regression of list-centred gains on standardised features."""
    source = Indicators(column="system").fitted(lists)
    judged, test = (bpa.add_features(x, source) if systems else x for x in (lists, half.test))
    unit = np.where(judged.spread > 0, judged.spread, 1.0)
    return half.test.best(test.features @ (fit_ridge(lists, judged.features / unit) / unit))


def fit_ridge(lists: NBest, table: Float64) -> Float64:
    """Regress normal scores of the gains on list-centred features (candidates, K)."""
    gain, parts = read_column(lists, "gain"), [lists.rows(s) for s in range(len(lists))]
    centred = np.concatenate([table[rows] - table[rows].mean(axis=0) for rows in parts])
    scores = [norm.ppf((rankdata(gain[rows]) - 0.5) / len(gain[rows])) for rows in parts]
    fitted = BayesianRidge(fit_intercept=False).fit(centred, np.concatenate(scores))
    return np.asarray(fitted.coef_)


def collections(options: Any) -> None:
    """Print the scores of the default on collections of every kind."""
    selected, draws = options.collections.split(","), options.draws
    for name, work in COLLECTIONS.items():
        if name in selected or "all" in selected:
            work(draws)


def metrics_and_systems(title: str, names: tuple[str, ...], draws: int) -> None:
    """Print the scores on WMT 2023 with quality metrics, with and without the systems."""
    halves = read_halves(WMT23, names)
    print(f"\nWMT 2023, {title}: {len(halves)} halves")
    print_row("best feature on judged lists", best_feature, halves, SIZES, draws)
    print_row("ridge", ridge, halves, SIZES, draws)
    print_row("default", adapt, halves, SIZES, draws)
    print_row("best system on judged lists", best_system, halves, SIZES, draws)
    print_row("ridge, with systems", partial(ridge, systems=True), halves, SIZES, draws)
    print_row("default, with systems", partial(adapt, categorical="system"), halves, SIZES, draws)


def consensus_alone(draws: int, files: tuple[str, ...] = (*CONSENSUS_SETS, SUMMARIES)) -> None:
    """Print the scores with features of the texts only, with and without the systems, by file."""
    for systems in (False, True):
        rows: dict[str, list[list[list[float]]]] = {}
        sizes = SIZES if systems else (0, *SIZES)
        for file in files:
            halves = read_halves((file,), (CONSENSUS,))
            choosers: dict[str, Chooser] = {"consensus by chrF": consensus}
            if systems:
                choosers["best system on judged lists"] = best_system
                choosers["ridge"] = partial(ridge, systems=True)
            choosers["default"] = partial(
                adapt,
                add=["consensus", "length"],
                exclude=[CONSENSUS],
                categorical="system" if systems else None,
            )
            for name, choose in choosers.items():
                scores = [
                    [
                        float(
                            np.mean([h.headroom(choose(h, draw_lists(h, n, seed))) for h in halves])
                        )
                        for seed in range(draws if n and name != "consensus by chrF" else 1)
                    ]
                    for n in sizes
                ]
                rows.setdefault(name, []).append(scores)
                means = "  ".join(
                    f"{n:>2}: {np.mean(s):.3f}" for n, s in zip(sizes, scores, strict=True)
                )
                print(f"{file:<16} {name:<28} {means}", flush=True)
        print(f"mean of {len(files)} files{', with the systems' if systems else ''}")
        for name, of_files in rows.items():
            cells = [
                cell(n, np.mean([scores[k] for scores in of_files], axis=0).tolist())
                for k, n in enumerate(sizes)
            ]
            print_cells(name, cells)


def summaries(draws: int) -> None:
    """Print the scores for summaries with three features of the texts and the systems."""
    halves = read_halves((SUMMARIES,), (*COMPUTED, "chars"))
    print("\nsummaries, consensus, length gap, length and the systems")
    print_row("best system on judged lists", best_system, halves, SIZES, draws)
    print_row("ridge", partial(ridge, systems=True), halves, SIZES, draws)
    print_row("default", partial(adapt, categorical="system"), halves, SIZES, draws)


def reward_halves(members: Any = True) -> list[Half]:
    """Return the halves of pairs of answers with the scores of reward models; 1 is the better."""
    lists = read_rewards()
    gain = np.zeros(len(lists.features))
    better = [entries[0][0] for entries in lists.sentence_extras["preferences"]]
    gain[lists.offsets[:-1] + np.array(better)] = 1
    pairs = measuring.halves(lists.with_extras(mqm=gain, gain=gain), members)
    return [Half(REWARDS, *pair) for pair in pairs]


@cache
def read_rewards() -> NBest:
    """Return pairs of answers with the scores of reward models."""
    return bpa.read_nbest(DATA / "judged" / f"{REWARDS}.jsonl.gz", features="*")


def hard_pairs() -> Any:
    """Return whether each of these pairs was made to mislead."""
    return np.isin(read_rewards().sentence_extras["domain"], HARD)


def rewards(draws: int) -> None:
    """Print the accuracy of reward models on pairs, by subset, and that of their mean."""
    domains = np.array(read_rewards().sentence_extras["domain"])
    subsets = {"LLMBar, neighbour and GPTInst": hard_pairs()}
    subsets |= {n: domains == n for n in dict.fromkeys(domains.tolist()) if n not in HARD}
    print("\naccuracy on pairs of answers, nine reward models")
    for name, members in subsets.items():
        if members.sum() < 30:
            continue
        cells: dict[str, dict[int, list[float]]] = {}
        for half in reward_halves(members):
            mean = half.test.best((half.test.features / half.pool.spread).sum(axis=1))
            cells.setdefault("mean", {}).setdefault(0, []).append(half.mean_mqm(mean))
            for size, seed in product(SIZES, range(draws)):
                lists = draw_lists(half, size, seed)
                for label, weights in (("default", None), ("equal", "equal")):
                    options = {"likelihood": "preference", "seed": seed}
                    posterior = bpa.adapt(lists, weights, **options)
                    choice = bpa.rerank(half.test, posterior, unchecked=True).choice
                    accuracies = cells.setdefault(label, {}).setdefault(size, [])
                    accuracies.append(half.mean_mqm(choice))
        shown = (
            f"{label} " + "  ".join(f"{n}: {np.mean(v):.3f}" for n, v in sizes.items())
            for label, sizes in cells.items()
        )
        print(f"{name:<32} " + "   ".join(shown), flush=True)


#: The collections of the table, by their names on the command line.
COLLECTIONS: dict[str, Callable[[int], None]] = {
    "many": partial(metrics_and_systems, "all metrics", ()),
    "six": partial(metrics_and_systems, "six features", SIX),
    "consensus": consensus_alone,
    "summaries": summaries,
    "preferences": rewards,
}


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
    choose = partial(adapt, weights=StartingWeights("equal", lower_is_better=[LENGTH_GAP]))
    print_row("default", choose, read_halves(WMT23), (0, *SIZES), options.draws)


def references(options: Any) -> None:
    """Print the scores with the gain of a metric with references."""
    print("\nthe gain is a metric with references")
    for metric in few(("ref_COMET", "ref_BLEURT-20", "ref_MetricX-23", "ref_chrF")):
        halves = read_halves(WMT23, suffix=".ref", gain=metric)
        print_row(metric, adapt, halves, SIZES, options.draws)


def priors_of_others(posteriors: dict[str, Any]) -> dict[str, bpa.Prior]:
    """Return for each domain the prior that is learned from the posteriors of the others."""
    return {
        name: bpa.learn_prior(
            [one for other, one in posteriors.items() if other != name], unchecked=True
        )
        for name in posteriors
    }


def learned(options: Any) -> None:
    """Print the scores with a prior learned from the other domains."""
    halves = read_halves(WMT23)
    posteriors = {}
    for half in halves[::2]:
        lists = concatenate([half.pool, half.test], renumber=True)
        posteriors[half.name] = bpa.adapt(lists, None, gain="mqm")
    priors = priors_of_others(posteriors)
    print("\nprior learned from the other domains")

    def choose(half: Half, lists: NBest) -> Int64:
        return adapt(half, lists, prior=priors[half.name])

    print_row("default", choose, halves, (0, *SIZES), options.draws)


def answer_pairs(half: Half, answers: int, seed: int) -> NBest:
    """Return the pool with answers to random pairs of its candidates, as a judge gives them."""
    pool, rng = half.pool, np.random.default_rng(seed)
    mqm = read_column(pool, "mqm")
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
    choose = partial(adapt, gain="ter", likelihood="preference")
    halves = read_halves(WMT23)
    print_row("default", choose, halves, few((50, 100)), options.draws, draw=answer_pairs)


def others(options: Any) -> None:
    """Print the scores for each domain of medical texts and WMT 2021."""
    halves = read_halves(few(OTHERS), COMPUTED)
    for pair in zip(halves[::2], halves[1::2], strict=True):
        print(f"\n{pair[0].name}")
        print_row("consensus alone", consensus, list(pair), (0,), options.draws)
        print_row("best system on judged lists", best_system, list(pair), (20, 50), options.draws)
        choose = partial(adapt, categorical="system")
        print_row("default", choose, list(pair), (20, 50), options.draws)


def indicators(options: Any) -> None:
    """Print the scores without the systems, with them, and by default.

    By default `adapt` leaves them out where they do not explain the order of the candidates. Equal
    scores are shared: the alphabetical order of the systems would decide otherwise.
    """
    sets = [(WMT23, names) for names in (COMPUTED, SIX, ())]
    sets += [((file,), (*COMPUTED, "chars")) for file in (*CONSENSUS_SETS, SUMMARIES)]
    differences = []
    for files, names in few(sets):
        halves = read_halves(files, names)
        features = len(halves[0].pool.feature_names)
        print(f"\n{', '.join(files)}: {features} features, {len(halves)} halves")
        scores = np.array(
            [
                [[with_and_without(h, size, seed) for h in halves] for seed in range(options.draws)]
                for size in SIZES
            ]
        ).mean(axis=2)  # (sizes, draws, ways)
        for way, name in enumerate(("without the systems", "with the systems", "default")):
            cells = zip(SIZES, scores[:, :, way].tolist(), strict=True)
            print_cells(name, [cell(size, means) for size, means in cells])
        means = scores.mean(axis=1)
        differences.append(means - means[:, :2].max(axis=1, keepdims=True))
    print("\nminus the better of without and with")
    for name, way in zip(("without", "with", "default"), np.stack(differences).T, strict=True):
        below = f"{int((way < -0.02).sum())} of {way.size}"
        print(f"{name:<8} mean {way.mean():+.3f}, lowest {way.min():+.3f}, below -0.02: {below}")


def with_and_without(half: Half, size: int, seed: int) -> tuple[float, float, float]:
    """Return the headroom won without the systems, with them, and by default."""
    lists = draw_lists(half, size, seed)
    without = shared_headroom(half, adapt_judged(lists))
    default = adapt_judged(lists, categorical="system")
    if not default.adaptation.indicators.left_out:
        both = shared_headroom(half, default)
        return without, both, both
    with patch.object(build, "LEFT_OUT_BELOW", -np.inf):
        both = shared_headroom(half, adapt_judged(lists, categorical="system"))
    return without, both, shared_headroom(half, default)


def adapt_judged(lists: NBest, **options: Any) -> Any:
    """Return the mode of the posterior."""
    return bpa.as_weight_draws(bpa.adapt(lists, None, gain="gain", sampler="map", **options))


def shared_headroom(half: Half, posterior: Any) -> float:
    """Return the headroom won by the mean of the candidates of the highest score."""
    test, mqm = half.test, read_column(half.test, "mqm")
    weights = posterior.at_point("mean")
    scores = np.zeros(len(mqm))
    for name, weight in weights.items():
        system = name.removeprefix("system=")
        column = np.array(test.extras["system"]) == system
        scores += weight * (column if system != name else read_column(test, name))
    starts = test.offsets[:-1]
    mean = np.add.reduceat(mqm, starts) / test.sizes
    best = np.maximum.reduceat(mqm, starts)
    won = average_best(test, mqm, scores) - mean
    return float(won.mean() / (best - mean).mean())


if __name__ == "__main__":
    run_tables(
        __doc__,
        (collections, defaults, equal, references, learned, preferences, others, indicators),
        draws=10,
        collections="all",
    )
