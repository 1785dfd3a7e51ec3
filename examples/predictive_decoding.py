"""Predictive decoding: translate new sentences with the average over the posterior.

Run it from anywhere: `python examples/predictive_decoding.py`.
"""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np

import bpa_ppl as bpa
from bpa_ppl.evaluation.paired import compare_choices

ADAPTATION = 50
RULES = ("predictive", "mean", "viterbi")


def main() -> None:
    """Adapt on 50 sentences, rerank the others by several rules, show what changed."""
    with as_file(files("bpa_ppl.demo_data")) as data:
        pool = bpa.read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
        prior = bpa.read_weights(data / "moses.ini")
    # The sentences of the leaflet are grouped by topic: shuffle before splitting.
    order = np.random.default_rng(0).permutation(len(pool))
    posterior = bpa.adapt(pool.select(order[:ADAPTATION]), prior, sampler="imh", seed=1)
    rest = pool.select(order[ADAPTATION:])

    for rule in RULES:
        result = bpa.rerank(rest, posterior, rule=rule)
        print(f"{rule}:\n{compare_choices(rest, result.canonical, result.choice)}\n")

    result, references = bpa.rerank(rest, posterior), rest.references or ()
    surest = max(np.flatnonzero(result.changed), key=lambda s: result.probability[s])
    print(f"the surest change, with p(e | f) = {result.probability[surest]:.2f}:")
    print(f"  canonical  {result.canonical_texts[surest]}")
    print(f"  adapted    {result.texts[surest]}")
    print(f"  reference  {references[surest][0]}")


if __name__ == "__main__":
    main()
