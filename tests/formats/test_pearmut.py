"""Campaigns of human evaluation with Pearmut, and their annotations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises

from bpa_ppl import adapt, describe, point_weights, read_nbest
from bpa_ppl.errors import DataError

GOLDEN = Path(__file__).parent / "golden" / "pearmut-annotations.jsonl"
Write = Callable[..., Path]


def item(name: Any, *scores: Any, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an item of two systems, and the scores of an annotator."""
    return (
        {"item_id": name, "src": f"src {name}", "tgt": {m: f"{m} {name}" for m in "AB"}, **more},
        {model: {"score": score} for model, score in zip("AB", scores, strict=False)},
    )


def entry(user: str, place: Any, *items: tuple[Any, Any], reset: bool = False) -> dict[str, Any]:
    """Return a line of the log of annotations."""
    fields, scores = zip(*items, strict=True) if items else ((), ())
    answer = "__RESET__" if reset else list(scores)
    return {"user_id": user, "item_i": place, "item": list(fields), "annotation": answer}


def test_the_golden_file() -> None:
    lists = read_nbest(GOLDEN, strict=True)
    assert lists.ids == ("doc-1 0", "doc-1 1")
    assert lists.sources == ("Un chat", "Été")
    assert lists.references == (("A cat",), ("Summer",))
    assert [lists.texts(s) for s in range(2)] == [["a cat", "cat"], ["summer", ""]]
    assert lists.extras["system"] == ("A", "B", "A", "B")
    assert lists.feature_names == ("lm",)
    assert lists.features[:, 0].tolist() == [-1.5, -2, -0.25, 0]
    # The mean of two annotators, the score of one, and none.
    assert np.nan_to_num(lists.extras["score"], nan=-1).tolist() == [85, 50, 77.5, -1]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("tasks", [False, True])
def test_a_campaign_has_the_items_of_its_documents(
    write: Write, indent: int | None, tasks: bool
) -> None:
    documents = [[item("x")[0], item("y", info="z")[0]], [item(3)[0]]]
    form = [{"text": "Rate your expertise", "form": "number"}]
    data = [[*documents[:1], form], documents[1:]] if tasks else documents
    documents[1][0]["item_id"] = "3"  # ids are all integers, or all texts
    campaign = {
        "info": {"assignment": "task-based", "protocol": "ESA", "users": 2},
        "campaign_id": "wmt25",
        "data_welcome": [form, [item("tutorial")[0]]],
        "data": data,
    }
    lists = read_nbest(write(json.dumps(campaign, indent=indent)))
    assert lists.ids == ("x", "y", "3")
    assert lists.texts(2) == ["A 3", "B 3"]
    doc = lists.sentence_extras["doc"]
    assert doc[0] == doc[1] != doc[2]
    assert lists.sentence_extras["info"] == (None, "z", None)


def test_a_campaign_with_features_is_annotated_and_adapted_to(write: Write) -> None:
    """Pearmut copies the items of a campaign, with their features, into the annotations."""
    features = np.random.default_rng(0).normal(size=(3, 2, 2)).astype(np.float32).tolist()
    log = []
    for sentence, values in enumerate(features):
        named = [dict(zip(("lm", "qe.x"), value, strict=True)) for value in values]
        scores = [50 + 9 * value["lm"] for value in named]
        annotated = item(sentence, *scores, features=dict(zip("AB", named, strict=True)))
        log.append(entry("ann", sentence, annotated))
    judged = read_nbest(write(json.dumps({"bpa": log})))
    assert judged.features.tolist() == [value for values in features for value in values]
    assert "score" in str(describe(judged))
    weights = point_weights(adapt(judged, None, metric="score", sampler="map"))
    assert tuple(weights) == ("lm", "qe.x")
    assert weights["lm"] > abs(weights["qe.x"])


def test_the_last_answer_of_an_annotator_counts(write: Write) -> None:
    log = [
        entry("ann", 0, item(0, 10, 20)),
        entry("ann", "welcome_0", item("tutorial", 1, 1)),
        entry("bob", 0, item(0, 50, 60)),
        entry("ann", 1, item(1, 1, 2)),
        entry("ann", 0, item(0, 30, 40)),
        entry("ann", 1, reset=True),
        entry("bob", 1, item(1, 7, 8)),
    ]
    lists = read_nbest(write(*map(json.dumps, log)))
    scores = dict(zip(lists.ids, lists.extras["score"].reshape(-1, 2).tolist(), strict=True))
    assert scores == {0: [40, 50], 1: [7, 8]}


def test_annotators_of_other_systems_are_joined(write: Write) -> None:
    first, second = item(0, 10), item(0)
    second[0]["tgt"], second[1]["C"] = {"C": "c"}, {"score": 5}
    lists = read_nbest(
        write(json.dumps(entry("ann", 0, first)), json.dumps(entry("bob", 0, second)))
    )
    assert lists.extras["system"] == ("A", "B", "C")
    assert np.nan_to_num(lists.extras["score"], nan=-1).tolist() == [10, -1, 5]


def test_items_without_ids(write: Write) -> None:
    lines = [json.dumps({"src": f"s {i % 2}", "tgt": {"A": "a", "B": "b"}}) for i in range(4)]
    lists = read_nbest(write(*lines))
    assert (lists.ids, lists.sources) == ((0, 1), ("s 0", "s 1"))


def test_json_over_several_lines_that_is_broken(write: Write) -> None:
    text = json.dumps({"campaign_id": "c", "data": [[item(0)[0]]]}, indent=1)
    broken = write(text.replace('"B 0"', '"B 0" "c"'))
    line = next(n for n, part in enumerate(text.split("\n"), 1) if '"B 0"' in part)
    with raises(DataError, "bad-line", parameter="format", line=line):
        read_nbest(broken)
    with raises(DataError, "no-data"):
        read_nbest(write('{"campaign_id": "c", "data": []}'), format="pearmut")
