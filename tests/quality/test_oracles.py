"""Oracles, compared with brute force using sacreBLEU, including ties."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu.metrics as sacre
from hypothesis import given, settings
from hypothesis import strategies as st

from bpa_ppl import NBest, read_nbest
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.quality import TER, Oracles, corpus_score, headroom, oracles
from bpa_ppl.quality.scoring import distinct_lists

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
        own = scores[nbest.rows(s)]
        preferred = [h for h in among if own[h] == max(own[h] for h in among)]
        index.append(min(preferred, key=lambda h: (texts[h], nbest.features[nbest.rows(s)][h], h)))
        tied.append(len(among))
        share += [(h in preferred) / len(preferred) for h in range(len(texts))]
    return index, best, tied, share


def assert_same(result: Oracles, expected: tuple[list, list, list, list]) -> None:
    assert result.index.tolist() == expected[0]
    assert result.score.tolist() == expected[1]
    assert result.tied.tolist() == expected[2]
    undecided = any(0 < share < 1 for share in expected[3])
    assert (None if result.share is None else result.share.tolist()) == (
        expected[3] if undecided else None
    )


def lists_of(texts: list[list[str]], references: list[list[str]], **arguments: Any) -> NBest:
    features = [np.zeros((len(t), 1)) for t in texts]
    return NBest.from_lists(texts, features, ["LM0"], references=references, **arguments)


LINE = st.lists(st.sampled_from("abcde"), max_size=7).map(" ".join)
SENTENCE = st.tuples(st.lists(LINE, min_size=1, max_size=8), st.lists(LINE, min_size=1, max_size=3))


@pytest.mark.parametrize("metric", SCORERS)
@settings(max_examples=30, deadline=None)
@given(text=st.lists(SENTENCE, min_size=1, max_size=5), seed=st.integers(0, 9))
def test_oracles_agree_with_brute_force(metric: str, text: list, seed: int) -> None:
    nbest = lists_of([t for t, _ in text], [r for _, r in text])
    scores = np.random.default_rng(seed).integers(0, 3, len(nbest.features)).astype(float)
    assert_same(oracles(nbest, metric, preference=scores), brute_force(nbest, metric, scores))
    order = np.zeros(len(nbest.features))
    result = oracles(nbest, metric, ties="shared", preference=scores)
    assert_same(result, brute_force(nbest, metric, order))


@pytest.mark.parametrize("metric", SCORERS)
def test_example_agrees_with_brute_force(metric: str) -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "demo_data" / "leaflet"
    lists = read_nbest(f"{example}.nbest100.gz", references=f"{example}.ref")
    sample = lists.truncate(50).select(np.random.default_rng(8).choice(len(lists), 12))
    assert sample.totals is not None
    assert_same(oracles(sample, metric), brute_force(sample, metric, sample.totals))


@pytest.mark.parametrize("name", TEXTS)
def test_real_lists_agree_with_brute_force(real_lists: Callable[[str], NBest], name: str) -> None:
    lists = real_lists(name)
    chosen = np.random.default_rng(1).choice(len(lists), 8, replace=False)
    sample = lists.truncate(40).select(chosen)
    assert sample.totals is not None
    assert_same(oracles(sample), brute_force(sample, "ter", sample.totals))


@pytest.mark.parametrize("name", ["leaflet", "captions/adapt"])
@pytest.mark.parametrize("metric", ["bleu", "chrf"])
def test_other_metrics_on_real_lists(
    real_lists: Callable[[str], NBest], metric: str, name: str
) -> None:
    lists = real_lists(name)
    sample = lists.truncate(30).select(np.arange(0, len(lists), 83))
    assert sample.totals is not None
    assert_same(oracles(sample, metric), brute_force(sample, metric, sample.totals))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["leaflet", "conversation/adapt"])
def test_all_hypotheses_of_a_real_file(real_lists: Callable[[str], NBest], name: str) -> None:
    lists = real_lists(name)
    distinct, _ = distinct_lists(lists, TER())
    assert lists.references is not None
    ours = TER().sentences(distinct, lists.references, only_best=False)
    scorer = sacre.TER()
    theirs = [
        scorer.sentence_score(text, refs).score
        for texts, refs in zip(distinct, lists.references, strict=True)
        for text in texts
    ]
    assert ours.tolist() == theirs


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_whole_real_files(real_lists: Callable[[str], NBest], name: str) -> None:
    lists = real_lists(name)
    assert lists.totals is not None
    assert_same(oracles(lists), brute_force(lists, "ter", lists.totals))


def test_ties_are_broken_by_totals_or_preference() -> None:
    texts = [["a x", "a y", "a z", "b c d"]]
    lists = lists_of(texts, [["a b"]], totals=[[-3.0, -1.0, -1.0, 0.0]])
    result = oracles(lists)
    assert (result.index.tolist(), result.tied.tolist()) == ([1], [3])
    assert result.share is not None
    assert result.share.tolist() == [0.0, 0.5, 0.5, 0.0]
    preferred = oracles(lists, preference=[0.0, 0.0, 5.0, 9.0])
    assert (preferred.index.tolist(), preferred.share) == ([2], None)
    for shared in (oracles(lists, ties="shared"), oracles(lists_of(texts, [["a b"]]))):
        assert shared.share is not None
        assert shared.share.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.0])


def test_empty_references_give_ties() -> None:
    lists = lists_of([["a b", "c"], ["a", ""]], [[""], ["", ""]])
    result = oracles(lists, preference=[0.0, 1.0, 1.0, 0.0])
    assert (result.index.tolist(), result.score.tolist()) == ([1, 1], [100.0, 0.0])
    assert result.tied.tolist() == [2, 1]


def test_metric_policy_and_signature(toy: NBest) -> None:
    result = oracles(toy, "bleu", ties="shared")
    assert (len(result), result.metric, result.ties) == (3, "bleu", "shared")
    assert result.signature.startswith("nrefs:1|case:mixed|eff:yes|tok:none|smooth:exp|")


@pytest.mark.parametrize("metric", SCORERS)
def test_result_does_not_depend_on_workers(metric: str) -> None:
    rng = np.random.default_rng(5)
    texts = [[" ".join(rng.choice(list("abcd"), 6)) for _ in range(4)] for _ in range(40)]
    lists = lists_of(texts, [[t[0]] for t in texts])
    alone, together = oracles(lists, metric), oracles(lists, metric, jobs=2)
    for name in ("index", "score", "tied", "share"):
        np.testing.assert_array_equal(getattr(together, name), getattr(alone, name))


def test_progress_reaches_all_sentences() -> None:
    texts = [["a", "b"]] * 40
    calls: list[tuple[int, int]] = []
    oracles(
        lists_of(texts, [["a"]] * 40),
        progress=lambda done, total, note: calls.append((done, total)),
    )
    assert calls == [(16, 40), (32, 40), (40, 40)]


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


@pytest.mark.parametrize("metric", ["ter", "bleu", "chrf", "ter+bleu"])
def test_headroom_prints_scores_and_ties(metric: str) -> None:
    lists = lists_of([["a x c d", "a b c d e", "y x"]], [["a b c d e"]])
    room = headroom(lists, metric=metric)
    header, *rows, ties = str(room).splitlines()[:5]
    names = dict.fromkeys([metric.upper(), "TER", "BLEU", "length"])
    assert header.split() == list(names)
    choices = {"first-best": 0, "oracle": 1, "anti-oracle": 2}
    for row, (name, choice) in zip(rows, choices.items(), strict=True):
        text, references = lists.chosen([choice]), lists.references
        scores = {m.upper(): corpus_score(text, references, m) for m in (metric, "ter", "bleu")}
        expected = {title: f"{score.value:.2f}" for title, score in scores.items()}
        expected["length"] = f"{len(text[0].split()) / 5:.3f}"
        assert row.split() == [name, *(expected[title] for title in names)]
    assert ties == "0 of 1 oracles tied; ties broken by canonical scores"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"preference": [1.0]}, DataError, r"shape \(1,\) for 9 hypotheses"),
        ({"preference": [np.nan] * 9}, DataError, "not a finite number"),
        ({"ties": "last"}, UsageError, "unknown tie policy 'last'"),
        ({"metric": "wer"}, UsageError, "unknown metric 'wer'"),
        ({"jobs": 0}, UsageError, "jobs must be"),
    ],
)
def test_invalid_arguments(
    toy: NBest, arguments: dict, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        oracles(toy, **arguments)


def test_lists_without_references(toy: NBest) -> None:
    bare = lists_of([["a"]], [["a"]]).with_references([()])
    for call in (oracles, headroom):
        with pytest.raises(DataError, match="no reference"):
            call(bare)
    bare = NBest.from_lists([["a"]], [[[0.0]]], ["LM0"])
    with pytest.raises(DataError, match="lists have no references"):
        oracles(bare)
    with pytest.raises(DataError, match="no sentences"):
        oracles(toy.select(np.zeros(3, dtype=bool)))
