"""IBM Model 1, compared with textbook EM."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.extras.phrases.ibm1 import FLOOR, IBM1

Sentences = list[list[str]]
Table = dict[tuple[str | None, str], float]


def reference_em(sources: Sentences, targets: Sentences, iterations: int) -> Table:
    """Return IBM Model 1 by textbook EM; None is the empty word of each source sentence."""
    pairs = [([None, *s], t) for s, t in zip(sources, targets, strict=True) if s and t]
    uniform = 1 / len({word for _, target in pairs for word in target})
    table: Table = defaultdict(lambda: uniform)
    for _ in range(iterations):
        counts: dict[tuple[str | None, str], float] = defaultdict(float)
        totals: dict[str | None, float] = defaultdict(float)
        for source, target in pairs:
            for e in target:
                norm = sum(table[f, e] for f in source)
                for f in source:
                    counts[f, e] += table[f, e] / norm
                    totals[f] += table[f, e] / norm
        table = defaultdict(float, {key: c / totals[key[0]] for key, c in counts.items()})
    return table


words = st.lists(st.sampled_from("abcdef"), max_size=6)
corpora = st.lists(st.tuples(words, words), min_size=1, max_size=12).filter(
    lambda pairs: any(s and t for s, t in pairs)
)


@settings(max_examples=20, deadline=None)
@given(corpora, st.integers(1, 6))
def test_estimates_agree_with_reference_em(pairs: list, iterations: int) -> None:
    sources, targets = [s for s, _ in pairs], [t for _, t in pairs]
    expected = reference_em(sources, targets, iterations)
    model = IBM1.estimate(sources, targets, iterations)
    result = {key: model.probability(*key) for key in expected}
    assert result == pytest.approx(dict(expected), rel=1e-10, abs=1e-300)
    assert len(model.values) == len(expected)
    assert model.skipped == sum(1 for s, t in pairs if not (s and t))
    assert np.add.reduceat(model.values, model.starts[:-1]) == pytest.approx(1)


def reference_score(model: IBM1, source: list[str], target: list[str]) -> float:
    inside: list[str | None] = [None, *source]
    sums = [sum(model.probability(f, e) for f in inside) / len(inside) for e in target]
    return sum(math.log(max(value, FLOOR)) for value in sums)


@pytest.fixture(scope="module")
def model() -> IBM1:
    rng = np.random.default_rng(5)
    draws = [rng.integers(0, 9, rng.integers(1, 7)) for _ in range(80)]
    sources = [[f"f{n}" for n in draw] for draw in draws]
    return IBM1.estimate(sources, [[f"e{n // 2}" for n in draw[::-1]] for draw in draws])


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_scores_agree_with_reference(model: IBM1, data: st.DataObject) -> None:
    # Words outside of the corpus (f9, e5), empty sentences and pairs in any order.
    sentence = st.lists(st.integers(0, 9), max_size=5)
    sources = [[f"f{n}" for n in s] for s in data.draw(st.lists(sentence, min_size=1, max_size=4))]
    targets = [
        [f"e{n // 2 + n // 9}" for n in t]
        for t in data.draw(st.lists(sentence, min_size=1, max_size=4))
    ]
    number = st.tuples(st.integers(0, len(sources) - 1), st.integers(0, len(targets) - 1))
    pairs = data.draw(st.lists(number, max_size=12))
    ordered = sorted(pairs, key=lambda pair: pair[data.draw(st.sampled_from([0, 1]))])
    which = [s for s, _ in ordered], [t for _, t in ordered]
    result = model.log_probabilities(sources, targets, *which)
    expected = [reference_score(model, sources[s], targets[t]) for s, t in ordered]
    assert result == pytest.approx(expected, abs=1e-12)


def test_unknown_words(model: IBM1) -> None:
    assert model.unknown([["f0", "x", "x"], [], ["x"], ["f1"]]).tolist() == [2, 0, 1, 0]
    assert model.probability("x", "e0") == 0
    assert model.probability("f0", "x") == 0
    assert model.log_probabilities([["f0"]], [["x"]], [0], [0]).tolist() == [math.log(FLOOR)]
    assert model.log_probabilities([["f0"]], [["x"]], [0], [0], floor=0.01).tolist() == [
        math.log(0.01)
    ]
    # Among unknown words only the empty word can generate a known word.
    lone = math.log(model.probability(None, "e0") / 2)
    assert model.log_probabilities([["x"]], [["e0"]], [0], [0])[0] == pytest.approx(lone)


def test_rejects_unusable_corpora() -> None:
    with raises(DataError, "no-data"):
        IBM1.estimate([["a"], []], [[], ["b"]])
