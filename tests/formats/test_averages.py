"""Several judgements of a candidate become their mean by the recipe of docs/lists.md."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from bpa_ppl.lists.columns import read_column

PAGE = Path(__file__).resolve().parents[2] / "docs" / "lists.md"
RATINGS = """id,text,judge,worker,rating
s1,the house is big,0.7,w1,4
s1,the house is big,0.7,w2,5
s2,good morning,0.2,w1,5
s1,a big house,0.4,w1,3
s1,the house is big,0.7,w3,2
s2,good mourning,0.9,w1,1
s2,good mourning,0.9,w2,2
"""


def test_recipe_of_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ratings.csv").write_text(RATINGS)
    (recipe,) = re.findall(r"```python\n(.*?groupby.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    scope: dict[str, Any] = {}
    exec(textwrap.dedent(recipe), scope)
    lists = scope["lists"]
    assert lists.feature_names == ("judge",)
    texts = ["the house is big", "a big house", "good morning", "good mourning"]
    assert [lists.text(row) for row in range(4)] == texts
    assert lists.features[:, 0] == pytest.approx([0.7, 0.4, 0.2, 0.9])
    assert read_column(lists, "rating").tolist() == [11 / 3, 3, 5, 1.5]
