"""CSV files of Stan: tables with comments, one file for each chain.

CmdStan writes them, and RStan and PyStan 2 with `sample_file`. The comments above the names of the
columns are the settings of the run, as `# thin = 1 (Default)`, and of RStan `# thin=1`. A comment,
`# Adaptation terminated`, separates the draws of the warm-up, if they are saved, from the others.

Source: CmdStan User's Guide, "Stan CSV File Format".
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.streams import read_chunks
from bpa_ppl._runtime.values import to_numpy
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.posterior.arviz_data import LOG_WEIGHT
from bpa_ppl.posterior.groups import Group, label_groups, require_equal_lengths

#: The names that ArviZ has for Stan's statistics of its samplers.
STATISTICS = {
    "lp__": "lp",
    "accept_stat__": "acceptance_rate",
    "stepsize__": "step_size",
    "treedepth__": "tree_depth",
    "n_leapfrog__": "n_steps",
    "divergent__": "diverging",
    "energy__": "energy",
}
#: Statistics that are no real numbers, and their types.
_TYPES = {"tree_depth": np.int64, "n_steps": np.int64, "diverging": np.bool_}
_SETTING = re.compile(r"#\s*(\w+)\s*=\s*(\S+)")
#: Parts of titles of RStan and PyStan, which have no setting `method` -> the method.
_TITLES = {
    "point estimate": "optimize",
    "(variational": "variational",
    "(automatic differentiation variational": "variational",
    "(test_grad)": "diagnose",
}
#: Methods whose draws are independent. The first draw of `variational` is the mean.
_INDEPENDENT = ("laplace", "pathfinder", "variational")
_END_OF_WARMUP = "adaptation terminated"
#: A column of a cell: the variable, and an index from 1 for each of its dimensions.
_CELL = re.compile(r"(.+?)((?:\.[0-9]+)+)")

#: Bytes that Arrow reads at once, and at most of a number.
_BLOCK, _CELL_SIZE = 1 << 20, 64


class _Output(NamedTuple):
    """A CSV file of Stan.

    Attributes:
        path: of the file.
        method: such as `sample`, or `fixed_param` for draws without parameters.
        names: of the K columns.
        values: (D, K) the rows.
        ended: how many rows precede the end of the warm-up; None if no comment says where it is.
        saved: how many rows of the warm-up are saved, by the settings.
    """

    path: str
    method: str
    names: list[str]
    values: Float64
    ended: int | None
    saved: int


def iter_lines(path: str) -> Iterator[str]:
    """Yield the lines of a CSV file without their ends.

    Bytes that are not UTF-8, as of paths in comments, are replaced.

    Raises:
        DataError: as `read_chunks`, such as for a line that is too long.
    """
    for block in read_chunks(path):
        yield from block.decode(errors="replace").split("\n")[:-1]


def block_size(columns: int) -> int:
    """Return how many bytes of a CSV file Arrow reads at once; rows must be shorter.

    >>> block_size(3), block_size(90_000)
    (1048576, 5760000)
    """
    return max(_BLOCK, _CELL_SIZE * columns)


def is_stan(comments: str) -> bool:
    """Return whether Stan wrote the comments of a file.

    >>> is_stan("# stan_version_major = 2"), is_stan("# weight  minuslogpost  theta")
    (True, False)
    """
    return "stan_version_major" in comments


def read_stan(files: Sequence[str]) -> tuple[Mapping[str, Group], Mapping[str, Any]]:
    """Return the groups of CSV files of Stan, each of which is a chain or an approximation.

    Args:
        files: with the same columns.

    Raises:
        DataError: if a file is damaged or no output of a sampler, only some files say where their
            warm-up ends, or chains differ in length.
    """
    outputs = [_read_output(path) for path in files]
    for one in outputs:
        if one.method not in ("sample", *_INDEPENDENT):
            problem = f"the output of Stan's {one.method} is not a chain of a sampler"
            message = f"{problem}: give the CSV files of the method sample"
            raise DataError(message, one.path, code="no-data")
    method, names = outputs[0].method, outputs[0].names
    kept = [one.values[start:] for one, start in zip(outputs, _find_starts(outputs), strict=True)]
    counts = {Path(one.path).name: len(x) for one, x in zip(outputs, kept, strict=True)}
    require_equal_lengths(counts, Path(files[0]).parent if len(files) > 1 else files[0])
    if not len(kept[0]):
        message = "no draw after the warm-up: give CSV files of a run that has ended"
        raise DataError(message, files[0], code="no-data")
    columns = dict(zip(names, np.moveaxis(np.stack(kept), -1, 0), strict=True))
    arrays = _join_cells({n: x for n, x in columns.items() if not n.endswith("__")}, files[0])
    if method in _INDEPENDENT:
        statistics = {LOG_WEIGHT: np.zeros(np.shape(kept)[:2])}
        return label_groups({"posterior": arrays, "sample_stats": statistics}), {"sampler": method}
    statistics = {STATISTICS.get(n, n): x for n, x in columns.items() if n.endswith("__")}
    statistics |= {n: x.astype(_TYPES[n]) for n, x in statistics.items() if n in _TYPES}
    return label_groups({"posterior": arrays, "sample_stats": statistics}), {}


def _read_output(path: str) -> _Output:
    """Return what a file has.

    Raises:
        DataError: if it is not a table of numbers with comments.
    """
    comments, settings = "", dict[str, str]()
    names, rows, ended = list[str](), list[str](), None
    for line in iter_lines(path):
        if line.startswith("#"):
            if _END_OF_WARMUP in line.lower():
                ended = len(rows)
            if not names:
                comments += line.lower() + "\n"
                if found := _SETTING.match(line.lower()):
                    settings.setdefault(found[1], found[2])
        elif line.strip() and not names:
            names = [name.strip() for name in line.split(",")]
        elif line.strip():
            rows.append(line)
    method = settings.get("method", "sample")
    if "method" not in settings:
        method = next((of for title, of in _TITLES.items() if title in comments), method)
    algorithm = settings.get("algorithm", settings.get("sampler_t", "")).split("(")[0]
    # Programs without parameters run it, whatever their settings are.
    has_no_sampler = "accept_stat__" in names and "stepsize__" not in names
    if method == "sample" and ("fixed_param" in algorithm or has_no_sampler):
        method = "fixed_param"
    warmup = int(settings.get("num_warmup", settings.get("warmup", 0)))
    is_saved = settings.get("save_warmup") in ("1", "true")
    saved = -(-warmup // int(settings.get("thin", 1))) if is_saved else 0
    return _Output(path, method, names, _read_rows(path, names, rows), ended, saved)


def _read_rows(path: str, names: Sequence[str], rows: Sequence[str]) -> Float64:
    """Return the numbers of rows, (D, K).

    Raises:
        DataError: if a row has another number of columns, or a cell is not a number.
    """
    import pyarrow as pa
    from pyarrow import csv

    if not rows:
        return np.zeros((0, len(names)))
    types = csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.float64()), null_values=["nan", "-nan", "NaN"]
    )
    content = io.BytesIO("\n".join(rows).encode())
    reading = csv.ReadOptions(column_names=names, block_size=block_size(len(names)))
    try:
        table = csv.read_csv(content, reading, None, types)
    except (pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0]
        message = f"not output of Stan ({reason}): give the CSV files of a run that has ended"
        raise DataError(message, path, code="damaged") from error
    return np.stack([to_numpy(column) for column in table.columns], axis=-1)


def _find_starts(outputs: Sequence[_Output]) -> list[int]:
    """Return how many rows of each file precede its draws.

    Raises:
        DataError: if only some chains say where their warm-up ends.
    """
    if outputs[0].method != "sample":
        return [int(one.method == "variational") for one in outputs]
    unended = [one.path for one in outputs if one.ended is None]
    if 0 < len(unended) < len(outputs):
        raise DataError(
            "no comment says where the warm-up ends (# Adaptation terminated), as in the other "
            "files: leave out a chain that stopped in its warm-up",
            unended[0],
            code="damaged",
        )
    return [one.saved if one.ended is None else one.ended for one in outputs]


def _join_cells(columns: Mapping[str, Float64], path: str) -> dict[str, Float64]:
    """Return arrays of columns, (chains, draws), whose names have the indices of a cell.

    Parts of tuples (`pair:1`) and of complex numbers (`z.real`) are variables.

    Raises:
        DataError: if an array lacks cells.

    >>> arrays = _join_cells({"x.2": np.array([[2.0]]), "x.1": np.array([[1.0]])}, "output.csv")
    >>> arrays["x"].tolist()
    [[[1.0, 2.0]]]
    """
    cells: dict[str, dict[tuple[int, ...], Float64]] = {}
    for name, values in columns.items():
        found = _CELL.fullmatch(name)
        index = tuple(map(int, found[2].split(".")[1:])) if found else ()
        cells.setdefault(found[1] if found else name, {})[index] = values
    arrays = {}
    for name, of in cells.items():
        shape = tuple(map(max, zip(*of, strict=False)))
        places = (
            [*product(*(range(1, size + 1) for size in shape))] if prod(shape) == len(of) else []
        )
        if {*places} != {*of}:
            there = list_names(".".join(map(str, (name, *index))) for index in of)
            message = f"{name} is not a whole array ({there}): give all columns that Stan wrote"
            raise DataError(message, path, code="missing-column")
        arrays[name] = np.stack([of[place] for place in places], -1)
        arrays[name] = arrays[name].reshape(*arrays[name].shape[:2], *shape)
    return arrays
