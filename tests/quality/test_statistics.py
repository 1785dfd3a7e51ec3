"""Sufficient statistics against sacreBLEU, and against the original extractor's results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sacrebleu import metrics

from bpa_ppl import DataError, NBest, UsageError, corpus_score, read_nbest, read_references
from bpa_ppl.quality import BLEU, TER
from bpa_ppl.quality.statistics import corpus_values, statistics


def sentence(rng: np.random.Generator, longest: int = 12) -> str:
    """Return some of five words, perhaps none."""
    return " ".join(rng.choice(list("abcde"), size=rng.integers(longest)))


@pytest.fixture(scope="module", params=range(3))
def pool(request: pytest.FixtureRequest) -> NBest:
    """Lists of random sentences with one to three references, repeated texts among them."""
    rng = np.random.default_rng(request.param)
    texts = [[sentence(rng) for _ in range(rng.integers(1, 9))] for _ in range(20)]
    texts[3] = [texts[3][0]] * 2 + ["", "a b c d e"]
    references = [[sentence(rng) + " a" for _ in range(rng.integers(1, 4))] for _ in texts]
    features = [np.zeros((len(t), 1)) for t in texts]
    return NBest.from_lists(texts, features, ["LM0"], references=references)


def test_bleu_counts_are_those_of_sacrebleu(pool: NBest) -> None:
    counts = statistics(pool, "bleu").counts
    assert pool.references is not None
    for s, refs in enumerate(pool.references):
        rows = range(*pool.rows(s).indices(len(counts)))
        for row in rows:
            judge = metrics.BLEU(tokenize="none", force=True)
            theirs = judge.corpus_score([pool.text(row)], [[ref] for ref in refs])
            expected = [*theirs.counts, *theirs.totals, theirs.ref_len]
            assert counts[row].tolist() == expected


@pytest.mark.parametrize("metric", ["bleu", "ter", TER(case_sensitive=True)])
def test_sums_give_the_corpus_score(pool: NBest, metric: str | TER) -> None:
    counted = statistics(pool, metric)
    rng = np.random.default_rng(5)
    for _ in range(20):
        choice = rng.integers(pool.sizes)
        score = corpus_score(pool.chosen(choice), pool.references or (), metric)
        assert counted.corpus(pool.offsets[:-1] + choice) == pytest.approx(score.value, rel=1e-12)


@pytest.mark.parametrize(
    ("texts", "references"),
    [
        (["a b c d e"], ["a b x d y"]),  # no match of orders 3 and 4: smoothed
        (["a b"], ["a b c d"]),  # no four-gram at all
        (["x"], ["a"]),  # no match
        ([""], ["a"]),
        (["a"], [""]),
        (["", "a"], ["", "b"]),
    ],
)
@pytest.mark.parametrize("metric", ["bleu", "ter"])
def test_scores_at_the_edge(texts: list[str], references: list[str], metric: str) -> None:
    refs = [(reference,) for reference in references]
    pool = NBest.from_lists([[t] for t in texts], [[[0.0]]] * len(texts), ["F"], references=refs)
    expected = corpus_score(texts, refs, metric).value
    assert statistics(pool, metric).corpus(pool.offsets[:-1]) == pytest.approx(expected, rel=1e-12)


def test_many_sums_at_once(pool: NBest) -> None:
    counts = statistics(pool, "bleu").counts
    sums = counts.cumsum(axis=0).reshape(1, *counts.shape)
    each = [float(corpus_values("bleu", row)) for row in sums[0]]
    np.testing.assert_array_equal(corpus_values("bleu", sums)[0], each)


def test_lists_without_references_are_refused() -> None:
    with pytest.raises(DataError, match="no references"):
        statistics(NBest.from_lists([["a"]], [[[0.0]]], ["LM0"]))


@pytest.mark.parametrize("metric", ["chrf", BLEU(lowercase=True)])
def test_other_metrics_have_no_such_counts(toy: NBest, metric: str | BLEU) -> None:
    with pytest.raises(UsageError, match="no statistics to sum: choose ter or bleu"):
        statistics(toy, metric)


def test_bleu_of_the_original_extractor(shared_data: Path) -> None:
    tools = shared_data / "tools"
    pool = read_nbest(tools / "nbest.gz", references=read_references([tools / "ref"]))
    weights = np.array((tools / "init.txt").read_text().split(), dtype=float)
    rows = pool.offsets[:-1] + pool.best(pool.scores(weights))
    known = json.loads((tools / "results.json").read_text())["canonical"]["dev_bleu"]
    assert statistics(pool, "bleu").corpus(rows) == pytest.approx(known, rel=1e-6)
