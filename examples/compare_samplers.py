"""Compare samplers on the same data: do they agree with a long run, and what does a draw cost?

Run it from anywhere: `python examples/compare_samplers.py [FOLDER]`; the page and its tables go
into the folder, `.` unless given.
"""

from __future__ import annotations

import sys
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

import bpa_ppl as bpa
from bpa_ppl.diagnostics.samplers.comparison_page import write_comparison

SENTENCES = 30


def main(folder: Path) -> None:
    """Run three samplers from two seeds each, print the comparison, write it as a page."""
    with as_file(files("bpa_ppl.demo_data")) as data:
        pool = bpa.read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
        prior = bpa.read_weights(data / "moses.ini")
    lists = pool.select(np.arange(SENTENCES))
    # The likelihood as published, for which the heuristic sample was made.
    posterior = bpa.log_density(lists, prior, likelihood="oracle")
    comparison = bpa.compare_samplers(
        posterior,
        samplers=["imh", "rwm", "heuristic"],
        runs=2,
        seed=1,
        reference="imh",  # the long run that all are held against
    )
    print(comparison)
    for path in write_comparison(comparison, folder):
        print(f"wrote {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
