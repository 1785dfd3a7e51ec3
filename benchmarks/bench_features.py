"""Test TER and BLEU with features computed from text of the domain.

    python benchmarks/bench_features.py [--tables NAME ...] [--draws 10]

Tables:
    captions  each source of features, alone and combined
    margins   values of γ and two gains, with a language model and the MAP phrase mixture
    lines     a language model of 400 references of the pool; A is drawn from the other 100
    self      a language model or a lexicon learned from the adaptation sentences only
    priors    the width of the prior of the new weights
    tuners    MERT, MIRA and PRO with the same features

Each draw has its own adaptation sentences (seeds 0, 1, ..., with replacement, the same for every
row). The posterior mode chooses from the 500-best lists of 500 test sentences. A cell has the mean
TER ± two standard deviations over the draws / BLEU / length ratio.
"""

from __future__ import annotations

from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from measuring import (
    DOMAINS,
    LIKELIHOODS,
    ScoreTable,
    Task,
    canonical,
    caption_corpus,
    caption_counts,
    domain_task,
    draw,
    run_tables,
    scratch_folder,
    segmented_captions,
    write_lines,
)

import bpa_ppl as bpa
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.streams import read_lines
from bpa_ppl.extras.phrases.lexicon import Lexicon
from bpa_ppl.extras.phrases.mixtures import mix
from bpa_ppl.extras.phrases.phrase_mixture import PhraseMixture
from bpa_ppl.extras.phrases.table_files import write_table
from bpa_ppl.extras.tuning.reestimation import reestimate
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.models.likelihoods.oracle import Margin
from bpa_ppl.models.priors.isotropic import Isotropic

LINES = 500
LM_AND_MAP = "+ LM and MAP phrase mixture"
#: Row of a table -> the new features.
FEATURES: dict[str, tuple[str, ...]] = {
    "the list's 14": (),
    f"+ lexicon of {LINES} pairs": ("lexicon500.direct", "lexicon500.inverse"),
    "+ MAP phrase mixture": ("map.direct", "map.inverse"),
    "+ lexicon of all pairs": ("lexicon.direct", "lexicon.inverse"),
    "+ LM of all lines": ("lm", "lm.oov"),
    LM_AND_MAP: ("lm", "lm.oov", "map.direct", "map.inverse"),
}
#: The five features of the table `tuners`.
FIVE = ("lm", "lm.oov", "linear.direct", "lexicon.direct", "lexicon.inverse")


@cache
def captions() -> Task:
    """Return the captions with the features of all tables."""
    corpus = [read_lines(path) for path in caption_corpus()]
    chosen = np.random.default_rng(0).permutation(len(corpus[1]))[:LINES]
    sides = (write_lines(f"few.{n}", (text[i] for i in chosen)) for n, text in enumerate(corpus))
    return segmented_captions().with_features(
        LanguageModel(text=caption_corpus()[1]),
        Lexicon(pairs=caption_corpus()),
        Lexicon(pairs=tuple(sides), name="lexicon500"),
        phrase_mixture("linear"),
        phrase_mixture("map"),
    )


def phrase_mixture(method: str) -> PhraseMixture:
    """Fit a mixture of the phrase tables of captions and of the general corpus."""
    path = scratch_folder() / f"{method}.parquet"
    write_table(mix(*caption_counts(), method)[0], path)
    return PhraseMixture(table=str(path), name=method)


def captions_table(options: Any) -> None:
    """Print the scores with each source of features."""
    text, lists = read_lines(caption_corpus()[1]), domain_task("captions")

    def sampled(size: int, seed: int, **settings: Any) -> Float64:
        chosen = np.random.default_rng([seed, 11]).permutation(len(text))[:LINES]
        source = LanguageModel(text=write_lines("few", (text[i] for i in chosen)))
        task = lists._replace(pool=draw(lists.pool, size, seed)).with_features(source)
        return task.scores(bpa.point_weights(task.adapt(task.pool, **settings), unchecked=True))

    for name, likelihood in LIKELIHOODS.items():
        table = ScoreTable(f"captions, {name}", (10, 50, 100), options.draws)
        for features, new in FEATURES.items():
            task = captions().keep_features(*new)
            table.add(features, partial(task.score_draw, likelihood=likelihood))
        table.add(f"+ LM of {LINES} lines, per draw", partial(sampled, likelihood=likelihood))


def margins_table(options: Any) -> None:
    """Print the scores with several values of γ and two gains."""
    task = captions().keep_features(*FEATURES[LM_AND_MAP])
    table = ScoreTable(f"captions {LM_AND_MAP}", (10, 100), options.draws)
    for gain, gamma in product(("ter", "ter+bleu"), (0.0, 2.0, 4.0, 8.0)):
        of_draw = partial(task.score_draw, likelihood=Margin(gamma=gamma), gain=gain)
        table.add(f"gain {gain}, γ = {gamma:g}", of_draw)


def priors_table(options: Any) -> None:
    """Print the scores with several widths of the prior of the new weights."""
    table = ScoreTable("captions, prior of the new weights", (10, 100), options.draws)
    for features in ("+ LM of all lines", "+ lexicon of all pairs", "+ MAP phrase mixture"):
        task = captions().keep_features(*FEATURES[features])
        priors = {"variance 0.1": Isotropic(single=dict.fromkeys(task.new, 0.1))}
        priors |= {f"scale {scale}": Isotropic(scale=scale) for scale in (None, 0.3, 1.0, 2.0, 4.0)}
        for name, prior in priors.items():
            table.add(f"{features}: {name}", partial(task.score_draw, prior=prior))


def tuners_table(options: Any) -> None:
    """Print the scores of tuners with the same features."""

    def tuned(task: Task, tuner: str, metric: str, size: int, seed: int) -> Float64:
        sample, zeros = draw(task.pool, size, seed), dict.fromkeys(task.new, 0.0)
        settings = {"tuner": tuner, "gain": metric, "seed": seed, "defaults": zeros}
        return task.scores(reestimate(sample, canonical(), **settings).weights)

    for title, new in (("14 features", ()), ("14 + 5 features", FIVE)):
        table = ScoreTable(f"captions, {title}", (10, 100), options.draws)
        task = captions().keep_features(*new)
        for name, likelihood in LIKELIHOODS.items():
            table.add(name, partial(task.score_draw, likelihood=likelihood))
        for tuner, metric in product(("mert", "mira", "pro"), ("ter", "bleu")):
            table.add(f"{tuner} ({metric})", partial(tuned, task, tuner, metric))


def lines_table(options: Any) -> None:
    """Print the scores with a language model of references of the pool.

    These are the last 400 references, or a random sample for each draw.
    """

    def split(domain: str, shuffle: bool, with_lm: bool, size: int, seed: int) -> Float64:
        task = domain_task(domain)
        order = np.arange(len(task.pool))[::-1]
        if shuffle:
            order = np.random.default_rng([seed, 7]).permutation(len(order))
        text = write_lines("references", (task.pool.references[i][0] for i in order[:400]))
        task = task._replace(pool=task.pool.select(np.sort(order[400:])))
        if with_lm:
            task = task.with_features(LanguageModel(text=text))
        return task.score_draw(size, seed)

    for domain in DOMAINS:
        table = ScoreTable(f"{domain}, LM of 400 references", (50,), options.draws)
        for shuffle, with_lm in product((False, True), repeat=2):
            name = f"{'random' if shuffle else 'last'} references, {'LM' if with_lm else 'no LM'}"
            table.add(name, partial(split, domain, shuffle, with_lm))


def self_table(options: Any) -> None:
    """Print the scores with features learned from the adaptation sentences only."""

    def learned(task: Task, source: Any, size: int, seed: int, **settings: Any) -> Float64:
        sample = draw(task.pool, size, seed)
        pool = bpa.add_features(sample, source)
        test = bpa.add_features(task.test, source.fitted(sample))
        new = pool.feature_names[len(sample.feature_names) :]
        task = task._replace(pool=pool, test=test, new=new)
        return task.scores(bpa.point_weights(task.adapt(pool, **settings), unchecked=True))

    for domain in DOMAINS:
        table = ScoreTable(f"{domain}, features learned from A", (10, 50, 100, 500), options.draws)
        task = domain_task(domain)
        for name, likelihood in LIKELIHOODS.items():
            table.add(name, partial(task.score_draw, likelihood=likelihood))
            for source in (LanguageModel(text="self"), Lexicon(pairs="self")):
                of_draw = partial(learned, task, source, likelihood=likelihood)
                table.add(f"{name}, {source.name}=self", of_draw)


if __name__ == "__main__":
    run_tables(
        __doc__,
        (captions_table, margins_table, lines_table, self_table, priors_table, tuners_table),
        draws=10,
    )
