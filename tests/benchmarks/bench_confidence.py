"""Calibration of the probabilities of reranking.

    python tests/benchmarks/bench_confidence.py [--domains NAME ...] [--draws 3] [--sentences 50]

Adapts to sentences of a domain with `laplace`, and prints means over the draws, on other lists: the
calibration error and the Brier score of the event that the most probable candidate is the oracle.
"""

from __future__ import annotations

import warnings
from importlib.resources import as_file, files
from itertools import product
from typing import Any

import numpy as np
from measuring import DOMAINS, Table, canonical, draw, parse_options, read_lists
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

import bpa_ppl as bpa
from bpa_ppl import NBest


def read_domain(domain: str) -> tuple[NBest, NBest]:
    """Return lists to adapt on and lists to test on; the leaflet of the demo is split."""
    if domain != "leaflet":
        return read_lists(domain, "adapt"), read_lists(domain, "test")
    with as_file(files("bpa_ppl.demo_data")) as folder:
        lists = bpa.read_nbest(folder / "leaflet.nbest100.gz", references=folder / "leaflet.ref")
    order = np.random.default_rng(0).permutation(len(lists))
    return lists.select(order[:100]), lists.select(order[100:])


def study(domain: str, likelihood: str, options: Any) -> None:
    """Print the table of one domain and likelihood."""
    pool, test = read_domain(domain)
    oracle = bpa.oracles(test).index
    oracle_texts = test.chosen(oracle)
    results: list[tuple[float, float]] = []
    for seed in range(options.draws):
        sample = draw(pool, options.sentences, seed)
        settings = {"sampler": "laplace", "likelihood": likelihood, "seed": seed, "draws": 300}
        posterior = bpa.adapt(sample, canonical(), **settings)
        summed = bpa.rerank(test, posterior, unchecked=True, derivations="summed")
        right = [text == other for text, other in zip(summed.texts, oracle_texts, strict=True)]
        curve = calibration_curve(right, summed.probability, n_bins=10, strategy="quantile")
        error = float(np.abs(np.subtract(*curve)).mean())
        results.append((error, brier_score_loss(right, summed.probability)))
    table = Table(
        f"{domain}, {likelihood}, |A| = {options.sentences}", "calibration error", "Brier"
    )
    table.row("mean", *(f"{value:.3f}" for value in np.mean(results, axis=0)))


if __name__ == "__main__":
    options = parse_options(__doc__, domains=("leaflet", *DOMAINS), draws=3, sentences=50)
    warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")
    for domain, likelihood in product(options.domains, ("margin", "oracle")):
        study(domain, likelihood, options)
