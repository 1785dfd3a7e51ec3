"""A posterior as the bytes of a NetCDF file, and back: made and read in memory, as a whole.

HDF5 crashes where a disk is full, and finds a damaged block only when somebody asks for it. So it
never sees a disk: what is written are finished bytes, and what is read is taken at once. At the
end of the bytes stands their SHA-256, which HDF5 does not look at; with it every damage is found,
and bytes of other programs, which lack it, are read all the same.
"""

from __future__ import annotations

import hashlib
import io
import warnings
from typing import TYPE_CHECKING, Any

from bpa_ppl.errors import DataError
from bpa_ppl.posterior.arviz_functions import datasets, tree_of

if TYPE_CHECKING:
    from xarray import Dataset, DataTree

    from bpa_ppl.posterior.arviz_functions import InferenceData

_SEAL = b"\nbpa_ppl sha256 "
_SEALED = len(_SEAL) + 64
_COMPRESSED = "biufc"  # kinds of numbers
#: zlib packs at most 1032 bytes into one; a small file may lack some of its blocks.
_RATIO, _SMALL = 1100, 1 << 26


def to_bytes(data: InferenceData | DataTree) -> bytes:
    """Return a posterior as a sealed NetCDF file; equal posteriors give equal bytes.

    Besides the draws, memory holds the bytes: their compressed size.

    >>> from bpa_ppl.posterior.arviz_functions import data_tree
    >>> data = data_tree({"posterior": {"weights": [[[0.5], [1.5]]]}})
    >>> from_bytes(to_bytes(data))["posterior"]["weights"].values.tolist()
    [[[0.5], [1.5]]]
    """
    import h5netcdf
    import xarray

    made = io.BytesIO()
    with h5netcdf.File(made, "w") as file:
        _write(xarray.Dataset(attrs=data.attrs), file, "/")
        for name, group in datasets(data).items():
            _write(group, file, name)
    content = made.getvalue()
    return content + _seal(content)


def _write(group: Dataset, file: Any, name: str) -> None:
    from xarray.backends import H5NetCDFStore

    kinds = {variable: values.dtype.kind for variable, values in group.variables.items()}
    packed = {variable: {"zlib": True} for variable, kind in kinds.items() if kind in _COMPRESSED}
    group.dump_to_store(H5NetCDFStore(file, group=name, mode="a"), encoding=packed)


def from_bytes(content: bytes) -> DataTree:
    """Return all that a NetCDF file holds, read to the last number.

    Raises:
        DataError: if it is damaged, cut short, or no NetCDF file.

    >>> from_bytes(b"not a posterior")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: not a readable NetCDF posterior (no HDF5 file): give ...
    """
    _check_seal(content)
    if not content.startswith(b"\x89HDF\r\n\x1a\n"):
        raise _unreadable("no HDF5 file")
    try:
        return _read(content)
    except DataError:
        raise
    # Whatever HDF5 and the libraries above it raise, the file is to blame.
    except Exception as error:
        text = str(error).strip()
        raise _unreadable(text.splitlines()[0][:200] if text else type(error).__name__) from error


def _read(content: bytes) -> DataTree:
    import h5netcdf
    import xarray
    from xarray.backends import H5NetCDFStore

    def opened(file: Any, name: str) -> Dataset:
        return xarray.open_dataset(H5NetCDFStore(file, group=name)).load()

    _check_size(content)
    with warnings.catch_warnings(), h5netcdf.File(io.BytesIO(content), "r") as file:
        warnings.simplefilter("ignore")  # of groups and types that are not ours to judge
        groups = {name: opened(file, name) for name in file.groups}
        attrs = opened(file, "/").attrs
        return tree_of(groups, attrs)


def _check_size(content: bytes) -> None:
    """Refuse a file that says it holds more than can be in it, before memory is asked for it."""
    import h5py

    claims = []
    with h5py.File(io.BytesIO(content), "r") as file:
        file.visititems(lambda name, entry: claims.append(int(getattr(entry, "nbytes", 0))))
    if sum(claims) > max(_SMALL, _RATIO * len(content)):
        raise DataError(
            f"says that it holds {sum(claims):.3g} bytes of numbers, which cannot be in a file of "
            f"{len(content):,} bytes: make it again"
        )


def _seal(content: bytes) -> bytes:
    return _SEAL + hashlib.sha256(content).hexdigest().encode()


def _check_seal(content: bytes) -> None:
    end = content[-_SEALED:]
    if end.startswith(_SEAL) and end != _seal(content[:-_SEALED]):
        raise DataError(
            "damaged: its bytes are not those that were written; fetch it again, or adapt again"
        )


def _unreadable(reason: str) -> DataError:
    return DataError(
        f"not a readable NetCDF posterior ({reason}): give the file that `bpa adapt` wrote"
    )
