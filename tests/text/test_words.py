"""Words of texts, and numbered texts."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from support.raising import raises

from bpa_ppl.errors import DataError
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
def test_invalid_texts(content: bytes, code: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with raises(DataError, code, line=line, match="a.txt"):
        join_texts([("first.txt", [[[], []]]), (str(path), iter_sentences(path))])
