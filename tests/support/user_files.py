"""Files of users: tables of pandas, conversations, zstd files; and programs of the shell."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bpa_ppl.formats.references import read_references as read_references

#: Writes lines, or bytes as they are, to a file with a name, and returns its path.
Write = Callable[..., Path]
#: A sound record of nested candidates.
GOOD = {
    "id": 4,
    "source": "un chat",
    "references": ["the cat", "a cat"],
    "doc": {"name": "pets", "year": 2021},
    "candidates": [
        {"text": "a cat", "scores": {"lm": -1.5, "tm": {"in": 2}}, "system": "ours", "total": -3},
        {"text": "cat", "system": "theirs", "total": 1e-3, "scores": {"tm": {"in": 0}, "lm": -2}},
    ],
}


def write_frame(frame: Any, path: Path) -> str:
    """Write a data frame in the format of the ending of a name; return the name of the format."""
    name = path.name.split(".")[1]
    if name == "parquet":
        frame.to_parquet(path)
    elif name == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if name == "tsv" else ",")
    return name


def compress_zstd(data: bytes, level: int = 3) -> bytes:
    """Compress as the program zstd does a file: with the size in the header."""
    return bytes(pa.Codec("zstd", level).compress(data, asbytes=True))


def stream_zstd(data: bytes) -> bytes:
    """Compress as the program zstd does what a pipe sends: without the size."""
    file = pa.BufferOutputStream()
    with pa.CompressedOutputStream(file, "zstd") as stream:
        stream.write(data)
    return bytes(file.getvalue().to_pybytes())


def talk(*texts: str) -> list[dict[str, Any]]:
    """Return a conversation of a user and an assistant."""
    return [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(texts)]


def run_shell(command: str, folder: Path) -> None:
    """Run a command of a message or a page, or skip the test where its program is missing."""
    program = command.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    subprocess.run(command, shell=True, check=True, cwd=folder)
