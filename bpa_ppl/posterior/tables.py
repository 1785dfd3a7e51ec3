"""Tables of draws: data frames with a row for each draw, and CSV files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.values import to_numpy
from bpa_ppl.errors import DataError, list_names
from bpa_ppl.posterior.arviz_data import LOG_WEIGHT
from bpa_ppl.posterior.groups import Group, label_groups, require_equal_lengths
from bpa_ppl.posterior.stan import STATISTICS, block_size, is_stan, iter_lines, read_stan

#: How the names of CSV files end.
CSV = ".csv"
#: The columns with the chain and the draw of a row: of pandas, of R's posterior, of CmdStanPy.
_CHAIN = ("chain", ".chain", "chain__")
_DRAW = (".iteration", "iteration", "iter__", "draw", ".draw", "draw__")
#: The names that ArviZ has for columns of Stan, R's posterior, Turing, NumPyro and emcee, and what
#: Turing records of the density.
_STATISTICS = {
    **STATISTICS,
    "lp": "lp",
    "logjoint": "lp",
    "log_prob": "lp",
    "log_density": "log_density",
    "logprior": "logprior",
    "loglikelihood": "loglikelihood",
    "accept_prob": "acceptance_rate",
    "acceptance_rate": "acceptance_rate",
    "step_size": "step_size",
    "tree_depth": "tree_depth",
    "n_steps": "n_steps",
    "num_steps": "n_steps",
    "diverging": "diverging",
    "numerical_error": "diverging",
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
_REMEDY = (
    "a table of draws has a row for each draw, with the columns chain and draw (or .chain and "
    ".iteration, as write.csv(posterior::as_draws_df(fit)) writes them in R); Stan writes a file "
    "for each chain, which begins with comments"
)

_Groups = tuple[Mapping[str, Group], Mapping[str, Any]]


def read_csv(path: str | Path) -> _Groups:
    """Return the groups of CSV files, and the attributes of the whole.

    Args:
        path: of a file, or a pattern of several, such as `output_*.csv`. Of Stan each file is a
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
    names = heads[0][0]
    for file, (others, _) in zip(files, heads, strict=True):
        if others != names:
            differing = list_names(sorted({*names} ^ {*others})) or "their order"
            raise DataError(
                f"{files[0]} and {file} have other columns ({differing}): give the files of one "
                "run, by a pattern that fits no other file",
                code="mismatch",
            )
    if any(is_stan(comments) for _, comments in heads):
        return read_stan(files)
    import pyarrow as pa
    from pyarrow import csv

    tables, reading = [], csv.ReadOptions(block_size=block_size(len(names)))
    for file in files:
        try:
            tables.append(csv.read_csv(file, reading))
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
    comments = ""
    for line in iter_lines(path):
        if not line.startswith("#"):
            return [name.strip().strip('"') for name in line.split(",")], comments
        comments += line + "\n"
    return [], comments


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
