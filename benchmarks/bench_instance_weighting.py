"""Instance weighting of phrase pairs on captions: likelihood, time, and use as features.

    python benchmarks/bench_instance_weighting.py [--tables NAME ...] [--forms NAME ...]
        [--rows NAME ...] [--draws 10] [--keep FOLDER]

Tables:
    likelihood  mean log p(t|s) and p(s|t) of development pairs with support, over 5 folds of the
                distinct pairs, weighted by their counts; p(s|t) only for `weighted`
    settings    the same for the weighted forms, by the scale of the features and their prior
    negatives   the same for the SVM feature, by the definition of its negatives, and how many of
                the held-out examples of each class the SVM classifies correctly
    published   φ of the published setting: features without logarithms, maximum likelihood, Eq. 4
                of 2010 as printed; and the same with a prior
    speed       seconds and memory of fitting φ for p(t|s), compared with finite differences
    table2      Table 2 of the paper: for each method, the scores of captions with its columns as
                features, |A| = 50; mean log p(t|s) of development pairs with support (held out
                where something is fitted), and support
    forms       the same for the forms of instance weights, with both language models
    tables      the same for mixtures and forms without language models
    best        the same with the 30 best translations of each source phrase, and the number of
                pairs
    selection   by the number of lines of OUT that are most similar to captions: log p(t|s) of
                development pairs, BLEU of the 500 lists of the development text after adaptation to
                them, and test scores with |A| = 50
    length      held-out log-likelihood and TER with phrases of up to 5 and up to 7 words

Rows with `-known` keep the probabilities of phrases that only one table contains. `--rows` selects
rows of `table2`, `forms` and `tables` by name, such as "lm + map tm". Computing the features of the
general corpus takes minutes; `--keep` stores them in a folder, together with the extracted phrase
counts.
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
    Task,
    best_time,
    caption_corpus,
    caption_counts,
    cell,
    few,
    run_tables,
    scratch_folder,
    segmented_captions,
    summary,
    write_lines,
)
from scipy.optimize import minimize
from sklearn.svm import LinearSVC

from bpa_ppl import point_weights
from bpa_ppl.extras.phrases.extraction import extract_phrases, select_lines
from bpa_ppl.extras.phrases.instance_weights import (
    FORMS,
    MIXTURES,
    MixtureData,
    Variant,
    collect_data,
    compute_log_densities,
    fit_weights,
    on_device,
    variant_named,
    weigh_tables,
)
from bpa_ppl.extras.phrases.mixtures import (
    LOG_LINEAR,
    METHODS,
    FittedMixture,
    PairCounts,
    align_counts,
    mix,
)
from bpa_ppl.extras.phrases.mixtures import fit as fit_mixture
from bpa_ppl.extras.phrases.pair_features import (
    PAIR_FEATURES,
    SVM,
    choose_examples,
    pair_features,
    read_corpus,
    svm_feature,
)
from bpa_ppl.extras.phrases.phrase_mixture import PhraseMixture
from bpa_ppl.extras.phrases.table_files import read_counts, write_counts, write_table
from bpa_ppl.extras.phrases.tables import PhraseCounts, PhraseTable, find_index
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.models.priors.isotropic import Isotropic
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.words import iter_lines

SIDES = ("target", "source")
NAMES = (*PAIR_FEATURES, SVM)
PROBABILITIES = ("p(t|s)", "p(s|t)")
PRIOR = 1.0  # the standard deviation of the prior of a weight
FOLDS = 5
OUT_LINES = 455_891
#: Sizes of the selection of general lines.
SELECTED = few((1_000, 4_000, 16_000, 64_000))


#: Tables of scores.
SCORED = ("table2", "forms", "tables")


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
        return collect_data(*self[:3], self.features(scale), NAMES, side)


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


def held_out(method: str, counts: PairCounts, weights: Any, side: Any) -> FittedMixture:
    """Return the likelihood of pairs under mixtures that were fitted to the other folds."""
    fold = np.random.default_rng(0).permutation(np.arange(len(weights)) % FOLDS)
    probabilities = np.zeros(len(weights))
    for number in range(FOLDS):
        test = fold == number
        train, left_out = (PairCounts(*(c[rows] for c in counts)) for rows in (~test, test))
        value = fit_mixture(method, train, weights[~test], side).value
        probabilities[test] = METHODS[method](left_out, value)
    support = probabilities > 0
    mean = np.average(np.log(probabilities[support]), weights=weights[support])
    share = weights[support].sum() / weights.sum()
    return FittedMixture(method, side, np.nan, float(mean), float(share))


def held_out_mean(data: MixtureData, variant: Variant, prior: float | None) -> float:
    """Return the mean log p of held-out pairs with support."""
    fold = np.random.default_rng(0).permutation(np.arange(len(data.weight)) % FOLDS)
    probability = np.zeros(len(data.weight))
    for number in range(FOLDS):
        training = data._replace(weight=np.where(fold == number, 0.0, data.weight))
        fitted = fit_weights(training, variant, prior_deviation=prior)
        probability[fold == number] = fitted.probabilities(data)[fold == number]
    supported = data.supported
    return float(np.average(np.log(probability[supported]), weights=data.weight[supported]))


@cache
def held_out_of(keep: str, form: str, mixture: str, side: str, complete: bool = True) -> float:
    """Return the mean log p of held-out pairs under a form with the default prior."""
    variety = replace(variant(form, mixture), complete=complete)
    return held_out_mean(read_corpora(keep).data(side), variety, PRIOR)


def likelihood_table(options: Any) -> None:
    """Print the held-out log-likelihood of every variant."""
    corpora = read_corpora(options.keep)
    support = corpora.data("target").support
    print(f"\nsupport: {support:.1%} of the occurrences of development pairs")
    table = Table("held-out log-likelihood per pair", "p(t|s)", "p(s|t)")
    for method in METHODS:
        values = [
            held_out(method, align_counts(*corpora[:3], side), corpora.dev.count, side)
            for side in SIDES
        ]
        table.row(method, *(f"{value.log_likelihood:.4f}" for value in values))
    known = product((True,), MIXTURES, options.forms)
    for complete, mixture, form in (*known, *product((False,), MIXTURES, ("weighted",))):
        sides = SIDES if form == "weighted" else SIDES[:1]
        values = [held_out_of(options.keep, form, mixture, side, complete) for side in sides]
        cells = [f"{value:.4f}" for value in values] + [""] * (len(SIDES) - len(sides))
        table.row(f"{mixture}{'-known' * complete}, {form}", *cells)


def settings_table(options: Any) -> None:
    """Print the held-out log-likelihood by scale and prior."""
    corpora = read_corpora(options.keep)
    columns = [f"{m}, {s}" for s, m in product(("p(t|s)", "p(s|t)"), MIXTURES)]
    table = Table("weighted, known", *columns)
    scaled = (("log", 0.3), ("log", 1.0), ("log", None), ("plain", 1.0), ("plain", None))
    for scale, deviation in few(scaled):
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
        with on_device(weighted.apply(data)) as arrays:
            return float(-compute_log_densities(arrays, weighted, PRIOR, z)[0] / total)

    return objective


def speed_table(options: Any) -> None:
    """Print time and memory of fitting."""
    corpora = read_corpora(options.keep)
    data = corpora.data("target")
    title = f"{len(corpora.general)} pairs, {len(data.count)} with a source of the dev text"
    table = Table(title, "seconds", "GB", "steps", "mean log p")
    for form, prior in (("weighted", PRIOR), ("weighted", None), ("svm", PRIOR)):
        run = partial(fit_weights, data, variant(form, "map"), prior_deviation=prior)
        run()  # compiles
        with PeakMemory() as peak:
            time = best_time(run)
        name = f"{form}, {'prior' if prior else 'maximum likelihood'}"
        mean = f"{time.result.log_likelihood:.5f}"
        table.row(name, time.seconds, peak.bytes / 1e9, str(time.result.iterations), mean)
    weighted, objective = variant("weighted", "map"), negative_log_density(data)
    fitted = best_time(partial(fit_weights, data, weighted, prior_deviation=PRIOR))
    settings = {"method": "L-BFGS-B", "options": {"maxfun": 50_000, "gtol": 1e-7}}
    start = np.zeros_like(fitted.result.z)
    plain = best_time(partial(minimize, objective, start, **settings))
    reached = objective(fitted.result.z)
    table = Table("weighted, prior", "seconds", "log density", "times as long")
    table.row("fit", fitted.seconds, f"{-reached:.6f}", 1.0)
    ratio = plain.seconds / fitted.seconds
    table.row("L-BFGS, finite differences", plain.seconds, f"{-plain.result.fun:.6f}", ratio)


def accuracy(features: np.ndarray, rows: np.ndarray, common: np.ndarray) -> list[float]:
    """Return the shares of held-out positive and negative examples that the SVM recognises."""
    fold = np.random.default_rng(0).permutation(np.arange(len(rows)) % FOLDS)
    decided = np.zeros(len(rows), bool)
    for number in range(FOLDS):
        machine = LinearSVC(class_weight="balanced", dual=False, random_state=0)
        machine.fit(features[rows[fold != number]], common[fold != number])
        decided[fold == number] = machine.predict(features[rows[fold == number]])
    return [float((decided[common == kind] == kind).mean()) for kind in (True, False)]


def negatives_table(options: Any) -> None:
    """Print the held-out log-likelihood of the SVM feature."""
    corpora = read_corpora(options.keep)
    columns = corpora.features()[:, : len(PAIR_FEATURES)]
    columns_of = (f"{p}, {m}" for p, m in product(PROBABILITIES, MIXTURES))
    table = Table("SVM feature, known", *columns_of, "common", "negative", "mean")
    for number, negatives in ((2, "no-common"), (1, "source")):
        chosen: Any = negatives
        feature = svm_feature(corpora.general, corpora.domain, columns, negatives=chosen)
        values = [
            held_out_mean(
                collect_data(*corpora[:3], feature, (SVM,), side), variant("svm", mixture), PRIOR
            )
            for side, mixture in product(SIDES, MIXTURES)
        ]
        right = accuracy(columns, *choose_examples(*corpora[1::-1], negatives=chosen))
        cells = [f"{value:.4f}" for value in values]
        cells += [f"{value:.1%}" for value in (*right, np.mean(right))]
        table.row(f"definition {number}, {negatives}", *cells)


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
        fitted = fit_weights(data, chosen, prior_deviation=prior)
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
    return [line for part in iter_lines(CORPORA / f"{corpus}.en.xz") for line in part]


def supported_mean(
    table: PhraseTable, dev: PhraseCounts, floor: float = 0.0
) -> tuple[float, float]:
    """Return the mean log p(t|s) of the development pairs above a floor, and their share."""
    p = np.append(table.columns["direct"], 0.0)[table.find_rows(dev)]
    p = np.maximum(p, floor)
    used = p > 0
    mean = float(np.average(np.log(p[used]), weights=dev.count[used]))
    return mean, float(dev.count[used].sum() / dev.count.sum())


@cache
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
    """A row of scores: a table of phrases and the language models of its system.

    Attributes:
        phrases: computes the table, and log p and support of development pairs in words.
        models: the names of the language models.
        columns: the end of the names of the columns of the table that become features.
    """

    phrases: Callable[[], tuple[PhraseTable, tuple[str, ...]]]
    models: tuple[str, ...] = ()
    columns: str = ""


def of_pairs(mean: float, support: float) -> tuple[str, str]:
    """Return log p and support in words."""
    return f"{mean:.4f}", f"{support:.1%}"


def of_weight(value: float, keep: str) -> tuple[PhraseTable, tuple[str, ...]]:
    """Return the columns of both tables, and log p of the linear mixture with a weight."""
    domain, general, dev = read_corpora(keep)[:3]
    one = mix(domain, general, method="linear", value=value)[0]
    return mix(domain, general, method=LOG_LINEAR)[0], of_pairs(*supported_mean(one, dev))


def separate(keep: str) -> tuple[PhraseTable, tuple[str, ...]]:
    """Return the columns of both tables."""
    return mix(*read_corpora(keep)[:2], method=LOG_LINEAR)[0], ()


def selection(keep: str) -> tuple[PhraseTable, tuple[str, ...]]:
    """Return the table of captions and of the selected lines of the general corpus."""
    chosen = best_selection(keep)[1]
    return chosen, of_pairs(*supported_mean(chosen, read_corpora(keep).dev))


@cache
def mixed_table(method: str, keep: str) -> tuple[PhraseTable, tuple[str, ...]]:
    """Return a mixture."""
    domain, general, dev = read_corpora(keep)[:3]
    fitted = held_out(method, align_counts(domain, general, dev, "target"), dev.count, "target")
    log_p = of_pairs(fitted.log_likelihood, fitted.support)
    return mix(domain, general, dev, method)[0], log_p


@cache
def weighted_table(mixture: str, form: str, keep: str) -> tuple[PhraseTable, tuple[str, ...]]:
    """Return a weighted table that keeps the probabilities of phrases of one table."""
    corpora = read_corpora(keep)
    arguments = *corpora[:3], corpora.features(), NAMES
    made, _ = weigh_tables(*arguments, variant(form, mixture), prior_deviation=PRIOR)
    support = corpora.data("target").support
    return made, of_pairs(held_out_of(keep, form, mixture, "target"), support)


def rows_of(name: str, options: Any) -> dict[str, Row]:
    """Return the rows of a table; nothing is computed yet."""
    keep, both = options.keep, ("in", "out")
    if name == "tables":
        rows = {f"{method} tm": Row(partial(mixed_table, method, keep)) for method in METHODS}
        for mixture, form in product(MIXTURES, options.forms):
            rows[f"iw {mixture}-known, {form}"] = Row(partial(weighted_table, mixture, form, keep))
        return rows
    if name == "forms":
        return {
            f"iw {mixture}-known, {form}": Row(partial(weighted_table, mixture, form, keep), both)
            for mixture, form in product(MIXTURES, options.forms)
        }
    rows = {
        "in": Row(partial(of_weight, 1.0, keep), ("in",), "in"),
        "out": Row(partial(of_weight, 0.0, keep), ("out",), "out"),
        "log-linear": Row(partial(separate, keep), both),
        "selection": Row(partial(selection, keep), ("ir",)),
        "linear lm": Row(partial(separate, keep), ("mixed",)),
        "concatenated": Row(partial(mixed_table, "concatenate", keep), ("concatenated",)),
    }
    # As in the paper, both language models or their mixture.
    for prefix, models in {"": both, "lm + ": ("mixed",)}.items():
        rows[f"{prefix}concatenate tm"] = Row(partial(mixed_table, "concatenate", keep), models)
        for method in MIXTURES:
            rows[f"{prefix}{method} tm"] = Row(partial(mixed_table, method, keep), models)
            phrases = partial(weighted_table, method, "weighted", keep)
            rows[f"{prefix}iw {method}-known"] = Row(phrases, models)
    return rows


@cache
def captions_with_models(keep: str, models: tuple[str, ...]) -> Task:
    """Return the lists of captions with language models as features."""
    inner, outer = caption_corpus()[1], str(CORPORA / "out.en.xz")
    makers = {
        "in": lambda: LanguageModel(text=inner, name="lm.in"),
        "out": lambda: LanguageModel(text=outer, name="lm.out"),
        "mixed": lambda: LanguageModel(
            text=(inner, outer), dev=str(CORPORA / "captions.dev.en.xz"), name="lm.mixed"
        ),
        "concatenated": lambda: LanguageModel(text=(inner, outer), name="lm.concatenated"),
        "ir": lambda: LanguageModel(text=selected_text(best_selection(keep)[0]), name="lm.ir"),
    }
    return segmented_captions().with_features(*(makers[name]() for name in models))


def score_table(name: str, options: Any) -> None:
    """Print the scores of systems: one table, both, concatenated, mixed, or weighted."""
    rows = rows_of(name, options)
    every = {row for table in SCORED for row in rows_of(table, options)}
    if unknown := set(options.rows) - every:
        raise SystemExit(f"no row {', '.join(sorted(unknown))}; there are {'; '.join(every)}")
    if options.rows:
        rows = {row: rows[row] for row in options.rows if row in rows}
    if "selection" in rows:
        best_selection(options.keep)  # prints the sizes
    table = Table(
        "captions, |A| = 50", "TER ± 2σ / BLEU / length", "log p(t|s)", "support", width=31
    )

    def add(name: str, of_draw: Callable[..., Any], log_p: tuple[str, ...] = ()) -> None:
        scores = summary([[of_draw(50, seed) for seed in range(options.draws)]])
        table.row(name, cell(scores), *(log_p or ("", "")))

    if not options.rows:
        add("the list's 14", segmented_captions().score_draw)
    path = scratch_folder() / "table.parquet"
    for name, row in rows.items():
        phrases, log_p = row.phrases()
        write_table(phrases, path)
        task = captions_with_models(options.keep, row.models)
        task = task.with_features(PhraseMixture(table=str(path)))
        columns = [n for n in task.new if n.startswith("phrases.") and n.endswith(row.columns)]
        task = task.keep_features(*columns, *(n for n in task.new if n.startswith("lm.")))
        prior = Isotropic(single=dict.fromkeys(task.new, 0.1))
        add(name, partial(task.score_draw, prior=prior), log_p)


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
            for line in chain.from_iterable(iter_lines(CORPORA / f"{part}.fr.xz")):
                words = line.split()
                spans = combinations(range(len(words) + 1), 2)
                sources.update(" ".join(words[i:j]) for i, j in spans if j - i <= length)
        wanted = find_index(general.sources, pa.array(sorted(sources), pa.large_string())) >= 0
        rows = np.flatnonzero(wanted[general.source])
        texts = {side: general.texts(side, rows) for side in SIDES}
        part = PhraseCounts.of(texts["source"], texts["target"], general.count[rows])
        whole = {f"{s}_count": general.find_marginals(s, part.phrases(s)) for s in SIDES}
        write_counts(replace(part, **whole), path)
    return domain, read_counts(path), dev


def best_table(options: Any) -> None:
    """Print scores without language models, of all pairs and of the best 30 of each source."""
    columns = ("TER ± 2σ / BLEU / length", "log p(t|s)", "support", "pairs")
    table, path = Table("captions, |A| = 50", *columns, width=31), scratch_folder() / "best.parquet"
    for method, count in product(("linear", "map"), (0, 30)):
        whole = mixed_table(method, options.keep)[0]
        chosen = whole.best(count) if count else whole
        write_table(chosen, path)
        task = segmented_captions().with_features(PhraseMixture(table=str(path)))
        prior = Isotropic(single=dict.fromkeys(task.new, 0.1))
        draws = [task.score_draw(50, seed, prior=prior) for seed in range(options.draws)]
        log_p = of_pairs(*supported_mean(chosen, read_corpora(options.keep).dev))
        name = f"{method}, {count} best" if count else f"{method}, all"
        table.row(name, cell(summary([draws])), *log_p, f"{len(chosen):,}")


def selection_table(options: Any) -> None:
    """Print what chooses the number of selected lines, and the test scores of each number."""
    domain, _, dev = read_corpora(options.keep)[:3]
    path = scratch_folder() / "selection.parquet"
    columns = ("log p(t|s)", "BLEU of dev", "TER ± 2σ / BLEU / length")
    table = Table("captions, selected lines", *columns, width=31)
    for lines in SELECTED:
        phrases = mix(domain, extracted(options.keep, "out", 5, lines), method="concatenate")[0]
        write_table(phrases, path)
        model = LanguageModel(text=selected_text(lines), name="lm.ir")
        task = segmented_captions().with_features(PhraseMixture(table=str(path)), model)
        prior = Isotropic(single=dict.fromkeys(task.new, 0.1))
        on_dev = Task.of(task.pool, task.pool, task.new)
        posterior = on_dev.adapt(task.pool, prior=prior)
        bleu = on_dev.scores(point_weights(posterior, unchecked=True))[1]
        draws = [task.score_draw(50, seed, prior=prior) for seed in range(options.draws)]
        mean = supported_mean(phrases, dev, 0.01)[0]
        table.row(f"{lines:,}", f"{mean:.4f}", f"{bleu:.2f}", cell(summary([draws])))


def length_table(options: Any) -> None:
    """Print log-likelihood and TER by the maximum length of phrases."""
    captions, path = segmented_captions(), scratch_folder() / "table.parquet"
    columns = [f"{p}, {m}" for p, m in product(PROBABILITIES, MIXTURES)]
    table = Table("plain, known; held out", *columns, "support", "pairs of IN")
    for length, dev_length in ((5, 5), (7, 5), (7, 7)):
        *parts, _ = counts_of_length(options.keep, length)
        dev = counts_of_length(options.keep, dev_length)[2]
        values = [
            held_out(f"{mixture}-known", align_counts(*parts, dev, side), dev.count, side)
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
        "negatives": negatives_table,
        "published": published_table,
        "speed": speed_table,
        **{name: partial(score_table, name) for name in SCORED},
        "best": best_table,
        "selection": selection_table,
        "length": length_table,
    }
    run_tables(__doc__, tables, draws=10, keep="", forms=tuple(FORMS), rows=())
