"""Every metric agrees with another program: sacreBLEU, or JiWER for WER and CER.

The scores of corpora, of sentences, and of pairs of texts, and so the best text among several: as
the oracle of a list, and by the expected score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import as_file, files
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
import sacrebleu.metrics as sacre
from hypothesis import example, given
from hypothesis import strategies as st
from support.raising import raises

from bpa_ppl import NBest, UsageError, corpus_score, from_lists, read_nbest
from bpa_ppl.extending import Metric, Oracles, oracles
from bpa_ppl.gains.bleu import BLEU
from bpa_ppl.gains.chrf import CHRF
from bpa_ppl.gains.pairwise import TIE, make_pairs
from bpa_ppl.gains.ter import TER
from bpa_ppl.gains.wer import CER, WER

jiwer = pytest.importorskip("jiwer", reason="JiWER is not installed")

BLEU4 = sacre.BLEU(tokenize="none", effective_order=True, force=True)
#: The score of a text with references; higher is better.
SCORES: dict[str, Callable[[str, Sequence[str]], float]] = {
    "ter": lambda text, refs: -sacre.TER().sentence_score(text, refs).score,
    "bleu": lambda text, refs: BLEU4.sentence_score(text, refs).score,
    "chrf": lambda text, refs: sacre.CHRF().sentence_score(text, refs).score,
    "wer": lambda text, refs: -100 * jiwer.wer(refs[0], text),
    "cer": lambda text, refs: -100 * jiwer.cer(refs[0], text),
}
#: Metrics that have one reference, and lower scores for better texts.
ONE_REFERENCE, LOWER = ("wer", "cer"), ("ter", "wer", "cer")


# --- corpora --------------------------------------------------------------------------------------

CONFIGS = [
    *(TER(), TER(no_punct=True, case_sensitive=True), TER(normalized=True, asian_support=True)),
    *(BLEU(), BLEU(tokenize="13a", lowercase=True), BLEU(tokenize="char"), BLEU(tokenize="intl")),
    *(CHRF(), CHRF(word_order=2, beta=3)),
    *(WER(), CER()),
]
WORDS = ["the", "The", "cat,", "cat", "sat", ".", "mat", "'s", "on", "gé", "ほん", "e\u0301"]
BLANKS = st.sampled_from([" ", " ", " ", "  ", " \t", "\u00a0"])
LINE = BLANKS.flatmap(lambda blank: st.lists(st.sampled_from(WORDS), max_size=9).map(blank.join))
CORPUS = st.lists(st.tuples(LINE, st.lists(LINE, min_size=1, max_size=3)), min_size=1, max_size=6)


@given(CORPUS)
@example([("a b c d e", ["a b x d y"])])  # no match of orders 3 and 4: smoothed
@example([("a b", ["a b c d"])])  # no four-gram
@example([("x", ["a"])])
@example([("", ["a"])])
@example([("a", [""])])
@example([("", [""]), ("a", ["b"])])
def test_scores_and_signatures_of_corpora(corpus: list) -> None:
    for config in CONFIGS:
        assert_score_of_the_other_program(config, corpus)


def assert_score_of_the_other_program(config: Metric, corpus: list) -> None:
    if isinstance(config, WER):
        corpus = [(text, refs[:1]) for text, refs in corpus]
    texts, references = [text for text, _ in corpus], [refs for _, refs in corpus]
    counts = config.counts([[text] for text in texts], references)
    assert counts.shape == (len(texts), config.width), config
    result = corpus_score(texts, references, config)
    assert config.value(counts.sum(axis=0)) == pytest.approx(result.value, rel=1e-12), config
    if isinstance(config, WER):
        score = jiwer.cer if isinstance(config, CER) else jiwer.wer
        expected = 100 * score([refs[0] for refs in references], texts)
        assert result.value == pytest.approx(expected, rel=1e-12), config
        return
    settings: dict[str, Any] = config.settings()
    if isinstance(config, BLEU):
        settings["force"] = True  # no message about texts that end in a tokenised full stop
    other = getattr(sacre, type(config).__name__)(**settings)
    expected = other.corpus_score(texts, list(map(list, zip_longest(*references))))
    assert (result.value, result.name) == (expected.score, expected.name), config
    assert result.signature == str(other.get_signature())


# --- the best text of a list ----------------------------------------------------------------------


def brute_force(nbest: NBest, metric: str, scores: np.ndarray) -> tuple[list, list, list, list]:
    """Return index, score, ties and shares of each list by scoring every distinct text."""
    assert nbest.references is not None
    sign = -1 if metric in LOWER else 1
    index, best, tied, share = [], [], [], []
    for s in range(len(nbest)):
        texts, refs = nbest.texts(s), nbest.references[s]
        scored = {text: SCORES[metric](text, refs) for text in set(texts)}
        values = [scored[text] for text in texts]
        best.append(sign * max(values))
        among = [h for h, value in enumerate(values) if value == max(values)]
        preference = scores[nbest.rows(s)]
        preferred = [h for h in among if preference[h] == max(preference[h] for h in among)]
        index.append(
            min(preferred, key=lambda h: (texts[h], nbest.features[nbest.rows(s)][h].tolist(), h))
        )
        tied.append(len(among))
        share += [(h in preferred) / len(preferred) for h in range(len(texts))]
    return index, best, tied, share


def assert_same(result: Oracles, expected: tuple[list, list, list, list]) -> None:
    assert (result.index.tolist(), result.tied.tolist()) == (expected[0], expected[2])
    rounding = 1e-12 if result.gain in ONE_REFERENCE else 0.0
    assert result.score.tolist() == pytest.approx(expected[1], rel=rounding, abs=0.0)
    undecided = any(0 < share < 1 for share in expected[3])
    share = None if result.share is None else result.share.tolist()
    assert share == (expected[3] if undecided else None)


def lists_of(texts: list[list[str]], references: list[list[str]]) -> NBest:
    features = [np.zeros((len(t), 1)) for t in texts]
    return from_lists(texts, features, ["LM0"], references=references)


SHORT = st.lists(st.sampled_from("abcde"), max_size=7).map(" ".join)
LISTS = st.lists(
    st.tuples(st.lists(SHORT, min_size=1, max_size=8), st.lists(SHORT, min_size=1, max_size=3)),
    min_size=1,
    max_size=5,
)


@given(text=LISTS, seed=st.integers(0, 9))
def test_oracles_have_the_best_score(text: list, seed: int) -> None:
    """Ties are broken by a preference, or shared."""
    for metric in SCORES:
        count = 1 if metric in ONE_REFERENCE else 3
        nbest = lists_of([t for t, _ in text], [r[:count] for _, r in text])
        scores = np.random.default_rng(seed).integers(0, 3, len(nbest.features)).astype(float)
        assert_same(oracles(nbest, metric, preference=scores), brute_force(nbest, metric, scores))
        order = np.zeros(len(nbest.features))
        result = oracles(nbest, metric, ties="shared", preference=scores)
        assert_same(result, brute_force(nbest, metric, order))


@pytest.mark.parametrize(
    ("metric", "count", "size"),
    [
        *((metric, 4, 40) for metric in ("ter", "bleu", "chrf")),
        pytest.param("ter", 15, 500, marks=pytest.mark.slow),
    ],
)
def test_oracles_of_real_lists_have_the_best_score(
    leaflet: NBest, metric: str, count: int, size: int
) -> None:
    lists = leaflet
    chosen = np.random.default_rng(1).choice(len(lists), count, replace=False)
    lists = lists.truncate(size).select(chosen)
    assert lists.totals is not None
    assert_same(oracles(lists, metric), brute_force(lists, metric, lists.totals))


# --- pairs of texts -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text_lists() -> list[list[str]]:
    """Random texts, one empty and some that differ only in case or order, and those of lists."""
    rng, alike = np.random.default_rng(1), ["", "ab c", "Ab c", "c Ab"]
    words = ("Ab", "ab", "c", "def", "gé", "ほん", "hij")
    texts = {" ".join(rng.choice(words, size=rng.integers(1, 8))) for _ in range(22)}
    with as_file(files("bpa_ppl.demo_data")) as data:
        lists = read_nbest(data / "leaflet.nbest100.gz")[::120]
    return [alike + sorted(texts - {*alike}), *(list(one.strings)[:18] for one in lists)]


@pytest.mark.parametrize("metric", SCORES)
def test_scores_of_pairs_and_the_best_expected_score(
    text_lists: list[list[str]], metric: str
) -> None:
    rng = np.random.default_rng(7)
    for texts in text_lists:
        expected = np.array([[SCORES[metric](text, [ref]) for ref in texts] for text in texts])
        pairs = make_pairs(texts, metric)
        rows, columns = np.array([5, 0, 3, 1]), np.arange(len(texts))
        result = pairs.scores(rows, columns[::-1])
        np.testing.assert_allclose(result, expected[rows, ::-1], atol=1e-9)
        for concentration in np.repeat([0.02, 0.3, 5.0], 15):
            p = rng.dirichlet(np.full(len(texts), concentration))
            p[rng.uniform(size=len(p)) < 0.3] = 0.0
            p /= p.sum()
            best, score = pairs.best(p)
            assert score == pytest.approx((expected @ p).max(), abs=1e-8)
            assert (expected @ p)[best] >= (expected @ p).max() - TIE


@pytest.mark.parametrize("metric", SCORES)
def test_ties_of_pairs_are_broken_by_probability_then_position(metric: str) -> None:
    # A single probable text is the best; two mirrored texts are equally good.
    texts = ["x y", "a b", "b a", "z"]
    assert make_pairs(texts, metric).best(np.array([0.0, 0.5, 0.5, 0.0]))[0] == 1
    assert make_pairs(texts, metric).best(np.array([0.0, 0.25, 0.25, 0.5]))[0] == 3
    expected = (0, -50.0) if metric in LOWER else (1, 50.0)
    assert make_pairs(["", "a"], metric).best(np.array([0.5, 0.5])) == expected


def test_pairs_of_other_metrics_are_refused() -> None:
    with raises(UsageError, "unknown-name", parameter="metric"):
        make_pairs(["a"], "comet")
