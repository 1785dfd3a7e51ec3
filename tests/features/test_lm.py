"""Language models as features: what is learned from which text, and warnings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.command_line import succeed
from support.language_models import model_of, scores_of_mixture
from support.raising import raises

from bpa_ppl import BpaWarning, DataError, NBest, UsageError, from_lists
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.features.source import assign_folds

LINES = ["the cat sat down", "a cat sat on the mat", "the dog sat", "one two three", "hello you"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "domain.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def scores(lines: list[str], texts: list[str], order: int = 3) -> np.ndarray:
    """Return the log-probabilities under a model of some lines, one text after the other."""
    model = model_of(lines, order)
    return np.array([model.log_probabilities([text.split()])[0] for text in texts])


def with_references(references: list[tuple[str, ...]]) -> NBest:
    """Return lists of two whose references are given."""
    texts = [[several[0], "the cat"] for several in references]
    return from_lists(texts, [[[0.0]] * 2] * len(texts), ["LM0"], references=references)


def everything(nbest: NBest) -> list[str]:
    return [nbest.text(row) for row in range(len(nbest.features))]


def test_columns_of_a_text(text: Path, toy: NBest) -> None:
    result = dict(LanguageModel(text=str(text)).columns(toy))
    hyps = everything(toy)
    assert set(result) == {"lm", "lm.oov"}
    np.testing.assert_allclose(result["lm"], scores(LINES, hyps), rtol=1e-12)
    vocabulary = {word for line in LINES for word in line.split()}
    missing = [sum(word not in vocabulary for word in hyp.split()) for hyp in hyps]
    assert result["lm.oov"].tolist() == missing
    assert sum(missing) == 1  # world


def test_a_mixture_has_the_recorded_files(text: Path, toy: NBest, tmp_path: Path) -> None:
    general, dev = tmp_path / "general.txt", tmp_path / "dev.txt"
    general.write_text("hello world\n")
    dev.write_text("the cat\nhello world\n")
    paths = str(text), str(general)
    source = LanguageModel(text=paths, dev=str(dev))
    expected = scores_of_mixture(paths, dev, everything(toy))
    np.testing.assert_allclose(dict(source.columns(toy))["lm"], expected, rtol=1e-12)
    assert source.files() == (*paths, str(dev))
    assert source.moved(["a", "b", "c"]).files() == ("a", "b", "c")
    for alone in (str(text), "self"):
        with raises(UsageError, parameter="dev"):
            LanguageModel(dev=str(dev), text=alone)
    with raises(UsageError, "not-supported", parameter="carry"):
        LanguageModel(dev=str(dev), text=paths, carry=True)


def test_a_foreign_text_is_warned_about_once(text: Path) -> None:
    lists = from_lists([["le chat the", "un chien"]], [[[0.0]] * 2], ["LM0"])
    compute = LanguageModel(text=(str(text), str(text))).opened()
    with pytest.warns(BpaWarning, match=r"80% of the words .*domain\.txt"):
        compute(lists)
    compute(lists)  # a second warning would be an error


def test_learning_from_references_leaves_their_own_sentence_out() -> None:
    references = [(line,) for line in LINES]
    references += [references[0], (LINES[1], "another reference"), ("another reference",)]
    lists = with_references(references)
    source = LanguageModel(text="self", folds=3)
    assert source.needs == {"references"}
    own = dict(source.cross_fitted_columns(lists))
    folds = assign_folds(references, 3)
    assert folds[0] == folds[5]
    different = list(dict.fromkeys(text for several in references for text in several))
    for s, fold in enumerate(folds):
        own_texts = {t for r, f in zip(references, folds, strict=True) if f == fold for t in r}
        others = [line for line in different if line not in own_texts]
        assert others
        assert not set(references[s]) & set(others)
        expected = scores(others, lists.texts(s))
        np.testing.assert_allclose(own["lm"][lists.rows(s)], expected, rtol=1e-12)
    # New lists are judged by the model of all of them, each counted once.
    fitted = source.fitted(lists)
    assert fitted.lines == tuple(different)
    assert fitted.needs == frozenset()
    assert fitted.files() == ()
    new = from_lists([["the cat sat", "down"]], [[[0.0]] * 2], ["LM0"])
    result = dict(fitted.columns(new))
    np.testing.assert_allclose(result["lm"], scores(different, ["the cat sat", "down"]), rtol=1e-12)
    # The lists that it is fitted to are cross-fitted whether it is fitted already or not.
    again = dict(fitted.cross_fitted_columns(lists))
    assert again["lm"].tolist() == own["lm"].tolist()


@pytest.mark.parametrize("references", [[("a b",)], [("a b",)] * 2, [("a b",), ("",)]])
def test_one_reference_cannot_judge_itself(references: list[tuple[str, ...]]) -> None:
    with raises(DataError, "no-data"):
        LanguageModel(text="self").cross_fitted_columns(with_references(references))


def test_learning_needs_references(toy: NBest) -> None:
    source, bare = LanguageModel(text="self"), toy.without("references")
    for work in (source.fitted, source.cross_fitted_columns):
        with raises(DataError, "missing-references", parameter="references"):
            work(bare)
    with raises(UsageError, "no-data", parameter="text"):
        source.columns(toy)


def test_text_can_be_carried(text: Path, toy: NBest) -> None:
    source = LanguageModel(text=str(text), carry=True)
    carried = source.fitted(toy)
    assert carried.lines == tuple(LINES)
    assert source.files() == (str(text),)
    expected = dict(source.columns(toy))
    text.unlink()
    assert carried.files() == ()
    assert carried.moved([]) == carried
    result = dict(carried.columns(toy))
    assert result["lm"].tolist() == expected["lm"].tolist()
    assert LanguageModel(text=str(text)).fitted(toy).lines == ()


def test_sources_that_cannot_be_carried(text: Path, toy: NBest, tmp_path: Path) -> None:
    arpa, long = tmp_path / "a.arpa", tmp_path / "long.txt"
    succeed("lm", text, "-o", arpa, "-q")
    long.write_text(f"{'word ' * 30}\n" * 40_000, encoding="utf-8")
    with raises(UsageError, "not-supported", parameter="carry", match=r"a\.arpa"):
        LanguageModel(text=(str(text), str(arpa)), carry=True).fitted(toy)
    with raises(UsageError, parameter="carry", match=r"6\.0 MB .* 5 MB"):
        LanguageModel(text=str(long), carry=True).fitted(toy)


def test_texts_that_cannot_be_read_are_refused(tmp_path: Path, toy: NBest) -> None:
    empty = tmp_path / "empty.txt"
    empty.write_text("\n", encoding="utf-8")
    with raises(DataError, "no-data", match=r"empty\.txt"):
        LanguageModel(text=str(empty)).columns(toy)
    with raises(DataError, "missing-file", match=r"missing\.txt"):
        LanguageModel(text=str(tmp_path / "missing.txt")).columns(toy)
    for wrong in ("", (), ("a.txt", ""), ("a.txt", "self")):
        with raises(UsageError, parameter="text"):
            LanguageModel(text=wrong)
    with raises(UsageError, "invalid-setting", parameter="order"):
        LanguageModel(text="a.txt", order=6)
