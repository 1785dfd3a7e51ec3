"""Any lists in every format that writes: they read back the same, or writing refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpa_ppl import NBest, concatenate, from_lists, iter_nbest, read_nbest, write_nbest
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.format import NBEST_FORMATS, NBestFormat
from bpa_ppl.formats.separated import Tsv

#: The formats that write, and those with other settings.
FORMATS: dict[str, NBestFormat] = {
    name: kind(list_size=2) if name == "plain" else kind()
    for name, kind in NBEST_FORMATS.items()
    if kind.write is not NBestFormat.write or kind.write_file is not NBestFormat.write_file
}
FORMATS["tsv, quoted"] = Tsv(quoted=True)
#: Formats without references, sources and ids that are texts.
LINES = ("moses", "marian", "plain")
ODD = [
    *("a cat", "", " ", " a", "a ", "the  cat", "é 日本", "a\tb", "a\nb", "a\r\nb", "a\r", "\n"),
    *('"a"', 'a "b", c', "'", "a,b", "NA", "1.5", "0 ||| b", "a ||| b", "|||", "= 1", "LM0= 1"),
    *("\0", "a\0b", "\ufeffa", "\u2028", "\x1c", "\x85", "[1]", "{}", "\\n", "#", "null", "nan"),
    "\U0001f600",
]
PLAIN = ["a cat", "the cat", "é 日本", "0", "a|b", "x=1"]
IDS: list[list[Any]] = [
    *([0, 1, 2, 3], [7, 3, 100, 4], ["007", "3", "04", "5"], ["0", "1", "2", "3"], [2, 3, 4, 5]),
    *(["doc 1", "doc-2", "a b ", "x"], ["é", 'a"b', "a,b", "1.0"], ["NA", "null", "x\ty", "z"]),
    *([0, 1, 2, 10**15], ["", "b", "c", "d"], ["1e3", "nan", "-1", "+2"], [" ", "a\n", "b", "c"]),
    *(["a", "b", "c", "\0"], ["\ufeff", "b", "c", "d"], ["True", "id", "text", "1_0"]),
]
NOTES = pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")


def some_lists(rng: np.random.Generator, names: list[str]) -> NBest:
    """Return one to four lists, of one size or several, with some of the columns that exist."""
    count = int(rng.integers(1, 5))
    has = rng.random(9) < 0.4
    texts = ODD if has[0] else PLAIN

    def text() -> str:
        return texts[rng.integers(len(texts))]

    sizes = rng.integers(1, 4, count) if has[1] else np.full(count, 2)
    rows = int(sizes.sum())
    features = rng.choice(np.float32([0, -0.0, 1, -1.5, 1e-45, 3e38, 0.1]), (rows, len(names)))
    ids = IDS[rng.integers(len(IDS))][:count]
    starts = np.cumsum(sizes)[:-1]
    references = [("a cat", text()), *((text(), text())[: rng.integers(3)] for _ in range(count))]
    lists = from_lists(
        np.split([f"{text()}{row}" if row % 2 else text() for row in range(rows)], starts),
        np.split(features, starts),
        names,
        sentence_ids=ids if isinstance(ids[0], int) else None,
        references=references[:count] if has[2] else None,
        sources=[text() for _ in range(count)] if has[3] else None,
        totals=np.split(rng.normal(size=rows).astype(np.float32), starts) if has[4] else None,
    )
    if isinstance(ids[0], str):
        lists = lists.with_sentence_extras(id=ids)
    if has[5]:
        lists = lists.with_sentence_extras(doc=[text() for _ in range(count)])
    if has[6]:
        lists = lists.with_extras(by=[text() for _ in range(rows)])
    if has[7]:
        lists = lists.with_extras(topic=[None if row % 2 else text() for row in range(rows)])
    if has[8]:
        judged = rng.choice(np.float32([np.nan, -0.5, 2]), rows)
        # Tables of a stream without a feature in common cannot be joined.
        judged[-1 if names else 0] = np.nan
        lists = lists.with_extras(mqm=judged)
    return lists


def content(lists: NBest, whole: bool) -> dict[str, Any]:
    """Return the columns of lists: of the whole, or of what formats of lines have."""
    columns = {
        "id": lists.ids if whole else tuple(lists.sentence_ids.tolist()),
        "text": [lists.texts(s) for s in range(len(lists))],
    }
    for column, values in zip(lists.feature_names, lists.features.T, strict=True):
        columns[column] = values.tobytes()
    if whole:
        columns |= {"references": lists.references, "sources": lists.sources}
        columns |= {"totals": None if lists.totals is None else lists.totals.tobytes()}
        extras = {**lists.extras, **lists.sentence_extras}
        extras.pop("id", None)
        columns |= {n: [None if v != v else v for v in of] for n, of in extras.items()}
    return columns


@NOTES
@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("names", [[], ["lm"], ["lm", "TM0[0]", "TM0[1]"]], ids=len)
def test_lists_read_back_or_are_refused(name: str, names: list[str], tmp_path: Path) -> None:
    """A column that would not read back is left out with a note."""
    format, path, whole = FORMATS[name], tmp_path / "lists", name not in LINES
    read = 0
    for seed in range(40):
        lists = some_lists(np.random.default_rng([seed, len(names)]), names)
        with capture_notes() as notes:
            try:
                write_nbest(lists, path, format=format)
            except (DataError, UsageError):
                continue
        expected = content(lists, whole)
        options: Any = {"format": format}
        if name == "plain":
            options["first_id"] = int(lists.sentence_ids[0])
        back = read_nbest(path, **options)
        actual = content(back, whole)
        for lost in expected.keys() - actual.keys():
            assert any(lost in note.message and "left out" in note.message for note in notes)
            del expected[lost]
        assert actual == expected, seed
        tables = concatenate(iter_nbest(path, chunk=1, **options), fill_missing=True)
        assert content(tables, whole) == actual, seed
        read += 1
    needs_no_features = name not in ("moses", "marian")
    assert (read > 8) == (needs_no_features if not names else name != "plain")


@pytest.mark.parametrize("name", [*LINES, "csv"])
def test_ids_that_are_texts(name: str, tmp_path: Path) -> None:
    """Formats of lines have none, and those of digits are no integers in tables of text."""
    ids, features = ("007", "08"), [] if name == "plain" else ["F0"]
    lists = from_lists([["a", "b"]] * 2, np.ones((2, 2, len(features))), features)
    lists = lists.with_sentence_extras(id=ids)
    with capture_notes() as notes:
        write_nbest(lists, tmp_path / "lists", format=FORMATS[name])
    back = read_nbest(tmp_path / "lists", format=FORMATS[name])
    assert back.sentence_ids.tolist() == ([7, 8] if name == "csv" else [0, 1])
    assert back.ids == (ids if name == "csv" else (0, 1))
    assert ["such as '007'" in note.message for note in notes] == [True] * (name != "csv")
