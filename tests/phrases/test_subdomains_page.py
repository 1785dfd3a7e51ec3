"""What subdomains are about: planted words, phrases and sources are found, and on the page."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import numpy as np
import pytest
from html_outline import Outline
from raising import raises

from bpa_ppl import UsageError
from bpa_ppl.phrases import NumberedText, Subdomains
from bpa_ppl.phrases.page import (
    along,
    associated_words,
    frequent_phrases,
    spread,
    subdomains_page,
    typical_words,
)

K, PAIRS = 3, 240
SHARED = ["le:the", "de:of", ",:,"]
#: Words of each subdomain, and their translations.
OWN = [
    ["loi:act", "article:section"],
    ["député:member", "question:question"],
    ["<b>chat</b>:<b>cat</b>", "&:&"],
]


def planted() -> Subdomains:
    """Return sentence pairs of three sources one after the other, translated word by word."""
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(K), PAIRS // K)
    sentences = [
        [str(rng.choice(OWN[z] if rng.random() < 0.4 else SHARED)) for _ in range(8)]
        for z in groups
    ]
    sides = [[[w.split(":")[side] for w in s] for s in sentences] for side in (0, 1)]
    settings = {"em": "hard", "log_likelihoods": [-10.0, -9.5]}
    return Subdomains(*map(NumberedText.of, sides), groups, np.full(K, 1 / K), settings)


PLANTED = planted()


def test_typical_words_are_those_that_were_planted() -> None:
    for side, part in (("source", 0), ("target", 1)):
        words = typical_words(PLANTED, side, 2)  # type: ignore[arg-type]
        assert list(map(set, words)) == [{w.split(":")[part] for w in own} for own in OWN]
    soft = Subdomains(PLANTED.source, PLANTED.target, PLANTED.posteriors(), PLANTED.weights)
    assert typical_words(soft, "source", 5) == typical_words(PLANTED, "source", 5)
    # A rare word is not typical.
    text = NumberedText.of([["often", "x"]] * 50 + [["once", "x"]] + [["other", "x"]] * 50)
    subdomains = Subdomains(text, text, [0] * 51 + [1] * 50, np.array([0.5, 0.5]))
    assert typical_words(subdomains, "source", 2)[0] == ["often"]


def test_shares_along_the_corpus() -> None:
    assert along(PLANTED, 6).tolist() == np.repeat(np.eye(K), 2, axis=0).tolist()
    assert along(PLANTED, 1000).shape == (PAIRS, K)


def test_frequent_phrases_are_those_of_a_loop() -> None:
    text = PLANTED.source
    counts: Counter[str] = Counter()
    for numbers in np.split(text.numbers, text.starts[1:-1]):
        words = [text.words[number] for number in numbers]
        for n in (1, 2, 3):
            counts.update(" ".join(words[k : k + n]) for k in range(len(words) - n + 1))
    expected = {phrase for phrase, count in counts.items() if count >= 9}
    phrases = frequent_phrases(text, 9)
    assert set(phrases) == expected
    assert len(phrases) == len(expected) > 20
    assert {len(phrase.split()) for phrase in phrases} == {1, 2, 3}


def test_words_are_associated_with_their_translations() -> None:
    pairs = dict(zip(*associated_words(PLANTED, 10), strict=True))
    assert pairs == dict(word.split(":") for word in [*SHARED, *chain.from_iterable(OWN)])
    assert associated_words(PLANTED, 10**6) == ([], [])


def test_the_page_shows_the_results() -> None:
    html = subdomains_page(PLANTED, title="Subdomains <of> & more", min_count=5, top=3)
    outline = Outline(html)
    sizes, words, *phrases, pairs, settings = outline.tables
    assert sizes[1:] == [[str(z), "80", "33.3%", "0.3333", "8.0", "8.0"] for z in range(K)]
    assert {row[0]: set(row[1].split()) for row in words[1:]} == {
        str(z): {word.split(":")[0] for word in own} for z, own in enumerate(OWN)
    }
    most, least, *_ = phrases
    assert len(phrases) == 4
    assert [row[2] for row in most[1:]] == ["0.000"] * 3
    assert {row[0] for row in least[1:]} <= set(frequent_phrases(PLANTED.source, 5))
    entropies = [float(row[2]) for row in least[1:]]
    assert entropies == sorted(entropies, reverse=True)
    assert entropies[-1] > 1
    assert pairs[0] == ["source", "target", "distance", "source most in", "target most in"]
    assert settings[1:] == [["em", "hard"], ["log_likelihoods", "-10, -9.5"]]
    assert "<b>chat" not in html
    assert "3 subdomains of 240 sentence pairs" in html


def test_phrases_of_pairs() -> None:
    pairs = ["le", "loi", "loi", "zut"], ["the", "act", "question", "gosh"]
    outline = Outline(subdomains_page(PLANTED, pairs=pairs, min_count=5))
    assert [row[0] for row in outline.tables[2][1:]] == ["loi", "le"]
    rows = outline.tables[6][1:]
    assert rows[0][:3] == ["loi", "question", "1.000"]
    assert [row[1] for row in rows] == ["question", "the", "act"]
    (count,), _ = spread(PLANTED, "source", ["le"])
    assert outline.column(3, "sentence pairs")["le"] == f"{count:.0f}"


def test_no_frequent_phrase_and_no_sentence() -> None:
    assert "None is frequent enough" in subdomains_page(PLANTED, min_count=10**6)
    empty = NumberedText.of([])
    Outline(subdomains_page(Subdomains(empty, empty, np.zeros(0, int), np.array([1.0]))))


@pytest.mark.parametrize("name", ["min_count", "top"])
def test_rejects_invalid_settings(name: str) -> None:
    with raises(UsageError, parameter=name):
        subdomains_page(PLANTED, **{name: 0})
