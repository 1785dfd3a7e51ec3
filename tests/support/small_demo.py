"""A small part of the demo's data, for tests that run commands."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from unittest.mock import patch

import pytest


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep scores and compiled programs out of the user's cache."""
    with patch.dict(os.environ, BPA_PPL_CACHE=str(tmp_path_factory.mktemp("cache"))):
        yield


@lru_cache(maxsize=1)
def _read_lists() -> list[list[str]]:
    """Return the lines of each list of the demo."""
    packed = files("bpa_ppl.demo_data").joinpath("leaflet.nbest100.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines(keepends=True)
    return [list(group) for _, group in groupby(lines, lambda line: line.split(" ||| ", 1)[0])]


def write_small_demo(folder: Path, sentences: int, candidates: int) -> None:
    """Write the first sentences of the demo to `nbest`, `ref` and `moses.ini`."""
    demo = files("bpa_ppl.demo_data")
    kept = [line for lines in _read_lists()[:sentences] for line in lines[:candidates]]
    (folder / "nbest").write_text("".join(kept), "utf-8")
    references = demo.joinpath("leaflet.ref").read_text("utf-8").splitlines(keepends=True)
    (folder / "ref").write_text("".join(references[:sentences]), "utf-8")
    (folder / "moses.ini").write_bytes(demo.joinpath("moses.ini").read_bytes())
