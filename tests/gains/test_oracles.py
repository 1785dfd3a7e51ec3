"""Oracles, compared with brute force using sacreBLEU, including ties."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sacrebleu.metrics as sacre
from hypothesis import given, settings
from hypothesis import strategies as st
from support.raising import raises

from bpa_ppl import NBest, adapt, from_lists
from bpa_ppl.diagnostics.ways.headroom import headroom
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.gains.gains import corpus_score
from bpa_ppl.gains.oracles import Oracles, oracles

SCORERS: dict[str, Callable[[], Any]] = {
    "ter": sacre.TER,
    "bleu": lambda: sacre.BLEU(tokenize="none", effective_order=True),
    "chrf": sacre.CHRF,
}
TEXTS = ("leaflet", "medical/adapt", "captions/adapt", "conversation/adapt", "out-of-domain/dev")


def brute_force(nbest: NBest, metric: str, scores: np.ndarray) -> tuple[list, list, list, list]:
    """Return index, score, ties and shares of each list by scoring every distinct text."""
    assert nbest.references is not None
    scorer, sign = SCORERS[metric](), -1 if metric == "ter" else 1
    index, best, tied, share = [], [], [], []
    for s in range(len(nbest)):
        texts, refs = nbest.texts(s), nbest.references[s]
        scored = {text: scorer.sentence_score(text, refs).score for text in set(texts)}
        values = [scored[text] for text in texts]
        best.append(sign * max(sign * value for value in values))
        among = [h for h, value in enumerate(values) if value == best[-1]]
        preference = scores[nbest.rows(s)]
        preferred = [h for h in among if preference[h] == max(preference[h] for h in among)]
        index.append(
            min(preferred, key=lambda h: (texts[h], nbest.features[nbest.rows(s)][h].tolist(), h))
        )
        tied.append(len(among))
        share += [(h in preferred) / len(preferred) for h in range(len(texts))]
    return index, best, tied, share


def assert_same(result: Oracles, expected: tuple[list, list, list, list]) -> None:
    found = (result.index.tolist(), result.score.tolist(), result.tied.tolist())
    assert found == expected[:3]
    undecided = any(0 < share < 1 for share in expected[3])
    share = None if result.share is None else result.share.tolist()
    assert share == (expected[3] if undecided else None)


def lists_of(texts: list[list[str]], references: list[list[str]], **arguments: Any) -> NBest:
    features = [np.zeros((len(t), 1)) for t in texts]
    return from_lists(texts, features, ["LM0"], references=references, **arguments)


LINE = st.lists(st.sampled_from("abcde"), max_size=7).map(" ".join)
SENTENCE = st.tuples(st.lists(LINE, min_size=1, max_size=8), st.lists(LINE, min_size=1, max_size=3))


@pytest.mark.parametrize("metric", SCORERS)
@settings(max_examples=15, deadline=None)
@given(text=st.lists(SENTENCE, min_size=1, max_size=5), seed=st.integers(0, 9))
def test_oracles_agree_with_brute_force(metric: str, text: list, seed: int) -> None:
    nbest = lists_of([t for t, _ in text], [r for _, r in text])
    scores = np.random.default_rng(seed).integers(0, 3, len(nbest.features)).astype(float)
    assert_same(oracles(nbest, metric, preference=scores), brute_force(nbest, metric, scores))
    order = np.zeros(len(nbest.features))
    result = oracles(nbest, metric, ties="shared", preference=scores)
    assert_same(result, brute_force(nbest, metric, order))


def test_adapt_scores_each_text_once() -> None:
    scored: list[str] = []

    def words(candidates: list[str]) -> list[float]:
        scored.extend(candidates)
        return [float(len(text.split())) for text in candidates]

    lists = from_lists([["a b", "a", "a b"], ["c", "d e"]], [[[1], [2], [3]], [[0], [1]]], ["F"])
    adapt(lists, {"F": 0.5}, gain=words, likelihood="risk", sampler="map")
    assert sorted(scored) == ["a", "a b", "c", "d e"]


@pytest.mark.parametrize(
    ("name", "metric", "count", "size"),
    [
        *((name, "ter", 4, 40) for name in TEXTS[::2]),
        (TEXTS[1], "bleu", 4, 40),
        (TEXTS[3], "chrf", 4, 40),
        *(pytest.param(name, "ter", 15, 500, marks=pytest.mark.slow) for name in TEXTS),
    ],
)
def test_real_lists_agree_with_brute_force(
    real_lists: Callable[[str], NBest], name: str, metric: str, count: int, size: int
) -> None:
    lists = real_lists(name)
    chosen = np.random.default_rng(1).choice(len(lists), count, replace=False)
    lists = lists.truncate(size).select(chosen)
    assert lists.totals is not None
    assert_same(oracles(lists, metric), brute_force(lists, metric, lists.totals))


@pytest.mark.parametrize("metric", ["ter", "bleu"])  # in threads, and in processes
def test_result_does_not_depend_on_workers(metric: str) -> None:
    rng = np.random.default_rng(5)
    texts = [[" ".join(rng.choice(list("abcd"), 6)) for _ in range(4)] for _ in range(40)]
    lists = lists_of(texts, [[t[0]] for t in texts])
    alone, together = oracles(lists, metric), oracles(lists, metric, jobs=2)
    for name in ("index", "score", "tied", "share"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))


@pytest.mark.parametrize("metric", SCORERS)
def test_headroom_agrees_with_brute_force(metric: str) -> None:
    rng = np.random.default_rng(11)
    texts = [[" ".join(rng.choice(list("abcde"), 7)) for _ in range(9)] for _ in range(12)]
    references = [[" ".join(rng.choice(list("abcde"), 7))] for _ in range(12)]
    lists, scores = lists_of(texts, references), rng.normal(size=108)
    room = headroom(lists, scores, metric)
    scorer, sign = SCORERS[metric](), -1 if metric == "ter" else 1
    worst = []
    for s, refs in enumerate(references):
        values = [sign * scorer.sentence_score(text, refs).score for text in texts[s]]
        among = [h for h in range(9) if values[h] == min(values)]
        worst.append(max(among, key=lambda h, s=s: scores[9 * s + h]))  # type: ignore[misc]
    chosen = (lists.best(scores), oracles(lists, metric, preference=scores).index, worst)
    expected = tuple(corpus_score(lists.chosen(c), references, metric) for c in chosen)
    assert (room.first_best, room.oracle, room.anti_oracle) == expected


@pytest.mark.parametrize("metric", ["ter", "chrf", "ter+bleu"])
def test_headroom_prints_scores_and_ties(metric: str) -> None:
    lists = lists_of([["a x c d", "a b c d e", "y x"]], [["a b c d e"]])
    header, *rows, ties = str(headroom(lists, gain=metric)).splitlines()[:5]
    names = dict.fromkeys([metric, "ter", "bleu"])
    assert header.split() == [*(name.upper() for name in names), "length"]
    choices = {"first-best": "a x c d", "oracle": "a b c d e", "anti-oracle": "y x"}
    for row, (name, text) in zip(rows, choices.items(), strict=True):
        scores = [corpus_score([text], [("a b c d e",)], metric).value for metric in names]
        length = f"{len(text.split()) / 5:.3f}"
        assert row.split() == [name, *(f"{score:.2f}" for score in scores), length]
    assert ties == "0 of 1 oracles tied; ties broken by canonical scores"


@pytest.mark.parametrize(
    ("arguments", "error", "code"),
    [
        ({"preference": [1.0]}, DataError, "wrong-length"),
        ({"preference": [np.nan] * 9}, DataError, "bad-number"),
        ({"ties": "last"}, UsageError, "unknown-name"),
        ({"gain": "rouge"}, UsageError, "unknown-name"),
        ({"jobs": 0}, UsageError, None),
    ],
)
def test_bad_arguments(toy: NBest, arguments: dict, error: Any, code: str | None) -> None:
    with raises(error, code, parameter=next(iter(arguments))):
        oracles(toy, **arguments)


def test_lists_without_references(toy: NBest) -> None:
    empty = lists_of([["a"]], [["a"]]).with_references([()])
    for call in (oracles, headroom):
        for bare in (empty, empty.without("references")):
            with raises(DataError, "missing-references", parameter="references"):
                call(bare)
    with raises(DataError, "no-data"):
        oracles(toy.select(np.zeros(3, dtype=bool)))


@pytest.mark.parametrize("metric", ["ter", "chrf"])
def test_lists_without_references_are_left_out_if_others_have_some(metric: str) -> None:
    texts = [["a cat", "the cat"], ["a dog", "dog"], ["cat", "a bird"]]
    lists = lists_of(texts, [["the cat"], [], ["a bird"]])
    result, whole = oracles(lists, metric), oracles(lists.select([0, 2]), metric)
    assert result.skipped == 1
    assert result.index[[0, 2]].tolist() == whole.index.tolist() == [1, 1]
    assert np.array_equal(result.score[[0, 2]], whole.score)
    assert np.isnan(result.score[1])
    assert headroom(lists, gain=metric).oracle == headroom(lists.select([0, 2]), gain=metric).oracle
    with raises(DataError, "missing-references", parameter="references"):
        oracles(lists[1:2], metric)
