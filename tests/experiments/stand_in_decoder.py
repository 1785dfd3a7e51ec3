"""A decoder of two lines: the best of a large table of hypotheses, for the weights of a file.

python stand_in_decoder.py TABLE WEIGHTS NBEST SIZE
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Read table and weights, and write the best SIZE hypotheses of each sentence."""
    table, weights, nbest, size = sys.argv[1:]
    lines = [line for line in Path(weights).read_text().splitlines() if "=" in line]
    label = {line.split("=")[0]: line.split("=")[1].split() for line in lines}
    values = [float(value) for name in ("LM0", "TM0") for value in label[name]]
    lists: dict[str, list[tuple[float, str]]] = {}
    for line in Path(table).read_text().splitlines():
        fields = line.split(" ||| ")
        features = [float(word) for word in fields[2].split() if "=" not in word]
        score = sum(v * f for v, f in zip(values, features, strict=True))
        lists.setdefault(fields[0], []).append((score, " ||| ".join(fields[:3])))
    with open(nbest, "w") as file:
        for hypotheses in lists.values():
            best = sorted(hypotheses, key=lambda pair: -pair[0])[: int(size)]
            file.writelines(f"{text} ||| {score}\n" for score, text in best)


if __name__ == "__main__":
    main()
