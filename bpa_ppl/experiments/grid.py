"""The cells of a study, in one order, and the draws of A."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import numpy as np

from bpa_ppl.experiments.methods import Method, Value
from bpa_ppl.experiments.study import Study
from bpa_ppl.nbest import Int64


class Cell(NamedTuple):
    """One adaptation of one method.

    Attributes:
        domain: its name.
        size: |A|.
        draw: the number of the draw of A, from 0 on.
        method: its name.
        setting: `name=value` where it is swept; empty elsewhere.
    """

    domain: str
    size: int
    draw: int
    method: str
    setting: str

    @property
    def name(self) -> str:
        """The name of the cell's files.

        >>> Cell("captions", 10, 0, "imh", "draws=500").name
        'captions.10.0.imh.draws=500'
        """
        return ".".join(map(str, self))


class Task(NamedTuple):
    """A cell, and the method with the settings that it runs with."""

    cell: Cell
    method: Method


def setting_label(name: str, value: Value) -> str:
    """Return how a swept setting is named in results.

    >>> setting_label("prior_variance", 0.1)
    'prior_variance=0.1'
    """
    return f"{name}={value}"


def tasks(study: Study) -> list[Task]:
    """Return all cells of a study, in the order of the results: domain, size, draw, method.

    >>> from pathlib import Path
    >>> from bpa_ppl.experiments.methods import named_methods
    >>> from bpa_ppl.experiments.study import Domain, ListFiles
    >>> files = ListFiles(Path("nbest"), (Path("ref"),))
    >>> domain = Domain("d", Path("moses.ini"), files, held_out=10)
    >>> known = named_methods()
    >>> study = Study((domain,), (known["imh"], known["mert"]), sizes=(10, 20), draws=1)
    >>> [task.cell.name for task in tasks(study)]
    ['d.10.0.imh.', 'd.10.0.mert.', 'd.20.0.imh.', 'd.20.0.mert.']
    """
    every = (
        Task(Cell(domain.name, size, draw, method.name, setting), method)
        for domain in study.domains
        for size in study.every_size
        for draw in range(study.draws)
        for setting, method in _variants(study, size)
    )
    # A value may stand in two sweeps: its cells run once.
    return list({task.cell: task for task in every}.values())


def _variants(study: Study, size: int) -> Iterator[tuple[str, Method]]:
    """Yield what runs at a size: the methods as they are, then each value of each sweep."""
    if size in study.sizes:
        yield from (("", method) for method in study.methods)
    named = {method.name: method for method in study.methods}
    for sweep in study.sweeps:
        for name in sweep.methods if size in sweep.sizes else ():
            for value in sweep.values:
                changed = named[name].with_settings({sweep.setting: value})
                yield setting_label(sweep.setting, value), changed


def random_source(study: Study, *what: str | int) -> np.random.Generator:
    """Return random numbers that depend on the study's seed and on `what` alone.

    >>> study = Study((), (), (10,), seed=1)
    >>> first, other, again = (random_source(study, "A", n).random() for n in (0, 1, 0))
    >>> first == again, first == other
    (True, False)
    """
    words = [crc32(word.encode()) if isinstance(word, str) else word for word in what]
    return np.random.default_rng([study.seed, *words])


def draw_sentences(study: Study, cell: Cell, sentences: int) -> Int64:
    """Return the places of A, (|A|,), among so many sentences: the same for every method.

    >>> study = Study((), (), (10,), replacement=False)
    >>> sorted(draw_sentences(study, Cell("d", 4, 0, "imh", ""), sentences=4).tolist())
    [0, 1, 2, 3]
    """
    source = random_source(study, "A", cell.domain, cell.size, cell.draw)
    return source.choice(sentences, size=cell.size, replace=study.replacement)


def seed_of(study: Study, cell: Cell) -> int:
    """Return the seed of the cell's sampler or tuner: it differs from draw to draw of A.

    >>> study, cell = Study((), (), (10,)), Cell("d", 10, 0, "imh", "")
    >>> seed_of(study, cell) == seed_of(study, cell._replace(method="mert"))
    True
    >>> seed_of(study, cell) == seed_of(study, cell._replace(draw=1))
    False
    """
    source = random_source(study, "method", cell.domain, cell.size, cell.draw)
    return int(source.integers(2**31))
