"""Lists with many columns: names are looked up in tables, not compared one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from support.posteriors import name_weights
from support.raising import capture_notes

from bpa_ppl import Prior, Reranker, describe, extending, from_arrays, log_density
from bpa_ppl.lists import nbest
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.lists.nbest import demote_to_extras

COUNT = 1000


class Name(str):
    """A name that counts how often one is compared with another."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def names() -> list[str]:
    """Return new objects: an object is found in a tuple without a comparison if it is the same."""
    return [Name(f"c{k}") for k in range(COUNT)]


TABLE = np.arange(3.0 * COUNT).reshape(3, COUNT) ** 1.5 % 7
LISTS = from_arrays(["a", "b", "c"], TABLE, names(), 3)
DRAWS = name_weights(np.random.default_rng(0).normal(size=(4, 50, 1)), ("c0",))


def rerank() -> None:
    with capture_notes() as notes:
        Reranker(DRAWS, unchecked=True)(LISTS)
    assert [len(note.message) < 200 for note in notes] == [True]


def rerank_with_all() -> None:
    draws = name_weights(np.ones((4, 5, COUNT)), tuple(names()))
    reranker = Reranker(draws, unchecked=True)
    reranker(LISTS)
    reranker.choose(["a", "b", "c"], dict(zip(names(), TABLE.T, strict=True)))
    Reranker(draws, unchecked=True, without=names()[1:])


def prepare() -> None:
    for chosen in (names(), None):
        options = {"gain": "c0", "features": chosen, "exclude": names()[9:]}
        prepared = extending.prepare(LISTS, None, **options)
        assert prepared.match.names == tuple(f"c{k}" for k in range(1, 9))


def condition() -> None:
    prior = Prior.isotropic(dict.fromkeys(names(), 0.5), 0.1)
    assert prior.matched(names()[COUNT // 2 :]).mean.shape == (COUNT // 2,)


@pytest.mark.parametrize(
    "call",
    [
        rerank,
        rerank_with_all,
        prepare,
        condition,
        lambda: demote_to_extras(LISTS, names()),
        lambda: LISTS.with_features([f"d{k}" for k in range(COUNT)], TABLE),
        lambda: [read_column(LISTS, name) for name in names()],
        lambda: log_density(LISTS.with_sentence_extras(preferences=[[[0, 1]]])),
        lambda: describe(LISTS),
    ],
)
@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
def test_names_are_compared_a_few_times_each(call: Callable[[], Any]) -> None:
    Name.compared = 0
    call()
    assert Name.compared < 20 * COUNT  # COUNT²/2 at least where each is compared with the others


def test_incomplete_columns_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    extras = {f"e{k}": np.array([1.0, k, np.nan]) for k in range(COUNT // 4)}
    counting = Mock(wraps=nbest.take)
    monkeypatch.setattr(nbest, "take", counting)
    summaries = {column.name: column for column in describe(LISTS.with_extras(**extras)).columns}
    assert (summaries["e9"].within, summaries["e9"].missing) == (4.0, 1)
    assert counting.call_count < 20 * len(extras)


def test_the_names_count() -> None:
    Name.compared = 0
    assert names()[-1] in tuple(names())
    assert Name.compared == COUNT
