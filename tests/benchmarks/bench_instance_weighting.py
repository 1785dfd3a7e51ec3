"""Instance weighting of phrase pairs on captions: likelihood, time, and use as features.

    python tests/benchmarks/bench_instance_weighting.py [--tables NAME ...] [--forms NAME ...]
        [--rows NAME ...] [--draws 10] [--keep FOLDER]

Tables:
    likelihood  mean log p(t|s) and p(s|t) of development pairs with support, over 5 folds of the
                distinct pairs, weighted by their counts
    settings    the same of the weighted forms, by the scale of the features and their prior
    speed       seconds and memory of fitting φ for p(t|s), compared with finite differences
    table2      Table 2 of the paper: for each method test TER ± two standard deviations over the
                draws / BLEU / length ratio with its columns as features, |A| = 50; mean log p(t|s)
                of development pairs with support (held out where something is fitted), and support;
                `--rows` selects rows by name, such as "lm + map tm"
    negatives   held-out log-likelihood of the SVM feature, by the definition of its negatives
    published   φ of the published setting: features as they are, maximum likelihood, Eq. 4 as
                printed; and with a prior
    length      held-out log-likelihood and TER with phrases of up to 5 and up to 7 words

Computing the features of the general corpus takes minutes; `--keep` stores them in a folder, and
the phrase counts that are extracted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from measuring import (
    CORPORA,
    PeakMemory,
    ScoreTable,
    Table,
    best_time,
    caption_corpus,
    caption_counts,
    run_tables,
    scratch_folder,
    segmented_captions,
    write_lines,
)
from scipy.optimize import minimize

from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.models import Isotropic
from bpa_ppl.models.instance_weighting import (
    FORMS,
    MixtureData,
    Variant,
    fit,
    mixture_data,
    variant_named,
    weigh,
)
from bpa_ppl.models.instance_weighting.density import log_densities, placed
from bpa_ppl.models.instance_weighting.mixture import MIXTURES
from bpa_ppl.phrases import (
    PhraseCounts,
    PhraseTable,
    held_out,
    mix,
    read_counts,
    write_counts,
    write_table,
)
from bpa_ppl.phrases.extraction import extract_phrases, select_lines
from bpa_ppl.phrases.mixtures import LOG_LINEAR, METHODS, counts_of
from bpa_ppl.phrases.pair_features import (
    PAIR_FEATURES,
    SVM,
    pair_features,
    read_corpus,
    svm_feature,
)
from bpa_ppl.phrases.phrase_mixture import PhraseMixture
from bpa_ppl.phrases.tables import index_in
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.words import lines_of

SIDES = ("target", "source")
NAMES = (*PAIR_FEATURES, SVM)
PROBABILITIES = ("p(t|s)", "p(s|t)")
PRIOR = 1.0  # the standard deviation of the prior of a weight
FOLDS = 5
OUT_LINES = 455_891
#: Sizes of the selection of general lines.
SELECTED = (1_000, 4_000, 16_000, 64_000)


class Corpora(NamedTuple):
    """Phrase counts of the domain, of the general corpus and of the development text."""

    domain: PhraseCounts
    general: PhraseCounts
    dev: PhraseCounts
    keep: str

    def features(self, scale: str = "log") -> np.ndarray:
        """Return the features of the pairs of the general corpus, by `NAMES`."""
        return read_features(self.keep, scale)

    def data(self, side: Any, scale: str = "log") -> MixtureData:
        """Return the data of one direction."""
        return mixture_data(*self[:3], self.features(scale), NAMES, side)


@cache
def read_corpora(keep: str) -> Corpora:
    """Read the counts."""
    return Corpora(*caption_counts(), keep)


@cache
def read_features(keep: str, scale: Any) -> np.ndarray:
    """Compute the features of the general corpus, or read stored ones."""
    domain, general, _ = read_corpora(keep)[:3]
    path = (Path(keep) if keep else scratch_folder()) / f"features.{scale}.npy"
    if not path.exists():
        corpora = [
            read_corpus(*(CORPORA / f"{name}.{side}.xz" for side in ("fr", "en")))
            for name in ("out", "captions.train")
        ]
        np.save(path, pair_features(general, *corpora, scale=scale)[1])
    columns = np.load(path)
    return np.column_stack([columns, svm_feature(general, domain, columns)])


def variant(form: str, mixture: str) -> Variant:
    """Return a form; the forms without features of their own have all but that of the SVM."""
    named = variant_named(form, mixture)
    return named if named.features else replace(named, features=PAIR_FEATURES)


def held_out_mean(data: MixtureData, variant: Variant, prior: float | None) -> float:
    """Return the mean log p of held-out pairs with support."""
    fold = np.random.default_rng(0).permutation(np.arange(len(data.weight)) % FOLDS)
    probability = np.zeros(len(data.weight))
    for number in range(FOLDS):
        training = data._replace(weight=np.where(fold == number, 0.0, data.weight))
        fitted = fit(training, variant, prior_deviation=prior)
        probability[fold == number] = fitted.probabilities(data)[fold == number]
    supported = data.supported
    return float(np.average(np.log(probability[supported]), weights=data.weight[supported]))


def likelihood_table(options: Any) -> None:
    """Print the held-out log-likelihood of every variant."""
    corpora = read_corpora(options.keep)
    of_sides = [corpora.data(side) for side in SIDES]
    print(f"\nsupport: {of_sides[0].support:.1%} of the occurrences of development pairs")
    table = Table("held-out log-likelihood per pair", "p(t|s)", "p(s|t)")
    for method in METHODS:
        values = [
            held_out(method, counts_of(*corpora[:3], side), corpora.dev.count, side, folds=FOLDS)
            for side in SIDES
        ]
        table.row(method, *(f"{value.log_likelihood:.4f}" for value in values))
    for complete, mixture, form in product((True, False), MIXTURES, options.forms):
        variety = replace(variant(form, mixture), complete=complete)
        values = [held_out_mean(data, variety, PRIOR) for data in of_sides]
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
        values = [
            held_out_mean(corpora.data(side, scale), variant("weighted", mixture), deviation)
            for side, mixture in product(SIDES, MIXTURES)
        ]
        cells = (f"{value:.4f}" for value in values)
        table.row(f"{scale}, prior deviation {deviation or '∞'}", *cells)


def negative_log_density(data: MixtureData) -> Callable[[np.ndarray], float]:
    """Return the objective of the fit of the weighted MAP mixture, per occurrence."""
    weighted = variant("weighted", "map")
    total = data.weight[data.supported].sum()

    def objective(z: np.ndarray) -> float:
        with placed(weighted.apply(data)) as arrays:
            return float(-log_densities(arrays, weighted, PRIOR, z)[0] / total)

    return objective


def speed_table(options: Any) -> None:
    """Print time and memory of fitting."""
    corpora = read_corpora(options.keep)
    data = corpora.data("target")
    title = f"{len(corpora.general)} pairs, {len(data.count)} with a source of the dev text"
    table = Table(title, "seconds", "GB", "steps", "mean log p")
    for form, prior in (("weighted", PRIOR), ("weighted", None), ("svm", PRIOR)):
        run = partial(fit, data, variant(form, "map"), prior_deviation=prior)
        run()  # compiles
        with PeakMemory() as peak:
            time = best_time(run)
        name = f"{form}, {'prior' if prior else 'maximum likelihood'}"
        mean = f"{time.result.log_likelihood:.5f}"
        table.row(name, time.seconds, peak.bytes / 1e9, str(time.result.iterations), mean)
    weighted, objective = variant("weighted", "map"), negative_log_density(data)
    fitted = best_time(partial(fit, data, weighted, prior_deviation=PRIOR))
    settings = {"method": "L-BFGS-B", "options": {"maxfun": 50_000, "gtol": 1e-7}}
    start = np.zeros(weighted.size(data))
    plain = best_time(partial(minimize, objective, start, **settings))
    reached = objective(fitted.result.z)
    table = Table("weighted, prior", "seconds", "log density", "times as long")
    table.row("fit", fitted.seconds, f"{-reached:.6f}", 1.0)
    ratio = plain.seconds / fitted.seconds
    table.row("L-BFGS, finite differences", plain.seconds, f"{-plain.result.fun:.6f}", ratio)


def negatives_table(options: Any) -> None:
    """Print the held-out log-likelihood of the SVM feature."""
    corpora = read_corpora(options.keep)
    columns = corpora.features()[:, : len(PAIR_FEATURES)]
    table = Table("SVM feature, known", *(f"{p}, {m}" for p, m in product(PROBABILITIES, MIXTURES)))
    for number, negatives in ((2, "no-common"), (1, "source")):
        chosen: Any = negatives
        feature = svm_feature(corpora.general, corpora.domain, columns, negatives=chosen)
        values = [
            held_out_mean(
                mixture_data(*corpora[:3], feature, (SVM,), side), variant("svm", mixture), PRIOR
            )
            for side, mixture in product(SIDES, MIXTURES)
        ]
        table.row(f"definition {number}, {negatives}", *(f"{value:.4f}" for value in values))


def published_table(options: Any) -> None:
    """Print φ of fits without and with a prior."""
    corpora = read_corpora(options.keep)
    table = Table("p(t|s)", "log p", "held out", "γ", "largest |λ|", "problems", width=12)
    for form, mixture, (name, scale, prior, complete) in product(
        ("svm", "weighted"),
        MIXTURES,
        (("published", "plain", None, False), ("default", "log", PRIOR, True)),
    ):
        data = corpora.data("target", scale)
        chosen = replace(variant(form, mixture), complete=complete)
        fitted = fit(data, chosen, prior_deviation=prior)
        table.row(
            f"{form}, {mixture}, {name}",
            f"{fitted.log_likelihood:.4f}",
            f"{held_out_mean(data, chosen, prior):.4f}",
            f"{fitted.phi.gamma:.2g}",
            f"{np.abs(fitted.phi.weights).max():.1f}",
            "  " + ("; ".join(fitted.problems()) or "none"),
        )


@cache
def extracted(keep: str, corpus: str, length: int, lines: int = 0) -> PhraseCounts:
    """Return the phrase counts of a corpus, or of the lines of it that are most like captions."""
    folder = Path(keep) if keep else scratch_folder()
    path = folder / f"{corpus}.{length}.{lines}.parquet"
    if not path.exists():
        files = [CORPORA / f"{corpus}.{side}.xz" for side in ("fr", "en", "align")]
        chosen = None
        if lines:
            share = (lines - 0.5) / OUT_LINES
            chosen = select_lines(NgramModel.train([caption_corpus()[1]]), files[1], share)
        write_counts(extract_phrases(*files, max_length=length, keep=chosen), path)
    return read_counts(path)


def selected_text(lines: int) -> str:
    """Return the path of a text: captions, and the general lines that are most like them."""
    model = NgramModel.train([caption_corpus()[1]])
    chosen = select_lines(model, CORPORA / "out.en.xz", (lines - 0.5) / OUT_LINES)
    general = [line for line, kept in zip(text_lines("out"), chosen, strict=True) if kept]
    return write_lines(f"ir.{lines}.en", [*text_lines("captions.train"), *general])


def text_lines(corpus: str) -> list[str]:
    """Return the target side of a corpus."""
    return [line for part in lines_of(CORPORA / f"{corpus}.en.xz") for line in part]


def supported_mean(
    table: PhraseTable, dev: PhraseCounts, floor: float = 0.0
) -> tuple[float, float]:
    """Return the mean log p(t|s) of the development pairs above a floor, and their share."""
    p = np.append(table.columns["direct"], 0.0)[table.rows_of(dev)]
    p = np.maximum(p, floor)
    used = p > 0
    mean = float(np.average(np.log(p[used]), weights=dev.count[used]))
    return mean, float(dev.count[used].sum() / dev.count.sum())


def best_selection(keep: str) -> tuple[int, PhraseTable]:
    """Return the size of the selection with the most probable development pairs, and its table.

    As in features, a pair that is not in the table has probability 0.01.
    """
    domain, _, dev = read_corpora(keep)[:3]
    tables = {
        lines: mix(domain, extracted(keep, "out", 5, lines), method="concatenate")[0]
        for lines in SELECTED
    }
    floored = {lines: supported_mean(made, dev, 0.01)[0] for lines, made in tables.items()}
    best = max(floored, key=lambda lines: floored[lines])
    print("selected lines:", ", ".join(f"{n}: {v:.4f}" for n, v in floored.items()), "→", best)
    return best, tables[best]


class Row(NamedTuple):
    """A row of Table 2: a table of phrases and the language models of its system.

    Attributes:
        phrases: computes the table, and the log p of development pairs in words.
        models: the names of the language models.
        columns: the end of the names of the columns of the table that become features.
    """

    phrases: Callable[[], tuple[PhraseTable, str]]
    models: tuple[str, ...] = ()
    columns: str = ""


def table2_rows(options: Any) -> dict[str, Row]:
    """Return the rows of Table 2; nothing is computed yet."""
    corpora = read_corpora(options.keep)
    domain, general, dev = corpora[:3]

    def of_pairs(phrases: PhraseTable) -> str:
        return "{:.4f}, {:.1%}".format(*supported_mean(phrases, dev))

    def alone(value: float) -> tuple[PhraseTable, str]:
        one = mix(domain, general, method="linear", value=value)[0]
        return mix(domain, general, method=LOG_LINEAR)[0], of_pairs(one)

    def selection() -> tuple[PhraseTable, str]:
        chosen = best_selection(options.keep)[1]
        return chosen, of_pairs(chosen)

    @cache
    def mixed(method: str) -> tuple[PhraseTable, str]:
        fitted = held_out(method, counts_of(domain, general, dev, "target"), dev.count, "target")
        log_p = f"{fitted.log_likelihood:.4f}, {fitted.support:.1%}"
        return mix(domain, general, dev, method)[0], log_p

    @cache
    def weighted(mixture: str, form: str) -> tuple[PhraseTable, str]:
        variety, data = variant(form, mixture), corpora.data("target")
        arguments = *corpora[:3], corpora.features(), NAMES
        made, _ = weigh(*arguments, variety, prior_deviation=PRIOR)
        return made, f"{held_out_mean(data, variety, PRIOR):.4f}, {data.support:.1%}"

    def separate() -> tuple[PhraseTable, str]:
        return mix(domain, general, method=LOG_LINEAR)[0], ""

    rows = {
        "in": Row(partial(alone, 1.0), ("in",), "in"),
        "out": Row(partial(alone, 0.0), ("out",), "out"),
        "log-linear": Row(separate, ("in", "out")),
        "selection": Row(selection, ("ir",)),
        "linear lm": Row(separate, ("mixed",)),
    }
    # As in the paper, both language models or their mixture; and none, for the tables alone.
    models = {"": ("in", "out"), "lm + ": ("mixed",), "no lm, ": ()}
    for (prefix, names), method in product(models.items(), METHODS):
        rows[f"{prefix}{method} tm"] = Row(partial(mixed, method), names)
    for (prefix, names), mixture, form in product(models.items(), MIXTURES, options.forms):
        rows[f"{prefix}iw {mixture}-known, {form}"] = Row(partial(weighted, mixture, form), names)
    return rows


def table2(options: Any) -> None:
    """Print Table 2: in, out, log-linear, selection, mixtures, and instance weighting."""
    rows = table2_rows(options)
    chosen = {name: row for name, row in rows.items() if not options.rows or name in options.rows}
    if unknown := set(options.rows) - set(rows):
        raise SystemExit(f"no row {', '.join(sorted(unknown))}; there are {'; '.join(rows)}")
    captions, folder = segmented_captions(), scratch_folder()
    inner, outer = caption_corpus()[1], str(CORPORA / "out.en.xz")
    dev = str(CORPORA / "captions.dev.en.xz")
    needed = {name for row in chosen.values() for name in row.models}
    models = {
        "in": lambda: LanguageModel(text=inner, name="lm.in"),
        "out": lambda: LanguageModel(text=outer, name="lm.out"),
        "mixed": lambda: LanguageModel(text=(inner, outer), dev=dev, name="lm.mixed"),
        "ir": lambda: LanguageModel(
            text=selected_text(best_selection(options.keep)[0]), name="lm.ir"
        ),
    }
    captions = captions.with_features(*(models[name]() for name in models if name in needed))
    scores = ScoreTable("captions", (50,), options.draws)
    if not options.rows:
        scores.add("the list's 14", captions.keep_features().score_draw)
    for name, row in chosen.items():
        phrases, log_p = row.phrases()
        path = folder / "table.parquet"
        write_table(phrases, path)
        task = captions.with_features(PhraseMixture(table=str(path)))
        kept = [n for n in task.new if n.startswith("phrases.") and n.endswith(row.columns)]
        kept += [n for n in task.new for model in row.models if n.startswith(f"lm.{model}")]
        task = task.keep_features(*kept)
        prior = Isotropic(single=dict.fromkeys(task.new, 0.1))
        scores.add(f"{name:<30} {log_p:>15}", partial(task.score_draw, prior=prior))


@cache
def counts_of_length(keep: str, length: int) -> tuple[PhraseCounts, PhraseCounts, PhraseCounts]:
    """Return counts of phrases of up to 5 or 7 words: of captions, of OUT, and of dev.

    Those of OUT are of the source phrases of captions and of the lists; c(s) and c(t) are of all.
    """
    if length == 5:
        return read_corpora(keep)[:3]
    domain, dev = (extracted(keep, name, length) for name in ("captions.train", "captions.dev"))
    path = (Path(keep) if keep else scratch_folder()) / f"out.{length}.captions.parquet"
    if not path.exists():
        general = extracted(keep, "out", length)
        sources = {*domain.sources.to_pylist(), *dev.sources.to_pylist()}
        for part in ("captions.dev", "captions.test"):
            for line in chain.from_iterable(lines_of(CORPORA / f"{part}.fr.xz")):
                words = line.split()
                spans = combinations(range(len(words) + 1), 2)
                sources.update(" ".join(words[i:j]) for i, j in spans if j - i <= length)
        wanted = index_in(general.sources, pa.array(sorted(sources), pa.large_string())) >= 0
        rows = np.flatnonzero(wanted[general.source])
        texts = {side: general.texts(side, rows) for side in SIDES}
        part = PhraseCounts.of(texts["source"], texts["target"], general.count[rows])
        for side in SIDES:
            phrases = part.phrases(side)
            part = part.with_marginal(side, phrases, general.marginals_of(side, phrases))
        write_counts(part, path)
    return domain, read_counts(path), dev


def length_table(options: Any) -> None:
    """Print log-likelihood and TER by the maximum length of phrases."""
    captions, path = segmented_captions(), scratch_folder() / "table.parquet"
    columns = [f"{p}, {m}" for p, m in product(PROBABILITIES, MIXTURES)]
    table = Table("plain, known; held out", *columns, "support", "pairs of IN")
    for length, dev_length in ((5, 5), (7, 5), (7, 7)):
        *parts, _ = counts_of_length(options.keep, length)
        dev = counts_of_length(options.keep, dev_length)[2]
        values = [
            held_out(f"{mixture}-known", counts_of(*parts, dev, side), dev.count, side, folds=FOLDS)
            for side, mixture in product(SIDES, MIXTURES)
        ]
        cells = [f"{value.log_likelihood:.4f}" for value in values]
        name = f"phrases of {length}, development pairs of {dev_length}"
        table.row(name, *cells, f"{values[0].support:.1%}", f"{len(parts[0]):,}")
    scores = ScoreTable("captions", (50,), options.draws)
    for length, mixture in product((5, 7), MIXTURES):
        write_table(mix(*counts_of_length(options.keep, length), f"{mixture}-known")[0], path)
        task = captions.with_features(PhraseMixture(table=str(path)))
        prior = Isotropic(single=dict.fromkeys(task.new, 0.1))
        name = f"{mixture}-known, phrases of up to {length} words"
        scores.add(name, partial(task.score_draw, prior=prior))


if __name__ == "__main__":
    tables = {
        "likelihood": likelihood_table,
        "settings": settings_table,
        "speed": speed_table,
        "table2": table2,
        "negatives": negatives_table,
        "published": published_table,
        "length": length_table,
    }
    run_tables(__doc__, tables, draws=10, keep="", forms=tuple(FORMS), rows=())
