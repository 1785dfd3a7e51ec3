"""Latent subdomains: what is found of planted ones, and of the two sources of the general corpus.

    python tests/benchmarks/bench_subdomains.py [--parts curve speed ways out] [--statutes FOLDER]

`curve`: the adjusted Rand index of planted subdomains (2000 pairs of 12 words, mean of two draws)
by how far they are apart, for several settings, beside the mixture of unigrams that EM starts from,
and scikit-learn's LDA. `speed`: one iteration of the full model on a part of the corpus, beside the
same with dictionaries of Python's. `out`: the general corpus (455,891 pairs): seconds, CPU seconds,
memory and purity after each iteration. `ways`: purity of several settings on its first 40,000
pairs, with the number of subdomains that are in use, exp of the entropy of P(z).

The lines of the corpus are shuffled, and nothing in it says which of its sources a pair comes from.
With --statutes (a folder with the federal acts and regulations as XML, as the Department of
Justice publishes them), a pair is a statute if 90 % of the 6-grams of its English words stand
there, and a debate if less than 10 % do; --labels FILE.npy keeps these shares. Without, pairs are
told by words that only one of the sources uses, which is easier.
"""

from __future__ import annotations

import argparse
import html
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measuring import DATA, Peak
from sklearn.metrics import adjusted_rand_score

from bpa_ppl.models.subdomains import Settings, induce
from bpa_ppl.models.subdomains.expectation_maximisation import em
from bpa_ppl.models.subdomains.lexicon import Lexicons
from bpa_ppl.models.subdomains.unigrams import unigram_posteriors
from bpa_ppl.phrases import NumberedText, Subdomains
from bpa_ppl.workers import parallel_workers

sys.path.append(str(Path(__file__).resolve().parents[1] / "models"))

from planted import planted

CORPORA = DATA / "phrases" / "corpora"
APART = (0.6, 0.5, 0.4, 0.3, 0.2, 0.1)
DRAWS = 2
WAYS: dict[str, dict[str, Any]] = {
    "hard (default)": {},
    "hard, order 1": {"order": 1},
    "hard, 5 folds": {"folds": 5},
    "hard, order 1, 5 folds": {"order": 1, "folds": 5},
    "soft": {"em": "soft"},
    "soft, order 1, 5 folds": {"em": "soft", "order": 1, "folds": 5},
    "hard, random start": {"start": "random"},
    "LDA, target": {"induction": "lda"},
}
SOME = 40_000  # sentence pairs of `ways`
PART = 500  # sentence pairs of the dictionary
GRAM = 6
TALK = {"i", "we", "you", "my", "our", "speaker", "hon."}
LAW = {"subsection", "paragraph", "subparagraph", "prescribed", "thereof", "pursuant"}


def curve(k: int) -> None:
    """Print the adjusted Rand index of each way, by how far subdomains are apart."""
    print(f"\nK = {k}" + " " * 22 + "".join(f"{apart:>8.2f}" for apart in APART))
    drawn = [[planted(k, 2000, apart, seed) for seed in range(DRAWS)] for apart in APART]
    row("unigram start", drawn, lambda s, t: unigram_posteriors(s, t, k, 0).argmax(axis=1))
    for name, way in WAYS.items():
        row(name, drawn, lambda s, t, way=way: induce(s, t, k, **way).winners())


def row(name: str, drawn: list, way: Any) -> None:
    """Print the mean index of one way."""
    cells = [
        np.mean([adjusted_rand_score(truth, way(s, t)) for s, t, truth in draws]) for draws in drawn
    ]
    print(f"{name:<27}" + "".join(f"{cell:>8.3f}" for cell in cells), flush=True)


def dictionary_step(tables: list, source: list, target: list, weights: np.ndarray) -> list:
    """One step of Model 1 for each subdomain, and the scores, as most people write it first."""
    scores = np.zeros(weights.shape)
    found = []
    for z, table in enumerate(tables):
        counts: dict[tuple[int, int], float] = defaultdict(float)
        totals: dict[int, float] = defaultdict(float)
        for n, (f, e) in enumerate(zip(source, target, strict=True)):
            inside = [-1, *f]
            for word in e:
                norm = sum(table.get((g, word), 0.0) for g in inside)
                scores[n, z] += np.log(norm / len(inside))
                for g in inside:
                    share = weights[n, z] * table.get((g, word), 0.0) / norm
                    counts[g, word] += share
                    totals[g] += share
        found.append({pair: count / totals[pair[0]] for pair, count in counts.items()})
    return [found, scores]


def speed(source: NumberedText, target: NumberedText, k: int = 4) -> None:
    """Print the seconds of a step of all lexicons in one direction, beside dictionaries."""
    few = [NumberedText.of(sentences(text)[:PART]) for text in (source, target)]
    lexicons = Lexicons(*few, 0.0)
    weights = np.random.default_rng(0).dirichlet(np.ones(k), PART)
    numbers = [[np.array(s) for s in split(text)] for text in few]
    flat = 1 / len(few[1].words)
    pairs = {(g, w) for f, e in zip(*numbers, strict=True) for g in (-1, *f) for w in e}
    tables = [dict.fromkeys(pairs, flat)] * k
    slow, (_, expected) = cpu(lambda: dictionary_step(tables, *numbers, weights))

    def ours() -> np.ndarray:
        start, scores = lexicons.flat("source"), np.zeros(weights.shape)
        for z in range(k):
            lexicons.step("source", start, weights[:, z])
            scores[:, z] = lexicons.log_probabilities("source", start, np.ones(len(scores), bool))
        return scores

    ours()
    fast, found = min((cpu(ours) for _ in range(5)), key=lambda run: run[0])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    print(f"\n{PART} pairs, K = {k}, one step in one direction{'CPU s':>12}{'ratio':>8}")
    print(f"{'dictionaries':<43}{slow:>12.4f}{1:>8.0f}")
    print(f"{'links numbered by their pair of words':<43}{fast:>12.4f}{slow / fast:>8.0f}")


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Run some work and return its seconds of CPU, which others on the machine do not change."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def split(text: NumberedText) -> list[np.ndarray]:
    """Return the numbers of each sentence."""
    return np.split(text.numbers, text.starts[1:-1])


def sentences(text: NumberedText) -> list[list[str]]:
    """Return the words of each sentence."""
    return [[text.words[n] for n in own] for own in split(text)]


def out(labels: np.ndarray, chosen: dict[str, Any], jobs: int, keep: str | None) -> None:
    """Print what each iteration takes, and how pure its subdomains are."""
    settings = Settings(**chosen)
    print(f"\nK = {settings.k}, {settings.em}, folds {settings.folds}, order {settings.order}")
    print(f"{'':<22}{'seconds':>9}{'CPU':>9}{'GB':>7}{'log p':>15}{'purity':>9}{'moved':>9}")
    start, cpu, last = time.perf_counter(), time.process_time(), None
    with Peak() as peak, parallel_workers(jobs, "threads") as team:
        texts = [NumberedText.read(CORPORA / f"out.{side}.xz") for side in ("fr", "en")]
        for step, found in enumerate(em(texts[0], texts[1], settings, team)):
            hard = found.posteriors.ndim == 1
            own = found.posteriors if hard else found.posteriors.argmax(axis=1)
            names = ("start", "language models")
            name = names[step] if step < 2 else f"full model, {step - 1}"
            cells = (time.perf_counter() - start, time.process_time() - cpu, peak.bytes / 1e9)
            moved = "" if last is None else f"{np.mean(own != last):.4f}"
            print(
                f"{name:<22}{cells[0]:>9.0f}{cells[1]:>9.0f}{cells[2]:>7.2f}"
                f"{found.log_likelihood:>15.0f}{purity(own, labels):>9.4f}{moved:>9}",
                flush=True,
            )
            last = own
    made = Subdomains(*texts, found.posteriors, found.weights, settings.settings())
    typical(made, labels)
    if keep:
        made.save(keep)


def ways(labels: np.ndarray, k: int = 12) -> None:
    """Print what several settings make of a part of the corpus."""
    texts = [NumberedText.read(CORPORA / f"out.{side}.xz") for side in ("fr", "en")]
    few = [NumberedText.of(sentences(first(text, SOME))) for text in texts]
    print(f"\n{SOME} pairs, K = {k:<14}{'CPU s':>8}{'purity':>9}{'in use':>8}{'moved':>8}")
    begun = unigram_posteriors(*few, k, 0).argmax(axis=1)
    tried = {**WAYS, "LDA, source": {"induction": "lda", "side": "source"}}
    for name, way in tried.items():
        seconds, made = cpu(lambda way=way: induce(*few, k, **way))
        used = np.exp(-np.sum(made.weights * np.log(np.maximum(made.weights, 1e-300))))
        own = made.winners()
        print(
            f"{name:<32}{seconds:>8.0f}{purity(own, labels[:SOME]):>9.4f}{used:>8.1f}"
            f"{np.mean(own != begun):>8.4f}",
            flush=True,
        )


def first(text: NumberedText, count: int) -> NumberedText:
    """Return the first sentences of a text."""
    return NumberedText(text.words, text.numbers[: text.starts[count]], text.starts[: count + 1])


def purity(own: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of labelled pairs that are of the source most frequent in their subdomain.

    >>> round(purity(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])), 2)
    0.75
    """
    table = np.zeros((int(own.max()) + 1, 2))
    np.add.at(table, (own[labels >= 0], labels[labels >= 0]), 1)
    return float(table.max(axis=1).sum() / table.sum())


def typical(made: Subdomains, labels: np.ndarray, count: int = 8) -> None:
    """Print for each subdomain its share, that of statutes in it, and its typical English words.

    Typical are the words with the greatest P(word, z) log P(word | z) / P(word).
    """
    own, text = made.winners(), made.target
    owner = np.repeat(own, np.diff(text.starts)).astype(np.int64)
    table = np.zeros((made.k, len(text.words)))
    np.add.at(table, (owner, text.numbers), 1)
    expected = table.sum(1, keepdims=True) * table.sum(0) / table.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        pull = np.nan_to_num(table * np.log(table / expected), neginf=0.0)
    for z in np.argsort(-made.weights):
        mine = labels[(own == z) & (labels >= 0)]
        words = " ".join(text.words[n] for n in np.argsort(-pull[z])[:count])
        print(f"{100 * made.weights[z]:>4.0f} %, statutes {100 * mine.mean():>4.0f} %: {words}")


def labels_of(statutes: Path | None, kept: Path | None) -> np.ndarray:
    """Return (pairs,) 1 for statutes, 0 for debates, −1 where it is not known."""
    lines = NumberedText.read(CORPORA / "out.en.xz")
    if statutes is None and (kept is None or not kept.exists()):
        return np.array([by_words({lines.words[n] for n in own}) for own in split(lines)])
    if kept is not None and kept.exists():
        shares = np.load(kept)
    else:
        assert statutes is not None
        shares = overlap(statutes, lines)
        if kept is not None:
            np.save(kept, shares)
    cues = np.where(shares >= 0.9, 1, np.where((shares >= 0) & (shares < 0.1), 0, -1))
    told = np.array([by_words({lines.words[n] for n in own}) for own in split(lines)])
    both = (cues >= 0) & (told >= 0)
    print(
        f"labels: {Counter(cues.tolist())}; words agree on {np.mean(cues[both] == told[both]):.4f}"
    )
    return cues


def by_words(words: set[str]) -> int:
    """Return the source that some words tell, or −1."""
    talk, law = bool(words & TALK), bool(words & LAW)
    return -1 if talk == law else int(law)


def overlap(statutes: Path, lines: NumberedText) -> np.ndarray:
    """Return (pairs,) the share of the 6-grams of each line that statutes have; −1 without any."""
    known: set[int] = set()
    for path in sorted(statutes.rglob("*.xml")):
        text = html.unescape(re.sub(r"<[^>]+>", " ", path.read_text("utf-8", "replace")))
        known.update(grams(text.lower()))
    shares = []
    for own in sentences(lines):
        inside = [gram in known for gram in grams(" ".join(own))]
        shares.append(np.mean(inside) if inside else -1.0)
    return np.array(shares)


def grams(text: str) -> Iterator[int]:
    """Yield the hashes of the 6-grams of a text, of its letters and digits alone."""
    words = re.findall(r"[a-z0-9]+", text)
    return (hash(tuple(words[n : n + GRAM])) for n in range(len(words) - GRAM + 1))


def main() -> None:
    """Read the command line and run the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("curve", "speed", "ways", "out")
    parser.add_argument("--parts", nargs="+", default=parts, choices=parts)
    parser.add_argument("-k", type=int, nargs="+", default=(4, 8), help="of `curve`")
    parser.add_argument("--statutes", type=Path, help="folder of XML files")
    parser.add_argument("--labels", type=Path, help="keeps what --statutes tells")
    parser.add_argument("--settings", default="", help="of `out`: k=12,em=soft,folds=5")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", help="Parquet file of the subdomains of `out`")
    options = parser.parse_args()
    if not DATA.is_dir() and options.parts != ["curve"]:
        sys.exit(f"this benchmark needs the corpora of {DATA}, which are not here")
    if "curve" in options.parts:
        for k in options.k:
            curve(k)
    if "speed" in options.parts:
        speed(*(NumberedText.read(CORPORA / f"captions.dev.{side}.xz") for side in ("fr", "en")))
    if "ways" in options.parts:
        ways(labels_of(options.statutes, options.labels))
    if "out" in options.parts:
        from bpa_ppl.component import settings_in

        chosen = settings_in(options.settings, "--settings")
        out(labels_of(options.statutes, options.labels), chosen, options.jobs, options.keep)


if __name__ == "__main__":
    main()
