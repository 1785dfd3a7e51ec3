"""Posteriors in NetCDF files.

HDF5 cannot recover from a full disk, so files are made in memory and written as a whole. All arrays
of numbers carry HDF5's Fletcher-32 checksums, and reading loads everything, so that a damaged
file is detected at once. The file ends with a checksum of all its bytes, also of names and
attributes; HDF5 ignores it, and removes it when another program changes the file.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import struct
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpa_ppl.errors import BpaError, DataError
from bpa_ppl.formats.streams import atomic_path, denied
from bpa_ppl.posterior.adapter import as_draws, from_tree, to_tree
from bpa_ppl.posterior.arviz_functions import arviz_data, data_tree
from bpa_ppl.posterior.draws import SAMPLING_TIME, Draws

if TYPE_CHECKING:
    from xarray import DataTree

    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

_HDF5 = b"\x89HDF\r\n\x1a\n"
#: The sizes of offsets and of lengths in the superblock, in bytes.
_SIZES = b"\x08\x08"
#: The header of a global heap collection, which holds strings of variable length, and its least
#: size in bytes.
_COLLECTION, _MIN_COLLECTION = re.compile(rb"GCOL\x01...(.{8})", re.DOTALL), 4096
#: The size of the Fletcher-32 checksum at the end of each chunk, in bytes.
_CHECKSUM = 4
#: What precedes the checksum of the whole file at its end, and the length of both.
_SEAL, _SEALED = b"\nsha256 ", 72
#: zlib compresses by at most 1032 to 1; small files may lack some of their blocks.
_MAX_RATIO, _SMALL = 1100, 1 << 26


def write_posterior(posterior: Posterior, path: str | Path, *, timed: bool = False) -> None:
    """Save a posterior as NetCDF.

    Equal posteriors give equal bytes, however long they took to sample. The file is complete or not
    there at all.

    Args:
        posterior: as `adapt` returns it, or `Draws`.
        path: of the file.
        timed: Record the seconds that sampling took, as the attribute `sampling_time`.

    Raises:
        DataError: if the file cannot be written, or a draw is not a finite number.

    >>> import numpy as np
    >>> write_posterior(Draws({"weights": np.array([[[0.5], [1.5]]])}, ("LM0",)), "posterior.nc")
    >>> as_draws(read_posterior("posterior.nc")).mean.tolist()
    [1.0]
    """
    as_draws(posterior)  # refuses what `read_posterior` would refuse
    tree = to_tree(posterior) if isinstance(posterior, Draws) else data_tree(posterior).copy()
    if not timed:
        tree.attrs.pop(SAMPLING_TIME, None)
    content = sealed(to_bytes(tree))
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def read_posterior(path: str | Path) -> InferenceData:
    """Load a posterior from NetCDF, written by this package or by another, with `weights`.

    Raises:
        DataError: naming the file, if it cannot be read, is damaged, or holds no draws of
            `weights` that are finite numbers, one for each named feature.

    >>> read_posterior("no.nc")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: no.nc: no such file: give the posterior that `bpa adapt` wrote
    """
    return arviz_data(_read(path)[0])


def read_draws(path: str | Path) -> Draws:
    """Load a posterior as plain arrays, without ArviZ; see `read_posterior`.

    >>> import numpy as np
    >>> write_posterior(Draws({"weights": np.array([[[0.5], [1.5]]])}, ("LM0",)), "posterior.nc")
    >>> read_draws("posterior.nc").mean.tolist()
    [1.0]
    """
    return _read(path)[1]


def _read(path: str | Path) -> tuple[DataTree, Draws]:
    if not os.path.isfile(path):  # also of a name that no file can have
        what = "a folder" if os.path.isdir(path) else "no such file"
        problem = f"{what}: give the posterior that `bpa adapt` wrote"
        raise DataError(problem, path, code="missing-file")
    try:
        tree = from_bytes(unsealed(Path(path).read_bytes()))
        return tree, as_draws(from_tree(tree))
    except OSError as error:
        raise denied(path, error, "read") from error
    except BpaError as error:
        raise DataError(str(error), path, parameter=error.parameter, code=error.code) from error
    # Groups, attributes and types may be any that NetCDF can hold.
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        problem = f"not a posterior ({_first_line(error)}): give the file that `bpa adapt` wrote"
        raise DataError(problem, path, code="damaged") from error


def sealed(content: bytes) -> bytes:
    """Return the content of a file with its checksum at the end.

    >>> unsealed(sealed(b"draws"))
    b'draws'
    """
    return content + _SEAL + hashlib.sha256(content).hexdigest().encode()


def unsealed(content: bytes) -> bytes:
    """Return the content of a file without its checksum, which older files do not have.

    Raises:
        DataError: if the checksum is wrong.
    """
    body, seal = content[:-_SEALED], content[-_SEALED:]
    if not seal.startswith(_SEAL):
        return content
    if sealed(body) != content:
        raise _unreadable("its checksum is wrong")
    return body


def to_bytes(tree: DataTree) -> bytes:
    """Return a posterior as the content of a NetCDF file; equal posteriors give equal bytes.

    Raises:
        DataError: if NetCDF cannot hold its values or names.

    >>> from bpa_ppl.posterior.arviz_functions import tree_of
    >>> content = to_bytes(tree_of({"posterior": {"weights": [[[0.5], [1.5]]]}}))
    >>> from_bytes(content)["posterior"]["weights"].values.tolist()
    [[[0.5], [1.5]]]
    """
    encoding = {
        node.path: {
            name: {"zlib": True, "fletcher32": True, "chunksizes": variable.shape}
            for name, variable in node.to_dataset(inherit=False).variables.items()
            if variable.ndim and variable.size and variable.dtype.kind in "biufc"
        }
        for node in tree.subtree
    }
    import h5netcdf

    try:
        return bytes(tree.to_netcdf(engine="h5netcdf", encoding=encoding))
    except (TypeError, ValueError, OverflowError, h5netcdf.CompatibilityError) as error:
        problem = f"NetCDF cannot hold this posterior ({_first_line(error)})"
        raise DataError(problem, code="cannot-write") from error


def from_bytes(content: bytes) -> DataTree:
    """Return everything that a NetCDF file holds.

    Raises:
        DataError: if it is damaged, cut short, or not a NetCDF file.

    >>> from_bytes(b"not a posterior")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: not a readable NetCDF posterior (not an HDF5 file): give ...
    """
    if not content.startswith(_HDF5):
        raise _unreadable("not an HDF5 file")
    import xarray

    try:
        _check_global_heaps(content)
        _check_storage(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about groups and types that are not ours
            with xarray.open_datatree(io.BytesIO(content), engine="h5netcdf") as tree:
                tree.load()
            for node in tree.subtree:
                node.to_dataset()  # dimensions may contradict each other
            return tree
    except DataError:
        raise
    # A damaged file can make HDF5 and the libraries above it raise almost anything.
    except Exception as error:
        raise _unreadable(_first_line(error)) from error


def _check_global_heaps(content: bytes) -> None:
    """Refuse global heap collections in which HDF5 would loop forever.

    HDF5 steps from object to object by their sizes, which in a damaged file may be 0 or lead out of
    the collection. Bytes that only look like a collection, and collections that HDF5 refuses
    itself, are skipped.
    """
    if (content[13:15] if content[8] < 2 else content[9:11]) != _SIZES:
        raise _unreadable("its offsets and lengths are not of 8 bytes")
    for found in _COLLECTION.finditer(content):
        start, size = found.start(), int.from_bytes(found[1], "little")
        if not _MIN_COLLECTION <= size <= len(content) - start:
            continue
        at, end = start + 16, start + size
        while at + 16 <= end:
            index, length = struct.unpack_from("<H6xQ", content, at)
            step = 16 + -(-length // 8) * 8 if index else length  # object 0 is the free space
            if not 0 < step <= end - at:
                raise _unreadable("the sizes of its strings are damaged")
            at += step


def _check_storage(content: bytes) -> None:
    """Refuse links, what HDF5 would read from other files, and sizes that no such file holds.

    Nothing but names and sizes is read, and no memory is allocated for the arrays. A link that
    leads to a group above it would be followed without end.
    """
    import h5py

    sizes: list[int] = []

    def soft_link(name: str, link: object) -> str | None:
        is_soft = not isinstance(link, h5py.HardLink)
        return f"{name} is a link to another name or file" if is_soft else None

    def too_short(chunk: Any) -> bool | None:
        # HDF5 subtracts the size of the checksum without looking. None continues the iteration.
        return True if chunk.size < _CHECKSUM else None

    def outside_data(name: str, entry: object) -> str | None:
        if isinstance(entry, h5py.Group) and h5py.h5o.get_info(entry.id).rc > 1:
            return f"the group {name} has two names"
        if isinstance(entry, h5py.Dataset):
            chunk = math.prod(entry.chunks or ()) * entry.dtype.itemsize
            sizes.append(max(int(entry.nbytes), chunk))
            if entry.is_virtual or entry.external:
                return f"the numbers of {name} are in another file"
            if entry.fletcher32 and entry.id.chunk_iter(too_short):
                return f"the numbers of {name} are damaged"
        return None

    with h5py.File(io.BytesIO(content), "r") as file:
        problem = (
            file.visititems_links(soft_link)
            or outside_data("/", file["/"])
            or file.visititems(outside_data)
        )
    if problem:
        raise _unreadable(problem)
    if sum(sizes) > max(_SMALL, _MAX_RATIO * len(content)):
        raise DataError(
            f"claims to hold {sum(sizes):.3g} bytes of numbers, which is not possible in a file "
            f"of {len(content):,} bytes: make it again",
            code="damaged",
        )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]


def _unreadable(reason: str) -> DataError:
    return DataError(
        f"not a readable NetCDF posterior ({reason}): give the file that `bpa adapt` wrote",
        code="damaged",
    )
