"""Saving a posterior and loading it again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bpa_ppl.errors import BpaError, DataError
from bpa_ppl.formats.streams import atomic_path, denied
from bpa_ppl.posterior.adapter import as_draws, completed, draws_of, to_groups
from bpa_ppl.posterior.arviz_functions import groups_of, of_groups
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.netcdf import from_bytes, to_bytes

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData
    from bpa_ppl.posterior.groups import Groups


def write_posterior(posterior: Posterior, path: str | Path) -> None:
    """Save a posterior as NetCDF: made in memory, written beside and renamed.

    The same posterior gives the same bytes.

    Args:
        posterior: as `adapt` returns it, or `Draws`.
        path: of the file.

    Raises:
        DataError: if the file cannot be written, or `read_posterior` would not take it: a draw
            is not a finite number.

    >>> import numpy as np
    >>> write_posterior(Draws({"weights": np.array([[[0.5], [1.5]]])}, ("LM0",)), "posterior.nc")
    >>> as_draws(read_posterior("posterior.nc")).mean.tolist()
    [1.0]
    """
    as_draws(posterior)
    ours = isinstance(posterior, Draws)
    content = to_bytes(to_groups(posterior) if ours else groups_of(posterior, encoded=True))
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def read_posterior(path: str | Path) -> InferenceData:
    """Load a posterior from NetCDF, this library's or another's that has `weights`.

    All of it is read and looked at: what is returned can be checked and used.

    Raises:
        DataError: naming the file, if it cannot be read, is damaged, or holds no draws of
            `weights` that are finite numbers, one a named feature.

    >>> read_posterior("no.nc")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no.nc: no such file: give the posterior that `bpa adapt` wrote
    """
    return of_groups(completed(*_read(path)))


def read_draws(path: str | Path) -> Draws:
    """Load a posterior as plain arrays; see `read_posterior`. Neither ArviZ nor xarray is loaded.

    >>> import numpy as np
    >>> write_posterior(Draws({"weights": np.array([[[0.5], [1.5]]])}, ("LM0",)), "posterior.nc")
    >>> read_draws("posterior.nc").mean.tolist()
    [1.0]
    """
    return _read(path)[1]


def _read(path: str | Path) -> tuple[Groups, Draws]:
    if Path(path).is_dir():
        raise DataError("a folder: give the posterior in it that `bpa adapt` wrote", path)
    if not Path(path).is_file():
        raise DataError("no such file: give the posterior that `bpa adapt` wrote", path)
    try:
        data = from_bytes(Path(path).read_bytes())
        return data, as_draws(draws_of(data))
    except OSError as error:
        raise denied(path, error, "read") from error
    except BpaError as error:
        raise DataError(str(error), path) from error
