"""Learn the weights in `bpa_ppl/features/pretrained.json` from public judged lists.

    python tools/learn_pretrained.py

The lists are those of `benchmarks/bench_pretrained.py`, which measures what weights that were
learned in this way are worth on collections that they were not learned from. The file has the mean
of each weight and the mean spread of its feature, and names the collections.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "bpa_ppl" / "features" / "pretrained.json"
sys.path.insert(0, str(ROOT / "benchmarks"))

from bench_pretrained import GROUPS, VARIANCE, group_halves, learned_weights  # noqa: E402


def main() -> None:
    """Write the weights learned from all collections."""
    weights = learned_weights(tuple(GROUPS))
    halves = [half for group in GROUPS for half in group_halves(group)]
    spread = np.mean([half.pool.spread for half in halves], axis=0)
    features = {
        name: {"mean": float(f"{weights[name]:.3g}"), "spread": float(f"{value:.3g}")}
        for name, value in zip(halves[0].pool.feature_names, spread.tolist(), strict=True)
        if name in weights
    }
    collections = [file for files in GROUPS.values() for file in files]
    content = {"features": features, "variance": VARIANCE, "collections": collections}
    text = json.dumps(content, indent=1)
    FILE.write_text(f"{text}\n", "utf-8")
    print(text)


if __name__ == "__main__":
    main()
