from __future__ import annotations

import numpy as np
import pyarrow as pa

from bpa_ppl.arrays import Int32, Int64
from bpa_ppl.phrases.tree import PhraseTree


def sentence_spans(starts: Int64) -> tuple[Int64, Int32, Int32]:
    """Return one span per sentence."""
    lengths = np.diff(starts).astype(np.int32)
    return np.arange(len(starts)), np.zeros(len(lengths), np.int32), lengths


def test_equal_phrases_have_equal_numbers() -> None:
    tree, rng = PhraseTree(), np.random.default_rng(0)
    texts, numbers = [], []
    for longest in (6, 6, 6, 300):
        part = [
            " ".join(map(str, rng.integers(4, size=rng.integers(1, longest)))) for _ in "x" * 200
        ]
        words, starts = tree.words(text.encode() for text in part)
        numbers.append(tree.numbers((words, starts), *sentence_spans(starts)))
        texts += part
    distinct, places = tree.texts(np.concatenate(numbers))
    assert distinct.to_pylist() == sorted(set(texts))
    assert distinct.take(pa.array(places)).to_pylist() == texts
    assert tree.texts(np.zeros(1, np.int64))[0].to_pylist() == [""]


def test_only_phrases_of_the_table_are_found() -> None:
    phrases = ["a", "a b", "b a b", "d"]
    tree, places = PhraseTree.of(pa.array(phrases, pa.large_string()))
    asked = ["b a b", "b a", "a b", "", "zut", "a zut", "d", "a b a b a b a"]
    words, starts = tree.known_words(text.encode() for text in asked)
    nodes = tree.find((words, starts), *sentence_spans(starts))
    result = [int(places[node]) if node >= 0 else -1 for node in nodes]
    assert result == [2, -1, 1, -1, -1, -1, 3, -1]
    # New phrases get new numbers.
    assert tree.words([b"a zut b"])[0].tolist() == [1, 4, 2]
