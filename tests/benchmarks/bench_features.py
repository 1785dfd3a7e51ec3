"""Test TER and BLEU with features made of text of the domain: what each is worth.

    python tests/benchmarks/bench_features.py [--tables NAME …] [--draws 10]

Tables: `captions` (each source of features by itself and together), `margins` (γ × gain with the
language model and the MAP phrase mixture), `few` (a language model of 500
lines, sampled anew for each draw), `lines` (one of lines of the adaptation references), `self`
(learned from the adaptation sentences alone), `priors` (how wide the prior of the new weights is)
and `tuners` (the same features for MERT, MIRA, PRO).

Each draw has its own adaptation sentences (seeds 0, 1, …, with replacement; the same for every
row); the mode of the posterior chooses among the 500-best lists of all 500 test sentences. Printed:
TER ± 2 standard deviations over the draws / BLEU / words over those of the references.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measuring import DATA, canonical, drawn, lists

import bpa_ppl as bpa
from bpa_ppl.features import LanguageModel
from bpa_ppl.features.base import FeatureSource
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.features.lexicon import Lexicon
from bpa_ppl.features.phrases import PhraseMixture
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.models import Isotropic, Margin
from bpa_ppl.nbest import NBest
from bpa_ppl.phrases import mix, read_counts, write_table

CORPORA, PHRASES = DATA / "phrases/corpora", DATA / "phrases/phrases"
DOMAINS = ("medical", "captions", "conversation")
LIKELIHOODS: dict[str, Any] = {"published": "oracle", "margin": Margin(gamma=2.0)}
#: The prior variance of every weight is σ_T, whatever the unit of a feature is.
RAW = "raw"


class Task(NamedTuple):
    """Lists to adapt on and to be tested on, with the same features; which of them are new."""

    pool: NBest
    test: NBest
    new: tuple[str, ...] = ()

    def with_features(self, *sources: FeatureSource) -> Task:
        """Return the task with more features, which do not learn from the pool."""
        pool, test = (bpa.add_features(part, sources) for part in (self.pool, self.test))
        return Task(pool, test, (*self.new, *pool.feature_names[len(self.pool.feature_names) :]))

    def choose(self, *names: str) -> Task:
        """Return the task with some of the new features alone."""
        out = [name for name in self.new if name not in names]
        pool, test = (part.without_features(out) for part in (self.pool, self.test))
        return Task(pool, test, names)


def scores(test: NBest, posterior: Any) -> tuple[float, ...]:
    """Return TER, BLEU and length ratio of what the weights of a point choose."""
    weights = bpa.as_draws(posterior).aligned(test)[0]
    return scores_of(test, weights)


def scores_of(test: NBest, weights: Any) -> tuple[float, ...]:
    """Return TER, BLEU and length ratio of what one weight vector chooses."""
    texts = test.chosen(test.best(test.scores(weights)))
    ter, bleu = (bpa.corpus_score(texts, test.references, m) for m in ("ter", "bleu"))
    return ter.value, bleu.value, float(bleu.details["length_ratio"])


def adapted(task: Task, sample: NBest, prior: Any = "isotropic", **options: Any) -> Any:
    """Return TER, BLEU and length ratio after adaptation to some sentences."""
    if prior == RAW:
        prior = Isotropic(single=dict.fromkeys(task.new, 0.1))
    zeros = dict.fromkeys(task.new, 0.0)
    made = {"sampler": "map", "likelihood": "oracle", "prior": prior, **options}
    posterior = bpa.adapt(sample, canonical(), defaults=zeros, **made)
    return scores(task.test, posterior)


def row(name: str, sizes: Iterable[int], draws: int, of_draw: Callable[[int, int], Any]) -> None:
    """Print mean and spread of TER, mean BLEU and length, for each size of the adaptation set."""
    cells = []
    for size in sizes:
        found = np.array([of_draw(size, seed) for seed in range(draws)])
        mean, spread = found.mean(axis=0), 2 * found.std(axis=0, ddof=min(1, draws - 1))
        cells.append(f"{mean[0]:.2f} ± {spread[0]:.2f} / {mean[1]:.1f} / {mean[2]:.3f}")
    print(f"{name:<44}" + "".join(f"{cell:>30}" for cell in cells), flush=True)


def head(title: str, sizes: Iterable[int]) -> None:
    """Print the head of a table."""
    print(f"\n{title:<44}" + "".join(f"{f'|A| = {size}':>30}" for size in sizes), flush=True)


def captions(folder: Path, lines: int = 500) -> Task:
    """Return the captions with every feature there is, each under a name of its own."""
    parts = {"adapt": "dev", "test": "test"}
    pool, test = (
        bpa.read_nbest(
            DATA / f"phrases/nbest-seg/captions.{part}.nbest.xz",
            references=DATA / f"captions/{part}.ref",
            sources=CORPORA / f"captions.{text}.fr.xz",
        )
        for part, text in parts.items()
    )
    few = {side: folder / f"few.{side}" for side in ("fr", "en")}
    texts = {side: read_lines(CORPORA / f"captions.train.{side}.xz") for side in few}
    chosen = np.random.default_rng(0).permutation(len(texts["en"]))[:lines]
    for side, path in few.items():
        path.write_text("\n".join([*(texts[side][i] for i in chosen), ""]), encoding="utf-8")
    every = tuple(str(CORPORA / f"captions.train.{side}.xz") for side in ("fr", "en"))
    return Task(pool, test).with_features(
        LanguageModel(text=every[1]),
        LanguageModel(text=str(few["en"]), name="lm500"),
        Lexicon(pairs=every),
        Lexicon(pairs=(str(few["fr"]), str(few["en"])), name="lexicon500"),
        Consensus(),
        *mixtures(folder),
    )


def mixtures(folder: Path) -> list[FeatureSource]:
    """Return the linear and the MAP mixture of the tables, as features."""
    inside = read_counts(PHRASES / "captions.in.extract.xz")
    outside = read_counts(
        PHRASES / "out.extract.captions.xz",
        source_counts=PHRASES / "out.marginals.captions.src.xz",
        target_counts=PHRASES / "out.marginals.captions.tgt.xz",
    )
    dev = read_counts(PHRASES / "captions.dev.extract.xz")
    found: list[FeatureSource] = []
    for method in ("linear", "map"):
        path = folder / f"{method}.parquet"
        table, fits = mix(inside, outside, dev, method)
        print("; ".join(map(str, fits)))
        write_table(table, path)
        found.append(PhraseMixture(table=str(path), name=method))
    return found


#: Row of the table -> the features that are new in it.
SETS: dict[str, tuple[str, ...]] = {
    "the list's 14": (),
    "+ consensus within the list": tuple(f"consensus.{n}" for n in (1, 2, 3, 4)),
    "+ linear phrase mixture, both directions": ("linear.direct", "linear.inverse"),
    "+ linear phrase mixture, p(t|s) alone": ("linear.direct",),
    "+ MAP phrase mixture": ("map.direct", "map.inverse"),
    "+ LM of 500 lines": ("lm500", "lm500.oov"),
    "+ lexicon of 500 pairs": ("lexicon500.direct", "lexicon500.inverse"),
    "+ lexicon of all pairs": ("lexicon.direct", "lexicon.inverse"),
    "+ LM of all text": ("lm", "lm.oov"),
    "+ LM of all text, MAP phrase mixture": ("lm", "lm.oov", "map.direct", "map.inverse"),
}
RICH = ("lm", "lm.oov", "linear.direct", "lexicon.direct", "lexicon.inverse")


def of_task(task: Task, size: int, seed: int, **options: Any) -> Any:
    """Return the scores of one draw."""
    return adapted(task, drawn(task.pool, size, seed), **options)


def captions_table(task: Task, draws: int, sizes: tuple[int, ...] = (10, 50, 100)) -> None:
    """Print what each source of features is worth."""
    for name, likelihood in LIKELIHOODS.items():
        head(f"captions, {name}", sizes)
        for features, new in SETS.items():
            chosen = partial(of_task, task.choose(*new), likelihood=likelihood)
            row(features, sizes, draws, chosen)


def margins_table(task: Task, draws: int, sizes: tuple[int, ...] = (10, 100)) -> None:
    """Print γ × gain where language model and MAP phrase mixture are features."""
    name = "+ LM of all text, MAP phrase mixture"
    head(f"captions {name}", sizes)
    for gain, gamma in product(("ter", "ter+bleu"), (0.0, 2.0, 4.0, 8.0)):
        chosen = partial(
            of_task, task.choose(*SETS[name]), likelihood=Margin(gamma=gamma), metric=gain
        )
        row(f"gain {gain}, γ = {gamma:g}", sizes, draws, chosen)


def priors_table(task: Task, draws: int, sizes: tuple[int, ...] = (10, 100)) -> None:
    """Print how wide the prior of new weights should be."""
    head("captions, prior of the new weights", sizes)
    for features in ("+ LM of 500 lines", "+ lexicon of all pairs", "+ MAP phrase mixture"):
        for scale in (RAW, None, 0.3, 1.0, 2.0, 4.0):
            prior: Any = RAW if scale == RAW else Isotropic(scale=scale)
            what = "variance 0.1" if scale == RAW else f"scale {scale or 'learned'}"
            chosen = partial(of_task, task.choose(*SETS[features]), prior=prior)
            row(f"{features}: {what}", sizes, draws, chosen)


def tuned(task: Task, tuner: str, metric: str, size: int, seed: int) -> tuple[float, ...]:
    """Return the scores of one draw with re-estimated weights."""
    found = bpa.reestimate(
        drawn(task.pool, size, seed),
        canonical(),
        tuner=tuner,
        metric=metric,
        seed=seed,
        defaults=dict.fromkeys(task.new, 0.0),
    )
    return scores_of(task.test, [found.weights[name] for name in task.test.feature_names])


def tuners_table(task: Task, draws: int, sizes: tuple[int, ...] = (10, 100)) -> None:
    """Print what re-estimation makes of the same features."""
    for title, new in (("14 features", ()), ("14 + 5 features", RICH)):
        head(f"captions, {title}", sizes)
        chosen = task.choose(*new)
        for name, likelihood in LIKELIHOODS.items():
            row(name, sizes, draws, partial(of_task, chosen, likelihood=likelihood))
        for tuner in ("mert", "mira", "pro"):
            for metric in ("ter", "bleu"):
                row(f"{tuner} ({metric})", sizes, draws, partial(tuned, chosen, tuner, metric))


def lines_table(folder: Path, draws: int, lines: int = 400, size: int = 50) -> None:
    """Print what a language model of other references of the domain is worth.

    The text are the last lines and A is drawn from the first ones; or each draw has its own split.
    """
    for domain in DOMAINS:
        pool, test = lists(domain, "adapt"), lists(domain, "test")
        head(f"{domain}, LM of {lines} lines", (size,))

        def split(size: int, seed: int, pool: NBest = pool, test: NBest = test, **options: Any):
            order = np.arange(len(pool))[::-1]
            if options.pop("shuffled"):
                order = np.random.default_rng([seed, 7]).permutation(len(pool))
            text = folder / f"lines.{seed}"
            references = [pool.references[i][0] for i in order[:lines]]
            text.write_text("\n".join([*references, ""]), encoding="utf-8")
            part = Task(pool.select(np.sort(order[lines:])), test)
            if options.pop("add"):
                part = part.with_features(LanguageModel(text=str(text)))
            return of_task(part, size, seed, **options)

        for name, likelihood in LIKELIHOODS.items():
            for add, shuffled in product((False, True), repeat=2):
                what = name + (", LM" if add else "") + (", random splits" if shuffled else "")
                chosen = partial(split, likelihood=likelihood, add=add, shuffled=shuffled)
                row(what, (size,), draws, chosen)


def few_table(folder: Path, draws: int, lines: int = 500) -> None:
    """Print what a language model of few lines is worth; each draw has lines of its own."""
    task, sizes = Task(lists("captions", "adapt"), lists("captions", "test")), (10, 50, 100)
    text = read_lines(CORPORA / "captions.train.en.xz")
    head(f"captions, LM of {lines} lines, others each time", sizes)

    def sampled(size: int, seed: int, **options: Any) -> Any:
        path = folder / "few"
        chosen = np.random.default_rng([seed, 11]).permutation(len(text))[:lines]
        path.write_text("\n".join([*(text[i] for i in chosen), ""]), encoding="utf-8")
        sample = drawn(task.pool, size, seed)
        part = Task(sample, task.test).with_features(LanguageModel(text=str(path)))
        return adapted(part, part.pool, **options)

    for name, likelihood in LIKELIHOODS.items():
        row(name, sizes, draws, partial(sampled, likelihood=likelihood))


def self_table(draws: int, sizes: tuple[int, ...] = (50, 100, 500)) -> None:
    """Print what a language model of the adaptation sentences themselves is worth."""
    source = LanguageModel(text="self")
    for domain in DOMAINS:
        task = Task(lists(domain, "adapt"), lists(domain, "test"))
        head(f"{domain}, LM of A itself", sizes)

        def learned(size: int, seed: int, task: Task = task, **options: Any):
            sample = drawn(task.pool, size, seed)
            fitted = source.fitted(sample)
            with_lm = Task(sample, bpa.add_features(task.test, fitted), ("lm", "lm.oov"))
            return adapted(with_lm, bpa.add_features(sample, source), **options)

        for name, likelihood in LIKELIHOODS.items():
            row(name, sizes, draws, partial(of_task, task, likelihood=likelihood))
            row(f"{name}, lm=self", sizes, draws, partial(learned, likelihood=likelihood))


def main() -> None:
    """Read the command line and print the tables."""
    names = ("captions", "margins", "few", "lines", "self", "priors", "tuners")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=names, choices=names)
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if {"captions", "margins", "priors", "tuners"} & set(options.tables):
            task = captions(folder)
        if "captions" in options.tables:
            captions_table(task, options.draws)
        if "margins" in options.tables:
            margins_table(task, options.draws)
        if "priors" in options.tables:
            priors_table(task, options.draws)
        if "tuners" in options.tables:
            tuners_table(task, options.draws)
        if "few" in options.tables:
            few_table(folder, options.draws)
        if "lines" in options.tables:
            lines_table(folder, options.draws)
        if "self" in options.tables:
            self_table(options.draws)


if __name__ == "__main__":
    main()
