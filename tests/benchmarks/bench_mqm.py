"""Expert judgements as the criterion: which of 13 neural systems is right, from few segments.


    python tests/benchmarks/bench_mqm.py [--sizes 10 20 50 100 200] [--draws 20]

Adaptation segments are drawn from the first 264 of `../shared/data/mqm`, without replacement, and
the mean MQM of the choices on the last 265 is printed: mean ± 2 standard deviations over draws.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import bpa_ppl as bpa
from bpa_ppl.nbest import Int64, NBest
from bpa_ppl.quality import column_of

DATA = Path(__file__).resolve().parents[3] / "shared/data/mqm/ted.en-de.jsonl.gz"
TRAINING = 264
CANONICAL = {"consensus": 1.0}


def read(path: Path) -> NBest:
    """Return the lists with `consensus` = consensus_chrf / 10 and `length` = 10 · length_gap."""
    lists = bpa.read_nbest(path)
    mqm, consensus, gap = (column_of(lists, n) for n in ("mqm", "consensus_chrf", "length_gap"))
    more = lists.with_features(["consensus", "length"], np.column_stack([consensus / 10, 10 * gap]))
    return more.without_features(lists.feature_names).with_extras(mqm=mqm)


Method = Callable[[NBest, NBest], Int64]


def best_system(adaptation: NBest, test: NBest) -> Int64:
    """Choose the hypothesis of the system that is best on A."""
    systems = np.array(adaptation.extras["system"])
    worth = column_of(adaptation, "mqm")
    names = sorted(set(systems.tolist()))
    best = max(names, key=lambda name: worth[systems == name].mean())
    return test.best(np.array(test.extras["system"]) == best)


def adapted(
    adaptation: NBest, test: NBest, categorical: str | None = None, **options: Any
) -> Int64:
    """Adapt with a column of judgements as the gain, and rerank."""
    posterior = bpa.adapt(
        adaptation,
        CANONICAL,
        defaults={"length": 0.0},
        categorical=categorical,
        metric="mqm",
        sampler="imh",
        **options,
    )
    return bpa.rerank(test, posterior, unchecked=True).choice


METHODS: dict[str, Method] = {
    "best system on A": best_system,
    "consensus alone": lambda _, test: test.best(column_of(test, "consensus")),
    "consensus and length": adapted,
    "with systems, scaled prior": partial(adapted, categorical="system"),
}


def main() -> None:
    """Print the mean MQM of each method and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 50, 100, 200])
    parser.add_argument("--draws", type=int, default=20)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    lists = read(DATA)
    train, test = lists[:TRAINING], lists[TRAINING:]
    systems = sorted(set(lists.extras["system"]))
    flat = dict.fromkeys(["length", *(f"system={name}" for name in systems)], 0.1)
    methods = {
        **METHODS,
        "with systems, σ_T = 0.1 for all": partial(
            adapted, categorical="system", prior_variance=flat
        ),
    }
    worth = column_of(test, "mqm")
    print(f"{'':<34}" + "".join(f"{size:>16}" for size in chosen.sizes))
    for name, method in methods.items():
        cells = []
        for size in chosen.sizes:
            draws = [np.random.default_rng([size, k]) for k in range(chosen.draws)]
            parts = [train.select(rng.permutation(TRAINING)[:size]) for rng in draws]
            means = [worth[test.offsets[:-1] + method(part, test)].mean() for part in parts]
            cells.append(f"{np.mean(means):.3f} ± {2 * np.std(means, ddof=1):.3f}")
        print(f"{name:<34}" + "".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
