"""Random tables and declared roles: what is read is what pandas reads with the same types.

Pandas reads texts as texts (`dtype=str, keep_default_na=False`), and a feature as `float64`. Where
a value of a feature is missing there, or is no finite number, reading is an error.
"""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bpa_ppl import DataError, concatenate, iter_nbest, read_nbest
from bpa_ppl.lists.columns import read_column

TABLES = 40  # of each kind
NAMES = ["lm", "Unnamed: 0", "a b", "tm[0]", "tm[1]", "é", 'q"x', "rating", "year", "1"]
TEXTS = [
    "a",
    "",
    "NA",
    "nan",
    "1",
    "007",
    " x ",
    'say "a"',
    "x,y",
    "x;y",
    "2\nlines",
    "日本",
    "85%",
]
CELLS = ["0", "-1.5", "2", "1e-3", ".5", "1E+5", "00.25", "-0", "123456789.125", "1."]
ODD_CELLS = ["", "NA", "85%", "3/5", "1,5", "yes", "1_0", "inf", "0x1", "1e400", "2024-01-05", "x"]


class Table:
    """A table with random columns, of which some are declared features.

    Attributes:
        columns: by name, in random order.
        features: the names of those that are declared.
    """

    def __init__(self, seed: int, values: list[Any], odd: list[Any]):
        rng = np.random.default_rng([seed, len(values)])
        rows = int(rng.integers(1, 9))
        ids = ["0", "3", "12"] if rng.random() < 0.5 else ["d1", "007", "x y"]
        self.columns: dict[str, list[Any]] = {
            "id": sorted(map(str, rng.choice(ids, rows))),
            "text": [TEXTS[k] for k in rng.integers(len(TEXTS), size=rows)],
        }
        names = [str(name) for name in rng.permutation(NAMES)[: rng.integers(1, 6)]]
        self.features = [name for name in names if rng.random() < 0.5]
        for name in names:
            of = values if name in self.features or rng.random() < 0.5 else TEXTS
            self.columns[name] = [of[k] for k in rng.integers(len(of), size=rows)]
            if rng.random() < 0.2:
                self.columns[name][rng.integers(rows)] = odd[rng.integers(len(odd))]
        order = [str(name) for name in rng.permutation(list(self.columns))]
        self.columns = {name: self.columns[name] for name in order}

    def rows(self) -> list[dict[str, Any]]:
        """Return a record for each row."""
        lists = zip(*self.columns.values(), strict=True)
        return [dict(zip(self.columns, row, strict=True)) for row in lists]

    def check(self, read: Any, given: Any, frame: pd.DataFrame, **options: Any) -> bool:
        """Compare lists with what pandas reads, features as float64 where it can; or an error.

        Args:
            read: reads lists.
            given: what it reads.
            frame: what pandas reads.
            options: further arguments of `read`.
        """
        odd = [name for name in self.features if not is_complete(frame[name])]
        if odd:
            with pytest.raises(DataError) as caught:
                read(given, features=self.features, **options)
            assert any(f"{name} is " in caught.value.message for name in odd)
            return False
        lists = read(given, features=self.features, **options)
        texts = [lists.text(row) for row in range(len(lists.features))]
        ids = np.repeat(np.array([str(name) for name in lists.ids], object), lists.sizes)
        assert (ids.tolist(), texts) == (frame["id"].tolist(), frame["text"].tolist())
        assert list(lists.feature_names) == [n for n in self.columns if n in self.features]
        for name in self.features:
            np.testing.assert_array_equal(read_column(lists, name), frame[name])
        others = [n for n in self.columns if n not in (*self.features, "id", "text")]
        assert list(lists.extras) == others
        for name in others:
            assert [*lists.extras[name]] == [None if of != of else of for of in frame[name]]
        return True


def is_complete(column: Any) -> bool:
    """Return whether all values are finite numbers of at most 1e60."""
    return column.dtype == np.float64 and bool((np.abs(column.to_numpy()) <= 1e60).all())


@pytest.mark.usefixtures("blocks")
def test_tables_of_text() -> None:
    complete, count = 0, 3 * TABLES // 2
    for seed in range(count):
        separator, table = ",;\t"[seed % 3], Table(seed, CELLS, ODD_CELLS)
        out = io.StringIO()
        writer = csv.writer(out, delimiter=separator, lineterminator="\n", quoting=csv.QUOTE_ALL)
        writer.writerows([table.columns, *(row.values() for row in table.rows())])
        given = out.getvalue()
        options: dict[str, Any] = {"sep": separator}
        frame = pd.read_csv(io.StringIO(given), dtype=str, keep_default_na=False, **options)
        for name in frame:
            if name in table.features:
                try:
                    numbers = pd.read_csv(io.StringIO(given), dtype={name: np.float64}, **options)
                except ValueError:
                    continue
                frame[name] = numbers[name]
            elif name not in ("id", "text"):
                frame[name] = frame[name].replace("", np.nan)
        complete += table.check(read_nbest, [given], frame)
        table.check(
            lambda *of, **more: concatenate(iter_nbest(*of, **more)), [given], frame, chunk=1
        )
    assert count / 3 < complete < count
