"""The compiled TER, compared with sacreBLEU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import metrics

from bpa_ppl.gains.ter import TER

Sentence = list[str]
PLAIN = TER()


def sacrebleu_edits(candidate: str, references: list[str], config: TER) -> tuple[int, float]:
    """Return sacreBLEU's edits and reference length of one sentence."""
    scorer = metrics.TER(
        config.normalized, config.no_punct, config.asian_support, config.case_sensitive
    )
    score = scorer.sentence_score(candidate, references)
    return score.num_edits, score.ref_length


def assert_same(candidates: list[str], references: list[list[str]], config: TER = PLAIN) -> None:
    counts = config.counts([[text] for text in candidates], references)
    pairs = zip(candidates, references, strict=True)
    assert counts.tolist() == [[*sacrebleu_edits(h, r, config)] for h, r in pairs]


def sentences(words: str, longest: int, shortest: int = 0) -> st.SearchStrategy[Sentence]:
    return st.lists(st.sampled_from(words.split()), min_size=shortest, max_size=longest)


@st.composite
def disturbed_sentence(draw: st.DrawFn, source: Sentence) -> Sentence:
    """Draw a sentence with moved blocks and replaced words, so that shifts reduce the edits."""
    result = list(source)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(result)))
        block = result[start : start + draw(st.integers(1, 13))]
        del result[start : start + len(block)]
        target = draw(st.integers(0, len(result)))
        result[target:target] = block
    for _ in range(draw(st.integers(0, 3)) if result else 0):
        result[draw(st.integers(0, len(result) - 1))] = draw(st.sampled_from("abx"))
    return result


@st.composite
def disturbed_pairs(draw: st.DrawFn, words: str, longest: int) -> tuple[str, str]:
    reference = draw(sentences(words, longest))
    return " ".join(draw(disturbed_sentence(reference))), " ".join(reference)


def test_references_are_tokenised_twice() -> None:
    config = TER(normalized=True)
    assert sacrebleu_edits("", ["..3"], config) == (3, 3.0)  # tokenised once, it would be `. .3`
    assert_same(["", "..3"], [["..3"], ["..3"]], config)


MANY = " ".join(f"w{i}" for i in range(60))


@settings(max_examples=25, deadline=None)
@given(sentences("a b c", 12), st.lists(sentences("a b c d", 12), min_size=1, max_size=3))
def test_random_words_with_several_references(hyp: Sentence, refs: list[Sentence]) -> None:
    assert_same([" ".join(hyp)], [[" ".join(ref) for ref in refs]])


@settings(max_examples=30, deadline=None)
@given(disturbed_pairs("a b c d e f g h", 25) | disturbed_pairs(MANY, 60))
def test_shifts_among_repeated_and_rare_words(pair: tuple[str, str]) -> None:
    assert_same([pair[0]], [[pair[1]]])


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(sentences(MANY, 90, shortest=60), st.integers(0, 90), st.integers(0, 40))
def test_long_sentences_have_the_edits_of_sacrebleu(words: Sentence, turn: int, cut: int) -> None:
    candidate = (words[turn:] + words[:turn])[cut:]
    assert_same([" ".join(candidate)], [[" ".join(words)]])


@settings(max_examples=25, deadline=None)
@given(sentences("a b c", 3, shortest=1), sentences("a b c d", 170, shortest=50))
def test_short_against_long_sentences_have_the_edits_of_sacrebleu(
    few: Sentence, many: Sentence
) -> None:
    assert_same([" ".join(few), " ".join(many)], [[" ".join(many)], [" ".join(few)]])


@pytest.mark.parametrize(
    ("size", "count"),
    [*(pytest.param(n, 3, marks=pytest.mark.slow) for n in (61, 62, 63, 64)), (63, 1), (64, 1)],
)
def test_references_as_long_as_an_integer_has_bits(size: int, count: int) -> None:
    rng = np.random.default_rng(size)
    reference = rng.integers(0, 50, size)
    candidates = [np.roll(reference[rng.random(size) > 0.2], 5) for _ in range(count)]
    candidates.append(rng.integers(0, 50, 30))
    texts = [" ".join(map(str, text)) for text in (*candidates, reference)]
    assert_same(texts[:-1], [texts[-1:]] * (count + 1))


@pytest.mark.parametrize("size", [20, 25, 30, 35])
def test_matches_outside_the_beam_do_not_count(size: int) -> None:
    words = np.random.default_rng(size).integers(0, 40, 62)
    candidate = words[-size:].copy()
    candidate[size // 2] = words[0]
    texts = [" ".join(map(str, text)) for text in (candidate, words)]
    assert_same(texts[:1], [texts[1:]])


@pytest.mark.parametrize(
    ("words", "sizes", "seed"),
    [("abc", (30, 30), 2), ("ab", (36, 45), 4)],
    ids=["more edits with fewer than 1,000", "fewer edits with more than 1,050"],
)
def test_the_number_of_shifts_is_limited_as_in_sacrebleu(
    words: str, sizes: tuple[int, int], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    candidate, reference = (" ".join(rng.choice(list(words), size=size)) for size in sizes)
    assert_same([candidate], [[reference]])


@pytest.mark.parametrize("distance", [50, 51])
@pytest.mark.parametrize("length", [10, 11])
def test_a_shift_is_limited_as_in_sacrebleu(distance: int, length: int) -> None:
    block = [f"b{i}" for i in range(length)]
    rest = [f"r{i}" for i in range(distance)]
    assert_same([" ".join(block + rest)], [[" ".join(rest + block)]])
    assert_same([" ".join(rest + block)], [[" ".join(block + rest)]])


@pytest.mark.parametrize("sizes", [(70, 70), (30, 160), (120, 1)])
def test_texts_wider_than_the_beam(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sum(sizes))
    words = rng.integers(0, 90, max(sizes))
    long = words.copy()
    long[::7], long[20:30] = -1, long[30:40].copy()  # substitutions and a repeated block
    texts = [
        " ".join(map(str, text[:size])) for text, size in zip((words, long), sizes, strict=True)
    ]
    assert_same([texts[0]], [[texts[1]]])


def test_memory_grows_with_the_length_of_texts() -> None:
    size = 400_000  # a table of all pairs of words would have 640 GB
    assert PLAIN.counts([["a " * size]], [("b " * size,)]).tolist() == [[size, size]]


def test_empty_texts_have_the_edits_of_sacrebleu() -> None:
    references = [["a b c"], [""], [""], ["", "a c"], ["a b "], ["", ""]]
    assert_same(["", "a b c", "", "a b", "  a \t b  ", ""], references)


TEXT = st.text(st.sampled_from("aAbΣ çé.,?!\"()-'s3&;好，。ひカ\u3000\xa0"), max_size=25)
CONFIGS = st.builds(TER, st.booleans(), st.booleans(), st.booleans(), st.booleans())


@settings(max_examples=25, deadline=None)
@given(TEXT, st.lists(TEXT, min_size=1, max_size=2), CONFIGS)
def test_all_settings(candidate: str, references: list[str], config: TER) -> None:
    assert_same([candidate], [references], config)


def test_sentences_are_independent() -> None:
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(list("abcdef"), size=size)) for size in rng.integers(0, 20, 60)]
    references = [texts[(i + 7) % 60 : (i + 7) % 60 + 1 + i % 3] for i in range(52)]
    assert_same(texts[:52], references)
