"""A few inputs of each area of `fuzz.py`, and what counts as a failure there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support import attempts
from support.attempts import AREAS, Area, attempt
from support.fuzzing import ACCEPTED, REFUSED, Failure

from bpa_ppl.errors import DataError

#: They have areas of all packages.
areas = pytest.importorskip("support.areas", reason="bpa_ppl.extras is not installed")
#: Areas with tests of their own, in `test_fuzz.py`, and one that takes seconds.
ELSEWHERE = {"lists", "weights", "extreme numbers"}
FEW = {
    "references": 60,
    "own models": 3,
    "packed": 3,
    "recipes": 4,
    "posteriors": 5,
    "sorted lines": 60,
    "judges": 2,
}
RARELY_ACCEPTED = {"packed", "requests", "recipes", "tables", "judges"}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in AREAS if name not in ELSEWHERE])
@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
def test_inputs_are_used_or_refused(name: str, tmp_path: Path) -> None:
    counts = Counter(attempt(name, 0, number, tmp_path) for number in range(FEW.get(name, 20)))
    assert counts[REFUSED]
    assert counts[ACCEPTED] or name in RARELY_ACCEPTED


@pytest.mark.slow
def test_extreme_numbers(tmp_path: Path) -> None:
    for number in range(2):
        assert attempt("extreme numbers", 0, number, tmp_path) in (ACCEPTED, REFUSED)


def raise_index_error() -> None:
    raise IndexError("list index out of range")


def raise_data_error() -> None:
    raise DataError("it is bad", "file")


def use_again() -> None:
    with attempts.must_accept():
        raise_data_error()


@pytest.mark.parametrize(
    ("work", "names_file", "result"),
    [
        (raise_index_error, False, "IndexError"),
        (lambda: sum(range(10_000_000)), False, "after 0 s"),
        (use_again, False, "refused: file: it is bad"),
        (raise_data_error, True, "without the file"),
        (raise_data_error, False, REFUSED),
        (lambda: REFUSED, False, REFUSED),
        (list, False, ACCEPTED),
    ],
)
def test_the_verdict_on_an_input(
    work: Callable[[], str | None],
    names_file: bool,
    result: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "FIRST_SECONDS", 0.05)
    monkeypatch.setitem(AREAS, "one", Area(lambda rng, folder: work(), 1, names_file))
    if result in (ACCEPTED, REFUSED):
        assert attempt("one", 0, 0, tmp_path) == result
    else:
        with pytest.raises(Failure, match=result):
            attempt("one", 0, 0, tmp_path)
