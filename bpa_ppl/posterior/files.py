"""Posteriors in files, NetCDF as ArviZ writes it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bpa_ppl.errors import DataError
from bpa_ppl.formats.streams import atomic_path
from bpa_ppl.posterior.adapter import Draws, import_arviz, to_arviz
from bpa_ppl.posterior.draws import WEIGHTS

if TYPE_CHECKING:
    from arviz import InferenceData

    from bpa_ppl.posterior.adapter import Posterior


def write_posterior(posterior: Posterior, path: str | Path) -> None:
    """Save a posterior as NetCDF, written beside and renamed.

    Raises:
        DataError: if the file cannot be written.
    """
    data = to_arviz(posterior) if isinstance(posterior, Draws) else posterior
    with atomic_path(path) as temporary:
        data.to_netcdf(str(temporary), engine="h5netcdf")


def read_posterior(path: str | Path) -> InferenceData:
    """Load a posterior from NetCDF, this library's or another's that has `weights`.

    Raises:
        DataError: if the file cannot be read or holds no draws of `weights`.
    """
    if not Path(path).is_file():
        raise DataError("no such file: give the posterior that `bpa adapt` wrote", path)
    try:
        data = import_arviz().from_netcdf(str(path), engine="h5netcdf")
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"not a readable NetCDF posterior ({reason})", path) from error
    if "posterior" not in data or WEIGHTS not in data["posterior"]:
        raise DataError("holds no draws of a variable called weights", path)
    return data
