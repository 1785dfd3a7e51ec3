"""Garbage is left alone while modules are imported, and looked for afterwards as before."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from bpa_ppl.lazily import uncollected

NEW = "bpa_ppl.a_module_that_nobody_has_loaded"


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    wanted = gc.isenabled()
    yield
    (gc.enable if wanted else gc.disable)()
    gc.unfreeze()


class Ring:
    """An object that only a search for garbage can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.mark.parametrize("wanted", [True, False])
def test_the_search_goes_on_as_the_program_had_it(wanted: bool) -> None:
    (gc.enable if wanted else gc.disable)()
    with pytest.raises(ImportError), uncollected(NEW), uncollected(NEW):
        _found_disabled()
    assert gc.isenabled() is wanted


def _found_disabled() -> None:
    assert not gc.isenabled()
    raise ImportError


def test_garbage_from_before_and_meanwhile_is_found_afterwards() -> None:
    gc.enable()
    before = weakref.ref(Ring())
    with uncollected(NEW):
        meanwhile = weakref.ref(Ring())
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert (before(), meanwhile()) == (None, None)


def test_what_is_loaded_already_changes_nothing() -> None:
    gc.enable()
    gc.collect()
    made = [Ring() for _ in range(100)]
    young = gc.get_count()[0]
    with uncollected("bpa_ppl"):
        assert gc.isenabled()
    assert gc.get_count()[0] >= young >= len(made)


def test_what_a_program_has_frozen_stays_frozen() -> None:
    gc.enable()
    gc.freeze()
    frozen = gc.get_freeze_count()
    with uncollected(NEW):
        pass
    assert gc.get_freeze_count() == frozen > 0
