"""The recipes for files of other programs make files that are read."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from support.user_files import run_shell

from bpa_ppl import DataError, read_nbest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "other-files.md").read_text(
    "utf-8"
)
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
ROWS = [{"id": 0, "text": "a cat", "lm": -1.5}, {"id": 0, "text": "cat", "lm": -2.5}]
FRAME = pd.DataFrame(ROWS)
CHOSEN = [[{"role": "user", "content": "q"}, {"role": "assistant", "content": of}] for of in "ab"]
SHOWN = r"convert the file as docs/how-to/other-files\.md shows"
#: The file that a recipe reads, how it is written, and the texts of the first list.
FILES = {
    "array.json": (lambda path: FRAME.to_json(path, orient="records", indent=1), ["a cat", "cat"]),
    "values.json": (
        lambda path: path.write_text(
            "\n".join(map(str, ROWS)).replace("'", '"').replace(",", ",\n")
        ),
        ["a cat", "cat"],
    ),
    "split.json": (lambda path: FRAME.to_json(path, orient="split", index=False), ["a cat", "cat"]),
    "columns.json": (lambda path: FRAME.to_json(path), ["a cat", "cat"]),
    "wide.csv": (
        lambda path: path.write_text("id,text.A,text.B,score.A,score.B\n0,a cat,cat,1,2\n"),
        ["a cat", "cat"],
    ),
    "systems.csv": (
        lambda path: path.write_text("id,source,base,large\n0,s,a cat,cat\n1,t,a,b\n"),
        ["a cat", "cat"],
    ),
    "cells.csv": (
        lambda path: pd.DataFrame({"chosen": [CHOSEN[0]], "rejected": [CHOSEN[1]]}).to_csv(
            path, index=False
        ),
        ["a", "b"],
    ),
}


def test_every_recipe_is_tested() -> None:
    assert sorted(re.findall(r"(?:open|read_\w+)\(\"([^\"]*)\"\)", "".join(PYTHON))) == sorted(
        FILES
    )


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
@pytest.mark.parametrize("name", FILES)
def test_a_recipe(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write, texts = FILES[name]
    write(tmp_path / name)
    with pytest.raises(DataError, match=SHOWN):
        read_nbest(tmp_path / name)
    (recipe,) = (one for one in PYTHON if f'"{name}"' in one)
    exec(recipe, {})
    (path,) = tmp_path.glob("lists.*")
    assert read_nbest(path).texts(0) == texts


def test_commands_of_the_page(tmp_path: Path) -> None:
    sort, cut, other, convert = re.findall(r"^((?:sort|cut|iconv) .*)$", PAGE, re.MULTILINE)
    lines = ["1 ||| c ||| LM0= 1", "0 ||| a ||| LM0= 2", "1 ||| d ||| LM0= 3"]
    (tmp_path / "scattered.nbest").write_text("\n".join([*lines, ""]))
    run_shell(sort, tmp_path)
    assert read_nbest(tmp_path / "sorted.nbest").texts(1) == ["c", "d"]
    (tmp_path / "beams.tsv").write_text("a cat\t-0.5\ncat\t-1.5\nhello\t-0.25\nhi\t-2\n")
    run_shell(f"{cut}\n{other}", tmp_path)
    lists = read_nbest(tmp_path / "texts", format=f"plain:list_size=2,scores={tmp_path}/score")
    assert (lists.texts(1), lists.feature_names) == (["hello", "hi"], ("score",))
    assert lists.features[:, 0].tolist() == [-0.5, -1.5, -0.25, -2]
    (tmp_path / "utf16.tsv").write_text("id\ttext\tlm\n0\tä\t1\n", encoding="utf-16")
    run_shell(convert, tmp_path)
    assert read_nbest(tmp_path / "utf8.tsv").texts(0) == ["ä"]
