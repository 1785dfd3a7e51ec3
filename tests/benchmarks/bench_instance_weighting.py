"""Instance weighting of phrase pairs on captions: likelihood, cost, and what its columns are worth.

    python tests/benchmarks/bench_instance_weighting.py [--parts NAME …] [--forms NAME …]

`likelihood`: mean log p of dev pairs that the fit has not seen (5 folds over distinct pairs, seed
0), each pair as often as it occurs, where a table has it; p(t|s) and p(s|t). `settings`: the same
of the weighted forms, for scales of the features and widths of the prior. `speed`: seconds and
memory of fitting φ for p(t|s), beside the same search without a gradient. `restarts`: our end
beside the best of a hundred random starts. `gain`: test TER and BLEU with the logs of each table as
columns of the lists, both directions or p(t|s) alone, |A| = 50; mean ± 2 standard deviations over
10 draws (seeds 0, 1, …).

The features of OUT's pairs take minutes; they are kept in --keep FOLDER, where one is given.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bench_features import CORPORA, PHRASES, RAW, Task, adapted, head, row
from measuring import DATA, Peak, clock, drawn
from scipy.optimize import minimize

import bpa_ppl as bpa
from bpa_ppl.features.phrases import PhraseMixture
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
from bpa_ppl.phrases import PhraseCounts, held_out, mix, read_counts, write_table
from bpa_ppl.phrases.mixtures import METHODS, counts_of
from bpa_ppl.phrases.pair_features import (
    PAIR_FEATURES,
    SVM,
    pair_features,
    read_corpus,
    svm_feature,
)

SIDES = ("target", "source")
PRIOR = PhiPrior()
FOLDS = 5
SETTINGS = (("log", 0.3), ("log", 1.0), ("log", None), ("plain", 1.0), ("plain", None))
RESTARTS = 100


class Material(NamedTuple):
    """The tables, and the features of OUT's pairs by their scale, that of the SVM among them."""

    inside: PhraseCounts
    outside: PhraseCounts
    dev: PhraseCounts
    features: dict[str, np.ndarray]

    def problem(self, side: Any, scale: str = "log") -> Problem:
        """Return the problem of one direction."""
        names = (*PAIR_FEATURES, SVM)
        return problem_of(*self[:3], self.features[scale], names, side)


def material(keep: Path | None) -> Material:
    """Read the tables, and make the features, or read those that were kept."""
    inside, dev = (read_counts(PHRASES / f"captions.{n}.extract.xz") for n in ("in", "dev"))
    outside = read_counts(
        PHRASES / "out.extract.captions.xz",
        source_counts=PHRASES / "out.marginals.captions.src.xz",
        target_counts=PHRASES / "out.marginals.captions.tgt.xz",
    )
    found = {}
    for scale in ("log", "plain"):
        file = None if keep is None else keep / f"features.{scale}.npy"
        if file is not None and file.exists():
            found[scale] = np.load(file)
            continue
        names = ("out", "captions.train")
        corpora = [read_corpus(*(CORPORA / f"{n}.{s}.xz" for s in ("fr", "en"))) for n in names]
        with Peak() as peak:
            took, made = clock(partial(pair_features, outside, *corpora, scale=scale))  # type: ignore[arg-type]
        print(f"22 features of {len(outside)} pairs ({scale}): {took:.0f} s, {gigabytes(peak)}")
        took, machine = clock(partial(svm_feature, outside, inside, made[1]))
        print(f"linear SVM: {took:.0f} s", flush=True)
        found[scale] = np.column_stack([made[1], machine])
        if file is not None:
            np.save(file, found[scale])
    return Material(inside, outside, dev, found)


def form_of(name: str, mixture: str) -> Variant:
    """Return a form by name; `weighted` and its like have the 22 features, without the SVM's."""
    variant = variant_named(name, mixture)
    return variant if variant.features else replace(variant, features=PAIR_FEATURES)


def held_out_mean(problem: Problem, variant: Variant, prior: PhiPrior | None) -> float:
    """Return the mean log p of held-out pairs with support."""
    fold = np.random.default_rng(0).permutation(np.arange(len(problem.weight)) % FOLDS)
    probability = np.zeros(len(problem.weight))
    for number in range(FOLDS):
        rest = problem._replace(weight=np.where(fold == number, 0.0, problem.weight))
        fitted = fit(rest, variant, prior=prior)
        probability[fold == number] = fitted.probabilities(problem)[fold == number]
    supported = problem.supported
    return float(np.average(np.log(probability[supported]), weights=problem.weight[supported]))


def likelihood(data: Material, forms: list[str]) -> None:
    """Print how likely held-out pairs are under every variant."""
    problems = {side: data.problem(side) for side in SIDES}
    print(f"\nsupport: {problems['target'].support:.1%} of the dev pairs' occurrences")
    print(f"{'held-out log-likelihood per pair':<36}{'p(t|s)':>10}{'p(s|t)':>10}")
    for method in METHODS:
        counts = [counts_of(data.inside, data.outside, data.dev, side) for side in SIDES]  # type: ignore[arg-type]
        found = [
            held_out(method, each, data.dev.count, side, folds=FOLDS).log_likelihood  # type: ignore[arg-type]
            for each, side in zip(counts, SIDES, strict=True)
        ]
        line(method, found)
    for complete in (True, False):
        for mixture in MIXTURES:
            for name in forms:
                variant = replace(form_of(name, mixture), complete=complete)
                prior = PRIOR if variant.weighted else None
                found = [held_out_mean(problem, variant, prior) for problem in problems.values()]
                line(f"{mixture}{'-known' * complete}, {name}", found)


def settings(data: Material) -> None:
    """Print what scale and prior do."""
    print(f"\n{'weighted linear-known and map-known':<36}{'p(t|s)':>20}{'p(s|t)':>20}")
    for scale, deviation in SETTINGS:
        problems = [data.problem(side, scale) for side in SIDES]
        prior = None if deviation is None else PhiPrior(weight_deviation=deviation)
        found = [
            held_out_mean(problem, form_of("weighted", mixture), prior)
            for problem in problems
            for mixture in MIXTURES
        ]
        line(f"{scale}, σ = {deviation or '∞'}", found)


def speed(data: Material) -> None:
    """Print what fitting takes, beside a search that has no gradient."""
    problem = data.problem("target")
    print(f"\n{len(data.outside)} pairs of OUT, {len(problem.count)} of them with an s of dev")
    print(f"{'fitting φ, p(t|s)':<36}{'seconds':>10}{'GB':>8}{'steps':>7}{'mean log p':>13}")
    for name, prior in (("weighted", PRIOR), ("weighted", None), ("svm", PRIOR)):
        variant = form_of(name, "map")
        fit(problem._replace(weight=problem.weight * 2), variant, prior=prior)
        with Peak() as peak:
            took, found = clock(partial(fit, problem, variant, prior=prior))
        what = f"{name}, {'prior' if prior else 'maximum likelihood'}"
        cells = f"{gigabytes(peak)[:-3]:>8}{found.iterations:>7}{found.log_likelihood:>13.5f}"
        print(f"{what:<36}{took:>10.2f}{cells}", flush=True)
    variant = form_of("weighted", "map")
    ready, start = variant.apply(problem), np.zeros(variant.size(problem))
    took, found = clock(partial(fit, problem, variant, prior=PRIOR))
    mass = ready.weight[ready.supported].sum()

    def cost(z: np.ndarray) -> float:
        return -(log_likelihood(ready, variant, z)[0] + PRIOR.log_density(variant, z)[0]) / mass

    plain, end = clock(
        partial(minimize, cost, start, method="L-BFGS-B", options={"maxfun": 50_000, "gtol": 1e-7})
    )
    ratio = f"{plain / took:.1f} times as long"
    reached = f"{-cost(end.x):.6f}"
    ours = f"{-cost_of(found, variant, cost):.6f}"
    print(f"L-BFGS by differences: {plain:.1f} s, {ratio}; log density {reached}, ours {ours}")


def restarts(data: Material) -> None:
    """Print whether the best of a hundred random starts ends higher than ours."""
    print(f"\n{f'log density, best of {RESTARTS} more starts':<36}{'ours':>14}{'theirs':>14}")
    for side in reversed(SIDES):
        problem, variant = data.problem(side), form_of("weighted", "map")
        ready = variant.apply(problem)
        mass = ready.weight[ready.supported].sum()

        def cost(z: np.ndarray, ready: Problem = ready, mass: float = mass) -> float:
            before = PRIOR.log_density(form_of("weighted", "map"), z)[0]
            return -(log_likelihood(ready, form_of("weighted", "map"), z)[0] + before) / mass

        found = [fit(problem, variant, prior=PRIOR, starts=n) for n in (0, RESTARTS)]
        values = "".join(f"{-cost_of(each, variant, cost):>14.9f}" for each in found)
        print(f"predicting the {side:<21}{values}", flush=True)


def cost_of(found: Any, variant: Variant, cost: Any) -> float:
    """Return the cost of a fit."""
    return float(cost(unconstrained(variant, found.phi)))


def gain(data: Material, forms: list[str], mixtures: list[str], draws: int, size: int = 50) -> None:
    """Print TER and BLEU with the columns of each table."""
    parts = {"adapt": "dev", "test": "test"}
    task = Task(
        *(
            bpa.read_nbest(
                DATA / f"phrases/nbest-seg/captions.{part}.nbest.xz",
                references=DATA / f"captions/{part}.ref",
                sources=CORPORA / f"captions.{text}.fr.xz",
            )
            for part, text in parts.items()
        )
    )
    head("captions: both directions, then p(t|s) alone", ("both", "p(t|s)"))
    row("the list's 14", (size,), draws, partial(of_draw, task))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        for method in METHODS if "plain" in forms else ():
            write_table(mix(*data[:3], method)[0], path)
            columns_row(method, task, path, draws, size)
        for mixture in mixtures:
            for name in forms:
                variant = form_of(name, mixture)
                if not variant.weighted:
                    continue
                names = (*PAIR_FEATURES, SVM)
                table = weigh(*data[:3], data.features["log"], names, variant, prior=PRIOR).table
                write_table(table, path)
                columns_row(f"{mixture}-known, {name}", task, path, draws, size)


def columns_row(name: str, task: Task, path: Path, draws: int, size: int) -> None:
    """Print the row of one table."""
    full = task.with_features(PhraseMixture(table=str(path)))
    found = [full, full.choose("phrases.direct")]
    row(name, (0, 1), draws, lambda which, seed: of_draw(found[which], size, seed))


def of_draw(task: Task, size: int, seed: int) -> tuple[float, ...]:
    """Return the scores of one draw of adaptation sentences."""
    return adapted(task, drawn(task.pool, size, seed), prior=RAW if task.new else "isotropic")


def line(what: str, values: list[float]) -> None:
    """Print a row of log-likelihoods."""
    print(f"{what:<36}" + "".join(f"{value:>10.4f}" for value in values), flush=True)


def gigabytes(peak: Peak) -> str:
    """Return memory in words."""
    return f"{peak.bytes / 1e9:.2f} GB"


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("likelihood", "settings", "speed", "restarts", "gain")
    parser.add_argument("--parts", nargs="+", default=parts, choices=parts)
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=list(FORMS))
    parser.add_argument("--mixtures", nargs="+", default=MIXTURES, choices=MIXTURES)
    parser.add_argument("--keep", type=Path, help="folder of the features")
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    data = material(options.keep)
    if "likelihood" in options.parts:
        likelihood(data, options.forms)
    if "settings" in options.parts:
        settings(data)
    if "speed" in options.parts:
        speed(data)
    if "restarts" in options.parts:
        restarts(data)
    if "gain" in options.parts:
        gain(data, options.forms, options.mixtures, options.draws)


if __name__ == "__main__":
    main()
