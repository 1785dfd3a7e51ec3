"""Speed of compiled code, compared with Python, NumPy and sacreBLEU on the same data.

    python benchmarks/bench_ratios.py [--tables NAME ...]

Each alternative must return the same. The times of the package are the best of three runs, after
one that compiles.

Tables:
    lengths         adapting to lists of 1 to 500 candidates, and to lists of equal length, with
                    compilation
    decoding        predictive decoding, and a NumPy loop over sentences
    density         the density with its gradient from tables of 32 bits, and from those of 64
    oracles         TER oracles of 25 lists, and sacreBLEU on every line; then of 250,000 candidates
    phrases         extraction of phrase pairs, and the same in Python
    lexicon         five iterations of IBM Model 1, and the same with Python dictionaries
    language-model  training, and only counting the n-grams in Python; then the two columns of a
                    language model for the candidates of captions, and reading these
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from measuring import (
    CORPORA,
    DATA,
    Table,
    Times,
    best_time,
    canonical,
    caption_corpus,
    few,
    read_lists,
    run_tables,
    write_lines,
)
from sacrebleu import metrics

import bpa_ppl as bpa
from bpa_ppl._runtime.streams import read_lines
from bpa_ppl.extending import oracles as find_oracles
from bpa_ppl.extras.phrases.extraction import extract_phrases
from bpa_ppl.extras.phrases.ibm1 import IBM1
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.weight_draws import name_weights
from bpa_ppl.weights import match

MAX_WORDS, ORDER, DRAWS, ITERATIONS = 5, 3, 1000, 5
Sentences = list[list[str]]


def compared(title: str, base: Callable[[], Any], ours: Callable[[], Any]) -> tuple[Times, Times]:
    """Time an alternative and the package, and print a row for each."""
    first = best_time(ours).seconds
    times = best_time(base), best_time(ours, 3)
    table = Table(title, "seconds", "times as fast")
    table.row("alternative", times[0].seconds, 1.0)
    table.row(f"bpa_ppl (first call {first:.2f} s)", times[1].seconds, times[0][0] / times[1][0])
    return times


def random_lists(sizes: Sequence[int]) -> bpa.NBest:
    """Return lists of random features, with a gain."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(sum(sizes), 8))
    gain = table @ rng.normal(size=8) + rng.gumbel(size=len(table))
    features = np.split(table, np.cumsum(sizes)[:-1])
    names = [f"f{k}" for k in range(8)]
    return bpa.from_lists([["a"] * n for n in sizes], features, names).with_extras(gain=gain)


def adapt_anew(lists: bpa.NBest) -> None:
    """Adapt with nothing compiled."""
    jax.clear_caches()
    bpa.adapt(lists, None, gain="gain")


def lengths(_: object) -> None:
    """Compare lists of 1 to 500 candidates with lists of equal length and as many candidates."""
    jax.config.update("jax_enable_compilation_cache", False)  # works before the first compilation
    adapt_anew(random_lists([5] * 10))  # imports
    table = Table("lists, CPU seconds of adapt", "equal", "1 to 500", "times as long")
    repeats = len(few(range(2)))
    for count in few((40, 100, 400)):
        sizes = np.random.default_rng(1).integers(1, len(few(range(501), 20)), size=count)
        cpu = [
            best_time(partial(adapt_anew, random_lists(of.tolist())), repeats).cpu
            for of in (np.full(count, round(sizes.mean())), sizes)
        ]
        table.row(f"{count}", *cpu, cpu[1] / cpu[0])


def numpy_choices(lists: bpa.NBest, weights: np.ndarray, dtype: Any) -> np.ndarray:
    """Return the predictive choice of each list, one sentence at a time."""
    choice = np.empty(len(lists), np.int64)
    columns = weights.T.astype(dtype)
    for s in range(len(lists)):
        features = lists.features[lists.rows(s)]
        scores = (features - features[0]).astype(dtype) @ columns
        p = np.exp(scores - scores.max(axis=0))
        choice[s] = (p / p.sum(axis=0)).mean(axis=1).argmax()
    return choice


def decoding(_: object) -> None:
    """Compare decoding with NumPy in 64 and 32 bits."""
    lists = read_lists("medical", "test")
    mean = match(canonical(), lists).values
    weights = mean + 0.1 * np.random.default_rng(0).normal(size=(DRAWS, len(mean)))
    posterior = name_weights(weights[None], lists.feature_names)
    rerank = partial(bpa.rerank, lists, posterior, unchecked=True)
    for dtype in (np.float64, np.float32):
        title = f"{len(lists)} lists, {DRAWS} draws, NumPy {np.dtype(dtype)}"
        loop, ours = compared(title, partial(numpy_choices, lists, weights, dtype), rerank)
        print(f"{np.mean(ours.result.choice == loop.result):.1%} of the choices are equal")


def density(_: object) -> None:
    """Compare tables of 32 bits with those of 64, which lists get if the unit of a feature is odd.

    Both are evaluated at the same weights, 200 times for 50 lists and 20 times for 500.
    """
    jax.config.update("jax_enable_x64", True)
    for count in few((50, 500)):
        lists = read_lists("medical", "adapt")[:count]
        weights, units = match(canonical(), lists).values, np.ones(len(lists.feature_names))
        units[lists.feature_names.index("LM0")] = 2.0**60
        runs = []
        for unit in (units, np.ones(len(units))):
            start = bpa.Weights(zip(lists.feature_names, weights / unit, strict=True))
            part = replace(lists, features=lists.features * unit)
            target = bpa.log_density(part, start, likelihood="margin")
            function = jax.jit(jax.value_and_grad(target))
            runs.append(partial(repeat, function, target.prior.mean, 10_000 // count))
            runs[-1]()  # compiles
        rounds = [[best_time(run) for run in runs] for _ in few(range(9))]  # in turn
        wide, narrow = (min(times, key=lambda of: of.cpu) for times in zip(*rounds, strict=True))
        np.testing.assert_allclose(narrow.result, wide.result, rtol=1e-5)
        table = Table(f"density of {count} lists of 500", "CPU seconds", "times as fast")
        table.row("64 bits", wide.cpu, 1.0)
        table.row("32 bits", narrow.cpu, wide.cpu / narrow.cpu)


def repeat(function: Callable[[Any], Any], z: np.ndarray, count: int) -> float:
    """Return a density that is evaluated so often."""
    for _ in range(count):
        value, gradient = function(z)
    gradient.block_until_ready()
    return float(value)


def sacrebleu_oracles(lists: bpa.NBest) -> np.ndarray:
    """Return the oracles by sacreBLEU: the lowest score, then the highest total."""
    ter, rows = metrics.TER(), range(len(lists.features))
    sentence = np.repeat(np.arange(len(lists)), lists.sizes)
    references = [lists.references[s] for s in sentence]
    scores = [ter.sentence_score(lists.text(row), references[row]).score for row in rows]
    ranked = np.lexsort((rows, -lists.totals, scores))
    _, first = np.unique(sentence[ranked], return_index=True)
    return ranked[first] - lists.offsets[:-1]


def oracles(_: object) -> None:
    """Compare oracles with sacreBLEU."""
    pool = read_lists("medical", "adapt")
    sample = pool.select(np.random.default_rng(1).choice(len(pool), 25, replace=False))
    title, ours = f"oracles of {len(sample.features)} lines", find_oracles
    base, times = compared(title, lambda: sacrebleu_oracles(sample), lambda: ours(sample))
    np.testing.assert_array_equal(times.result.index, base.result)
    seconds = best_time(lambda: ours(pool), 3).seconds
    print(f"oracles of all {len(pool.features)} lines: {seconds:.2f} s")


def python_extraction(paths: list[str]) -> Counter[tuple[str, str]]:
    """Count the phrase pairs of aligned sentences, one target span after the other."""
    counts: Counter[tuple[str, str]] = Counter()
    for lines in zip(*map(read_lines, paths), strict=True):
        source, target = lines[0].split(), lines[1].split()
        points = [tuple(map(int, point.split("-"))) for point in lines[2].split()]
        aligned = {s for s, _ in points}
        for first in range(len(target)):
            for last in range(first, min(first + MAX_WORDS, len(target))):
                inside = [s for s, t in points if first <= t <= last]
                if not inside:
                    continue
                low, high = min(inside), max(inside)
                if high - low >= MAX_WORDS or any(
                    low <= s <= high and not first <= t <= last for s, t in points
                ):
                    continue
                phrase = " ".join(target[first : last + 1])
                begin = low
                while begin >= 0 and (begin == low or begin not in aligned):
                    end = high
                    while end < min(len(source), begin + MAX_WORDS) and (
                        end == high or end not in aligned
                    ):
                        counts[" ".join(source[begin : end + 1]), phrase] += 1
                        end += 1
                    begin -= 1
    return counts


def phrases(_: object) -> None:
    """Compare the extraction of phrase pairs with Python."""
    paths = [
        write_lines(side, read_lines(CORPORA / f"out.{side}.xz")[:20_000])
        for side in ("fr", "en", "align")
    ]
    title = "phrase pairs of 20,000 sentences"
    plain, ours = compared(title, lambda: python_extraction(paths), lambda: extract_phrases(*paths))
    sides = (ours.result.texts(side).to_pylist() for side in ("source", "target"))
    assert dict(zip(zip(*sides, strict=True), ours.result.count, strict=True)) == plain.result


def dictionary_em(sources: Sentences, targets: Sentences) -> dict[tuple[str, str], float]:
    """Estimate p(target word | source word) with dictionaries."""
    uniform = 1 / len({word for target in targets for word in target})
    table: dict[tuple[str, str], float] = defaultdict(lambda: uniform)
    for _ in range(ITERATIONS):
        counts: dict[tuple[str, str], float] = defaultdict(float)
        totals: dict[str, float] = defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            with_null = ["", *source]
            for e in target:
                norm = sum(table[f, e] for f in with_null)
                for f in with_null:
                    counts[f, e] += table[f, e] / norm
                    totals[f] += table[f, e] / norm
        table = defaultdict(float, {(f, e): c / totals[f] for (f, e), c in counts.items()})
    return table


def lexicon(_: object) -> None:
    """Compare IBM Model 1 with dictionaries."""
    sides = (read_lines(path)[:3000] for path in caption_corpus())
    sources, targets = ([line.split() for line in lines] for lines in sides)
    plain, ours = compared(
        f"EM of {len(sources)} pairs",
        lambda: dictionary_em(sources, targets),
        lambda: IBM1.estimate(sources, targets, ITERATIONS),
    )
    sums = [
        [sum(plain.result[f, e] for f in ["", *source]) / (len(source) + 1) for e in target]
        for source, target in zip(sources, targets, strict=True)
    ]
    expected = [np.log(np.maximum(row, 1e-7)).sum() for row in sums]
    pairs = np.arange(len(sources))
    values = ours.result.log_probabilities(sources, targets, pairs, pairs)
    np.testing.assert_allclose(values, expected, rtol=1e-9)


def count_ngrams(lines: Sequence[str]) -> list[int]:
    """Return the number of distinct n-grams of each order."""
    counts: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(ORDER)]
    for line in lines:
        words = ["<s>", *line.split(), "</s>"]
        for n in range(1, ORDER + 1):
            counts[n - 1].update(zip(*(words[i:] for i in range(n)), strict=False))
    return [len(count) for count in counts]


def language_model(_: object) -> None:
    """Compare training with counting, and the columns with reading."""
    lines = read_lines(CORPORA / "out.en.xz")[:100_000]
    path = write_lines("text", lines)
    title = f"language model of {len(lines):,} lines"
    base, ours = compared(
        title, lambda: count_ngrams(lines), lambda: NgramModel.train([path], ORDER)
    )
    counts = ours.result.counts
    assert base.result == [counts[0] - 1, *counts[1:]]  # <unk> is not counted
    path = DATA / "captions/adapt.nbest.gz"
    lists = bpa.read_nbest(path)
    columns = LanguageModel(text=caption_corpus()[1], order=ORDER).opened()
    title = f"reading {len(lists.features):,} candidates, and lm and lm.oov"
    compared(title, lambda: bpa.read_nbest(path), lambda: columns(lists))


if __name__ == "__main__":
    run_tables(__doc__, [lengths, decoding, density, oracles, phrases, lexicon, language_model])
