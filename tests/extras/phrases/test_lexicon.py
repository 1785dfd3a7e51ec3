"""IBM Model 1, compared with textbook EM, and the features of a lexicon."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises
from support.registries import FEATURES

from bpa_ppl import BpaWarning, DataError, NBest, UsageError, add_features, from_lists
from bpa_ppl.extras.phrases.ibm1 import FLOOR, IBM1
from bpa_ppl.extras.phrases.lexicon import Lexicon

SOURCES = ["le chat dort", "un chien", "le chien dort", "un chat", "le chat", "un chien dort"]
TARGETS = ["the cat sleeps", "a dog", "the dog sleeps", "a cat", "the cat", "a dog sleeps"]


@pytest.fixture
def memory(tmp_path: Path) -> tuple[str, str]:
    """A translation memory of six pairs."""
    paths = tmp_path / "memory.fr", tmp_path / "memory.en"
    for path, lines in zip(paths, (SOURCES, TARGETS), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    return str(paths[0]), str(paths[1])


@pytest.fixture
def lists() -> NBest:
    """Six lists, the first and the last of the same sentence; texts stand in several lists."""
    sources = ["le chat", "un chien dort", "le chien", "un chat dort", "le chat dort", "le chat"]
    references = ["the cat", "a dog sleeps", "the dog", "a cat sleeps", "the cat sleeps", "the cat"]
    texts = [[ref, "the dog", "the cat", "a cat", "x the cat", ref] for ref in references]
    texts = [*texts[:-1], ["the cat", ""]]
    features = [np.zeros((len(own), 1)) for own in texts]
    return from_lists(texts, features, ["LM0"], sources=sources, references=references)


def split(texts: list[str]) -> list[list[str]]:
    return [text.split() for text in texts]


def by_hand(pairs: list[tuple[str, str]], lists: NBest, floor: float = 1e-4) -> np.ndarray:
    """Both columns, one candidate after the other."""
    sources, targets = split([s for s, _ in pairs]), split([t for _, t in pairs])
    direct, inverse = IBM1.estimate(sources, targets), IBM1.estimate(targets, sources)
    assert lists.sources is not None
    logs = []
    for s, source in enumerate(lists.sources):
        for text in lists.texts(s):
            f, e = split([source]), split([text])
            p = direct.log_probabilities(f, e, [0], [0], floor=floor)[0]
            logs.append((p, inverse.log_probabilities(e, f, [0], [0], floor=floor)[0]))
    return np.array(logs)


def test_columns_of_a_translation_memory(lists: NBest, memory: tuple[str, str]) -> None:
    added = add_features(lists, Lexicon(pairs=memory))
    assert added.feature_names == ("LM0", "lexicon.direct", "lexicon.inverse")
    pairs, floors = list(zip(SOURCES, TARGETS, strict=True)), (1e-4, 0.01)
    results = [add_features(lists, Lexicon(pairs=memory, floor=f)).features[:, 1:] for f in floors]
    assert np.array_equal(results[0], added.features[:, 1:])
    for result, floor in zip(results, floors, strict=True):
        assert result == pytest.approx(by_hand(pairs, lists, floor), rel=1e-6)
    assert not np.allclose(*results)
    assert add_features(lists[:0], Lexicon(pairs=memory)).features.shape == (0, 3)
    # No candidate explains the words of the source better than the reference.
    best = [added[s].features[:, 2].argmax() for s in range(5)]
    assert added[:5].chosen(best) == [refs[0] for refs in added.references[:5]]


def test_new_lists_are_scored_by_all_adaptation_sentences(lists: NBest) -> None:
    source = Lexicon(pairs="self")
    assert (source.unlearned, source.needs) == (True, {"sources", "references"})
    fitted = source.fitted(lists)
    assert not fitted.unlearned
    assert fitted.files() == ()
    assert len(fitted.learned_pairs) == 5  # a sentence that was drawn twice counts once
    result = add_features(lists, fitted).features[:, 1:]
    expected = by_hand(list(fitted.learned_pairs), lists)
    assert result == pytest.approx(expected, rel=1e-6)
    own = fitted.cross_fitted_columns(lists)
    assert not np.allclose(np.transpose(list(dict(own).values())), result)
    # It has learned already, and stays as it is.
    assert fitted.fitted(lists[:2]) == fitted


@pytest.mark.parametrize(
    ("sides", "code", "parameter"),
    [
        (("the cat\n", "the cat\na dog\n"), "wrong-length", None),
        (("", "cat\n"), "no-data", None),
        (("\n \n", "cat\ndog\n"), "no-data", None),
        (("chat\n\n", "\ncat\n"), "no-data", "pairs"),
    ],
)
def test_bad_memories(
    lists: NBest, memory: tuple[str, str], sides: tuple[str, str], code: str, parameter: str | None
) -> None:
    for path, text in zip(memory, sides, strict=True):
        Path(path).write_text(text)
    with raises(DataError, code, parameter=parameter, match="memory"):
        add_features(lists, Lexicon(pairs=memory))


@pytest.mark.parametrize(
    ("settings", "code", "parameter"),
    [
        ({"pairs": "memory.fr"}, None, "pairs"),
        ({}, "missing-setting", "pairs"),
        ({"pairs": ("a", "b", "c")}, "invalid-setting", "pairs"),
        ({"pairs": ["a", "b"], "iterations": 2**31}, "invalid-setting", "iterations"),
    ],
)
def test_invalid_settings(settings: dict, code: str | None, parameter: str) -> None:
    with raises(UsageError, code, parameter=parameter):
        FEATURES.resolve("lexicon", settings)


def test_pairs_with_an_empty_side_are_skipped(lists: NBest, memory: tuple[str, str]) -> None:
    clean = add_features(lists, Lexicon(pairs=memory)).features
    Path(memory[0]).write_text("\n".join([*SOURCES, "", "rien"]) + "\n")
    Path(memory[1]).write_text("\n".join([*TARGETS, "nothing", ""]) + "\n")
    with pytest.warns(BpaWarning, match="2 pairs have no words on one side: skipped"):
        result = add_features(lists, Lexicon(pairs=memory)).features
    assert np.array_equal(result, clean)


def test_a_text_of_another_language_is_warned_about(lists: NBest, memory: tuple[str, str]) -> None:
    swapped = Lexicon(pairs=(memory[1], memory[0])).opened()
    with pytest.warns(BpaWarning, match=r"100% of the words of the source sentences are not in"):
        swapped(lists)
    # A few adaptation sentences do not know many words: nothing is wrong with them.
    add_features(lists[[1, 0]], Lexicon(pairs="self"))


def test_lists_without_sources(lists: NBest, memory: tuple[str, str]) -> None:
    for need in ("sources", "references"):
        with raises(DataError, f"missing-{need}", parameter=need):
            Lexicon(pairs="self").fitted(lists.without(need))
    with raises(DataError, "missing-sources", parameter="sources"):
        add_features(lists.without("sources"), Lexicon(pairs=memory))


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
