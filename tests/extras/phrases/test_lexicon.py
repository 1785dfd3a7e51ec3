"""Features of a lexicon: IBM Model 1 of a translation memory, or of the lists themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.raising import raises
from support.registries import FEATURES

from bpa_ppl import BpaWarning, DataError, NBest, UsageError, add_features, from_lists
from bpa_ppl.extras.phrases.ibm1 import IBM1
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
