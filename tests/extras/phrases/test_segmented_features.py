"""Phrase mixtures and invariance: sums over segmentations against plain loops; their measures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy.spatial.distance import chebyshev as scipy_chebyshev
from scipy.stats import entropy
from support.phrase_pairs import numbered
from support.raising import raises
from support.registries import FEATURES

from bpa_ppl import DataError, NBest, UsageError, add_features, from_lists
from bpa_ppl.extending import FeatureSource
from bpa_ppl.extras.phrases.invariance import Invariance
from bpa_ppl.extras.phrases.mixtures import mix
from bpa_ppl.extras.phrases.phrase_mixture import PhraseMixture
from bpa_ppl.extras.phrases.subdomains import (
    Subdomains,
    chebyshev,
    hellinger,
    kullback_leibler,
    renyi_entropy,
)
from bpa_ppl.extras.phrases.table_files import write_table
from bpa_ppl.extras.phrases.tables import PhraseCounts, PhraseTable

#: Sources with their candidates, and the segmentations of these.
SEGMENTED = [
    (
        "la maison noire Zoé",
        [
            ("the black house Zoé", "0=0 2=1 1=2 3=3"),
            ("the house Zoé", "0-1=0-1 3=2"),
            ("house Zoé the", "1=0 3=1 0=2"),
            ("", ""),
        ],
    ),
    ("un chat un chat", [("a cat", "0-3=0-1"), ("a cat a cat", "0-1=0-1 2-3=2-3")]),
]


@pytest.fixture
def lists() -> NBest:
    """Lists with segmentations; Zoé, a copied word, is in no table."""
    texts = [[text for text, _ in candidates] for _, candidates in SEGMENTED]
    features, sources = [np.zeros((len(part), 1)) for part in texts], [s for s, _ in SEGMENTED]
    spans = [spans for _, candidates in SEGMENTED for _, spans in candidates]
    result = from_lists(texts, features, ["LM0"], sources=sources)
    return result.with_extras(segmentation=spans)


def phrase_pairs() -> Iterator[list[tuple[str, str]]]:
    """Yield the phrase pairs of each candidate."""
    for source, candidates in SEGMENTED:
        for text, spans in candidates:
            pairs = []
            for pair in spans.split():
                f, e = ([int(n) for n in span.split("-")] for span in pair.split("="))
                target = text.split()[e[0] : e[-1] + 1]
                pairs.append((" ".join(source.split()[f[0] : f[-1] + 1]), " ".join(target)))
            yield pairs


# --- phrase mixtures -----------------------------------------------------------------------------

PAIRS = PhraseCounts.of(
    ["la", "maison", "la maison", "noire"], ["the", "house", "the house", "black"], [4, 2, 1, 1]
)


def write_probabilities(path: Path, **columns: list[float]) -> str:
    """Write a table with columns for the sorted pairs, and return where."""
    values = {name: np.array(column) for name, column in columns.items()}
    write_table(PhraseTable.from_pairs(PAIRS, values), path)
    return str(path)


@pytest.fixture
def table(tmp_path: Path) -> str:
    direct, inverse = [0.5, 0.125, 0.25, 0.8], [0.1, 0.3, 0.2, 0.4]
    return write_probabilities(tmp_path / "t.parquet", direct=direct, inverse=inverse)


def test_mixtures_are_sums_over_the_segmentation(lists: NBest, table: str) -> None:
    added = add_features(lists, PhraseMixture(table=table, floor=1e-3, unseen=True))
    assert added.feature_names[1:] == ("phrases.direct", "phrases.inverse", "phrases.unseen")
    assert added.features[:, 3].tolist() == [1, 1, 1, 0, 1, 2]
    pairs = [("la", "the"), ("la maison", "the house"), ("maison", "house"), ("noire", "black")]
    for column, values in ((1, [0.5, 0.125, 0.25, 0.8]), (2, [0.1, 0.3, 0.2, 0.4])):
        known = dict(zip(pairs, values, strict=True))
        sums = [sum(math.log(known.get(p, 1e-3)) for p in own) for own in phrase_pairs()]
        np.testing.assert_allclose(added.features[:, column], sums, rtol=1e-6)
    one = add_features(lists, PhraseMixture(table=table, floor=1e-3, direction="inverse"))
    assert one.features[:, 1].tolist() == added.features[:, 2].tolist()


def test_tables_of_the_decoder_and_log_linear_ones(lists: NBest, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("la ||| the ||| 0.25 0.1 0.5 0.1 ||| 0-0 ||| 4 2 1 ||| |||\n")
    added = add_features(lists, PhraseMixture(table=str(path), floor=0.01))
    assert added.feature_names[1:] == ("phrases.direct", "phrases.inverse")
    np.testing.assert_allclose(added.features[0, 1:], np.log([0.5e-6, 0.25e-6]), rtol=1e-6)
    mixed, _ = mix(PAIRS, PhraseCounts.of(["noire"], ["black"], [9]), method="log-linear")
    write_table(mixed, tmp_path / "t.parquet")
    added = add_features(lists, PhraseMixture(table=str(tmp_path / "t.parquet")))
    names = [f"phrases.{side}.{part}" for side in ("direct", "inverse") for part in ("in", "out")]
    assert added.feature_names[1:] == tuple(names)


@pytest.mark.parametrize(
    ("segmentation", "code"),
    [
        ("0=0 2=1 1", "bad-line"),
        ("0=0 4=1 1=2", "mismatch"),
        ("0=0 2=1 1=2 3=3-4", "mismatch"),
        ("0=0 2=1", "mismatch"),
        ("", "mismatch"),
        (0.0, "wrong-type"),
    ],
)
def test_bad_segmentations(lists: NBest, table: str, segmentation: Any, code: str) -> None:
    others = list(lists.extras["segmentation"])[1:]
    bad = lists.with_extras(segmentation=np.array([segmentation, *others], object))
    match = None if code == "wrong-type" else "candidate 1 of sentence 0: "
    with raises(DataError, code, match=match):
        add_features(bad, PhraseMixture(table=table))


@pytest.mark.parametrize("source", [PhraseMixture(table="t"), Invariance(subdomains="t")])
def test_missing_inputs(lists: NBest, source: FeatureSource, tmp_path: Path) -> None:
    for need in ("segmentation", "sources"):
        with raises(DataError, f"missing-{need}", parameter=need):
            add_features(lists.without(need), source)
    with raises(DataError, "missing-file", match="t: "):
        add_features(lists, source)
    other = write_probabilities(tmp_path / "t.parquet", score=[0.5] * 4)
    with raises(DataError, "missing-column", parameter="table"):
        add_features(lists, PhraseMixture(table=other))


# --- invariance ----------------------------------------------------------------------------------

K = 3
RNG = np.random.default_rng(11)
FRENCH, ENGLISH = ["la", "maison", "un", "chat"], ["the", "house", "a", "cat"]
SOURCES = [list(RNG.choice(FRENCH, size=n)) for n in RNG.integers(1, 8, 40)]
TARGETS = [list(RNG.choice(ENGLISH, size=n)) for n in RNG.integers(1, 8, 40)]
SOFT, HARD = RNG.dirichlet(np.ones(K), 40), RNG.integers(K, size=40)
WEIGHTS = np.array([0.5, 0.3, 0.2])


@pytest.fixture
def soft(tmp_path: Path) -> str:
    """The file of a corpus of 40 random pairs, each in all subdomains."""
    return write_subdomains(tmp_path / "soft.parquet", SOFT)


@pytest.fixture
def hard(tmp_path: Path) -> str:
    """The file of the same corpus, each pair in one subdomain."""
    return write_subdomains(tmp_path / "hard.parquet", HARD)


def write_subdomains(path: Path, assignment: np.ndarray) -> str:
    Subdomains(*numbered(SOURCES, TARGETS), assignment, WEIGHTS).save(path)
    return str(path)


def spread(
    phrase: str, sentences: list[list[str]], shares: Any, once: bool, added: float = 0.0
) -> list[float]:
    """Return P(z | phrase) by loops over the corpus, with some sentences of P(z) added."""
    words, counts = phrase.split(), added * WEIGHTS
    for sentence, share in zip(sentences, shares, strict=True):
        for place in range(len(sentence) - len(words) + 1):
            if sentence[place : place + len(words)] == words:
                counts += share
                if once:
                    break
    return (counts / counts.sum() if counts.sum() else WEIGHTS).tolist()


ONE_HOT = np.eye(K)[HARD]


def by_hand(
    measure: Any, shares: np.ndarray = ONE_HOT, once: bool = True, added: float = 0.0
) -> list[float]:
    """Return the sums of a function of P(z | source phrase) and P(z | target phrase)."""
    return [
        sum(
            measure(
                spread(f, SOURCES, shares, once, added), spread(e, TARGETS, shares, once, added)
            )
            for f, e in pairs
        )
        for pairs in phrase_pairs()
    ]


def renyi(p: list[float], alpha: float = 2.0) -> float:
    return math.log(sum(x**alpha for x in p)) / (1 - alpha)


#: Column -> what it is of p (source) and q (target).
EXPECTED: dict[str, Any] = {
    "specificity.source": lambda p, q: renyi(p),
    "specificity.target": lambda p, q: renyi(q),
    "coherence": lambda p, q: max(abs(a - b) for a, b in zip(p, q, strict=True)),
}


def test_invariance_is_summed_over_the_phrase_pairs(lists: NBest, soft: str, hard: str) -> None:
    for path, shares, once in ((soft, SOFT, False), (hard, ONE_HOT, True)):
        columns: Any = Invariance(subdomains=path).columns(lists)  # Zoé has P(z)
        assert list(columns) == [f"invariance.{name}" for name in EXPECTED]
        for name, function in EXPECTED.items():
            expected = by_hand(function, shares, once)
            result = columns[f"invariance.{name}"]
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
            assert len(set(np.round(expected, 6))) > 2
            assert expected != by_hand(function, shares, not once)


def test_hellingers_distance_and_a_single_subdomain(lists: NBest, hard: str) -> None:
    columns: Any = Invariance(subdomains=hard, distance="hellinger").columns(lists)
    expected = by_hand(lambda p, q: np.linalg.norm(np.sqrt(p) - np.sqrt(q)) / np.sqrt(2))
    np.testing.assert_allclose(columns["invariance.coherence"], expected, rtol=1e-5)
    columns = Invariance(subdomains=hard, z=1).columns(lists)
    values = {
        "source": by_hand(lambda p, q: p[1]),
        "target": by_hand(lambda p, q: q[1]),
        "difference": by_hand(lambda p, q: abs(p[1] - q[1])),
    }
    assert list(columns) == [f"invariance.z1.{name}" for name in values]
    for name, expected in values.items():
        np.testing.assert_allclose(columns[f"invariance.z1.{name}"], expected, rtol=1e-5)
    with raises(UsageError, parameter="z", match="subdomains 0 to 2, not 3"):
        Invariance(subdomains=hard, z=3).opened()


@pytest.mark.parametrize(
    ("distance", "divergence"),
    [
        ("kullback-leibler", lambda p, q: entropy(p, q)),
        ("reverse-kullback-leibler", lambda p, q: entropy(q, p)),
    ],
)
def test_each_direction_of_the_kullback_leibler_divergence(
    lists: NBest, hard: str, distance: Any, divergence: Any
) -> None:
    source = Invariance(subdomains=hard, features="coherence", distance=distance)
    columns: Any = source.columns(lists)
    assert list(columns) == ["invariance.coherence"]
    expected = by_hand(divergence, added=1.0)
    np.testing.assert_allclose(columns["invariance.coherence"], expected, rtol=1e-5)
    other = by_hand(lambda p, q: divergence(q, p), added=1.0)
    assert max(np.abs(np.subtract(expected, other))) > 1e-3


def test_order_of_columns_and_of_the_entropy(lists: NBest, soft: str) -> None:
    columns: Any = Invariance(
        subdomains=soft, features=("coherence", "specificity"), alpha=0.5, name="safe"
    ).columns(lists)
    assert list(columns) == [f"safe.{name}" for name in EXPECTED]
    expected = by_hand(lambda p, q: renyi(p, 0.5), SOFT, once=False)
    np.testing.assert_allclose(columns["safe.specificity.source"], expected, rtol=1e-5)


def test_opened_once_it_serves_parts_of_the_lists(lists: NBest, soft: str) -> None:
    source = Invariance(subdomains=soft)
    # A posterior records it as JSON.
    stored = msgspec.json.encode(source.settings())
    again = FEATURES.restore("invariance", msgspec.json.decode(stored))
    assert msgspec.json.encode(again.settings()) == stored
    whole: Any = source.columns(lists)
    compute = source.opened()
    parts: list[Any] = [compute(part) for part in (lists[1], lists[0], lists[1])]
    for name, values in whole.items():
        np.testing.assert_array_equal(np.concatenate([parts[1][name], parts[2][name]]), values)
        np.testing.assert_array_equal(parts[0][name], parts[2][name])


POINTS = np.vstack([RNG.dirichlet(np.full(6, 0.3), 50), np.eye(6)[:2], np.full((1, 6), 1 / 6)])


def test_renyi_entropies_agree_with_formula_and_scipy() -> None:
    for order in (0.5, 2.0, 3.0):
        expected = np.log((POINTS**order).sum(axis=1)) / (1 - order)
        np.testing.assert_allclose(renyi_entropy(POINTS, order), expected, atol=1e-12)
    shannon = entropy(POINTS, axis=1)
    np.testing.assert_allclose(renyi_entropy(POINTS, 1.0), shannon, atol=1e-12)
    np.testing.assert_allclose(renyi_entropy(POINTS, 1 + 2e-6), shannon, atol=1e-4)
    np.testing.assert_allclose(renyi_entropy(POINTS, 1e5), -np.log(POINTS.max(axis=1)), atol=1e-4)
    for order in (0.5, 1.0, 2.0, 1e5):
        result = renyi_entropy(POINTS, order)
        np.testing.assert_allclose(result[-3:], [0, 0, np.log(6)], atol=1e-9)
        assert result.min() >= 0
        assert result.max() <= np.log(6) + 1e-12


def test_distances_agree_with_scipy() -> None:
    other, positive = (RNG.dirichlet(np.ones(6), len(POINTS)) for _ in range(2))
    expected = [scipy_chebyshev(*pair) for pair in zip(POINTS, other, strict=True)]
    np.testing.assert_allclose(chebyshev(POINTS, other), expected)
    for first, second in ((positive, other), (other, positive)):
        divergence = entropy(first, second, axis=1)
        np.testing.assert_allclose(kullback_leibler(first, second), divergence)
    # 1 − the Bhattacharyya coefficient is the squared distance.
    coefficient = np.sqrt(positive * other).sum(axis=1)
    np.testing.assert_allclose(hellinger(positive, other) ** 2, 1 - coefficient)
    for distance in (chebyshev, hellinger, kullback_leibler):
        np.testing.assert_allclose(distance(positive, positive), 0, atol=1e-12)
