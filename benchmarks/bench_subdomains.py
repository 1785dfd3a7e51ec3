"""Latent subdomains: recovery of planted ones, speed, and those of the general corpus.

    python benchmarks/bench_subdomains.py [--tables NAME ...] [--k 4 8] [--statutes FOLDER]

Tables:
    curve  the adjusted Rand index of planted subdomains (2000 pairs of 12 words, mean of two draws)
           by the share of a subdomain's own distribution in its words
    lda    the same for LDA, over one side or both
    speed  one EM step of the lexicons of four subdomains, compared with Python dictionaries
    out    seconds, memory and purity after each iteration on the general corpus (455,891 pairs)
    ways   purity of several settings on its first 40,000 pairs, and the number of subdomains in
           use: exp of the entropy of P(z)

`out` and `ways` need `--statutes`, a folder with the federal acts and regulations as XML, as the
Department of Justice publishes them. A pair counts as a statute if 90 % of the 6-grams of its
English words occur there, and as a debate if less than 10 % do. Purity is the share of these pairs
whose subdomain consists mostly of pairs from the same source.
"""

from __future__ import annotations

import html
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from measuring import CORPORA, PeakMemory, Table, best_time, few, run_tables
from sklearn.metrics import adjusted_rand_score

from bpa_ppl._runtime.workers import parallel_workers
from bpa_ppl.extras.phrases.induction import induce
from bpa_ppl.extras.phrases.subdomain_em import EMSettings, Lexicons, fit_em, fit_unigram_mixture
from bpa_ppl.extras.phrases.subdomains import Subdomains
from bpa_ppl.text.words import NumberedText

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from support.planted import planted

SHARES = few((0.6, 0.5, 0.4, 0.3, 0.2, 0.1))
#: Settings on the planted and on the general corpus.
SETTINGS: dict[str, dict[str, Any]] = {
    "hard (default)": {},
    "hard, order=1": {"order": 1},
    "hard, folds=5": {"folds": 5},
    "hard, order=1, folds=5": {"order": 1, "folds": 5},
    "soft": {"em": "soft"},
}
#: Settings on the planted corpus alone.
MORE_SETTINGS: dict[str, dict[str, Any]] = {
    "soft, order=1, folds=5": {"em": "soft", "order": 1, "folds": 5},
    "hard, start=random": {"start": "random"},
    # With and without each of the two stages of the training:
    "hard, folds=5, lm_iterations=0": {"folds": 5, "lm_iterations": 0},
    "hard, folds=5, iterations=0": {"folds": 5, "iterations": 0},
    "hard, folds=5, start=random": {"folds": 5, "start": "random"},
    "the same, lm_iterations=0": {"folds": 5, "start": "random", "lm_iterations": 0},
    "the same, lm_iterations=20": {"folds": 5, "start": "random", "lm_iterations": 20},
}
#: Topics as subdomains.
LDA_SETTINGS: dict[str, dict[str, Any]] = {
    "default, target": {},
    "default, source": {"side": "source"},
    "default, both": {"side": "both"},
}
K, GRAM = 12, 6


def curve(options: Any) -> None:
    """Print the adjusted Rand index of each setting of EM."""
    ways = {name: partial(induced_winners, **s) for name, s in (SETTINGS | MORE_SETTINGS).items()}
    print_recovery(options.k, {"unigram start": unigram_start, **ways})


def lda(options: Any) -> None:
    """Print the adjusted Rand index of each setting of LDA."""
    ways = {n: partial(induced_winners, induction="lda", **s) for n, s in LDA_SETTINGS.items()}
    print_recovery(options.k, ways)


def print_recovery(ks: Iterable[int], ways: dict[str, Callable[..., Any]]) -> None:
    """Print the adjusted Rand index of subdomains of planted text, by their separation."""

    def index(draws: list[Any], winners: Callable[..., Any]) -> str:
        mean = np.mean([adjusted_rand_score(truth, winners(s, t)) for s, t, truth in draws])
        return f"{mean:.3f}"

    for k in ks:
        corpora = [[planted(k, 2000, share, seed) for seed in few(range(2))] for share in SHARES]
        table = Table(f"K = {k}", *map(str, SHARES), width=8)
        for name, winners in ways.items():
            table.row(name, *(index(draws, partial(winners, k=k)) for draws in corpora))


def unigram_start(source: NumberedText, target: NumberedText, k: int) -> np.ndarray:
    """Return the subdomain of each pair at the start of EM."""
    return fit_unigram_mixture(source, target, k, 0).argmax(axis=1)


def induced_winners(
    source: NumberedText, target: NumberedText, k: int, **settings: Any
) -> np.ndarray:
    """Return the subdomain of each pair after EM."""
    return induce(source, target, k, **settings).winners()


def dictionary_step(
    tables: list[dict[tuple[int, int], float]], sources: list, targets: list, weights: np.ndarray
) -> np.ndarray:
    """Run one step of Model 1 for each subdomain with dictionaries, and return the scores."""
    scores = np.zeros(weights.shape)
    for z, table in enumerate(tables):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for n, (source, target) in enumerate(zip(sources, targets, strict=True)):
            with_null = [-1, *source]
            for e in target:
                norm = sum(table.get((f, e), 0.0) for f in with_null)
                scores[n, z] += np.log(norm / len(with_null))
                for f in with_null:
                    share = weights[n, z] * table.get((f, e), 0.0) / norm
                    counts[f, e] += share
                    totals[f] += share
        tables[z] = {pair: count / totals[pair[0]] for pair, count in counts.items()}
    return scores


def compiled_step(lexicons: Lexicons, weights: np.ndarray) -> np.ndarray:
    """Run the same step with compiled lexicons."""
    text, scores = lexicons.texts["source"], np.zeros(weights.shape)
    for z in range(weights.shape[1]):
        lexicon = text.uniform_table()
        sums = text.sums(lexicon, weights[:, z])
        scores[:, z] = text.log_probabilities(sums, weights[:, z])
        text.re_estimate(lexicon, sums, weights[:, z])
    return scores


def speed(_: Any) -> None:
    """Print the CPU seconds of one step in one direction."""
    pairs, k = 500, 4
    texts = (NumberedText.read(CORPORA / f"captions.dev.{side}.xz") for side in ("fr", "en"))
    source, target = (first_sentences(text, pairs) for text in texts)
    lexicons = Lexicons(source, target, 0.0)
    weights = np.random.default_rng(0).dirichlet(np.ones(k), pairs)
    sentences = split(source), split(target)
    links = {(f, e) for fs, es in zip(*sentences, strict=True) for f in (-1, *fs) for e in es}
    tables = [dict.fromkeys(links, 1 / len(target.words)) for _ in range(k)]
    plain = best_time(partial(dictionary_step, tables, *sentences, weights))
    compiled_step(lexicons, weights)  # compiles
    compiled = best_time(partial(compiled_step, lexicons, weights), 5)
    np.testing.assert_allclose(compiled.result, plain.result, rtol=1e-9)
    table = Table(f"{pairs} pairs, K = {k}", "CPU seconds", "times as fast")
    table.row("Python dictionaries", f"{plain.cpu:.4f}", 1.0)
    table.row("compiled", f"{compiled.cpu:.4f}", plain.cpu / compiled.cpu)


def split(text: NumberedText) -> list[np.ndarray]:
    """Return the numbers of the words of each sentence."""
    return np.split(text.numbers, text.starts[1:-1])


def first_sentences(text: NumberedText, count: int) -> NumberedText:
    """Return the first sentences of a text, with a vocabulary of their own."""
    sentences = split(text)[:count]
    return NumberedText.of([[text.words[n] for n in sentence] for sentence in sentences])


def general_corpus() -> list[NumberedText]:
    """Read both sides of the general corpus."""
    return [NumberedText.read(CORPORA / f"out.{side}.xz") for side in ("fr", "en")]


def out(options: Any) -> None:
    """Print time, memory and purity after each iteration, and typical words."""
    if not options.statutes:
        print("\nThe table out needs --statutes FOLDER.")
        return
    labels = read_labels(options.statutes)
    columns = ("seconds", "CPU", "GB", "log p", "purity", "moved")
    table = Table(f"{len(labels)} pairs, K = {K}", *columns, width=9)
    start, cpu, previous = time.perf_counter(), time.process_time(), None
    settings, spent = EMSettings(k=K), list[tuple[str, str, float]]()
    with PeakMemory() as peak, parallel_workers(2, require="sharedmem") as workers:

        def note(*_: object) -> None:
            seconds = time.perf_counter() - start, time.process_time() - cpu
            spent.append((f"{seconds[0]:.0f}", f"{seconds[1]:.0f}", peak.bytes / 1e9))

        texts = general_corpus()
        states = fit_em(*texts, settings, workers, note)  # notes before each iteration
        note()
    for step, state in enumerate(states):
        winners = state.posteriors
        names = ("unigram start", "language models")
        table.row(
            names[step] if step < 2 else f"full model, {step - 1}",
            *spent[step + 1],
            f"{state.log_likelihood:.0f}",
            f"{purity(winners, labels):.4f}",
            "" if previous is None else f"{np.mean(winners != previous):.4f}",
        )
        previous = winners
    subdomains = Subdomains(*texts, state.posteriors, state.weights, settings.settings())
    print_typical_words(subdomains, labels)


def ways(options: Any) -> None:
    """Print purity and subdomains in use, with several settings on a part of the corpus."""
    if not options.statutes:
        print("\nThe table ways needs --statutes FOLDER.")
        return
    pairs = 40_000
    labels = read_labels(options.statutes)[:pairs]
    texts = [first_sentences(text, pairs) for text in general_corpus()]
    start = unigram_start(*texts, K)
    table = Table(f"{pairs} pairs, K = {K}", "CPU s", "purity", "in use", "moved")
    for name, settings in few([*SETTINGS.items()]):
        _, cpu, subdomains = best_time(partial(induce, *texts, K, **settings))
        weights, winners = subdomains.weights, subdomains.winners()
        entropy = -np.sum(weights * np.log(np.maximum(weights, 1e-300)))
        cells = f"{cpu:.0f}", f"{purity(winners, labels):.4f}", f"{np.exp(entropy):.1f}"
        table.row(name, *cells, f"{np.mean(winners != start):.4f}")


def purity(winners: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of labelled pairs that have the majority label of their subdomain."""
    counts = np.zeros((int(winners.max()) + 1, 2))
    np.add.at(counts, (winners[labels >= 0], labels[labels >= 0]), 1)
    return float(counts.max(axis=1).sum() / counts.sum())


def print_typical_words(subdomains: Subdomains, labels: np.ndarray, count: int = 8) -> None:
    """Print for each subdomain its share, the share of statutes in it, and typical English words.

    These have the greatest P(word, z) log P(word | z) / P(word).
    """
    winners, text = subdomains.winners(), subdomains.target
    subdomain = np.repeat(winners, np.diff(text.starts)).astype(np.int64)
    counts = np.zeros((subdomains.k, len(text.words)))
    np.add.at(counts, (subdomain, text.numbers), 1)
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.nan_to_num(counts * np.log(counts / expected), neginf=0.0)
    for z in np.argsort(-subdomains.weights):
        statutes = labels[(winners == z) & (labels >= 0)].mean()
        words = " ".join(text.words[n] for n in np.argsort(-score[z])[:count])
        print(f"{subdomains.weights[z]:>5.0%}, statutes {statutes:>5.0%}: {words}")


@cache
def read_labels(statutes: str) -> np.ndarray:
    """Return (pairs,) 1 for statutes, 0 for debates, −1 for unknown."""
    statute_grams: set[int] = set()
    for path in sorted(Path(statutes).rglob("*.xml")):
        text = html.unescape(re.sub(r"<[^>]+>", " ", path.read_text("utf-8", "replace")))
        statute_grams.update(grams(text.lower()))
    english = NumberedText.read(CORPORA / "out.en.xz")
    labels = []
    for sentence in split(english):
        hits = [
            gram in statute_grams for gram in grams(" ".join(english.words[n] for n in sentence))
        ]
        share = np.mean(hits) if hits else 0.5
        labels.append(1 if share >= 0.9 else 0 if share < 0.1 else -1)
    print(f"labels: {Counter(labels)}")
    return np.array(labels)


def grams(text: str) -> Iterator[int]:
    """Yield the hashes of the 6-grams of the words of a text, without punctuation."""
    words = re.findall(r"[a-z0-9]+", text)
    return (hash(tuple(words[n : n + GRAM])) for n in range(len(words) - GRAM + 1))


if __name__ == "__main__":
    run_tables(__doc__, (curve, lda, speed, out, ways), k=(4, 8), statutes="")
