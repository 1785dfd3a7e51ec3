"""Words of texts and those that differ, language model files, and perplexities of texts."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises

from bpa_ppl import DataError, UsageError
from bpa_ppl.text.differences import mark_differences
from bpa_ppl.text.language_model import NgramModel
from bpa_ppl.text.model_files import evaluate_text, is_model, read_or_train
from bpa_ppl.text.words import SPECIAL, iter_sentences, join_texts, split_words


def test_words_are_separated_by_whitespace() -> None:
    # KenLM and Moses do not split at no-break and ideographic spaces.
    words = ["the", "cat", "le", "café", "10\u00a0000", "euros\u3000x"]
    assert split_words(f"  {words[0]}  {words[1]}\t" + " ".join(words[2:]) + "\r") == words
    assert split_words(" the  cat\tsat\r") == ["the", "cat", "sat"]
    assert split_words("  \t ") == split_words("") == []


def test_several_files_are_concatenated(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    first.write_bytes(b"a b\r\n\nb c")
    second.write_bytes(gzip.compress("a café\n".encode()))
    notes: list[str] = []
    corpus = join_texts([(str(p), iter_sentences(p)) for p in (first, second)], notes.append)
    assert corpus.words == [*SPECIAL, "a", "b", "c", "café"]
    words, starts = corpus.sentences
    assert words.tolist() == [3, 4, 4, 5, 3, 6]
    assert starts.tolist() == [0, 2, 2, 4, 6]
    assert notes[-1] == "4 lines"


@pytest.mark.parametrize(
    ("content", "code", "line"),
    [
        *((f"a b\n\nc {word} d\n".encode(), "bad-name", 3) for word in SPECIAL),
        *((content, "no-data", None) for content in (b"", b"\n", b" \n\t\n")),
        (b"a\n\xe9t\xe9\n", "bad-encoding", 2),
    ],
)
def test_invalid_texts_are_refused_with_their_line(
    content: bytes, code: str, line: int | None, tmp_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with raises(DataError, code, line=line, match="a.txt"):
        join_texts([("first.txt", [[[], []]]), (str(path), iter_sentences(path))])


GOLDEN = Path(__file__).parent / "golden"
TEXT, ARPA = GOLDEN / "harbour.txt", GOLDEN / "harbour.o3.arpa.gz"
TEST_SENTENCES = [
    "the ferry leaves the harbour at ten",
    "a whale waits <s> at the gate </s>",
    "",
    "10\u00a0000 dogs",
]


def test_models_are_detected_by_content(tmp_path: Path) -> None:
    misnamed = tmp_path / "model.txt"
    misnamed.write_bytes(b"\n" + gzip.decompress(ARPA.read_bytes()))
    assert [is_model(path) for path in (TEXT, ARPA, misnamed, "-")] == [*(False, True, True, False)]
    read = read_or_train([misnamed], order=1)
    assert read.order == 3
    learned = read_or_train([TEXT, TEXT], order=2)
    assert isinstance(learned, NgramModel)
    assert learned.order == 2


def test_rejects_model_file_with_other_files() -> None:
    with raises(UsageError, "conflict", match=ARPA.name):
        read_or_train([TEXT, ARPA])


def test_evaluate_text_of_several_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path, lines in zip(paths, (TEST_SENTENCES[:2], TEST_SENTENCES[2:]), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    model = NgramModel.train([TEXT])
    scores, unknown = model.by_word(list(map(split_words, TEST_SENTENCES)))
    result = evaluate_text(model, paths)
    assert (result.words, result.unknown) == (len(scores) - len(TEST_SENTENCES), 3)
    assert result.perplexity == pytest.approx(np.exp(-scores.mean()))
    assert result.known == pytest.approx(np.exp(-scores[~unknown].mean()))
    paths[0].write_text("", encoding="utf-8")
    with raises(DataError, "no-data", match=r"a\.txt"):
        evaluate_text(model, paths[:1])


@settings(max_examples=100, deadline=None)
@given(*[st.text(st.sampled_from("ab ,.'\n我爱หวัا\u0301"), max_size=12)] * 2)
def test_the_parts_are_the_texts(before: str, after: str) -> None:
    sides = mark_differences(before, after)
    assert tuple("".join(text for text, _ in side) for side in sides) == (before, after)
    same = ["".join(text for text, differs in side if not differs).split() for side in sides]
    assert "".join(same[0]) == "".join(same[1])
    for side in sides:
        assert all(one[1] != other[1] for one, other in pairwise(side))
        assert not any(differs and text != text.rstrip() for text, differs in side[:-1])


@pytest.mark.parametrize(
    ("texts", "marked"),
    [
        (("the القطة السوداء", "the القطة البيضاء"), (["السوداء"], ["البيضاء"])),
        (("वह किताब पढ़ता है", "वह किताबें पढ़ता है"), (["किताब"], ["किताबें"])),  # marks are no boundaries
        (("他喜欢猫。", "她喜欢小猫。"), (["他"], ["她", "小"])),
        (("猫がすき です", "犬がすき です"), (["猫"], ["犬"])),
        (("ﾈｺがすき", "ﾈﾊがすき"), (["ｺ"], ["ﾊ"])),
        (("고양이가 앉았다", "고양이는 앉았다"), (["고양이가"], ["고양이는"])),
        (("well-known facts", "well known facts"), (["-"], [])),
        (("a<b", "a&b"), (["<"], ["&"])),
        (("ab\nc", "ab c"), ([], [])),
        (("", "a  b"), ([], ["a  b"])),
    ],
)
def test_words_and_characters_that_differ(
    texts: tuple[str, str], marked: tuple[list[str], list[str]]
) -> None:
    for words, parts in zip(marked, mark_differences(*texts), strict=True):
        assert [part for part, differs in parts if differs] == words
