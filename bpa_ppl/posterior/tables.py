"""Tables of draws: data frames with a row for each draw, and CSV files, of CmdStan too."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import DataError, list_names
from bpa_ppl.formats.values import to_numpy
from bpa_ppl.posterior.arviz_data import LOG_WEIGHT
from bpa_ppl.posterior.arviz_functions import (
    arviz_version,
    import_arviz,
    split_groups,
    suggest_call,
)
from bpa_ppl.posterior.groups import Group, label_groups

#: How the names of CSV files end.
CSV = ".csv"
#: The columns with the chain and the draw of a row: of pandas, of R's posterior, of CmdStanPy.
_CHAIN = ("chain", ".chain", "chain__")
_DRAW = (".iteration", "iteration", "iter__", "draw", ".draw", "draw__")
#: The names that ArviZ has for columns of Stan, R's posterior, Turing, NumPyro and emcee.
_STATISTICS = {
    "lp__": "lp",
    "lp": "lp",
    "log_prob": "lp",
    "accept_stat__": "acceptance_rate",
    "accept_prob": "acceptance_rate",
    "acceptance_rate": "acceptance_rate",
    "stepsize__": "step_size",
    "step_size": "step_size",
    "treedepth__": "tree_depth",
    "tree_depth": "tree_depth",
    "n_leapfrog__": "n_steps",
    "n_steps": "n_steps",
    "num_steps": "n_steps",
    "divergent__": "diverging",
    "diverging": "diverging",
    "numerical_error": "diverging",
    "energy__": "energy",
    "hamiltonian_energy": "energy",
    "hamiltonian_energy_error": "energy_error",
    "max_hamiltonian_energy_error": "max_energy_error",
    "is_accept": "accepted",
    "nom_step_size": "step_size_nom",
    ".log_weight": LOG_WEIGHT,
}
#: A column of ArviZ's `to_dataframe()`: the group, if there are several, the name, and labels of
#: the cell.
_OF_GROUP = re.compile(r"\((?:'(\w+)', )?'([^']+)'.*\)")
#: Methods of CmdStan whose draws are independent. The first draw of `variational` is the mean.
_INDEPENDENT = ("laplace", "pathfinder", "variational")
_REMEDY = (
    "a table of draws has a row for each draw, with the columns chain and draw (or .chain and "
    ".iteration, as write.csv(posterior::as_draws_df(fit)) writes them in R); CmdStan writes a "
    "file for each chain, which begins with comments"
)

_Groups = tuple[Mapping[str, Group], Mapping[str, Any]]


def read_csv(path: str | Path) -> _Groups:
    """Return the groups of CSV files, and the attributes of the whole.

    Args:
        path: of a file, or a pattern of several, such as `output_*.csv`. Of CmdStan each file is a
            chain; other files have a row for each draw, with the columns chain and draw.

    Raises:
        DataError: if there is no such file, or one cannot be read.

    >>> read_csv("no_*.csv")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no_*.csv: no such file: give CSV files of draws, as output_*.csv
    """
    files = [str(path)] if Path(path).is_file() else sorted(glob(str(path)))
    if not files:
        message = "no such file: give CSV files of draws, as output_*.csv"
        raise DataError(message, path, code="missing-file")
    heads = [_read_head(file) for file in files]
    names, comments = heads[0]
    for file, (others, _) in zip(files, heads, strict=True):
        if others != names:
            differing = list_names(sorted({*names} ^ {*others})) or "their order"
            raise DataError(
                f"{files[0]} and {file} have other columns ({differing}): give the files of one "
                "run, by a pattern that fits no other file",
                code="mismatch",
            )
    if "stan_version_major" in comments and {*names}.isdisjoint(_CHAIN):
        return _read_cmdstan(files, comments)
    import pyarrow as pa
    from pyarrow import csv

    tables = []
    for file in files:
        try:
            tables.append(csv.read_csv(file))
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(error).splitlines()[0]
            message = f"not a table of draws ({reason}): {_REMEDY}"
            raise DataError(message, file, code="damaged") from error
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        message = f"the files have columns of other types ({reason}): give those of one run"
        raise DataError(message, path, code="mismatch") from error
    return read_table(table, path)


def _read_head(path: str) -> tuple[list[str], str]:
    """Return the names of the columns of a CSV file, and the comments above them."""
    comments, line = "", ""
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line.startswith("#"):
                break
            comments += line
    return [name.strip().strip('"') for name in line.split(",")], comments


def read_table(table: Any, origin: str | Path | None = None) -> _Groups:
    """Return the groups of a table with a row for each draw, and the attributes of the whole.

    Args:
        table: a table of Arrow, or a data frame that exports it.
        origin: its file.

    Raises:
        DataError: if rows have no chain or no draw, two have the same, or the chains do not have
            the same number of draws.

    >>> import pyarrow as pa
    >>> rows = {"chain": [1, 1, 2, 2], "draw": [2, 1, 1, 2], "mu": [0.5, 0.1, 0.2, 0.3]}
    >>> read_table(pa.table(rows))[0]["posterior"].arrays["mu"].tolist()
    [[0.1, 0.5], [0.2, 0.3]]
    """
    import pyarrow as pa

    try:
        table = pa.table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        message = f"not a data frame that Arrow reads ({reason}): give it numbers or texts"
        raise DataError(message, origin, code="damaged") from error
    columns = dict(zip(map(str, table.column_names), table.columns, strict=True))
    chosen = [next((n for n in names if n in columns), None) for names in (_CHAIN, _DRAW)]
    for name, what in zip(chosen, ("chain", "draw"), strict=True):
        if name is None:
            raise DataError(f"no column {what}: {_REMEDY}", origin, code="missing-column")
    if not len(table):
        raise DataError("no row of a draw: give a table of draws", origin, code="no-data")
    chain, draw = (_read_column(columns[str(name)]) for name in chosen)
    labels, place, counts = np.unique(chain, return_inverse=True, return_counts=True)
    order = np.lexsort((draw, place))
    same = (np.diff(place[order]) == 0) & (draw[order][1:] == draw[order][:-1])
    if same.any():
        row = order[1:][same][0]
        message = f"two rows of draw {draw[row]} of chain {chain[row]}: give each cell a column"
        raise DataError(message, origin, code="duplicate")
    require_equal_lengths(dict(zip((f"chain {x}" for x in labels), counts, strict=True)), origin)
    shape = len(labels), int(counts[0])
    arrays = {}
    for name, column in columns.items():
        # pandas writes an index without a name as a column without one.
        if not name or name.startswith("__index_level_") or name in (*_CHAIN, *_DRAW):
            continue
        arrays[name] = _read_column(column)[order].reshape(shape)
    return label_groups(split_statistics(arrays)), {}


def split_statistics(arrays: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return variables and statistics of samplers by group; statistics have ArviZ's names.

    Columns of ArviZ's `to_dataframe()` name their group; those of other groups are left out.

    >>> split_statistics({"mu": 1, "divergent__": 2, "('posterior', 'theta[0]', 0)": 3})
    {'posterior': {'mu': 1, 'theta[0]': 3}, 'sample_stats': {'diverging': 2}}
    >>> split_statistics({"('theta[0]', 'A')": 1})["posterior"]
    {'theta[0]': 1}
    """
    groups: dict[str, dict[str, Any]] = {"posterior": {}, "sample_stats": {}}
    for name, values in arrays.items():
        if parts := _OF_GROUP.fullmatch(name):
            groups.get(parts[1] or "posterior", {}).setdefault(parts[2], values)
        elif name in _STATISTICS or name.endswith("__"):
            groups["sample_stats"].setdefault(_STATISTICS.get(name, name), values)
        else:
            groups["posterior"][name] = values
    return groups


def _read_column(column: Any) -> npt.NDArray[Any]:
    """Return the numbers of a column, NaN for those that are missing, or its texts."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return to_numpy(column)
    return np.array(column.to_pylist()) if column.length() else np.zeros(0)


def require_equal_lengths(
    counts: Mapping[str, Any], origin: str | Path | None = None, remedy: str = ""
) -> None:
    """Refuse chains that do not all have the same number of draws.

    Args:
        counts: the draws of each chain, by what it is called.
        origin: the file.
        remedy: what to do, if it is more than words.

    >>> require_equal_lengths({"chain 0": 300, "chain 1": 500, "chain 2": 500})
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: chain 0 has 300 draws, but chain 1 has 500: leave out chains that ...
    """
    fewest, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    if counts[fewest] < counts[most]:
        least = counts[fewest]
        message = (
            f"{fewest} has {least} draws, but {most} has {counts[most]}: leave out chains that "
            "stopped early"
        )
        message += f", or keep {least} draws of each{remedy and ': '}{remedy}" if least else ""
        raise DataError(message, origin, code="wrong-length")


def _read_cmdstan(files: Sequence[str], comments: str) -> _Groups:
    """Return the groups of CSV files of CmdStan, each of which is a chain or an approximation."""
    counts = {}
    for path in files:
        with open(path, "rb") as file:
            rows = sum(1 for line in file if line.strip() and not line.startswith(b"#"))
        counts[Path(path).name] = max(rows - 1, 0)  # the first one has the names
    require_equal_lengths(counts, Path(files[0]).parent if len(files) > 1 else files[0])
    if not max(counts.values()):
        message = "no draw: give CSV files of CmdStan's method sample"
        raise DataError(message, files[0], code="no-data")
    if arviz_version() >= 1:
        call = suggest_call("#")
        message = f"ArviZ 1 does not read it: {call}, and save the result by its to_netcdf"
        raise DataError(message, files[0], code="unknown-format")
    try:
        groups, attrs = split_groups(import_arviz().from_cmdstan(list(files), disable_glob=True))
    # The file may have any content.
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OSError) as error:
        reason = f"{type(error).__name__}: {error}"
        message = f"not output of CmdStan ({reason:.300}): give the CSV files of one run"
        name = files[0] if len(files) == 1 else list_names(files)
        raise DataError(message, name, code="damaged") from error
    method = re.search(r"^# *method *= *(\w+)", comments, re.MULTILINE)
    if method is None or method[1] not in _INDEPENDENT:
        return groups, attrs
    first = int(method[1] == "variational")
    drawn = groups["posterior"]
    arrays = {name: values[:, first:] for name, values in drawn.arrays.items()}
    weights = np.zeros(next(iter(arrays.values())).shape[:2])
    dims = {name: named[2:] for name, named in drawn.dims.items()}
    parts = {"posterior": arrays, "sample_stats": {LOG_WEIGHT: weights}}
    return label_groups(parts, dims=dims), {"sampler": method[1]}
