"""CSV files of CmdStan, which ArviZ reads."""

from __future__ import annotations

from collections.abc import Mapping
from glob import glob
from pathlib import Path
from typing import Any

from bpa_ppl.errors import DataError, damaged, missing_data
from bpa_ppl.posterior.arviz_functions import (
    arviz_version,
    import_arviz,
    split_groups,
    suggest_call,
)
from bpa_ppl.posterior.groups import Group

#: How the names of CmdStan's files end.
CSV = ".csv"


def read_cmdstan(path: str | Path) -> tuple[Mapping[str, Group], Mapping[str, Any]]:
    """Return the groups of CSV files of CmdStan, and the attributes of the whole.

    Args:
        path: of a file, or a pattern of several, such as `output_*.csv`: each file is a chain.

    Raises:
        DataError: if there is no such file, ArviZ cannot read one, or ArviZ is version 1 or later,
            which has no reader of these files.

    >>> read_cmdstan("no_*.csv")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no_*.csv: no such file: give CSV files of CmdStan, as output_*.csv
    """
    files = [str(path)] if Path(path).is_file() else sorted(glob(str(path)))
    if not files:
        remedy = "give CSV files of CmdStan, as output_*.csv"
        raise missing_data("such file", remedy, path, code="missing-file")
    if arviz_version() >= 1:
        remedy = f"{suggest_call('#')}, and save the result by its to_netcdf"
        raise DataError(f"ArviZ 1 does not read it: {remedy}", path, code="unknown-format")
    try:
        data = import_arviz().from_cmdstan(files, disable_glob=True)
        return split_groups(data)
    # The file may have any content.
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OSError) as error:
        what, reason = "output of CmdStan that ArviZ reads", f"{type(error).__name__}: {error}"
        remedy = "give the CSV files of one run of CmdStan's method sample"
        raise damaged(what, f"{reason:.300}", path, remedy=remedy) from error
