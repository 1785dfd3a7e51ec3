"""Lists of candidates of several systems, with a quality score of each candidate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from bpa_ppl import NBest, from_lists

SYSTEMS = ("ann", "bob", "eve")


def judged_lists(sentences: int = 40, seed: int = 1, *, names: tuple[str, ...] = SYSTEMS) -> NBest:
    """Return lists of one candidate per system; `eve` is best, and `logprob` is a weak signal."""
    rng = np.random.default_rng(seed)
    count = len(names)
    texts = [[f"{s} {name}" for name in names] for s in range(sentences)]
    logprob = rng.normal(-20, 3, (sentences, count))
    good = np.array([float(name == "eve") for name in names])
    judgement = good + 0.3 * rng.normal(size=(sentences, count)) + 0.02 * (logprob + 20)
    return from_lists(
        texts,
        [np.column_stack(scores) for scores in zip(logprob, judgement, strict=True)],
        ["logprob", "comet"],
        extras={"system": [list(names)] * sentences},
    )


def write_json_lines(nbest: NBest, path: Path) -> Path:
    """Write lists as JSON lines without the package's own writer."""
    with path.open("w", encoding="utf-8") as file:
        for s in range(len(nbest)):
            rows = range(nbest.offsets[s], nbest.offsets[s + 1])
            candidates = [
                {
                    "text": nbest.text(row),
                    "system": nbest.extras["system"][row],
                    "features": dict(
                        zip(nbest.feature_names, nbest.features[row].tolist(), strict=True)
                    ),
                }
                for row in rows
            ]
            file.write(json.dumps({"id": s, "candidates": candidates}) + "\n")
    return path
