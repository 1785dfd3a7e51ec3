"""The experiments of the papers on Bayesian predictive adaptation, on our lists.

    python benchmarks/bench_published.py [--tables NAME ...] [--draws 5] [--domains NAME ...]
        [--sizes N ...] [--methods NAME ...] [--sweeps NAME ...]

`texts`: sentences and average lengths. `methods`: the presets of the three papers, Viterbi
decisions, and n-gram precisions with brevity. `curves`: learning curves of adaptation and of
tuners, with the same precisions; MERT+ (A and the 400 lists that λ_T was tuned on) has lists of 100
candidates. `lengths`: choices among candidates with as many words as without adaptation, or as with
it. `seconds`: CPU time of adaptation and of tuners. `sweeps`: δ, the size n of the lists, the
number of samples |S|, the variances σ_T of the prior and σ_o of the proposals, and the burn-in.
`crossed`: n and δ together. `by-size`: δ = 8, and δ that grows with |A|. `scales`: the heuristic
sample around λ_T with Σ|λ| = 1 and 5, whose copies have Σ|λ| = 1, or 5 as well. `variances`:
acceptance, smallest effective sample size and TER by σ_T and σ_o. `examples`: translations of our
own texts. `both`: methods that learn from A and from the 400 lists that λ_T was tuned on; all lists
have 100 candidates. `decoder`: tuners in a loop with a stand-in decoder, whose search space is the
500-best lists and which returns the 100 best candidates; the other methods use lists cut to 100.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import combinations, product
from time import perf_counter
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from measuring import (
    Table,
    Task,
    authored_lists,
    best_time,
    canonical,
    domain_task,
    draw,
    few,
    read_lists,
    run_tables,
)

from bpa_ppl import (
    Isotropic,
    Weights,
    adapt,
    as_weight_draws,
    concatenate,
    corpus_score,
    point_weights,
    rerank,
)
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.adapting.published import Heuristic, perturb, weight_vectors
from bpa_ppl.densities.target import Sampled, Target
from bpa_ppl.diagnostics.samplers.efficiency import smallest_ess
from bpa_ppl.diagnostics.samplers.moments import holm
from bpa_ppl.extras.tuning.reestimation import reestimate
from bpa_ppl.extras.tuning.tuner import TuningProblem, make_tuning_lists
from bpa_ppl.extras.tuning.weight_trace import WeightTrace
from bpa_ppl.gains.bleu import BLEU
from bpa_ppl.gains.gains import count_statistics, resolve
from bpa_ppl.gains.ter import TER
from bpa_ppl.lists.nbest import NBest

METRICS = {"ter": TER(), "bleu": BLEU()}
#: The number of unigrams among the counts of BLEU.
BLEU_LENGTH = 4
#: The feature that is constant within each list, whose weight is fixed.
CONSTANT = "UnknownWordPenalty0"
#: Replicates of the bootstrap.
REPLICATES = 10_000
#: Decodings in the loop of a tuner, and candidates of each.
ITERATIONS, DECODED = 25, 100


class Method(NamedTuple):
    """How weights are learned from A, and how they choose from the test lists.

    Attributes:
        learn: from the lists of A and a seed to weights, or to a posterior.
        rule: the decision rule of a posterior.
        candidates: the number of candidates to keep of each list; 0 keeps all.
        development: whether D, the lists that λ_T was tuned on, are added to A.
        space: the search space in which the test sentences are decoded with the learned weights;
            without one, their given lists are reranked.
    """

    learn: Callable[[NBest, int], Any]
    rule: str = "predictive"
    candidates: int = 0
    development: bool = False
    space: NBest | None = None


class Run(NamedTuple):
    """What one draw of A led to.

    Attributes:
        counts: for each metric (sentences, S), of the choices from the test lists.
        seconds: from the lists of A to weights or a posterior.
    """

    counts: dict[str, Float64]
    seconds: float

    def scores(self, metric: str) -> float:
        """Return the corpus score."""
        return float(METRICS[metric].value(self.counts[metric].sum(axis=0)))

    def details(self) -> dict[str, float]:
        """Return BLEU with its precisions and three measures of length."""
        details = BLEU().details_of(self.counts["bleu"].sum(axis=0))
        brevity = min(1.0, details["length_ratio"])
        return {"bleu": self.scores("bleu"), **details, "brevity": brevity}


def unadapted(lists: NBest, seed: int) -> Weights:
    """Return λ_T."""
    return canonical()


def adapted(**options: Any) -> Callable[[NBest, int], Any]:
    """Return a function that adapts λ_T to lists, with options of `adapt`."""
    return lambda lists, seed: adapt(lists, canonical(), seed=seed, **options)


def tuned(tuner: str, gain: str = "bleu") -> Callable[[NBest, int], Any]:
    """Return a function that tunes the weights on lists, starting at λ_T."""
    return lambda lists, seed: (
        reestimate(lists, canonical(), tuner=tuner, gain=gain, seed=seed).weights
    )


def traced(lists: NBest, seed: int) -> Any:
    """Adapt with the weights that MERT visited on D, the same for all draws."""
    return adapt(lists, canonical(), preset="published-sspr", sampler=visited_weights(), seed=seed)


@cache
def development(candidates: int = 0) -> NBest:
    """Return D, the lists that λ_T was tuned on."""
    lists = read_lists("out-of-domain", "dev")
    return lists.truncate(candidates) if candidates else lists


@cache
def visited_weights() -> WeightTrace:
    """Return the sampler with the weights that MERT visits on D."""
    lists = development()
    start = {name: canonical()[name] for name in lists.feature_names}
    return WeightTrace(lists).fitted(start, fixed=[CONSTANT], seed=0)


METHODS = {
    "canonical": Method(unadapted),
    "published": Method(adapted(preset="published")),
    "mcmc-vit": Method(adapted(preset="published"), rule="viterbi"),
    "published-2010": Method(adapted(preset="published-2010")),
    "vit-2010": Method(adapted(preset="published-2010"), rule="viterbi"),
    "published-sspr": Method(traced),
    "heuristic": Method(adapted(sampler="heuristic")),
    "map-oracle": Method(adapted(sampler="map", likelihood="oracle")),
    "map": Method(adapted(sampler="map")),
}
#: Methods of the learning curves, by their names in the table.
CURVES = {
    "unadapted": METHODS["canonical"],
    "published": METHODS["published"],
    "published-2010": METHODS["published-2010"],
    "default": Method(adapted()),
    "mert (BLEU)": Method(tuned("mert")),
    "mert+ (BLEU, 100-best)": Method(tuned("mert"), candidates=100, development=True),
    "mira (BLEU)": Method(tuned("mira")),
    "mira (TER)": Method(tuned("mira", "ter")),
    "pro (BLEU)": Method(tuned("pro")),
}
#: Their names in the tables of n-grams.
SHORT = ("canonical", "published", "published-2010", "auto", "mert", "mert-plus-100")
SHORT = (*SHORT, "mira", "mira-ter", "pro")
#: Methods of lists of 100 candidates, with and without the lists that λ_T was tuned on.
BOTH = {
    "canonical": METHODS["canonical"],
    "mert-bleu": Method(tuned("mert"), candidates=100),
    "mert-plus-bleu": Method(tuned("mert"), candidates=100, development=True),
    "mert-ter": Method(tuned("mert", "ter"), candidates=100),
    "mert-plus-ter": Method(tuned("mert", "ter"), candidates=100, development=True),
    "oracle": METHODS["map-oracle"]._replace(candidates=100),
    "oracle-both": METHODS["map-oracle"]._replace(candidates=100, development=True),
    "default": METHODS["map"]._replace(candidates=100),
    "default-both": METHODS["map"]._replace(candidates=100, development=True),
}


def heuristic(**settings: float) -> Method:
    """Return the method of 2010 with other settings of its sampler."""
    values = {"draws": 100, "delta": 8, **settings}
    sampler = f"heuristic:{','.join(f'{name}={value}' for name, value in values.items())}"
    return Method(adapted(preset="published-2010", sampler=sampler))


def walk(setting: str, value: float) -> Method:
    """Return the method of 2015 with another setting of its sampler."""
    return Method(adapted(preset="published", sampler=f"rwm-isotropic:{setting}={value}"))


def with_variance(preset: str, value: float) -> Method:
    """Return the method of a paper with another variance σ_T of the prior."""
    return Method(adapted(preset=preset, prior=Isotropic(variance=value)))


#: Name -> method and setting as they are printed, values, and the method with one of them.
SWEEPS: dict[str, tuple[str, list[float], Callable[[Any], Method]]] = {
    "delta": (
        "published-2010, delta",
        [1, 2, 4, 8, 16, 32, 64],
        lambda value: heuristic(delta=value),
    ),
    "lists": (
        "map-oracle, nbest_size",
        [10, 50, 100, 200, 500],
        lambda value: METHODS["map-oracle"]._replace(candidates=value),
    ),
    "heuristic": (
        "published-2010, draws",
        [10, 30, 100, 300, 1000, 2000],
        lambda value: heuristic(draws=value),
    ),
    "walk": ("published, draws", [10, 100, 1000, 5000], partial(walk, "draws")),
    "proposals": (
        "published, proposal_variance",
        [0.0001, 0.001, 0.01, 0.1],
        partial(walk, "proposal_variance"),
    ),
    "burn-in": ("published, warmup", [0, 100, 500, 2000], partial(walk, "warmup")),
    "prior": (
        "published-2010, variance",
        [0.01, 0.1, 1, 10],
        partial(with_variance, "published-2010"),
    ),
    "walk-prior": ("published, variance", [0.01, 0.1, 1], partial(with_variance, "published")),
}
#: Sentences of `examples`.
EXAMPLES = 6
#: n and δ.
CROSSED = (few((10, 50, 100, 200, 500)), few((1, 8, 64)))
#: Σ|λ| of λ_T without the feature that is constant.
SCALES = (1, 5)
#: σ_T and σ_o.
VARIANCES = (few((0.01, 0.1, 1.0)), few((0.0001, 0.001, 0.01, 0.1, 1.0)))


def generator(*key: str | int) -> np.random.Generator:
    """Return a random generator that depends only on the key."""
    words = [crc32(word.encode()) if isinstance(word, str) else word for word in key]
    return np.random.default_rng([0, *words])


@cache
def cut_task(domain: str, candidates: int) -> Task:
    """Return the lists of a domain, cut to a number of candidates unless it is 0."""
    task = domain_task(domain)
    if not candidates:
        return task
    return Task.of(task.pool.truncate(candidates), task.test.truncate(candidates))


def run(method: Method, domain: str, size: int, number: int) -> Run:
    """Draw A, learn from it, choose from the test lists, and count.

    Args:
        method: how to learn and to choose.
        domain: its name.
        size: |A|.
        number: of the draw; each has the same A and the same seed for all methods.
    """
    task = cut_task(domain, method.candidates)
    place = (domain, size, number)
    lists = task.pool.select(generator("A", *place).choice(len(task.pool), size=size))
    seed = int(generator("method", *place).integers(2**31))
    if method.development:
        lists = concatenate([lists, development(method.candidates)], renumber=True)
    start = perf_counter()
    learned = method.learn(lists, seed)
    seconds = perf_counter() - start
    is_posterior = not isinstance(learned, Weights)
    test, tables = task.test, {"ter": task.ter, "bleu": task.bleu}
    if method.space is not None:
        weights = point_weights(learned, unchecked=True) if is_posterior else learned
        test = decode(method.space, test, weights)
        tables = {metric: count_statistics(test, metric) for metric in METRICS}
    if is_posterior:
        choice = rerank(test, learned, rule=method.rule, unchecked=True).choice
    else:
        choice = test.best(scores_of(test, learned))
    rows = test.offsets[:-1] + choice
    return Run({metric: counts[rows] for metric, counts in tables.items()}, seconds)


def run_all(
    methods: Mapping[str, Method], options: argparse.Namespace, domain: str
) -> dict[tuple[str, int], list[Run]]:
    """Return the runs of each method and size of A, one for each draw."""
    return {
        (name, size): [run(method, domain, size, number) for number in range(options.draws)]
        for name, method in methods.items()
        for size in options.sizes
    }


def spread(values: Sequence[float]) -> float:
    """Return 2σ, twice the standard deviation over draws; NaN for one draw."""
    return 2 * float(np.std(values, ddof=1)) if len(values) > 1 else np.nan


def score_cell(runs: Iterable[Run], metric: str, decimals: int = 2) -> str:
    """Return the mean score ± 2σ."""
    values = [one.scores(metric) for one in runs]
    return f"{np.mean(values):.{decimals}f} ± {spread(values):.{decimals}f}"


def print_scores(
    domain: str, methods: Mapping[str, Method], options: argparse.Namespace
) -> dict[tuple[str, int], list[Run]]:
    """Run methods, print TER ± 2σ / BLEU ± 2σ / length of each, and return the runs."""
    columns = (f"|A| = {size}" for size in options.sizes)
    table = Table(domain, *columns, "seconds, largest", width=37)
    all_runs = {}
    for name, method in methods.items():
        all_runs |= (runs := run_all({name: method}, options, domain))
        cells = []
        for of_size in runs.values():
            length = np.mean([one.details()["length_ratio"] for one in of_size])
            ter, bleu = score_cell(of_size, "ter"), score_cell(of_size, "bleu", 1)
            cells.append(f"{ter} / {bleu} / {length:.3f}")
        table.row(name, *cells, f"{np.median([one.seconds for one in of_size]):.2f}")
    return all_runs


def print_components(
    domain: str, names: Mapping[str, str], runs: Mapping[tuple[str, int], list[Run]]
) -> None:
    """Print n-gram precisions, brevity and length of each method.

    Args:
        domain: of the runs.
        names: of the methods, and their names in the table.
        runs: of each method and size.
    """
    columns = list(next(iter(runs.values()))[0].details())
    table = Table(f"{domain}, n-grams", "|A|", *columns, width=12)
    for size, (name, title) in product(dict.fromkeys(size for _, size in runs), names.items()):
        details = [one.details() for one in runs[name, size]]
        means = (np.mean([one[column] for one in details]) for column in columns)
        table.row(title, str(size), *(f"{mean:.3g}" for mean in means))


def methods(options: argparse.Namespace) -> None:
    """Print the methods of the papers, and the components of BLEU."""
    chosen = {name: METHODS[name] for name in options.methods}
    runs = {domain: print_scores(domain, chosen, options) for domain in options.domains}
    for domain, of_domain in runs.items():
        print_components(domain, {name: name for name in chosen}, of_domain)


def curves(options: argparse.Namespace) -> None:
    """Print learning curves, differences from two of the methods, and the components of BLEU."""
    runs = {domain: run_all(CURVES, options, domain) for domain in options.domains}
    for (domain, of_domain), metric in product(runs.items(), METRICS):
        title = f"{domain}, learning curves, {metric.upper()} ± 2σ"
        table = Table(title, *map(str, options.sizes), width=14)
        for name in CURVES:
            table.row(name, *(score_cell(of_domain[name, n], metric) for n in options.sizes))
        compared = [
            compare({name: of_domain[name, n] for name in CURVES}, metric) for n in options.sizes
        ]
        for base in ("unadapted", "published"):
            title = f"{domain}, {metric.upper()} minus that of {base} (p, Holm)"
            table = Table(title, *map(str, options.sizes), width=16)
            for name in CURVES:
                if name != base:
                    changes = (of_size[name, base] for of_size in compared)
                    table.row(name, *(f"{change:+.2f} ({p:.3f})" for change, p in changes))
    for domain, of_domain in runs.items():
        print_components(domain, dict(zip(CURVES, SHORT, strict=True)), of_domain)


def compare(
    runs: Mapping[str, Sequence[Run]], metric: str
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the differences of all pairs of methods, on the same draws of A and test sentences.

    Each has a two-sided p-value of the bootstrap over sentences and draws, adjusted for all pairs
    by Holm's method.
    """
    counts = {
        name: np.stack([one.counts[metric] for one in of_method], axis=1)
        for name, of_method in runs.items()
    }
    sentences, draws, kinds = next(iter(counts.values())).shape
    rng = np.random.default_rng(0)
    occurrences = rng.multinomial(sentences, np.full(sentences, 1 / sentences), REPLICATES)
    chosen = rng.integers(draws, size=(REPLICATES, draws))
    means, replicates = {}, {}
    for name, table in counts.items():
        sums = occurrences.astype(float) @ table.reshape(sentences, draws * kinds)
        scores = METRICS[metric].value(sums.reshape(-1, draws, kinds))
        replicates[name] = np.take_along_axis(scores, chosen, axis=1).mean(axis=1)
        means[name] = np.mean([one.scores(metric) for one in runs[name]])
    pairs, p_values = list(combinations(runs, 2)), []
    for one, other in pairs:
        changes = replicates[one] - replicates[other]
        # One is added to both counts, so that no p-value of a finite bootstrap is 0.
        tail = 1 + min((changes <= 0).sum(), (changes >= 0).sum())
        p_values.append(min(1.0, 2 * tail / (REPLICATES + 1)))
    result = {}
    for (one, other), p in zip(pairs, holm(p_values).tolist(), strict=True):
        result[one, other] = means[one] - means[other], p
        result[other, one] = means[other] - means[one], p
    return result


def lengths(options: argparse.Namespace) -> None:
    """Print what adaptation changes if the choices have the same lengths as without it."""
    for domain in options.domains:
        task = domain_task(domain)
        test, words = task.test, task.bleu[:, BLEU_LENGTH]
        start = scores_of(test, canonical())
        columns = [f"|A| = {size}" for size in options.sizes]
        table = Table(f"{domain}: TER / unigrams, % / length", *columns, width=24)
        rows: dict[str, list[Any]] = {}
        for size in options.sizes:
            values: dict[str, list[Any]] = {}
            for seed in range(options.draws):
                posterior = adapt(draw(task.pool, size, seed), canonical(), preset="published")
                adapted = scores_of(test, point_weights(posterior, unchecked=True))
                values.setdefault("unadapted", []).append(choose(task, start))
                values.setdefault("published", []).append(choose(task, adapted))
                for name, scores, other in (
                    ("published, of the unadapted length", adapted, start),
                    ("unadapted, of the length of published", start, adapted),
                ):
                    chosen = words[test.offsets[:-1] + test.best(other)]
                    allowed = words == np.repeat(chosen, test.sizes)
                    kept = np.where(allowed, scores, -np.inf)
                    values.setdefault(name, []).append(choose(task, kept))
            for name, draws in values.items():
                ter, unigrams, length = np.mean(draws, axis=0)
                spread = 2 * np.std(draws, axis=0, ddof=1)[0]
                rows.setdefault(name, []).append(
                    f"{ter:.2f} ± {spread:.2f} / {unigrams:.1f} / {length:.3f}"
                )
        for name, cells in rows.items():
            table.row(name, *cells)


def seconds(options: argparse.Namespace) -> None:
    """Print the CPU seconds from lists and references to weights, the least of several runs."""
    table = Table("CPU seconds", *(f"{d}, {n}" for d in options.domains for n in options.sizes))
    samples = [
        draw(domain_task(domain).pool, size, 0)
        for domain in options.domains
        for size in options.sizes
    ]
    learners: dict[str, Callable[[NBest], Any]] = {
        "published": partial(adapt, weights=canonical(), preset="published"),
        "published-2010": partial(adapt, weights=canonical(), preset="published-2010"),
        "default": partial(adapt, weights=canonical(), gain="ter"),
        "map": partial(adapt, weights=canonical(), gain="ter", sampler="map"),
        "mert (BLEU)": partial(reestimate, weights=canonical(), tuner="mert", gain="bleu"),
        "mira (BLEU)": partial(reestimate, weights=canonical(), tuner="mira", gain="bleu"),
        "pro (BLEU)": partial(reestimate, weights=canonical(), tuner="pro", gain="bleu"),
    }
    for name, learn in learners.items():
        table.row(name, *(best_time(partial(learn, one), repeats=3).cpu for one in samples))


def scores_of(lists: NBest, weights: Mapping[str, float]) -> Float64:
    """Return the scores of candidates, (candidates,)."""
    return lists.scores(np.array([weights[name] for name in lists.feature_names]))


def choose(task: Task, scores: Float64) -> list[float]:
    """Return TER, unigram precision in percent and length of the candidates with the top scores."""
    rows = task.test.offsets[:-1] + task.test.best(scores)
    edits, counts = (table[rows].sum(axis=0) for table in (task.ter, task.bleu))
    length = counts[BLEU_LENGTH]
    return [TER().value(edits), 100 * counts[0] / length, length / counts[-1]]


def sweeps(options: argparse.Namespace) -> None:
    """Print TER and BLEU over the values of the selected settings."""
    varied = {}
    for name in options.sweeps:
        title, values, make = SWEEPS[name]
        varied |= {f"{title}={value}": make(value) for value in values}
    print_varied(varied, options)


def crossed(options: argparse.Namespace) -> None:
    """Print TER and BLEU of the heuristic sample over n, for several δ."""
    varied = {
        f"delta-{delta}, nbest_size={size}": heuristic(delta=delta)._replace(candidates=size)
        for delta, size in product(CROSSED[1], CROSSED[0])
    }
    print_varied(varied, options)


def print_varied(varied: Mapping[str, Method], options: argparse.Namespace) -> None:
    """Print TER and BLEU ± 2σ of methods."""
    for domain in options.domains:
        runs = run_all(varied, options, domain)
        for metric in METRICS:
            title = f"{domain}, {metric.upper()} ± 2σ"
            table = Table(title, *map(str, options.sizes), width=16)
            for name in varied:
                table.row(name, *(score_cell(runs[name, n], metric) for n in options.sizes))


def heuristic_cells(
    options: argparse.Namespace, domain: str, start: Mapping[str, float], **settings: Any
) -> list[str]:
    """Return TER ± 2σ of `published-2010` with some settings, by the size of A."""
    task, cells = domain_task(domain), []
    for size in options.sizes:
        values = []
        for seed in range(options.draws):
            posterior = adapt(
                draw(task.pool, size, seed), start, preset="published-2010", **settings
            )
            choices = rerank(task.test, posterior, unchecked=True)
            values.append(choose(task, choices.probabilities)[0])
        cells.append(f"{np.mean(values):.2f} ± {2 * np.std(values, ddof=len(values) > 1):.2f}")
    return cells


def by_size(options: argparse.Namespace) -> None:
    """Print TER of the heuristic sample with a fixed δ, and with one that grows with |A|."""
    for domain in options.domains:
        table = Table(f"{domain}, TER ± 2σ", *map(str, options.sizes), width=16)
        for name, delta in (("8", 8.0), ("|A|/12", "lists/12")):
            sampler = Heuristic(draws=100, delta=delta)
            cells = heuristic_cells(options, domain, canonical(), sampler=sampler)
            table.row(f"published-2010, δ = {name}", *cells)


class ScaledCopies(Heuristic, frozen=True):
    """The heuristic sample whose copies have the length of λ_T in place of 1."""

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        """Return S(λ_T) with the logarithms of its weights."""
        start = target.match.values[target.match.free]
        vectors = perturb(start, self.draws, np.random.default_rng(seed))
        vectors[1:] *= np.abs(start).sum()
        return weight_vectors(target, vectors, float(self.delta))


def scales(options: argparse.Namespace) -> None:
    """Print TER of the heuristic sample around λ_T, by the scale of λ_T and of its copies."""
    length = sum(abs(weight) for name, weight in canonical().items() if name != CONSTANT)
    for domain in options.domains:
        table = Table(f"{domain}, TER ± 2σ", *map(str, options.sizes), width=16)
        for scale in SCALES:
            start = {
                name: weight if name == CONSTANT else scale * weight / length
                for name, weight in canonical().items()
            }
            name = f"published-2010, Σ|λ| = {scale}"
            table.row(name, *heuristic_cells(options, domain, start))
            if scale != 1:
                sampler = ScaledCopies(draws=100, delta=8.0)
                cells = heuristic_cells(options, domain, start, sampler=sampler)
                table.row(f"{name}, copies, too", *cells)


def both(options: argparse.Namespace) -> None:
    """Print methods that learn from A, and from A and the lists that λ_T was tuned on."""
    for domain in options.domains:
        print_scores(domain, BOTH, options)


def variances(options: argparse.Namespace) -> None:
    """Print acceptance, effective sample size and TER of the published walk by σ_T and σ_o."""
    columns = [f"σ_o = {value:g}" for value in VARIANCES[1]]
    for domain in options.domains:
        task = domain_task(domain)
        table = Table(f"{domain}: acceptance, ESS, TER ± 2σ", *columns, width=27)
        for size, prior_variance in product(options.sizes, VARIANCES[0]):
            cells = []
            for proposal_variance in VARIANCES[1]:
                settings = {
                    "prior": Isotropic(variance=prior_variance),
                    "sampler": f"rwm-isotropic:proposal_variance={proposal_variance}",
                }
                values = []
                for seed in range(options.draws):
                    sample = draw(task.pool, size, seed)
                    drawn = as_weight_draws(
                        adapt(sample, canonical(), preset="published", **settings)
                    )
                    rate = drawn.draws.statistics["acceptance_rate"].mean()
                    ter = task.scores(drawn.at_point("mean"))[0]
                    values.append([rate, smallest_ess(drawn.draws), ter])
                acceptance, ess, ter = np.mean(values, axis=0)
                spread = 2 * np.std(values, axis=0, ddof=1)[-1]
                cells.append(f"{acceptance:.3f}, {ess:.1f}, {ter:.2f} ± {spread:.2f}")
            table.row(f"|A| = {size}, σ_T = {prior_variance:g}", *cells)


def texts(options: argparse.Namespace) -> None:
    """Print the number of sentences and the average lengths of the texts."""
    columns = ("sentences", "words of a source", "of a reference", "of λ_T's choice")
    table = Table("text", *columns)
    parts = [(domain, part) for domain in options.domains for part in ("adapt", "test")]
    for domain, part in [*parts, ("out-of-domain", "dev")]:
        lists = read_lists(domain, part)
        chosen = lists.chosen(lists.best(scores_of(lists, canonical())))
        lengths = [
            np.mean([len(text.split()) for text in side])
            for side in (lists.sources, [one for one, *_ in lists.references], chosen)
        ]
        table.row(f"{domain}, {part}", str(len(lists)), *(f"{n:.2f}" for n in lengths))


def examples(options: argparse.Namespace) -> None:
    """Print test sentences of our own texts, without and with adaptation, and as MERT does."""
    lists = authored_lists()
    order = np.random.default_rng(0).permutation(len(lists))
    pool, test = lists.select(order[::2]), lists.select(order[1::2])
    references = [one for one, *_ in test.references]
    chosen = {"unadapted": test.chosen(test.best(scores_of(test, canonical())))}
    for size in options.sizes:
        sample = draw(pool, size, 0)
        for preset in ("published", "published-2010"):
            choices = rerank(test, adapt(sample, canonical(), preset=preset), unchecked=True)
            chosen[f"{preset}, {size}"] = choices.texts
        tuned = reestimate(sample, weights=canonical(), tuner="mert", gain="bleu").weights
        chosen[f"mert (BLEU), {size}"] = test.chosen(test.best(scores_of(test, tuned)))
    first = options.sizes[0]
    table = Table("leaflet and office", "TER", "BLEU", "changed", f"other than with {first}")
    for name, side in chosen.items():
        ter, bleu = (
            corpus_score(side, test.references, metric).value for metric in ("ter", "bleu")
        )
        with_first = chosen.get(f"{name.rpartition(', ')[0]}, {first}", side)
        changes = (
            f"{sum(a != b for a, b in zip(side, other, strict=True))} of {len(test)}"
            for other in (chosen["unadapted"], with_first)
        )
        table.row(name, ter, bleu, *changes)
    several = [n for n in range(len(test)) if len({side[n] for side in chosen.values()}) > 2]
    for n in np.random.default_rng(1).permutation(several)[:EXAMPLES]:
        table = Table(f"sentence {n}", "translation")
        for name, side in {"source": test.sources, "reference": references, **chosen}.items():
            table.row(name, side[n])


def decode(space: NBest, lists: NBest, weights: Mapping[str, float]) -> NBest:
    """Decode sentences: return the candidates of a search space with the highest scores.

    Args:
        space: long lists of all sentences.
        lists: of the sentences, with the same sources.
        weights: of the features.
    """
    vector = np.array([weights[name] for name in space.feature_names])
    places = {source: number for number, source in enumerate(space.sources)}
    sentences, rows = np.array([places[source] for source in lists.sources]), []
    for sentence in sentences:
        block = space.rows(sentence)
        order = np.argsort(-(space.features[block] @ vector), kind="stable")
        rows.append(block.start + order[:DECODED])
    decoded = space.regroup(sentences, np.concatenate(rows), [len(part) for part in rows])
    printed = decoded.features.astype(np.float32).astype(np.float64)  # a decoder prints float32
    return replace(decoded, features=printed, references=lists.references)


def merge(old: NBest, new: NBest) -> tuple[NBest, int]:
    """Return the candidates of two decodings of the same sentences, and the number of new ones.

    A candidate is new unless one has the same text and the same features.
    """
    joined = concatenate([old, new], renumber=True)
    sentence = np.repeat([*range(len(old)), *range(len(old))], joined.sizes)
    first: dict[tuple[int, str, bytes], int] = {}
    for row in np.argsort(sentence, kind="stable").tolist():
        key = int(sentence[row]), joined.text(row), joined.features[row].tobytes()
        first.setdefault(key, row)
    rows = np.array(list(first.values()))
    sizes = np.bincount(sentence[rows])
    merged = joined.regroup(np.arange(len(old)), rows, sizes)
    return merged, int((rows >= len(old.features)).sum())


def tune_in_loop(space: NBest, tuner: str, gain: str, lists: NBest, seed: int) -> Weights:
    """Tune, decode with the new weights, add the new candidates, until none is new (Och 2003).

    Args:
        space: the search space of the decoder.
        tuner: its name.
        gain: the metric that it optimises.
        lists: of the first decoding.
        seed: of the tuner.

    Returns:
        the weights with the best score on the candidates of all decodings.
    """
    merged, path = lists.without("totals"), [canonical()]
    for _ in range(ITERATIONS):
        path.append(reestimate(merged, path[-1], tuner=tuner, gain=gain, seed=seed).weights)
        merged, added = merge(merged, decode(space, lists, path[-1]))
        if not added:
            break
    matched, tuning_lists = make_tuning_lists(merged, path[0], resolve(gain))
    problem = TuningProblem(tuning_lists, resolve(gain), matched.free_values)
    gains = [problem.gain(np.array([point[n] for n in matched.free_names])) for point in path]
    # Of equally good ones the latest, which was tuned on the most candidates.
    return path[len(path) - 1 - int(np.argmax(gains[::-1]))]


def decoder(options: argparse.Namespace) -> None:
    """Print tuners in a loop with the stand-in decoder, and adaptation without and with it."""
    domain = options.domains[0]
    parts = (domain_task(domain).pool, domain_task(domain).test)
    space = concatenate([part.without("totals") for part in parts], renumber=True)
    reranked = METHODS["published"]._replace(candidates=DECODED)
    compared = {
        "canonical": METHODS["canonical"],
        "published-100": reranked,
        "published-decoding": reranked._replace(space=space),
        "mert-lists": Method(tuned("mert"), candidates=DECODED),
    }
    for tuner, gain in product(("mert", "mira", "pro"), ("bleu", "ter")):
        learn = partial(tune_in_loop, space, tuner, gain)
        compared[f"{tuner}-{gain}-loop"] = Method(learn, candidates=DECODED, space=space)
    print_scores(domain, compared, options)


if __name__ == "__main__":
    run_tables(
        __doc__,
        (
            texts,
            methods,
            curves,
            lengths,
            seconds,
            sweeps,
            crossed,
            by_size,
            scales,
            variances,
            examples,
            both,
            decoder,
        ),
        draws=5,
        sizes=(10, 100),
        domains=("captions", "medical", "conversation"),
        methods=tuple(METHODS),
        sweeps=tuple(SWEEPS),
    )
