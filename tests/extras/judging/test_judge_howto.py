"""The code of the how-to runs, with stand-ins for the other tools."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.judged_pairs import compared_lists

import bpa_ppl as bpa
from bpa_ppl.extending import observe, prepare

PAGE = Path(__file__).resolve().parents[3] / "docs" / "extras" / "judge.md"


CODE = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
SESSION, TASKS, EXPORT, LOGGED, RESPONSES, ADAPT = CODE
SIDES = {"left": [0, 1], "right": [1, 0]}


def annotation(by: Any, side: str | None, **fields: Any) -> dict[str, Any]:
    """Return an annotation of Label Studio, with a box for comments and a choice next to the pair.

    The fields are those of https://labelstud.io/guide/task_format.
    """
    controls: list[tuple[str, str, dict[str, Any]]] = [
        ("comment", "textarea", {"text": ["shorter"]}),
        ("better", "pairwise", {"selected": side}),
        ("reason", "choices", {"choices": ["style"]}),
    ]
    result = [
        {"id": f"a-{name}", "type": kind, "from_name": name, "to_name": "first", "value": value}
        for name, kind, value in controls
        if name != "better" or side is not None
    ]
    result += [{"from_id": "a-better", "to_id": "a-reason", "type": "relation", "labels": []}]
    status = {"was_cancelled": False, "ground_truth": False, "lead_time": 4.2}
    return {"id": 10, "completed_by": by, **status, "result": result, **fields}


def export_of(tasks: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return tasks as Label Studio exports them, and the answers of each rater by task."""
    both, skipped, odd = tasks[0]["data"], tasks[1]["data"], tasks[2]["data"]
    ann = {"id": 2, "email": "ann@example.org", "first_name": "Ann", "last_name": ""}
    exported: list[dict[str, Any]] = [
        {
            "id": 101,
            "data": both,
            "annotations": [annotation(1, "left"), annotation(ann, "right")],
            "drafts": [{"id": 3, "result": annotation(1, "right")["result"]}],
            "predictions": [{"result": annotation(1, "right")["result"]}],
            "cancelled_annotations": 0,
        },
        {
            "id": 102,
            "data": skipped,
            "annotations": [annotation(1, "right", was_cancelled=True), annotation(1, None)],
            "drafts": [],
            "cancelled_annotations": 1,
        },
        {"id": 103, "data": odd, "annotations": [annotation(1, "right"), annotation(1, None)]},
        {"id": 104, "data": tasks[3]["data"], "annotations": [annotation(ann, None, result=[])]},
    ]
    answers = {"1": [(both, "left"), (odd, "right")], "ann@example.org": [(both, "right")]}
    return exported, answers


def min_export_of(tasks: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return tasks as JSON-MIN, in the forms of several versions; `id` is that of the task."""
    better: list[Any] = ["left", [{"selected": "right"}], None]
    rows = []
    for number, side in enumerate(better):
        row = {**tasks[number]["data"], "id": 50 + number, "annotator": number % 2}
        row |= {"comment": "shorter", "annotation_id": 7, "lead_time": 1.0}
        rows.append(row if side is None else row | {"better": side})
    data = [task["data"] for task in tasks]
    return rows, {"0": [(data[0], "left")], "1": [(data[1], "right")]}


@pytest.fixture
def scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the code of the page has defined before the export is read."""
    monkeypatch.chdir(tmp_path)
    lists = compared_lists(count=20, size=3).without("score")
    bpa.write_nbest(lists.with_sources([f"source {s}" for s in range(20)]), "lists.jsonl")
    content = Path("lists.jsonl").read_text("utf-8")  # with the features that the page names
    content = content.replace('"quality"', '"logprob"').replace('"length"', '"comet"')
    Path("lists.jsonl").write_text(content, "utf-8")
    names: dict[str, Any] = {}
    exec(f"{SESSION}\n{TASKS}", names)
    return names


@pytest.mark.parametrize("form", [export_of, min_export_of])
def test_the_answers_of_label_studio(scope: dict[str, Any], form: Any) -> None:
    """Other controls, drafts, predictions and cancelled annotations do not count."""
    tasks = json.loads(Path("tasks.json").read_text("utf-8"))
    exported, expected = form(tasks)
    Path("export.json").write_text(json.dumps(exported), "utf-8")
    exec(EXPORT, scope)
    exec(ADAPT.partition("posterior =")[0], scope)
    found = [
        (place, entry["rater"], entry["candidates"])
        for place, entries in enumerate(scope["judged"].sentence_extras["preferences"])
        for entry in entries or ()
    ]
    assert sorted(found) == sorted(
        (data["list"], rater, [data["candidates"][i] for i in SIDES[side]])
        for rater, of in expected.items()
        for data, side in of
    )


def records(given: list[dict[str, str]]) -> Iterator[SimpleNamespace]:
    """Yield records as Argilla has them, of which two people answered each.

    A response has a status; that of a question which nobody answered is missing.
    """
    for place, record in enumerate(given):
        responses = [
            SimpleNamespace(value=value, user_id=user, status=status)
            for value, user, status in (
                ("second", "ann", "submitted"),
                ("tie", "bob", "submitted"),
                ("first", "eve", "draft"),
                (None, "eve", "discarded"),
            )
        ]
        metadata = {name: record[name] for name in ("list", "candidates")}
        given_answers = responses if place else []
        yield SimpleNamespace(metadata=metadata, responses=defaultdict(list, better=given_answers))


def test_the_answers_of_argilla(scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Drafts and discarded responses do not count, and `adapt` is given the raters of the rest."""
    adapted: list[bpa.NBest] = []
    monkeypatch.setattr(bpa, "adapt", lambda lists, likelihood: adapted.append(lists))
    scope["answers"] = {}
    exec(LOGGED, scope)
    scope["dataset"] = SimpleNamespace(records=records(scope["records"]))
    exec(RESPONSES, scope)
    exec(ADAPT, scope)
    assert {name: len(of) for name, of in scope["answers"].items()} == {"ann": 19, "bob": 19}
    assert {one.answer for one in scope["answers"]["ann"]} == {"second"}
    record = observe(prepare(adapted[0], None)).record()
    assert record.raters == {"ann": 19, "bob": 19}
    assert (record.comparisons["preferences"], record.comparisons["ties"]) == (19, 19)


def test_an_export_without_the_ids_of_lists_is_an_error(scope: dict[str, Any]) -> None:
    tasks = json.loads(Path("tasks.json").read_text("utf-8"))
    rows, _ = min_export_of(tasks)
    for row in rows:
        del row["list"]
    Path("export.json").write_text(json.dumps(rows), "utf-8")
    with pytest.raises(ValueError, match="export JSON"):
        exec(EXPORT, scope)
