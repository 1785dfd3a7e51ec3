"""A few inputs of each area of `fuzz.py`, and what counts as a failure there."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from support import (
    areas,  # noqa: F401
    attempts,
)
from support.attempts import AREAS, Area, attempt
from support.fuzzing import ACCEPTED, REFUSED, Failure

from bpa_ppl.errors import DataError

#: Areas with tests of their own, in `test_fuzz.py`, and one that takes seconds.
ELSEWHERE = {"lists", "weights", "extreme numbers"}
FEW = {"recipes": 4, "posteriors": 5, "sorted lines": 60, "judges": 4}


@pytest.mark.parametrize("name", [name for name in AREAS if name not in ELSEWHERE])
@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
def test_inputs_are_used_or_refused(name: str, tmp_path: Path) -> None:
    counts = Counter(attempt(name, 0, number, tmp_path) for number in range(FEW.get(name, 20)))
    assert counts[REFUSED]


@pytest.mark.slow
def test_extreme_numbers(tmp_path: Path) -> None:
    for number in range(2):
        assert attempt("extreme numbers", 0, number, tmp_path) in (ACCEPTED, REFUSED)


def raise_index_error() -> None:
    raise IndexError("list index out of range")


def raise_data_error() -> None:
    raise DataError("it is bad", "file")


def test_each_fault_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_SECONDS", 0.05)
    faults = [(raise_index_error, "IndexError"), (lambda: sum(range(10_000_000)), "after 0 s")]
    for work, says in faults:

        def area(rng: random.Random, folder: Path, work: object = work) -> str:
            return attempts.verdict(work)  # type: ignore[arg-type]

        monkeypatch.setitem(AREAS, "faulty", Area(area, 1))
        with pytest.raises(Failure, match=says):
            attempt("faulty", 0, 0, tmp_path)
    assert attempts.verdict(raise_data_error) == REFUSED
    with pytest.raises(Failure, match="without the file"):
        attempts.verdict(raise_data_error, tmp_path)
