"""How fast each text format is read, against what decoding the same bytes takes alone.

    python tests/benchmarks/bench_formats.py [FILE] [--rounds N]

Converts a Moses list (medical/adapt, 500 lists of 500) to each format, then prints one table. Each
reading runs in a process of its own, all of them in turn, round after round; times are the best of
the rounds, without compilation, and ratios are within this one run. "Alone" is what a fast decoder
of the layout takes to go through the bytes and keep nothing: orjson for JSON, PyArrow for tables
and Parquet, `gzip -dc` for Moses' own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from measuring import DATA, clock

from bpa_ppl import NBest, iter_nbest, read_nbest, write_nbest
from bpa_ppl.formats.base import NBestFormat
from bpa_ppl.formats.jsonl import Jsonl

FORMATS: dict[str, str | NBestFormat] = {
    "moses.gz": "moses",
    "jsonl": "jsonl",
    "jsonl.gz": "jsonl",
    "long.jsonl": Jsonl(long=True),
    "tsv": "tsv",
    "csv": "csv",
    "csv.gz": "csv",
    "parquet": "parquet",
    "plain.gz": "plain:list_size={size},scores={folder}/scores.txt",
}
ROOMS = ("alone", "read_nbest", "iter_nbest")


def through_gzip(path: str) -> None:
    """Decompress to nowhere."""
    subprocess.run(["gzip", "-dc", path], stdout=subprocess.DEVNULL, check=True)


def through_orjson(path: str) -> None:
    """Decode each line into dictionaries."""
    command = ["gzip", "-dc", path] if path.endswith(".gz") else ["cat", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        for line in process.stdout:
            orjson.loads(line)


def through_arrow_csv(path: str) -> None:
    """Read into a table of Arrow, in one piece."""
    from pyarrow import csv

    separator = "\t" if path.endswith(".tsv") else ","
    options = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    csv.read_csv(path, parse_options=options)


def through_arrow_parquet(path: str) -> None:
    """Read into a table of Arrow, in one piece."""
    from pyarrow import parquet

    parquet.read_table(path)


def through_arrow_scores(path: str) -> None:
    """Hand on the texts; read the scores into a table of Arrow."""
    from pyarrow import csv

    through_gzip(path)
    csv.read_csv(Path(path).parent / "scores.txt", parse_options=csv.ParseOptions(delimiter=" "))


def alone(name: str) -> Callable[[str], None]:
    """Return what goes through the bytes of a format."""
    if "jsonl" in name:
        return through_orjson
    if "plain" in name:
        return through_arrow_scores
    if name == "parquet":
        return through_arrow_parquet
    return through_arrow_csv if "sv" in name else through_gzip


def format_of(name: str, path: Path, nbest: NBest | None = None) -> str | NBestFormat:
    """Return the format of a file, with its settings."""
    format = FORMATS[name]
    if not isinstance(format, str):
        return format
    return format.format(size=500 if nbest is None else nbest.sizes.max(), folder=path.parent)


def measured(name: str, room: str, path: str) -> float:
    """Return the seconds of one reading, in this process, after one of a small file."""
    format = format_of(name, Path(path))
    ways: dict[str, Callable[[], Any]] = {
        "alone": lambda: alone(name)(path),
        "read_nbest": lambda: read_nbest(path, format=format),
        "iter_nbest": lambda: sum(len(part) for part in iter_nbest(path, format=format)),
    }
    if name.startswith("moses"):
        next(iter_nbest(path))  # loads the compiled parser
        part = iter_nbest(path, chunk=1)
        for _ in range(30):
            next(part)
    return clock(ways[room])[0]


def in_own_process(name: str, room: str, path: Path) -> float:
    """Return what `measured` says in a fresh process."""
    command = [sys.executable, __file__, str(path), "--one", name, room]
    run = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return float(json.loads(run.stdout))


def print_table(source: str, rounds: int) -> None:
    """Convert the lists, read each file `rounds` times in turn, and print the best times."""
    nbest = read_nbest(source)
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"lists.{name}" for name in FORMATS}
        for name, path in files.items():
            lists = nbest.without("totals") if "plain" in name else nbest
            write_nbest(lists, path, format=format_of(name, path, nbest))
        runs = [
            {(n, room): in_own_process(n, room, p) for n, p in files.items() for room in ROOMS}
            for _ in range(rounds)
        ]
        best = {key: min(run[key] for run in runs) for key in runs[0]}
        print(f"{source}: {nbest!r}; best of {rounds} rounds, in seconds")
        print(f"{'':12}{'MiB':>7}{'alone':>9}{'read':>9}{'ratio':>7}{'stream':>9}{'ratio':>7}")
        for name, path in files.items():
            base, read, stream = (best[name, room] for room in ROOMS)
            size = path.stat().st_size / 2**20
            ratios = f"{read:9.3f}{read / base:7.2f}{stream:9.3f}{stream / base:7.2f}"
            print(f"{name:12}{size:7.1f}{base:9.3f}{ratios}", flush=True)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", default=str(DATA / "medical/adapt.nbest.gz"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(measured(*options.one, options.file))
    else:
        print_table(options.file, options.rounds)


if __name__ == "__main__":
    main()
