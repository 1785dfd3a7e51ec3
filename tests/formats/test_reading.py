from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from support.raising import raises
from support.table_content import table_content

from bpa_ppl import NBest, iter_nbest, read_nbest, read_weights, write_nbest
from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.weights import match

Write = Callable[..., Path]


def line(identifier: int, text: str = "a cat", value: float = -1.5) -> str:
    return f"{identifier} ||| {text} ||| LM0= {value} ||| {value}"


def assert_same(one: NBest, other: NBest) -> None:
    """Assert that two tables have the same bits, apart from references and extras."""
    left_out = ("references", "sources", "extras", "sentence_extras", "totals_normalised")
    assert table_content(one, *left_out) == table_content(other, *left_out)


def test_ids_may_come_in_any_order_but_only_once(write: Write) -> None:
    ids = [3, 7, 1, 9, 2, 8]
    assert read_nbest(write(*map(line, ids))).sentence_ids.tolist() == ids
    for place, again in enumerate(ids[:-1], 1):
        with raises(DataError, line=7, match=f"sentence {again}; .* line {place}:"):
            read_nbest(write(*map(line, ids), line(again)))


class TestReferences:
    def test_they_belong_to_ids_not_to_positions(self, write: Write) -> None:
        path = write(line(2), line(0))
        references = write("zero", "one", "two", name="ref")
        with pytest.warns(BpaWarning, match="lists for 2 sentences, but .*ref has 3 references"):
            nbest = read_nbest(path, references=references)
        assert nbest.references == (("two",), ("zero",))

    def test_texts_alone_are_names_of_files(self, write: Write) -> None:
        with raises(UsageError, "missing-file", parameter="references"):
            read_nbest(write(line(0), line(1)), references=["the cat", "a dog"])


class TestRealLists:
    @pytest.mark.parametrize("name", ["leaflet", "medical/adapt", "captions/adapt"])
    def test_totals_are_weights_times_features(
        self, real_lists: Callable[[str], NBest], demo_data: Path, name: str
    ) -> None:
        nbest = real_lists(name)
        weights = match(read_weights(demo_data / "moses.ini"), nbest).values
        # Everything is printed with six significant digits.
        ours, totals = nbest.scores(weights), nbest.totals
        assert totals is not None
        products = np.abs(nbest.features.astype(np.float64)) @ np.abs(weights)
        assert np.all(np.abs(ours - totals) <= 5e-6 * (2 * products + np.abs(totals)))

    def test_a_fifth_field_is_the_segmentation(self, shared_data: Path, tmp_path: Path) -> None:
        folder = shared_data / "phrases/nbest-seg"
        segmented = next(iter_nbest(folder / "captions.adapt.nbest.xz", chunk=10))
        assert segmented.extras["segmentation"][0] == "0-1=0-1 2=2 3=3 4=4 5=5 6=6 7-8=7-8"
        write_nbest(segmented, tmp_path / "again")
        again = read_nbest(tmp_path / "again")
        assert again.extras == segmented.extras
        assert_same(again, segmented)
        assert_same(segmented, next(iter_nbest(shared_data / "captions/adapt.nbest.gz", chunk=10)))


def test_reading_needs_no_large_library(demo_data: Path) -> None:
    code = (
        "import sys, bpa_ppl as bpa; bpa.read_nbest(sys.argv[1]); print([m for m in "
        "('jax', 'arviz', 'numba', 'matplotlib', 'scipy', 'pandas') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, demo_data / "leaflet.nbest100.gz"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


class TestWhatLooksWrongWithReferences:
    """Told at the end of a file, once; the lists are read all the same."""

    def test_references_of_another_text(self, write: Write) -> None:
        path = write(*(line(i, f"the cat {i}") for i in range(20)))
        strange = [(f"Rekord {i + 100}",) if i > 5 else ("The dog",) for i in range(20)]
        match = "14 of 20 lists have no word in common .* the text"
        with pytest.warns(BpaWarning, match=match) as caught:
            list(iter_nbest(path, references=strange, chunk=3))
        assert len(caught) == 1
        strange[6:11] = [("A CAT",)] * 5
        with warnings.catch_warnings(action="error"):
            read_nbest(path, references=strange)

    @pytest.mark.parametrize(
        ("order", "expected"),
        [
            (range(10), None),
            (range(1, 11), "fit the references of the sentence before theirs better"),
            ([0, *range(9)], "fit the references of the sentence after theirs better"),
            ([*range(5, 30), *range(5)], "barely better than those of neighbouring"),
        ],
    )
    def test_references_in_another_order(
        self, write: Write, demo_data: Path, order: Sequence[int], expected: str | None
    ) -> None:
        texts = (demo_data / "leaflet.ref").read_text().splitlines()
        path = write(*(line(i, f"{text} indeed") for i, text in enumerate(texts[: len(order)])))
        references = [(texts[i],) for i in order]
        with pytest.warns(BpaWarning, match=expected) if expected else nullcontext():
            read_nbest(path, references=references)

    def test_other_unicode_forms(self, write: Write) -> None:
        expected = "references in the text are NFD .* candidates NFC"
        with pytest.warns(BpaWarning, match=expected):
            read_nbest(write(line(0, "un caf\u00e9")), references=[("un cafe\u0301",)])
