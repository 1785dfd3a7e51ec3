"""What subdomains are about: planted words, phrases and sources are found, and on the page."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from html_outline import Outline

from bpa_ppl import UsageError
from bpa_ppl.diagnostics.subdomains import (
    along,
    associated_words,
    frequent_phrases,
    spread,
    subdomains_page,
    typical_words,
)
from bpa_ppl.phrases import NumberedText, Subdomains

K, PAIRS = 3, 240
SHARED = ["le:the", "de:of", ",:,"]
#: Words of each subdomain, and their translations.
OWN = [
    ["loi:act", "article:section"],
    ["député:member", "question:question"],
    ["<b>chat</b>:<b>cat</b>", "&:&"],
]


def planted(seed: int = 4) -> Subdomains:
    """Sentence pairs of three sources one after the other, translated word by word."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(K), PAIRS // K)
    sentences = [
        [str(rng.choice(OWN[z] if rng.random() < 0.4 else SHARED)) for _ in range(8)]
        for z in groups
    ]
    sides = [[[w.split(":")[side] for w in s] for s in sentences] for side in (0, 1)]
    texts = [NumberedText.of(side) for side in sides]
    settings = {"em": "hard", "log_likelihoods": [-10.0, -9.5]}
    return Subdomains(texts[0], texts[1], groups, np.full(K, 1 / K), settings)


FOUND = planted()


def test_typical_words_are_those_that_were_planted() -> None:
    for side, part in (("source", 0), ("target", 1)):
        found = typical_words(FOUND, side, 2)  # type: ignore[arg-type]
        assert [set(words) for words in found] == [{w.split(":")[part] for w in o} for o in OWN]
    soft = Subdomains(FOUND.source, FOUND.target, FOUND.posteriors(), FOUND.weights)
    assert typical_words(soft, "source", 5) == typical_words(FOUND, "source", 5)


def test_a_rare_word_is_not_typical() -> None:
    text = NumberedText.of([["often", "x"]] * 50 + [["once", "x"]] + [["other", "x"]] * 50)
    found = Subdomains(text, text, [0] * 51 + [1] * 50, np.array([0.5, 0.5]))
    assert typical_words(found, "source", 2)[0] == ["often"]


def test_the_order_of_the_sources_is_seen() -> None:
    assert along(FOUND, 6).tolist() == np.repeat(np.eye(K), 2, axis=0).tolist()
    assert along(FOUND, 1000).shape == (PAIRS, K)


def test_frequent_phrases_are_those_of_a_loop() -> None:
    text = FOUND.source
    counts: dict[str, int] = {}
    for start, end in zip(text.starts, text.starts[1:], strict=False):
        words = [text.words[number] for number in text.numbers[start:end]]
        for n in (1, 2, 3):
            for place in range(len(words) - n + 1):
                phrase = " ".join(words[place : place + n])
                counts[phrase] = counts.get(phrase, 0) + 1
    expected = {phrase for phrase, count in counts.items() if count >= 9}
    found = frequent_phrases(text, 9)
    assert set(found) == expected
    assert len(found) == len(expected) > 20
    assert {len(phrase.split()) for phrase in found} == {1, 2, 3}


def test_words_are_associated_with_their_translations() -> None:
    pairs = dict(zip(*associated_words(FOUND, 10), strict=True))
    assert pairs == dict(word.split(":") for word in [*SHARED, *chain.from_iterable(OWN)])
    assert associated_words(FOUND, 10**6) == ([], [])


def test_the_page_shows_the_results() -> None:
    html = subdomains_page(FOUND, title="Subdomains <of> & more", min_count=5, top=3)
    outline = Outline(html)
    sizes, words, *phrases, pairs, settings = outline.tables
    assert sizes[1:] == [[str(z), "80", "33.3%", "0.3333", "8.0", "8.0"] for z in range(K)]
    assert {row[0]: set(row[1].split()) for row in words[1:]} == {
        str(z): {word.split(":")[0] for word in own} for z, own in enumerate(OWN)
    }
    most, least, *_ = phrases
    assert len(phrases) == 4
    assert [row[2] for row in most[1:]] == ["0.000"] * 3
    assert {row[0] for row in least[1:]} <= set(frequent_phrases(FOUND.source, 5))
    assert all(float(row[2]) > 1 for row in least[1:])
    assert [float(row[2]) for row in least[1:]] == sorted(
        (float(row[2]) for row in least[1:]), reverse=True
    )
    assert pairs[0] == ["source", "target", "distance", "source most in", "target most in"]
    assert settings[1:] == [["em", "hard"], ["log_likelihoods", "-10, -9.5"]]
    assert "<b>chat" not in html
    assert "3 subdomains of 240 sentence pairs" in html


def test_phrases_that_are_given() -> None:
    pairs = ["le", "loi", "loi", "zut"], ["the", "act", "question", "gosh"]
    outline = Outline(subdomains_page(FOUND, pairs=pairs, min_count=5))
    assert [row[0] for row in outline.tables[2][1:]] == ["loi", "le"]
    found = [row[:3] for row in outline.tables[6][1:]]
    assert found[0] == ["loi", "question", "1.000"]
    assert [row[1] for row in found] == ["question", "the", "act"]
    counted = spread(FOUND, "source", ["le"]).counts[0]
    assert outline.column(3, "occurrences")["le"] == f"{counted:.0f}"


def test_no_frequent_phrase_and_no_sentence() -> None:
    html = subdomains_page(FOUND, min_count=10**6)
    assert "None is frequent enough" in html
    empty = NumberedText.of([])
    nothing = Subdomains(empty, empty, np.zeros(0, int), np.array([1.0]))
    Outline(subdomains_page(nothing))


def test_invalid_settings_are_refused() -> None:
    for settings in ({"min_count": 0}, {"top": 0}):
        with pytest.raises(UsageError, match="at least 1"):
            subdomains_page(FOUND, **settings)


def test_the_page_is_the_same_each_time(tmp_path: Path) -> None:
    FOUND.save(tmp_path / "z.parquet")
    again = Subdomains.load(tmp_path / "z.parquet")
    assert subdomains_page(again, min_count=5) == subdomains_page(FOUND, min_count=5)
