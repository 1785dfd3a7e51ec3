"""Sockeye's JSON lines: lists of one, costs, scores of several columns, fields passed through."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises

from bpa_ppl import NBest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning, UsageError
from bpa_ppl.formats.sockeye import Sockeye

GOLDEN = Path(__file__).parent / "golden"
AS_IS = Sockeye(costs=False)
Write = Callable[..., Path]


def line(identifier: Any, *scored: tuple[str, Any], **more: Any) -> str:
    fields = {"sentence_id": identifier, "translation": scored[0][0], "score": scored[0][1], **more}
    if len(scored) > 1:
        fields["translations"] = [text for text, _ in scored]
        fields["scores"] = [score for _, score in scored]
    return json.dumps(fields)


def test_the_golden_file() -> None:
    with pytest.warns(
        BpaWarning, match=r"sockeye\.json: scores are treated as costs: they are neg"
    ):
        nbest = read_nbest(GOLDEN / "sockeye.json", strict=True)
    assert nbest.sentence_ids.tolist() == [1, 2, 4]
    assert nbest.strings == ("a cat", 'the "cat"\u2028 ||| x', "", "été", "the summer")
    assert nbest.sizes.tolist() == [2, 1, 3]
    assert nbest.feature_names == ("score",)
    assert (
        nbest.features.tolist() == np.float32([[-0.25], [-0.5], [-1], [-1e-5], [-3], [-3]]).tolist()
    )


def test_what_is_passed_through_belongs_to_the_sentence(write: Write) -> None:
    path = write(
        line("doc-1", ("a", 1), ("b", 2), domain="news", meta={"x": [1]}),
        line("doc-2", ("c", 1), domain=None, meta=3),
    )
    nbest = read_nbest(path, format=AS_IS, first_id=1)
    assert nbest.sentence_ids.tolist() == [1, 2]
    assert nbest.sentence_extras == {
        "domain": ("news", None),
        "meta": ({"x": [1]}, 3),
        "id": ("doc-1", "doc-2"),
    }


@pytest.mark.parametrize(
    ("names", "totals", "extras"),
    [
        (["LM0"], None, {}),
        (["score[1]"], None, {}),
        (["score"], [[1]], {}),
        (["score"], None, {"scores": [1]}),
    ],
)
def test_what_cannot_be_written(
    tmp_path: Path, names: list[str], totals: Any, extras: dict[str, Any]
) -> None:
    nbest = NBest.from_lists([["a"]], [[[1.0]]], names, totals=totals, sentence_extras=extras)
    with raises(UsageError, "not-supported", parameter="format"):
        write_nbest(nbest, tmp_path / "out", format="sockeye")
    assert list(tmp_path.iterdir()) == []
