"""What a message or a page suggests is done, and must then give the right lists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.raising import raises
from support.user_files import run_shell

from bpa_ppl import BpaError, DataError, NBest, read_nbest

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


def test_names_of_rows_of_r() -> None:
    with raises(DataError, "wrong-length", line=2, match="names of rows .R: row.names=FALSE"):
        read_nbest(["id\ttext\tlm", "1\t0\ta\t1"])


def test_cells_are_quoted_as_the_message_says() -> None:
    lines = ["id\ttext", "0\ta", '0\t"b\tc"']
    (setting,) = re.findall(r"as (tsv:quoted=true)", message_of(lines))
    assert content(read_nbest(lines, format=setting))[0] == [["a", "b\tc"]]


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
