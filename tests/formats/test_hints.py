"""What a message or a page suggests is done, and must then give the right lists."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.user_files import run_shell

from bpa_ppl import BpaError, NBest, read_nbest
from bpa_ppl.lists.columns import read_column

Content = tuple[list[list[str]], dict[str, list[float]]]
DOCS = Path(__file__).resolve().parents[2] / "docs"


def content(lists: NBest) -> Content:
    """Return the texts of each list, and the values of the columns of numbers."""
    texts = [lists.texts(s) for s in range(len(lists))]
    columns = {n: lists.features[:, k].tolist() for k, n in enumerate(lists.feature_names)}
    numbers = {n: of.tolist() for n, of in lists.extras.items() if isinstance(of, np.ndarray)}
    return texts, columns | numbers


def message_of(path: Any, **options: Any) -> str:
    with pytest.raises(BpaError) as caught:
        read_nbest(path, **options)
    return caught.value.message


def find_on_page(pattern: str, *page: str) -> str:
    """Return the only command of a page of the documentation that matches a pattern."""
    (command,) = re.findall(pattern, DOCS.joinpath(*page).read_text("utf-8"), re.MULTILINE)
    return command


# --- messages ------------------------------------------------------------------------------------


def test_lists_are_sorted_as_the_message_says(tmp_path: Path) -> None:
    path = tmp_path / "lists"
    path.write_text("1 ||| c ||| LM0= 1\n0 ||| a ||| LM0= 2\n1 ||| d ||| LM0= 3\n")
    (command,) = re.findall(r"`(sort .*?)`", message_of(path))
    run_shell(f"{command} < lists > sorted", tmp_path)
    assert content(read_nbest(tmp_path / "sorted")) == ([["a"], ["c", "d"]], {"LM0": [2, 1, 3]})


LINES = [f"{n} ||| t{n} ||| LM0= 1 ||| 1" for n in range(2)]


def test_the_first_id_is_set_as_the_message_says() -> None:
    (first,) = re.findall(r"with its format, (\S+)\)", message_of(LINES, format="auto:first_id=1"))
    assert read_nbest(LINES, format=first).ids == (0, 1)


# --- recipes of the documentation ----------------------------------------------------------------

LISTS: Content = ([["a cat", "cat"], ["hello", "hi"]], {"score": [-0.5, -1.5, -0.25, -2.0]})


def test_the_page_splits_a_table_without_a_header(tmp_path: Path) -> None:
    (tmp_path / "beams.tsv").write_text("a cat\t-0.5\ncat\t-1.5\nhello\t-0.25\nhi\t-2\n")
    run_shell(find_on_page(r"`(cut [^`]*)`", "lists.md"), tmp_path)
    lists = read_nbest(tmp_path / "texts", format=f"plain:list_size=2,scores={tmp_path}/score")
    assert content(lists) == LISTS


def test_the_page_puts_a_tab_after_the_utterance(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("u1 THE CAT\nu2 A DOG\n")
    run_shell(find_on_page(r"`(sed [^`]*text.tsv)`", "lists.md"), tmp_path)
    lists = read_nbest(["u2-1 -1.5 DOG", "u1-1 -2.5 CAT"], references=tmp_path / "text.tsv")
    assert lists.references == (("A DOG",), ("THE CAT",))


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
    (recipe,) = re.findall(
        r"```python\n(.*?groupby.*?)```", DOCS.joinpath("lists.md").read_text("utf-8"), re.DOTALL
    )
    scope: dict[str, Any] = {}
    exec(textwrap.dedent(recipe), scope)
    lists = scope["lists"]
    assert lists.feature_names == ("judge",)
    texts = ["the house is big", "a big house", "good morning", "good mourning"]
    assert [lists.text(row) for row in range(4)] == texts
    assert lists.features[:, 0] == pytest.approx([0.7, 0.4, 0.2, 0.9])
    assert read_column(lists, "rating").tolist() == [11 / 3, 3, 5, 1.5]
