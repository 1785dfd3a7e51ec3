"""Inspect a posterior: the check, what moved, a page to read, and ArviZ for the rest.

Run it from anywhere: `python examples/inspect_posterior.py [FOLDER]`; the posterior and the page
go into the folder, `.` unless given.
"""

from __future__ import annotations

import sys
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

import bpa_ppl as bpa
from bpa_ppl.diagnostics.page import write_page
from bpa_ppl.evaluation.report import posterior_page
from bpa_ppl.posterior.arviz_functions import import_arviz

SENTENCES = 30


def main(folder: Path) -> None:
    """Adapt, print the check and ArviZ's summary, write posterior and page."""
    with as_file(files("bpa_ppl.demo_data")) as data:
        pool = bpa.read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
        prior = bpa.read_weights(data / "moses.ini")
    posterior = bpa.adapt(pool.select(np.arange(SENTENCES)), prior, sampler="imh", seed=1)

    print(bpa.check(posterior))
    az = import_arviz()  # `import arviz as az`, without its notices
    print(az.summary(posterior, var_names=["weights"], round_to=3))

    bpa.write_posterior(posterior, folder / "posterior.nc")
    write_page(posterior_page(posterior, title="The leaflet"), folder / "report.html")
    print(f"wrote {folder / 'posterior.nc'} and {folder / 'report.html'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
