"""Specificity and coherence summed over segmentations, against plain loops."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support.raising import raises

from bpa_ppl import NBest, UsageError, add_features, from_lists
from bpa_ppl.features.recipe import record_sources, restore_sources
from bpa_ppl.phrases.invariance import Invariance
from bpa_ppl.phrases.subdomains import Subdomains
from bpa_ppl.posterior.record import SourceRecord
from bpa_ppl.text.words import NumberedText

K = 3
RNG = np.random.default_rng(11)
FRENCH, ENGLISH = ["la", "maison", "un", "chat"], ["the", "house", "a", "cat"]
SOURCES = [list(RNG.choice(FRENCH, size=n)) for n in RNG.integers(1, 8, 40)]
TARGETS = [list(RNG.choice(ENGLISH, size=n)) for n in RNG.integers(1, 8, 40)]
SOFT, HARD = RNG.dirichlet(np.ones(K), 40), RNG.integers(K, size=40)
WEIGHTS = np.array([0.5, 0.3, 0.2])
#: Texts with phrases that the corpus has, longer ones that it lacks, and a copied word.
LISTS = [
    ("la maison Zoé", [("the house Zoé", "0=0 1=1 2=2"), ("house Zoé the", "1=0 2=1 0=2")]),
    ("un chat un chat", [("a cat", "0-3=0-1"), ("a cat a cat", "0-1=0-1 2-3=2-3"), ("", "")]),
]


def subdomains(path: Path, assignment: np.ndarray = SOFT) -> str:
    """Write a corpus of 40 random pairs, and return where."""
    texts = NumberedText.of(SOURCES), NumberedText.of(TARGETS)
    Subdomains(*texts, assignment, WEIGHTS).save(path)
    return str(path)


@pytest.fixture
def lists() -> NBest:
    texts = [[text for text, _ in candidates] for _, candidates in LISTS]
    features = [np.arange(len(part), dtype=float)[:, None] for part in texts]
    references = [part[1] for part in texts]
    sources = [source for source, _ in LISTS]
    added = from_lists(texts, features, ["LM0"], references=references, sources=sources)
    return added.with_extras(segmentation=[spans for _, part in LISTS for _, spans in part])


def spread(phrase: str, sentences: list[list[str]], shares: Any, once: bool = True) -> list[float]:
    """Return P(z | phrase) by loops over the corpus."""
    words, counts = phrase.split(), [0.0] * K
    for sentence, share in zip(sentences, shares, strict=True):
        for place in range(len(sentence) - len(words) + 1):
            if sentence[place : place + len(words)] == words:
                counts = [count + float(p) for count, p in zip(counts, share, strict=True)]
                if once:
                    break
    if not sum(counts):
        return WEIGHTS.tolist()
    return [c / sum(counts) for c in counts]


def phrase_pairs(lists: NBest) -> Iterator[list[tuple[str, str]]]:
    for (source, candidates), _ in zip(LISTS, lists, strict=True):
        for text, spans in candidates:
            pairs = []
            for pair in spans.split():
                first, second = ([int(n) for n in span.split("-")] for span in pair.split("="))
                one = source.split()[first[0] : first[-1] + 1]
                pairs.append((" ".join(one), " ".join(text.split()[second[0] : second[-1] + 1])))
            yield pairs


def by_hand(lists: NBest, shares: Any, measure: Any, once: bool = True) -> list[float]:
    """Return the sums of a function of P(z | source phrase) and P(z | target phrase)."""
    return [
        sum(
            measure(spread(f, SOURCES, shares, once), spread(e, TARGETS, shares, once))
            for f, e in pairs
        )
        for pairs in phrase_pairs(lists)
    ]


def renyi(p: list[float], alpha: float = 2.0) -> float:
    return math.log(sum(x**alpha for x in p)) / (1 - alpha)


#: Column -> what it is of p (source) and q (target).
EXPECTED: dict[str, Any] = {
    "specificity.source": lambda p, q: renyi(p),
    "specificity.target": lambda p, q: renyi(q),
    "coherence": lambda p, q: max(abs(a - b) for a, b in zip(p, q, strict=True)),
}


@pytest.mark.parametrize("assignment", [SOFT, HARD])
def test_columns_are_sums_over_the_phrase_pairs(
    lists: NBest, tmp_path: Path, assignment: np.ndarray
) -> None:
    path = subdomains(tmp_path / "z.parquet", assignment)
    columns: Any = Invariance(subdomains=path).columns(lists)  # Zoé, a copied word, has P(z)
    hard = assignment.ndim == 1
    shares = np.eye(K)[assignment] if hard else assignment
    assert list(columns) == [f"invariance.{name}" for name in EXPECTED]
    for name, function in EXPECTED.items():
        expected = by_hand(lists, shares, function, once=hard)
        np.testing.assert_allclose(columns[f"invariance.{name}"], expected, rtol=1e-5, atol=1e-6)
        assert len(set(np.round(expected, 6))) > 2
        assert expected != by_hand(lists, shares, function, once=not hard)


def test_other_distances_and_a_single_subdomain(lists: NBest, tmp_path: Path) -> None:
    path = subdomains(tmp_path / "z.parquet", HARD)
    shares = np.eye(K)[HARD]
    columns: Any = Invariance(subdomains=path, distance="hellinger").columns(lists)
    expected = by_hand(
        lists, shares, lambda p, q: np.linalg.norm(np.sqrt(p) - np.sqrt(q)) / np.sqrt(2)
    )
    np.testing.assert_allclose(columns["invariance.coherence"], expected, rtol=1e-5)
    columns = Invariance(
        subdomains=path, features="coherence", distance="kullback-leibler"
    ).columns(lists)
    assert list(columns) == ["invariance.coherence"]
    assert np.isfinite(columns["invariance.coherence"]).all()
    assert len(np.unique(columns["invariance.coherence"])) > 2
    columns = Invariance(subdomains=path, z=1).columns(lists)
    values = {
        "source": by_hand(lists, shares, lambda p, q: p[1]),
        "target": by_hand(lists, shares, lambda p, q: q[1]),
        "difference": by_hand(lists, shares, lambda p, q: abs(p[1] - q[1])),
    }
    assert list(columns) == [f"invariance.z1.{name}" for name in values]
    for name, values_of_name in values.items():
        np.testing.assert_allclose(columns[f"invariance.z1.{name}"], values_of_name, rtol=1e-5)
    with raises(UsageError, parameter="z", match="subdomains 0 to 2, not 3"):
        Invariance(subdomains=path, z=3).opened()


def test_order_of_columns_and_of_the_entropy(lists: NBest, tmp_path: Path) -> None:
    path = subdomains(tmp_path / "z.parquet")
    added = add_features(lists, Invariance(subdomains=path, features=("coherence", "specificity")))
    names = ("specificity.source", "specificity.target", "coherence")
    assert added.feature_names[1:] == tuple(f"invariance.{name}" for name in names)
    assert add_features(lists, Invariance(subdomains=path)).feature_names == added.feature_names
    columns: Any = Invariance(subdomains=path, alpha=0.5, name="safe").columns(lists)
    expected = by_hand(lists, SOFT, lambda p, q: renyi(p, 0.5), once=False)
    np.testing.assert_allclose(columns["safe.specificity.source"], expected, rtol=1e-5)


def test_opened_once_it_serves_parts_of_the_lists(lists: NBest, tmp_path: Path) -> None:
    source = Invariance(subdomains=subdomains(tmp_path / "z.parquet"))
    # A posterior records it as JSON.
    stored = msgspec.json.encode(record_sources([source], [()]))
    (again,) = restore_sources(msgspec.json.decode(stored, type=list[SourceRecord]), {})
    assert again == source
    whole: Any = source.columns(lists)
    compute = again.opened()
    parts: list[Any] = [compute(part) for part in (lists[1], lists[0], lists[1])]
    for name, values in whole.items():
        np.testing.assert_array_equal(np.concatenate([parts[1][name], parts[2][name]]), values)
        np.testing.assert_array_equal(parts[0][name], parts[2][name])
