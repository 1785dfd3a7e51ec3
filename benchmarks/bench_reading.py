"""Speed of reading each n-best format, compared with decompressing or decoding the same bytes.

    python benchmarks/bench_reading.py [--lists 500] [--rounds 3]

Converts 500-best lists of medical to each format and prints the seconds of `read_nbest` and of
`iter_nbest`, as multiples of the seconds of `gzip -dc` for text, of orjson for JSON, and of PyArrow
for tables, whose results are thrown away. The files called short have twelve candidates of at most
six words in each list, and `openai-short` has no log-probabilities. For Moses, `split and float`
reads the same file as a short script would. All alternatives take turns; times are the best of the
rounds, after a first reading that compiles.
"""

from __future__ import annotations

import gzip
import json
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measuring import DATA, Table, best_time, run_tables, scratch_folder

from bpa_ppl import NBest, from_lists, iter_nbest, read_nbest, to_arrow, write_nbest


def run_gzip(path: Path) -> None:
    """Decompress and discard."""
    subprocess.run(["gzip", "-dc", path], stdout=subprocess.DEVNULL, check=True)


def run_orjson(path: Path) -> None:
    """Decode each line and discard it."""
    import orjson

    if path.suffix != ".gz":
        with path.open("rb") as file:
            deque(map(orjson.loads, file), 0)
        return
    with subprocess.Popen(["gzip", "-dc", path], stdout=subprocess.PIPE) as process:
        deque(map(orjson.loads, process.stdout), 0)


def run_arrow(path: Path) -> None:
    """Read into an Arrow table; of plain text, the scores only."""
    from pyarrow import csv, parquet

    if path.name == "parquet":
        parquet.read_table(path)
    elif path.name.startswith("plain"):
        run_gzip(path)
        csv.read_csv(path.with_name("scores"), parse_options=csv.ParseOptions(delimiter=" "))
    else:
        delimiter = "\t" if path.name == "tsv" else ","
        options = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        csv.read_csv(path, parse_options=options)


def split_and_float(path: Path) -> Any:
    """Read a Moses list as a short script would."""
    texts, values, totals = [], [], []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            _, text, features, total = line.split(" ||| ")
            texts.append(text)
            values.append([float(t) for t in features.split() if not t.endswith("=")])
            totals.append(float(total))
    return texts, np.array(values, dtype=np.float32), np.array(totals, dtype=np.float32)


def fairseq_lines(lists: NBest) -> str:
    """Return the output of fairseq without references: a source, and three lines per candidate."""
    rng, lines = np.random.default_rng(1), []
    for s, number in enumerate(lists.sentence_ids.tolist()):
        lines.append(f"S-{number}\tsource of sentence {s}")
        for text in lists.texts(s):
            tokens = -rng.exponential(size=len(text.split()) + 1)
            scored = f"{number}\t{tokens.mean()}\t{text}"
            lines += [f"H-{scored}", f"D-{scored}"]
            lines.append(f"P-{number}\t" + " ".join(f"{value:.4f}" for value in tokens))
    return "\n".join([*lines, ""])


def long_lines(lists: NBest) -> str:
    """Return JSON lines of one candidate each, with features among the fields."""
    rows = to_arrow(lists).to_pylist()
    return "".join(json.dumps(row, default=float) + "\n" for row in rows)


def kaldi_lines(lists: NBest) -> str:
    """Return lines of Kaldi with the first feature as the score."""
    return "".join(
        f"{number}-{rank} {score} {text}\n"
        for s, number in enumerate(lists.sentence_ids.tolist())
        for rank, (text, score) in enumerate(
            zip(lists.texts(s), lists.features[lists.rows(s), 0], strict=True), 1
        )
    )


def response_lines(lists: NBest, logprobs: bool = True) -> str:
    """Return the output of a batch of chats, with the log-probability of each word or without."""
    rng, lines = np.random.default_rng(1), []
    for s, number in enumerate(lists.sentence_ids.tolist()):
        choices = []
        for text in lists.texts(s):
            words = [f" {word}" for word in text.split()]
            tokens = [
                {"token": word, "logprob": value, "bytes": list(word.encode()), "top_logprobs": []}
                for word, value in zip(words, -rng.exponential(size=len(words)), strict=True)
            ]
            message = {"role": "assistant", "content": text, "refusal": None}
            logged = {"content": tokens, "refusal": None} if logprobs else None
            choices.append({"message": message, "logprobs": logged, "finish_reason": "stop"})
        response = {"status_code": 200, "body": {"model": "m", "choices": choices}}
        lines.append(json.dumps({"custom_id": f"request-{number}", "response": response}))
    return "\n".join([*lines, ""])


#: Forms that are only read -> what the programs print.
PRINTED = {
    "fairseq": fairseq_lines,
    "kaldi": kaldi_lines,
    "jsonl-long": long_lines,
    "openai": response_lines,
    "openai-short": partial(response_lines, logprobs=False),
}


def with_names(lists: NBest, *names: str) -> NBest:
    """Return lists with the first features only, under other names."""
    lists = lists.without(*lists.feature_names[len(names) :])
    return replace(lists, feature_names=names)


def short_lists(lists: NBest) -> NBest:
    """Return lists of 12 candidates with the first words of those of some lists."""
    texts = [" ".join(lists.text(row).split()[:6]) for row in range(len(lists.features))]
    parts = [texts[start : start + 12] for start in range(0, len(texts), 12)]
    features = [[[float(place)] for place in range(len(part))] for part in parts]
    return from_lists(parts, features, ["lm"])


def write_files(lists: NBest) -> dict[Path, tuple[Any, Callable[[Path], None]]]:
    """Write the lists in each format.

    Returns:
        from each file to its format and to the decoder that it is compared with.
    """
    folder = scratch_folder()
    words = [len(text.split()) for text in lists.strings]
    spans = [" ".join(f"{i}-{i + 1}={i}-{i + 1}" for i in range(0, n, 2)) for n in words]
    segmented = lists.with_extras(segmentation=[spans[i] for i in lists.string_index])
    plain = f"plain:list_size={lists.sizes.max()},scores={folder}/scores"
    files: dict[str, tuple[Any, NBest, Callable[[Path], None]]] = {
        "moses.gz": ("moses", lists, run_gzip),
        "moses-segmented": ("moses", segmented, run_gzip),
        "marian": ("marian", with_names(lists, "F0", "F1"), run_gzip),
        "fairseq": ("fairseq", lists, run_gzip),
        "openai": ("openai", lists, run_orjson),
        "openai-short": ("openai", short_lists(lists), run_orjson),
        "kaldi": ("kaldi", lists, run_gzip),
        "jsonl": ("jsonl", lists, run_orjson),
        "jsonl-short": ("jsonl", short_lists(lists), run_orjson),
        "jsonl.gz": ("jsonl", lists, run_orjson),
        "jsonl-long": ("jsonl", lists, run_orjson),
        "tsv": ("tsv", lists, run_arrow),
        "csv": ("csv", lists, run_arrow),
        "csv.gz": ("csv", lists, run_arrow),
        "parquet": ("parquet", lists, run_arrow),
        "plain.gz": (plain, lists.without("totals"), run_arrow),
    }
    for name, (format, table, _) in files.items():
        if name in PRINTED:
            (folder / name).write_text(PRINTED[name](table))
        else:
            write_nbest(table, folder / name, format=format)
    return {folder / name: (format, decode) for name, (format, _, decode) in files.items()}


def read_in_parts(path: Path, **options: Any) -> int:
    """Read a few lists at a time and discard them."""
    return sum(len(part) for part in iter_nbest(path, **options))


def formats(options: Any) -> None:
    """Print the seconds of each format."""
    lists = next(iter_nbest(DATA / "medical/adapt.nbest.gz", chunk=options.lists))
    alternatives: dict[tuple[str, str], Callable[[], Any]] = {}
    files = write_files(lists)
    for path, (format, decode) in files.items():
        compared = path
        if decode is run_gzip and path.suffix != ".gz":
            compared = path.with_name(f"{path.name}.packed")
            compared.write_bytes(gzip.compress(path.read_bytes(), 6))
        alternatives[path.name, "decode"] = partial(decode, compared)
        reading = {"format": format}
        if path.name == "jsonl-long":  # other files declare their features
            reading["features"] = lists.feature_names
        alternatives[path.name, "read"] = partial(read_nbest, path, **reading)
        alternatives[path.name, "parts"] = partial(read_in_parts, path, **reading)
    loop = partial(split_and_float, scratch_folder() / "moses.gz")
    alternatives["moses.gz", "loop"] = loop
    for alternative in alternatives.values():
        alternative()  # compiles
    seconds = dict.fromkeys(alternatives, np.inf)
    for _ in range(options.rounds):
        for key, alternative in alternatives.items():
            seconds[key] = min(seconds[key], best_time(alternative).seconds)
    columns = ("MiB", "decoding", "read_nbest", "ratio", "iter_nbest", "ratio")
    table = Table(f"{len(lists.features):,} candidates, seconds", *columns)
    for path in files:
        decode, read, parts = (seconds[path.name, key] for key in ("decode", "read", "parts"))
        table.row(
            path.name,
            path.stat().st_size / 2**20,
            decode,
            read,
            read / decode,
            parts,
            parts / decode,
        )
    ratio = seconds["moses.gz", "loop"] / seconds["moses.gz", "read"]
    print(f"\nmoses.gz, split and float: {ratio:.1f} times as long as read_nbest")


if __name__ == "__main__":
    run_tables(__doc__, (formats,), lists=500, rounds=3)
