"""Scores side by side: the requested metric, TER, BLEU and the length."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu.metrics as sacre
from support.raising import raises

from bpa_ppl import DataError, from_lists
from bpa_ppl.metrics.scoreboard import compare_choices

TEXTS = [["a b c d e", "a b", "a b c d"], ["x y", "x y z w v"]]
REFERENCES = [("a b c d e",), ("x y z w",)]
LISTS = from_lists(
    TEXTS,
    [np.arange(3.0)[:, None], np.arange(2.0)[:, None]],
    ["LM0"],
    references=REFERENCES,
    extras={"comet": [[0.1, 0.2, 0.3], [0.4, 0.5]]},
)


@pytest.mark.parametrize("metric", ["ter", "bleu", "chrf", "comet"])
def test_scores_agree_with_sacrebleu(metric: str) -> None:
    board = compare_choices(LISTS, [1, 0], [2, 1], metric)
    assert (board.changed, board.sentences, board.before[0].metric) == (2, 2, metric)
    others = {"ter", "bleu"} - {metric}
    assert {score.metric for score in board.after[1:]} == others
    scorers = {"ter": sacre.TER(), "bleu": sacre.BLEU(tokenize="none", force=True)}
    streams = [[refs[0] for refs in REFERENCES]]
    for scores, texts in ((board.before, ["a b", "x y"]), (board.after, ["a b c d", "x y z w v"])):
        for score in scores:
            if score.metric in scorers:
                expected = scorers[score.metric].corpus_score(texts, streams).score
                assert score.value == pytest.approx(expected)
    assert board.changes[-1] == f"length {4 / 9:.3f} → {9 / 9:.3f}"
    names = [name if name == "comet" else name.upper() for name in (metric, *sorted(others)[::-1])]
    lines = str(board).splitlines()[1:]
    assert [line.split()[0] for line in lines[: len(names) + 1]] == [*names, "length"]


def test_only_requested_score_without_references() -> None:
    bare = LISTS.without("references")
    assert compare_choices(bare, [0, 0], [1, 1], "comet").changes == ["comet 0.2500 → 0.3500"]
    small = bare.with_extras(comet=1e-4 * np.asarray(bare.extras["comet"]))
    assert compare_choices(small, [0, 0], [1, 1], "comet").changes == ["comet 0.000025 → 0.000035"]
    with raises(DataError, "missing-references", parameter="references"):
        compare_choices(bare, [0, 0], [1, 1], "ter")
