"""Features of phrase pairs, compared with their definitions."""

from __future__ import annotations

from math import exp
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from support.language_models import model_of
from support.phrase_pairs import counts_by_pair, pairs_of
from support.raising import raises

from bpa_ppl import DataError, UsageError
from bpa_ppl.extras.phrases.ibm1 import IBM1
from bpa_ppl.extras.phrases.pair_features import (
    GENERAL,
    PAIR_FEATURES,
    SIMILARITY,
    ParallelCorpus,
    pair_features,
    read_corpus,
    svm_feature,
)
from bpa_ppl.extras.phrases.tables import PhraseCounts


def corpus(seed: int, sentences: int, words: int) -> ParallelCorpus:
    """Return a corpus where t1 translates s1 and so on, with common and rare words."""
    rng = np.random.default_rng(seed)
    lines = [np.minimum(rng.zipf(1.5, rng.integers(1, 7)), words) for _ in range(sentences)]
    source, target = ([[f"{side}{n}" for n in line] for line in lines] for side in "st")
    return source, target


OUT, IN = corpus(1, 450, 40), corpus(2, 60, 25)


@pytest.fixture(scope="module")
def table() -> PhraseCounts:
    """Pairs of phrases with one to three words of OUT."""
    rng = np.random.default_rng(5)
    source, target, counts = [], [], []
    for s, t in zip(*OUT, strict=True):
        first, length = rng.integers(len(s)), rng.integers(1, 4)
        source.append(" ".join(s[first : first + length]))
        target.append(" ".join(t[first : first + rng.integers(1, 4)]))
        counts.append(rng.integers(1, 4))
    return PhraseCounts.of(source, target, counts)


@pytest.fixture(scope="module")
def features(table: PhraseCounts) -> np.ndarray:
    """The features of the pairs."""
    names, result = pair_features(table, OUT, IN, iterations=3)
    assert names == PAIR_FEATURES
    return result


def reference_features(table: PhraseCounts) -> dict[str, list[float]]:
    """Return the features of all pairs by their definitions, before standardisation."""
    result: dict[str, list[float]] = {name: [] for name in PAIR_FEATURES}
    spread = [reference_statistics(side) for side in OUT]
    known = [{word for line in side for word in line} for side in IN]
    models = {(side, n): model_of(map(" ".join, IN[side]), n) for side in (0, 1) for n in (1, 2)}
    ibm1 = {
        f"{where}.ibm1.{name}": (IBM1.estimate(corpus[given], corpus[1 - given], 3), given)
        for where, corpus in (("out", OUT), ("in", IN))
        for name, given in (("direct", 0), ("inverse", 1))
    }
    for pair, count in counts_by_pair(table).items():
        words = [text.split(" ") for text in pair]
        result["tokens"].append(len(words[0]) + len(words[1]))
        result["out.count"].append(count)
        for side, name in enumerate(("source", "target")):
            frequencies, *others = zip(*(spread[side][word] for word in words[side]), strict=True)
            result[f"out.rarest.{name}"].append(min(frequencies))
            for what, values in zip(("documents", "burstiness"), others, strict=True):
                result[f"out.{what}.mean.{name}"].append(sum(values) / len(values))
                result[f"out.{what}.least.{name}"].append(min(values))
            for n in (1, 2):
                result[f"in.{n}gram.{name}"].append(
                    np.exp(-models[side, n].by_word([words[side]])[0].mean())
                )
            result[f"in.unknown.{name}"].append(
                sum(word not in known[side] for word in words[side])
            )
        for name, (model, given) in ibm1.items():
            log = model.log_probabilities([words[given]], [words[1 - given]], [0], [0])[0]
            result[name].append(exp(-log / len(words[1 - given])))
    return result


def reference_statistics(lines: list[list[str]]) -> dict[str, tuple[int, int, float]]:
    """Return frequency, document frequency and burstiness of each word by their definitions."""
    result = {}
    for word in {word for line in lines for word in line}:
        where = [n for n, line in enumerate(lines) if word in line]
        nearest = [
            min((abs(a - b) for b in where if b != a), default=len(lines) / 2) for a in where
        ]
        expected = len(lines) - len(lines) / (len(where) + 1)
        frequency = sum(line.count(word) for line in lines)
        documents = len({n // 100 for n in where})
        result[word] = (frequency, documents, sum(nearest) / expected)
    return result


def test_features_agree_with_definitions(table: PhraseCounts, features: np.ndarray) -> None:
    assert (len(GENERAL), len(SIMILARITY), len(set(PAIR_FEATURES))) == (14, 8, 22)
    assert features.dtype == np.float32
    for column, (name, values) in enumerate(reference_features(table).items()):
        raw = np.array(values)
        assert raw.std() > 0, name
        expected = (raw - raw.mean()) / raw.std()
        assert features[:, column] == pytest.approx(expected, abs=1e-5), name


def test_log_scale_applies_to_counts_and_perplexities(
    table: PhraseCounts, features: np.ndarray
) -> None:
    logs = pair_features(table, OUT, IN, iterations=3, scale="log")[1]
    same = [name for n, name in enumerate(PAIR_FEATURES) if (logs[:, n] == features[:, n]).all()]
    assert same == [n for n in PAIR_FEATURES if "burst" in n or "unknown" in n or n == "tokens"]
    raw = np.log1p(table.count)
    expected = (raw - raw.mean()) / raw.std()
    assert logs[:, PAIR_FEATURES.index("out.count")] == pytest.approx(expected, abs=1e-5)


def test_constant_features_and_statistics_of_unknown_words_are_zero() -> None:
    table = PhraseCounts.of(["s1", "s2 s1", "x s1"], ["t1", "t2", "y"], [3, 3, 3])
    result = pair_features(table, OUT, IN, iterations=1)[1]
    assert result[:, PAIR_FEATURES.index("out.count")].tolist() == [0, 0, 0]
    assert result[:, PAIR_FEATURES.index("out.rarest.target")].argmin() == 2  # of y
    assert np.isfinite(result).all()


def test_rejects_invalid_corpora_and_tables(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("s1 s2\n\ns1\n")
    (tmp_path / "b").write_text("t1 t2\nt1\n")
    (tmp_path / "none").write_text("")
    with raises(DataError, "wrong-length", match="b: 2 .*a has 3"):
        read_corpus(tmp_path / "a", tmp_path / "b")
    with raises(DataError, "no-data"):
        read_corpus(tmp_path / "a", tmp_path / "none")
    assert read_corpus(tmp_path / "a", tmp_path / "a")[0] == [["s1", "s2"], [], ["s1"]]
    with raises(DataError, "no-data"):
        pair_features(PhraseCounts.of([], [], []), OUT, IN)


def test_svm_negatives_agree_with_definitions() -> None:
    # s: a common pair; t: in both tables, without a common pair; u: only in OUT.
    outside = PhraseCounts.of(list("ssttu"), list("abcda"), [1] * 5)
    inside = PhraseCounts.of(list("stv"), list("axa"), [1] * 3)
    pairs = pairs_of(outside)
    for negatives, expected in (
        ("no-common", {("t", "c"), ("t", "d")}),
        ("source", {("s", "b"), ("t", "c"), ("t", "d")}),
    ):
        with patch("sklearn.svm.LinearSVC") as machine:
            machine.return_value.decision_function.return_value = np.zeros(5)
            rows = np.arange(5.0)[:, None]
            svm_feature(outside, inside, rows, negatives=negatives)  # type: ignore[arg-type]
        examples, common = machine.return_value.fit.call_args.args
        marked = {
            pairs[int(row)]: is_common for (row,), is_common in zip(examples, common, strict=True)
        }
        assert marked == dict.fromkeys(expected, False) | {("s", "a"): True}


def svm_case() -> tuple[PhraseCounts, PhraseCounts, np.ndarray]:
    """Return OUT, IN and a feature that is high for pairs in both tables."""
    rng = np.random.default_rng(0)
    names = [(f"s{n % 30}", f"t{n}") for n in range(300)]
    outside = PhraseCounts.of(*zip(*names, strict=True), np.ones(300))
    # The sources s20 to s29 have translations in IN, but no common pairs.
    shared = [(s, t) for s, t in names if int(t[1:]) // 30 % 3 == 0 and int(s[1:]) < 20]
    others = [(f"s{n}", "other") for n in range(20, 29)]
    inside = PhraseCounts.of(*zip(*shared, *others, strict=True), np.ones(len(shared) + 9))
    common = inside.find_rows(outside) >= 0
    features = np.column_stack([common + rng.normal(0, 0.4, 300), rng.normal(size=300)])
    return outside, inside, features.astype(np.float32)


def test_svm_separates_pairs_of_both_tables_from_the_negatives() -> None:
    outside, inside, features = svm_case()
    common = inside.find_rows(outside) >= 0
    default, other = (
        svm_feature(outside, inside, features, **options)
        for options in ({}, {"negatives": "source"})
    )
    assert (default != other).any()
    for result in (default, other):
        assert result.shape == (300, 1)
        assert (result.mean(), result.std()) == pytest.approx((0, 1), abs=1e-5)
        assert result[common].mean() > result[~common].mean() + 1


def test_svm_rejects_missing_examples() -> None:
    outside, inside, features = svm_case()
    for other in (PhraseCounts.of(["x"], ["y"], [1]), outside):
        with raises(DataError, "no-data"):
            svm_feature(outside, other, features)
    with raises(UsageError, "unknown-name", parameter="negatives"):
        svm_feature(outside, inside, features, negatives="all")  # type: ignore[arg-type]
