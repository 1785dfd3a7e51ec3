"""The room between the first-best candidates of lists, and the best and worst ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sacrebleu import metrics as sacre
from support import gained_lists as gained
from support.raising import raises

from bpa_ppl import DataError, NBest, corpus_score, from_lists
from bpa_ppl.evaluation.headroom import headroom, headroom_won
from bpa_ppl.extending import oracles


def lists_of(texts: list[list[str]], **arguments: Any) -> NBest:
    return from_lists(texts, [np.zeros((len(t), 1)) for t in texts], ["LM0"], **arguments)


SCORERS = {
    "ter": sacre.TER(),
    "bleu": sacre.BLEU(tokenize="none", effective_order=True, force=True),
    "chrf": sacre.CHRF(),
}


@pytest.mark.parametrize("metric", SCORERS)
def test_the_headroom_is_between_the_best_and_the_worst_texts(metric: str) -> None:
    rng = np.random.default_rng(11)
    texts = [[" ".join(rng.choice(list("abcde"), 7)) for _ in range(9)] for _ in range(12)]
    references = [[" ".join(rng.choice(list("abcde"), 7))] for _ in range(12)]
    lists, scores = lists_of(texts, references=references), rng.normal(size=108)
    room = headroom(lists, scores, metric)
    worst, sign = [], -1 if metric == "ter" else 1
    for s, refs in enumerate(references):
        values = [sign * SCORERS[metric].sentence_score(text, refs).score for text in texts[s]]
        among = [h for h in range(9) if values[h] == min(values)]
        worst.append(max(among, key=lambda h, s=s: scores[9 * s + h]))  # type: ignore[misc]
    chosen = (lists.best(scores), oracles(lists, metric, preference=scores).index, worst)
    expected = tuple(corpus_score(lists.chosen(c), references, metric) for c in chosen)
    assert (room.first_best, room.oracle, room.anti_oracle) == expected


@pytest.mark.parametrize("metric", ["ter", "chrf", "ter+bleu"])
def test_headroom_prints_scores_and_ties(metric: str) -> None:
    lists = lists_of([["a x c d", "a b c d e", "y x"], ["b"]], references=[["a b c d e"], []])
    room = headroom(lists[:1], gain=metric)
    header, *rows, ties = str(room).splitlines()[:5]
    names = dict.fromkeys([metric, "ter", "bleu"])
    assert header.split() == ["choice", *(name.upper() for name in names), "length"]
    choices = {"first-best": "a x c d", "oracle": "a b c d e", "anti-oracle": "y x"}
    for row, (name, text) in zip(rows, choices.items(), strict=True):
        scores = [corpus_score([text], [("a b c d e",)], metric).value for metric in names]
        length = f"{len(text.split()) / 5:.3f}"
        assert row.split() == [name, *(f"{score:.2f}" for score in scores), length]
    assert ties == "- 0 of 1 oracles tied; ties broken by canonical scores"
    assert headroom(lists, gain=metric).oracle == room.oracle
    with raises(DataError, "missing-references", parameter="references"):
        headroom(lists[1:], gain=metric)


@pytest.mark.parametrize(
    ("unit", "first"), [(1e-300, "−3.0e−300"), (1e-7, "−0.00000030"), (1.0, "−3.0000")]
)
def test_the_headroom_of_a_column_of_any_scale_has_digits(unit: float, first: str) -> None:
    lists = lists_of([["a", "b", "a"], ["c", "d"]])
    lists = lists.with_extras(mqm=[x * unit for x in (-5, 0, -1, -1, -1)])
    lines = str(headroom(lists, gain="mqm")).splitlines()
    assert [line.split() for line in lines[:2]] == [["choice", "mqm"], ["first-best", first]]
    assert lines[-1] == "- column:mqm|better:higher"


def test_headroom_uses_judged_candidates() -> None:
    lists = gained.lists(1, 60, missing=True)
    scores = np.random.default_rng(2).normal(size=len(lists.features))
    room, loops = headroom(lists, scores, "mqm"), gained.GainLoops(lists)
    values = [of_list for _, of_list, _ in loops.lists]
    assert room.first_best.value == pytest.approx(np.mean(loops.by(scores)))
    assert room.oracle.value == pytest.approx(np.mean(list(map(max, values))))
    assert room.anti_oracle.value == pytest.approx(np.mean(list(map(min, values))))
    assert len(room.oracles) == 60
    assert f"{60 - len(values)} lists left out" in str(room)
    assert f" of {len(values)} oracles tied" in str(room)
    with raises(DataError, "no-data", match="mqm"):
        headroom(lists.with_extras(mqm=np.full(len(scores), np.nan)), gain="mqm")


def test_the_headroom_of_a_large_gain() -> None:
    lists = from_lists([["a", "b", "c"]] * 24, np.zeros((24, 3, 1)), ["lm"])
    choice, above = np.arange(24) % 3, np.random.default_rng(0).integers(-4096, 4096, 72) / 1024
    shares = [
        headroom_won(lists.with_extras(y=above + constant), choice, "y")
        for constant in (0.0, 2.0**42)
    ]
    assert shares[1] == pytest.approx(shares[0], abs=1e-12)
