"""A stand-in for a decoder: its search space are long n-best lists, of which it returns the best.

    python benchmarks/list_decoder.py FOLDER WEIGHTS SOURCES NBEST SIZE

FOLDER is written by `bench_published.py`; WEIGHTS has one label a line, `Name0= value …`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np


def main() -> None:
    """Write the best SIZE candidates of each source sentence under the weights."""
    folder, weights, sources, nbest, size = sys.argv[1:]
    table = json.loads(Path(folder, "table.json").read_text("utf-8"))
    features = np.load(Path(folder, "features.npy"), mmap_mode="r")
    values = {}
    for line in Path(weights).read_text("utf-8").splitlines():
        label, *numbers = line.split()
        values[label] = [float(number) for number in numbers]
    vector = np.array([value for label in table["labels"] for value in values[label]])
    places = {source: number for number, source in enumerate(table["sources"])}
    with open(nbest, "w", encoding="utf-8") as file:
        for number, source in enumerate(Path(sources).read_text("utf-8").splitlines()):
            sentence = places[source]
            start, end = table["offsets"][sentence : sentence + 2]
            block = np.asarray(features[start:end], np.float64)
            scores = block @ vector
            for row in np.argsort(-scores, kind="stable")[: int(size)]:
                rest = iter(block[row].astype(np.float32).tolist())
                labelled = " ".join(
                    f"{label} {' '.join(str(next(rest)) for _ in values[label])}"
                    for label in table["labels"]
                )
                text = table["texts"][start + row]
                file.write(f"{number} ||| {text} ||| {labelled} ||| {scores[row]}\n")


if __name__ == "__main__":
    main()
