"""Files of text: TREC, LETOR, the metrics shared task and icefall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import raises

from bpa_ppl import DataError
from bpa_ppl.extras.convert import icefall, letor, trec, wmt

RUN = ["q1 Q0 d11 1 13.5 bm25", "q1 Q0 d12 2 12 bm25", "q2\tQ0\t21\t1\t-8e-1\tbm25"]
QRELS = ["q1 0 d11 0", "q1 0 d13 2", "q2 0 21 -1"]


def test_a_run_of_trec_with_judgements() -> None:
    expected = [
        {
            "id": "q1",
            "candidates": [
                {"text": "d11", "features": {"score": 13.5}},
                {"text": "d12", "features": {"score": 12.0}},
            ],
        },
        {"id": "q2", "candidates": [{"text": "21", "features": {"score": -0.8}}]},
    ]
    assert trec(RUN) == expected
    judged = trec(RUN, qrels=QRELS)
    relevance = [[one["relevance"] for one in of["candidates"]] for of in judged]
    assert relevance == [[0, None], [-1]]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("q1 0 d11 0", "6 fields"),
        ("q1 Q0 d13 3 high bm25", "'high'"),
        ("q1 Q0 d13 3 nan bm25", "'nan'"),
        ("q1 Q0 d11 3 1 bm25", "d11 occurs twice"),
        ({"id": 0}, "6 fields"),
    ],
)
def test_other_lines_are_no_run(line: Any, shown: str) -> None:
    with raises(DataError, "bad-line", line=4, match=shown):
        trec([*RUN, line])


@pytest.mark.parametrize("line", ["q1 Q0 d11 1 13.5 bm25", "q1 0 d11 yes", "q1 0 d13 1"])
def test_other_lines_are_no_judgements(line: str) -> None:
    with raises(DataError, "bad-line", line=4, match="a judgement of TREC"):
        trec(RUN, qrels=[*QRELS, line])


def test_letor_is_read_as_by_scikit_learn(tmp_path: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    lines = ["2 qid:1 1:0.5 3:1e-2 #docid = GX1", "0 qid:1 2:-1.5", "# a comment", "1 qid:7 3:4 #x"]
    path = tmp_path / "train.txt"
    path.write_text("\n".join(lines))
    features, labels, queries = load_svmlight_file(str(path), query_id=True)
    lists = letor(lines)
    candidates = [one for of in lists for one in of["candidates"]]
    np.testing.assert_array_equal(
        [list(one["features"].values()) for one in candidates], features.toarray()
    )
    assert list(candidates[0]["features"]) == ["f1", "f2", "f3"]
    assert [one["relevance"] for one in candidates] == labels.tolist()
    sizes = [len(of["candidates"]) for of in lists]
    assert np.repeat([int(of["id"]) for of in lists], sizes).tolist() == queries.tolist()
    assert [one["text"] for one in candidates] == ["docid = GX1", "line 2", "x"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("2 1:0.5", "qid:"),
        ("2 qid:1 1:a", "'a'"),
        ("2 qid:1 1:2:3", "'2:3'"),
        ("good qid:1 1:1", "'good'"),
        ("2 qid:1 1:1 1:2", "twice"),
        ("2 qid:1 lm:1", "qid:"),
        ({}, "qid:"),
    ],
)
def test_other_lines_are_none_of_letor(line: Any, shown: str) -> None:
    with raises(DataError, "bad-line", line=2, match=shown):
        letor(["2 qid:1 1:0.5", line])


SCORES = ["sysA\t0.81", "sysA\tNone", "sysB\t0.79", "sysB\t0.52"]


def test_segment_scores_of_the_metrics_shared_task() -> None:
    lists = wmt(SCORES)
    assert [of["id"] for of in lists] == [0, 1]
    scores = [[one["score"] for one in of["candidates"]] for of in lists]
    assert scores == [[0.81, 0.79], [None, 0.52]]
    assert lists[0]["candidates"][0] == {"text": "sysA", "system": "sysA", "score": 0.81}


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("sysB\tgood", "'good'"),
        ("sysB\tnan", "'nan'"),
        ("en-de sysB 0.5", "2 fields"),
        ("sysC\t0.5", "sysA 2, sysB 2, sysC 1"),
    ],
)
def test_other_lines_are_no_segment_scores(line: str, shown: str) -> None:
    with raises(DataError, "bad-line", line=5, match=shown):
        wmt([*SCORES, line])


RESULTS = ["u-1:\tref=['A', 'CAT']", "u-1:\thyp=['A', \"CAT'S\"]", "u-2:\tref=[]", "u-2:\thyp=[]"]


def test_results_of_icefall() -> None:
    again = ["u-1:\tref=['A', 'CAT']", "u-1:\thyp=['CAT']"]
    assert icefall([*RESULTS, *again]) == [
        {
            "id": "u-1",
            "references": ["A CAT"],
            "candidates": [{"text": "A CAT'S"}, {"text": "CAT"}],
        },
        {"id": "u-2", "references": [""], "candidates": [{"text": ""}]},
    ]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("u-1:\tref=['B']", "second reference"),
        ("u-3:\thyp=['B']", "no reference of u-3"),
        ("u-1:\thyp=['A'", "a line reads"),
        ("u-1:\thyp=[1]", "a line reads"),
        ("u-1:\thyp=[a]", "a line reads"),
        ("u-1: hyp=['A']", "a line reads"),
        (7, "a line reads"),
    ],
)
def test_other_lines_are_no_results(line: Any, shown: str) -> None:
    with raises(DataError, "bad-line", line=5, match=shown):
        icefall([*RESULTS, line])
