"""A few inputs of each area of `fuzz.py`, and what counts as a failure there."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import attempts
import binary_areas
import program_areas
import pytest
import text_areas
from attempts import AREAS, Area, attempt, emptied
from fuzzing import ACCEPTED, REFUSED, Failure

from bpa_ppl.errors import DataError

#: Areas with tests of their own, in `tests/formats/test_fuzz.py`.
ELSEWHERE = {"lists", "weights"}
#: Areas that take seconds for each input.
SLOW = {"extreme numbers", "forks", "threads"}
INPUTS = 20
FEW = {"recipes": 4, "posteriors, crafted": 5, "posteriors, damaged": 4, "command lines": 4}


def test_areas_are_registered() -> None:
    modules = {area.attempt.__module__ for area in AREAS.values()}
    assert modules == {module.__name__ for module in (binary_areas, program_areas, text_areas)}


@pytest.mark.parametrize("name", [name for name in AREAS if name not in ELSEWHERE | SLOW])
@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
def test_inputs_are_used_or_refused(name: str, tmp_path: Path) -> None:
    inputs = range(FEW.get(name, INPUTS))
    counts = Counter(attempt(name, 0, number, emptied(tmp_path)) for number in inputs)
    assert counts[REFUSED]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW))
def test_inputs_of_slow_areas(name: str, tmp_path: Path) -> None:
    for number in range(2):
        assert attempt(name, 0, number, emptied(tmp_path)) in (ACCEPTED, REFUSED)


def raise_index_error() -> None:
    raise IndexError("list index out of range")


def raise_data_error() -> None:
    raise DataError("it is bad", "file")


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (raise_index_error, "IndexError"),
        (lambda: sum(range(10_000_000)), "after 0 s"),
    ],
)
def test_each_fault_is_found(
    work: object, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "FIRST_SECONDS", 0.05)

    def area(rng: random.Random, folder: Path) -> str:
        return attempts.verdict(work)  # type: ignore[arg-type]

    monkeypatch.setitem(AREAS, "faulty", Area("faulty", area, 1))
    with pytest.raises(Failure, match=says):
        attempt("faulty", 0, 0, tmp_path)


def test_the_file_of_an_error_is_checked(tmp_path: Path) -> None:
    assert attempts.verdict(raise_data_error) == REFUSED
    with pytest.raises(Failure, match="without the file"):
        attempts.verdict(raise_data_error, tmp_path)


def test_an_input_can_be_made_again() -> None:
    values = [[attempts.odd_json(random.Random(seed)) for seed in range(50)] for _ in range(2)]
    assert repr(values[0]) == repr(values[1])
    assert len(set(map(type, values[0]))) > 4
