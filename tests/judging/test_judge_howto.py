"""The code of the how-to runs, with stand-ins for the other tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.judged_pairs import compared_lists

import bpa_ppl as bpa

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "how-to" / "judge.md"


def answered(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return tasks as Label Studio exports them, with the first candidate selected."""
    result = [{"type": "pairwise", "from_name": "better", "value": {"selected": "left"}}]
    return [{**task, "annotations": [{"id": 1, "result": result}]} for task in tasks]


def records(given: list[dict[str, str]]) -> Iterator[SimpleNamespace]:
    """Yield records as Argilla has them, of which two people answered each."""
    for record in given:
        responses = [SimpleNamespace(value=value, user_id=value) for value in ("second", "tie")]
        metadata = {name: record[name] for name in ("list", "candidates")}
        yield SimpleNamespace(metadata=metadata, responses={"better": responses})


def test_the_code_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Answers of both tools arrive in the journal."""
    monkeypatch.chdir(tmp_path)
    lists = compared_lists(count=20, size=3).without("score")
    bpa.write_nbest(lists.with_sources([f"source {s}" for s in range(20)]), "lists.jsonl")
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    scope: dict[str, Any] = {}
    exec("\n".join(code[:2]), scope)
    tasks = json.loads(Path("tasks.json").read_text("utf-8"))
    Path("export.json").write_text(json.dumps(answered(tasks)), "utf-8")
    exec("\n".join(code[2:4]), scope)
    scope["dataset"] = SimpleNamespace(records=records(scope["records"]))
    exec(code[4], scope)
    answers = [judgement.answer for judgement in scope["session"].judgements]
    assert answers == ["first"] * 21 + ["second", "tie"] * 20
    assert "source" in capsys.readouterr().out
