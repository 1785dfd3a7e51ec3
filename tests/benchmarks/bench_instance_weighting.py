"""Instance weighting of phrase pairs on captions: likelihood, time, and use as features.

    python tests/benchmarks/bench_instance_weighting.py [--tables NAME ...] [--draws 10]
        [--keep FOLDER]

Tables:
    likelihood  mean log p(t|s) and p(s|t) of development pairs with support, over 5 folds of the
                distinct pairs, weighted by their counts
    settings    the same of the weighted forms, by the scale of the features and their prior
    speed       seconds and memory of fitting φ for p(t|s), compared with finite differences
    restarts    the best of 100 more random starts
    gain        test TER ± two standard deviations over the draws / BLEU / length ratio with both
                columns of each table as features, |A| = 50

Computing the features of the general corpus takes minutes; `--keep` stores them in a folder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import (
    CORPORA,
    PeakMemory,
    ScoreTable,
    Table,
    best_time,
    caption_counts,
    run_tables,
    scratch_folder,
    segmented_captions,
)
from scipy.optimize import minimize

from bpa_ppl.features.phrases import PhraseMixture
from bpa_ppl.models import Isotropic
from bpa_ppl.models.instance_weighting import (
    FORMS,
    PhiPrior,
    Problem,
    Variant,
    fit,
    problem_of,
    variant_named,
    weigh,
)
from bpa_ppl.models.instance_weighting.mixture import MIXTURES, log_likelihood, unconstrained
from bpa_ppl.phrases import PhraseCounts, held_out, mix, write_table
from bpa_ppl.phrases.mixtures import METHODS, counts_of
from bpa_ppl.phrases.pair_features import (
    PAIR_FEATURES,
    SVM,
    pair_features,
    read_corpus,
    svm_feature,
)
from bpa_ppl.phrases.tables import PhraseTable

SIDES = ("target", "source")
NAMES = (*PAIR_FEATURES, SVM)
PRIOR = PhiPrior()
FOLDS = 5


class Corpora(NamedTuple):
    """Phrase counts of the domain, of the general corpus and of the development text."""

    domain: PhraseCounts
    general: PhraseCounts
    dev: PhraseCounts
    features: dict[str, np.ndarray]

    def problem(self, side: Any, scale: str = "log") -> Problem:
        """Return the problem of one direction."""
        return problem_of(*self[:3], self.features[scale], NAMES, side)


@cache
def read_corpora(keep: str) -> Corpora:
    """Read the counts, and compute the features of the general corpus or read stored ones."""
    domain, general, dev = caption_counts()
    features = {}
    for scale in ("log", "plain"):
        path = (Path(keep) if keep else scratch_folder()) / f"features.{scale}.npy"
        if not path.exists():
            corpora = [
                read_corpus(*(CORPORA / f"{name}.{side}.xz" for side in ("fr", "en")))
                for name in ("out", "captions.train")
            ]
            columns = pair_features(general, *corpora, scale=scale)[1]
            np.save(path, np.column_stack([columns, svm_feature(general, domain, columns)]))
        features[scale] = np.load(path)
    return Corpora(domain, general, dev, features)


def variant(form: str, mixture: str) -> Variant:
    """Return a form; the forms without features of their own have all but that of the SVM."""
    named = variant_named(form, mixture)
    return named if named.features else replace(named, features=PAIR_FEATURES)


def held_out_mean(problem: Problem, variant: Variant, prior: PhiPrior | None) -> float:
    """Return the mean log p of held-out pairs with support."""
    fold = np.random.default_rng(0).permutation(np.arange(len(problem.weight)) % FOLDS)
    probability = np.zeros(len(problem.weight))
    for number in range(FOLDS):
        training = problem._replace(weight=np.where(fold == number, 0.0, problem.weight))
        fitted = fit(training, variant, prior=prior)
        probability[fold == number] = fitted.probabilities(problem)[fold == number]
    supported = problem.supported
    return float(np.average(np.log(probability[supported]), weights=problem.weight[supported]))


def likelihood_table(options: Any) -> None:
    """Print the held-out log-likelihood of every variant."""
    corpora = read_corpora(options.keep)
    problems = [corpora.problem(side) for side in SIDES]
    print(f"\nsupport: {problems[0].support:.1%} of the occurrences of development pairs")
    table = Table("held-out log-likelihood per pair", "p(t|s)", "p(s|t)")
    for method in METHODS:
        values = [
            held_out(method, counts_of(*corpora[:3], side), corpora.dev.count, side, folds=FOLDS)
            for side in SIDES
        ]
        table.row(method, *(f"{value.log_likelihood:.4f}" for value in values))
    for complete, mixture, form in product((True, False), MIXTURES, FORMS):
        variety = replace(variant(form, mixture), complete=complete)
        prior = PRIOR if variety.weighted else None
        values = [held_out_mean(problem, variety, prior) for problem in problems]
        cells = (f"{value:.4f}" for value in values)
        table.row(f"{mixture}{'-known' * complete}, {form}", *cells)


def settings_table(options: Any) -> None:
    """Print the held-out log-likelihood by scale and prior."""
    corpora = read_corpora(options.keep)
    columns = [f"{m}, {s}" for s, m in product(("p(t|s)", "p(s|t)"), MIXTURES)]
    table = Table("weighted, known", *columns)
    for scale, deviation in (
        ("log", 0.3),
        ("log", 1.0),
        ("log", None),
        ("plain", 1.0),
        ("plain", None),
    ):
        prior = None if deviation is None else PhiPrior(weight_deviation=deviation)
        values = [
            held_out_mean(corpora.problem(side, scale), variant("weighted", mixture), prior)
            for side, mixture in product(SIDES, MIXTURES)
        ]
        cells = (f"{value:.4f}" for value in values)
        table.row(f"{scale}, prior deviation {deviation or '∞'}", *cells)


def negative_log_density(problem: Problem) -> Callable[[np.ndarray], float]:
    """Return the objective of the fit of the weighted MAP mixture, per occurrence."""
    weighted = variant("weighted", "map")
    applied = weighted.apply(problem)
    total = applied.weight[applied.supported].sum()

    def objective(z: np.ndarray) -> float:
        density = log_likelihood(applied, weighted, z)[0] + PRIOR.log_density(weighted, z)[0]
        return float(-density / total)

    return objective


def speed_table(options: Any) -> None:
    """Print time and memory of fitting."""
    corpora = read_corpora(options.keep)
    problem = corpora.problem("target")
    title = f"{len(corpora.general)} pairs, {len(problem.count)} with a source of the dev text"
    table = Table(title, "seconds", "GB", "steps", "mean log p")
    for form, prior in (("weighted", PRIOR), ("weighted", None), ("svm", PRIOR)):
        run = partial(fit, problem, variant(form, "map"), prior=prior)
        run()  # compiles
        with PeakMemory() as peak:
            time = best_time(run)
        name = f"{form}, {'prior' if prior else 'maximum likelihood'}"
        mean = f"{time.result.log_likelihood:.5f}"
        table.row(name, time.seconds, peak.bytes / 1e9, str(time.result.iterations), mean)
    weighted, objective = variant("weighted", "map"), negative_log_density(problem)
    fitted = best_time(partial(fit, problem, weighted, prior=PRIOR))
    settings = {"method": "L-BFGS-B", "options": {"maxfun": 50_000, "gtol": 1e-7}}
    start = np.zeros(weighted.size(problem))
    plain = best_time(partial(minimize, objective, start, **settings))
    reached = objective(unconstrained(weighted, fitted.result.phi))
    table = Table("weighted, prior", "seconds", "log density", "times as long")
    table.row("fit", fitted.seconds, f"{-reached:.6f}", 1.0)
    ratio = plain.seconds / fitted.seconds
    table.row("L-BFGS, finite differences", plain.seconds, f"{-plain.result.fun:.6f}", ratio)


def restarts_table(options: Any) -> None:
    """Print the log density that is reached with and without random starts."""
    table = Table("log density", "default start", "best of 100 more")
    for side in SIDES:
        problem, weighted = read_corpora(options.keep).problem(side), variant("weighted", "map")
        objective = negative_log_density(problem)
        fits = (fit(problem, weighted, prior=PRIOR, starts=starts) for starts in (0, 100))
        cells = (f"{-objective(unconstrained(weighted, one.phi)):.9f}" for one in fits)
        table.row(f"predicting the {side}", *cells)


def gain_table(options: Any) -> None:
    """Print TER and BLEU with the columns of each table."""
    corpora, captions = read_corpora(options.keep), segmented_captions()
    table = ScoreTable("captions", (50,), options.draws)
    table.add("the list's 14", captions.score_draw)
    path = scratch_folder() / "table.parquet"

    def add(name: str, phrases: PhraseTable) -> None:
        write_table(phrases, path)
        task = captions.with_features(PhraseMixture(table=str(path)))
        prior = Isotropic(single=dict.fromkeys(task.new, 0.1))
        table.add(name, partial(task.score_draw, prior=prior))

    for method in METHODS:
        add(method, mix(*corpora[:3], method)[0])
    for mixture, form in product(MIXTURES, FORMS):
        variety = variant(form, mixture)
        if variety.weighted:
            fitted = weigh(*corpora[:3], corpora.features["log"], NAMES, variety, prior=PRIOR)
            add(f"{mixture}-known, {form}", fitted.table)


if __name__ == "__main__":
    tables = {
        "likelihood": likelihood_table,
        "settings": settings_table,
        "speed": speed_table,
        "restarts": restarts_table,
        "gain": gain_table,
    }
    run_tables(__doc__, tables, draws=10, keep="")
