"""Is the confidence of reranking honest: calibration, expected TER, and what sure changes risk.

    python tests/benchmarks/bench_confidence.py [--domains NAME …] [--draws N] [--sentences A]

Adapted to A sentences (Laplace, so that leave-one-out is possible), tested on other lists; means
over N draws of A. Calibration: of the likeliest translation, is it the oracle? at temperature 1 and
at the one fitted by leave-one-out on A. Expected TER: of the choices against the oracles, which is
what the model takes for right, expected and in truth. Sure: the share of changes that is made where
they are surer than 0.5, 0.7 and 0.9, the share of those that make it worse, and the test TER.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from measuring import canonical, drawn, lists

import bpa_ppl as bpa
from bpa_ppl import NBest
from bpa_ppl.decoding import selective
from bpa_ppl.diagnostics import reliability, temperature

DOMAINS = ("leaflet", "medical", "captions", "conversation")
SURE = (-1.0, 0.5, 0.7, 0.9, 1.0)


def data(domain: str) -> tuple[NBest, NBest]:
    """Return lists to adapt on and lists to be tested on."""
    if domain != "leaflet":
        return lists(domain, "adapt"), lists(domain, "test")
    with as_file(files("bpa_ppl.demo_data")) as folder:
        both = bpa.read_nbest(folder / "leaflet.nbest100.gz", references=folder / "leaflet.ref")
    order = np.random.default_rng(0).permutation(len(both))
    return both.select(order[:100]), both.select(order[100:])


def study(domain: str, likelihood: str, sentences: int, draws: int) -> None:
    """Print what one likelihood is sure of on one domain."""
    pool, test = data(domain)
    oracle = bpa.oracles(test).index
    right = test.with_references([(text,) for text in test.chosen(oracle)])
    found: dict[str, list] = {}

    def add(name: str, *values: float) -> None:
        found.setdefault(name, []).append(values)

    for seed in range(draws):
        sample = drawn(pool, sentences, seed)
        post = bpa.adapt(
            sample, canonical(), sampler="laplace", likelihood=likelihood, seed=seed, draws=300
        )
        value = temperature(post, sample).value
        for name, t in (("T = 1", 1.0), ("T of leave-one-out", value)):
            honest = reliability(post, test, oracle, temperature=t)
            add(f"{name}: T, calibration error, Brier", t, honest.error, honest.brier)
            result = bpa.rerank(test, post, unchecked=True, confidence=True, temperature=t)
            expected: Any = result.confidence
            truth = bpa.corpus_score(result.texts, right.references).value
            corpus = expected.corpus
            inside = float(corpus.low <= truth <= corpus.high)
            add(f"{name}: TER expected, true, inside", corpus.value, truth, inside)
            curve = selective(result)
            for sure in SURE:
                add(f"{name}: sure > {sure:g}: made, worse, TER", *curve.at(sure))
    print(f"\n{domain}, {likelihood}, |A| = {sentences}, {draws} draws")
    for name, values in found.items():
        print(f"  {name:<44}" + "".join(f"{x:>9.3f}" for x in np.mean(values, axis=0)), flush=True)


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--domains", nargs="+", default=DOMAINS, choices=DOMAINS)
    parser.add_argument("--likelihoods", nargs="+", default=["margin", "oracle"])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=50)
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto")
    for domain in options.domains:
        for likelihood in options.likelihoods:
            study(domain, likelihood, options.sentences, options.draws)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
