"""Speed of the extraction of phrase pairs, compared with Python.

    python tests/benchmarks/bench_phrases.py [--sentences 20000]

Both extract the pairs of the same sentences of the general corpus and must return the same counts.
The time of the compiled one is the best of three runs, after one that compiles.
"""

from __future__ import annotations

from collections import Counter

from measuring import CORPORA, Table, best_time, parse_options, write_lines

from bpa_ppl.formats.streams import read_lines
from bpa_ppl.phrases.extraction import extract_phrases

MAX_WORDS = 5


def python_extraction(paths: list[str]) -> Counter[tuple[str, str]]:
    """Count the phrase pairs of aligned sentences, one target span after the other."""
    counts: Counter[tuple[str, str]] = Counter()
    for lines in zip(*map(read_lines, paths), strict=True):
        source, target = lines[0].split(), lines[1].split()
        points = [tuple(map(int, point.split("-"))) for point in lines[2].split()]
        aligned = {s for s, _ in points}
        for first in range(len(target)):
            for last in range(first, min(first + MAX_WORDS, len(target))):
                inside = [s for s, t in points if first <= t <= last]
                if not inside:
                    continue
                low, high = min(inside), max(inside)
                if high - low >= MAX_WORDS or any(
                    low <= s <= high and not first <= t <= last for s, t in points
                ):
                    continue
                phrase = " ".join(target[first : last + 1])
                begin = low
                while begin >= 0 and (begin == low or begin not in aligned):
                    end = high
                    while end < min(len(source), begin + MAX_WORDS) and (
                        end == high or end not in aligned
                    ):
                        counts[" ".join(source[begin : end + 1]), phrase] += 1
                        end += 1
                    begin -= 1
    return counts


def main() -> None:
    """Print the table."""
    options = parse_options(__doc__, sentences=20_000)
    paths = [
        write_lines(side, read_lines(CORPORA / f"out.{side}.xz")[: options.sentences])
        for side in ("fr", "en", "align")
    ]
    extract_phrases(*paths)  # compiles
    compiled = best_time(lambda: extract_phrases(*paths), 3)
    plain = best_time(lambda: python_extraction(paths))
    counts = compiled.result
    sides = (counts.texts(side).to_pylist() for side in ("source", "target"))
    assert dict(zip(zip(*sides, strict=True), counts.count, strict=True)) == plain.result
    table = Table(f"{options.sentences:,} sentence pairs", "seconds", "times as fast")
    table.row("Python", plain.seconds, 1.0)
    table.row("extract_phrases", compiled.seconds, plain.seconds / compiled.seconds)


if __name__ == "__main__":
    main()
