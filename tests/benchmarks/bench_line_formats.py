"""How fast lists are read that decoders print, format by format.

    python tests/benchmarks/bench_line_formats.py [--lists 300] [--rounds 5]

Writes the same 500-best lists in each format and prints one table: the time that a whole file
takes to be read, beside that of `gzip -dc` for the same bytes and, for JSON lines, those of
orjson and of msgspec to decode them and keep nothing. Ways run in turn, round after round; times
are the best of the rounds, and ratios are within this one run.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import tempfile
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import orjson
from measuring import DATA, clock

from bpa_ppl import NBest, iter_nbest, read_nbest, write_nbest
from bpa_ppl.errors import BpaWarning


def with_positions(lists: NBest) -> NBest:
    """Return the lists with a segmentation of phrases of two words."""
    words = [len(text.split()) for text in lists.strings]
    printed = [" ".join(f"{i}-{i + 1}={i}-{i + 1}" for i in range(0, n, 2)) for n in words]
    return lists.with_extras(segmentation=[printed[i] for i in lists.string_index])


def as_fairseq(lists: NBest) -> str:
    """Return what fairseq would print: a source, a reference, and three lines a hypothesis."""
    rng, lines = np.random.default_rng(1), []
    for s, identifier in enumerate(lists.sentence_ids.tolist()):
        lines += [f"S-{identifier}\tsource of sentence {s}", f"T-{identifier}\treference {s}"]
        for text in lists.texts(s):
            tokens = -rng.exponential(size=len(text.split()) + 1)
            scored = f"{identifier}\t{tokens.mean()}\t{text}"
            lines += [f"H-{scored}", f"D-{scored}"]
            lines.append(f"P-{identifier}\t" + " ".join(f"{value:.4f}" for value in tokens))
    return "\n".join([*lines, ""])


def write_all(lists: NBest, folder: Path) -> dict[str, Path]:
    """Write the lists in every format, and return the files by name."""
    neural = lists.without_features(lists.feature_names[2:])
    neural = NBest(**{**vars(neural), "feature_names": ("F0", "F1")})
    score = lists.without_features(lists.feature_names[1:]).without("totals")
    score = NBest(**{**vars(score), "feature_names": ("score",)})
    made = {
        "moses": ("moses", lists),
        "moses, segmented": ("moses", with_positions(lists)),
        "marian": ("marian", neural),
        "travatar": ("travatar", lists),
        "cdec": ("cdec", lists),
        "sockeye": ("sockeye", score),
    }
    files = {name: folder / name for name in (*made, "fairseq")}
    for name, (format, table) in made.items():
        write_nbest(table, files[name], format=format)
    files["fairseq"].write_text(as_fairseq(lists))
    return files


def ways(name: str, path: Path) -> dict[str, Callable[[], Any]]:
    """Return what is timed for one file."""
    format = name.partition(",")[0]
    data = path.read_bytes()
    packed = path.with_suffix(".gz")
    packed.write_bytes(gzip.compress(data, 6))
    found: dict[str, Callable[[], Any]] = {
        "read": lambda: read_nbest(path, format=format),
        "gzip": lambda: subprocess.run(
            ["gzip", "-dc", packed], stdout=subprocess.DEVNULL, check=True
        ),
    }
    if format == "sockeye":
        found["orjson"] = lambda: deque(map(orjson.loads, data.splitlines()), 0)
        found["msgspec"] = lambda: deque(map(msgspec.json.Decoder().decode, data.splitlines()), 0)
    return found


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lists", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore", BpaWarning)
    lists = next(iter_nbest(DATA / "medical/adapt.nbest.gz", chunk=options.lists))
    with tempfile.TemporaryDirectory() as folder:
        files = write_all(lists, Path(folder))
        tried = {name: ways(name, path) for name, path in files.items()}
        runs = [
            {(name, way): clock(work)[0] for name in tried for way, work in tried[name].items()}
            for _ in range(options.rounds)
        ]
        best = {key: min(run[key] for run in runs) for key in runs[0]}
        print(f"{len(lists.features):,} hypotheses; best of {options.rounds} rounds")
        print(f"{'':18}{'MiB':>8}{'seconds':>9}{'× gzip -dc':>12}{'× orjson':>11}{'× msgspec':>11}")
        for name, path in files.items():
            seconds = best[name, "read"]
            alone = [best.get((name, way)) for way in ("orjson", "msgspec")]
            ratios = "".join(f"{seconds / one:11.1f}" for one in alone if one)
            size = path.stat().st_size / 2**20
            print(f"{name:18}{size:8.1f}{seconds:9.3f}{seconds / best[name, 'gzip']:12.1f}{ratios}")


if __name__ == "__main__":
    main()
