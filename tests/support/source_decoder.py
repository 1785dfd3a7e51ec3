"""A decoder for tests: it finds the candidates of a source in a table, and returns the best.

python source_decoder.py TABLE TABLE_SOURCES WEIGHTS SOURCES NBEST SIZE
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

Scores = dict[str, list[float]]


def labelled(words: list[str]) -> Scores:
    """Read `Name= value …` of several names."""
    result: Scores = {}
    for word in words:
        if word.endswith("="):
            values = result.setdefault(word, [])
        else:
            values.append(float(word))
    return result


def main() -> None:
    """Write the best SIZE candidates of each source sentence under the weights."""
    table, table_sources, weights, sources, nbest, size = sys.argv[1:]
    lines = Path(weights).read_text().splitlines()
    # Both a complete moses.ini, and a file with nothing but weights.
    weighted = [line.split() for line in lines if re.fullmatch(r"\w+=( -?[\d.e-]+)+", line)]
    known = labelled([word for line in weighted for word in line])
    texts = Path(table_sources).read_text().splitlines()
    candidates: dict[str, list[tuple[float, str]]] = {}
    for line in Path(table).read_text().splitlines():
        number, text, features = line.split(" ||| ")[:3]
        values = labelled(features.split())
        score = sum(
            w * h for name in values for w, h in zip(known[name], values[name], strict=True)
        )
        candidates.setdefault(texts[int(number)], []).append((score, f"{text} ||| {features}"))
    with open(nbest, "w") as file:
        for number, source in enumerate(Path(sources).read_text().splitlines()):
            best = sorted(candidates[source], key=lambda pair: -pair[0])[: int(size)]
            file.writelines(f"{number} ||| {text} ||| {score}\n" for score, text in best)


if __name__ == "__main__":
    main()
