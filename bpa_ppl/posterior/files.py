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
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import glob
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.messages import format_count, warn_user
from bpa_ppl._runtime.names import find_repeated
from bpa_ppl._runtime.streams import access_error, atomic_path
from bpa_ppl.errors import BpaError, DataError, list_names
from bpa_ppl.posterior.arviz_data import as_draws, to_groups
from bpa_ppl.posterior.arviz_functions import split_groups
from bpa_ppl.posterior.draws import Draws, unwrap
from bpa_ppl.posterior.groups import OTHER_PROGRAMS, Group

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

_REMEDY = "give a NetCDF file of `bpa adapt`, or of the to_netcdf of any program's ArviZ data"
#: What can be read as a whole: files, and pipes, such as those that shells make of commands.
_READABLE = (stat.S_IFREG, stat.S_IFIFO)
_HDF5 = b"\x89HDF\r\n\x1a\n"
#: What precedes the checksum of the whole file at its end, and the length of both.
_SEAL, _SEALED = b"\nsha256 ", 72
#: Attributes of numbers that stand for others: packed ones and dates.
_ENCODED = {"scale_factor", "add_offset", "calendar", "dtype"}
#: zlib compresses by at most 1032 to 1; small files may lack some of their blocks.
_MAX_RATIO, _SMALL_FILE = 1100, 1 << 26
#: Groups and arrays of a file: the time to read them grows with the square of their number.
_GROUPS, _ARRAYS = 100, 1000


def write_posterior(posterior: Posterior, path: str | Path, *, timed: bool = False) -> None:
    """Save a posterior as NetCDF.

    Equal posteriors give equal bytes, however long they took to sample. The file is complete or not
    there at all.

    Args:
        posterior: as `adapt` or `sample` returns it, or `Draws`.
        path: of the file.
        timed: Record the seconds that sampling took, as the attributes `sampling_time` and
            `compilation_time`.

    Raises:
        DataError: if the file cannot be written, or a draw is not a finite number.

    >>> import numpy as np
    >>> write_posterior(Draws({"mu": np.array([[0.5, 1.5]])}), "posterior.nc")
    >>> read_groups("posterior.nc")[0]["posterior"].arrays["mu"].tolist()
    [[0.5, 1.5]]
    """
    from h5netcdf import CompatibilityError

    data, draws = unwrap(posterior), as_draws(posterior)  # refuses what could not be read
    try:
        groups, attrs = to_groups(draws) if isinstance(data, Draws) else split_groups(data)
        arrays = sum(len({*g.arrays, *g.coords, *chain(*g.dims.values())}) for g in groups.values())
        if arrays > _ARRAYS:
            message = f"{arrays:,} arrays, but {_ARRAYS:,} can be read: give the model fewer sites"
            raise DataError(message, code="cannot-write")
        if not timed:
            for name in ("sampling_time", "compilation_time"):
                attrs.pop(name, None)
        content = seal(to_bytes(groups, attrs))
    except BpaError:
        raise
    # Values and names are arbitrary.
    except (TypeError, ValueError, OverflowError, RecursionError, CompatibilityError) as error:
        problem = f"NetCDF cannot hold this posterior ({_first_line(error)})"
        raise DataError(problem, code="cannot-write") from error
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def name_file(path: str | Path) -> Iterator[None]:
    """Name the file of a posterior in the errors of what reads its groups."""
    try:
        yield
    except BpaError as error:
        if getattr(error, "path", None) is not None:
            raise
        raise DataError(str(error), path, parameter=error.parameter, code=error.code) from error
    # Groups, attributes and types may be any that NetCDF can hold.
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as error:
        message = f"not a posterior ({_first_line(error)}): {_REMEDY}"
        raise DataError(message, path, code="damaged") from error


def read_groups(path: str | Path) -> tuple[dict[str, Group], dict[str, Any]]:
    """Return the groups of any NetCDF file, and the attributes of the whole.

    The variables of a file without groups, as a Dataset writes it, are those of a posterior.

    Raises:
        DataError: naming the file, if it cannot be read or is damaged.
    """
    kind = _find_kind(path)
    if not kind and (files := sorted(glob(str(path)))):
        problem = f"{format_count(len(files), 'file')} of this pattern, such as {files[0]}, which "
        problem += "are of no kind that is read by a pattern: give CSV files of draws"
        raise DataError(f"{problem}; {OTHER_PROGRAMS}", path, code="unknown-format")
    if kind not in _READABLE:
        what = {stat.S_IFDIR: "a folder", 0: "no such file"}.get(kind, "a device or a socket")
        remedy = f"{_REMEDY}; {OTHER_PROGRAMS}" if kind == stat.S_IFDIR else _REMEDY
        raise DataError(f"{what}: {remedy}", path, code="missing-file")
    try:
        with open(path, "rb") as file:
            begin = file.read(len(_HDF5))
            # Another file, such as a pipe without an end, is not read further.
            content = begin + (file.read() if begin == _HDF5 else b"")
        return from_bytes(unseal(content))
    except OSError as error:
        raise access_error(path, error, "read") from error
    except BpaError as error:
        raise DataError(str(error), path, parameter=error.parameter, code=error.code) from error


def _find_kind(path: str | Path) -> int:
    """Return the type of a file as its mode has it, 0 if there is none."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):  # ValueError: no file can have this name
        return 0


def seal(content: bytes) -> bytes:
    """Return the content of a file with its checksum at the end."""
    return content + _SEAL + hashlib.sha256(content).hexdigest().encode()


def unseal(content: bytes) -> bytes:
    """Return the content of a file without its checksum, which those of other programs lack.

    What follows the end of the HDF5 data must be the checksum.

    Raises:
        DataError: if it is not.

    >>> unseal(seal(to_bytes({}, {})) + b" ")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: not a readable NetCDF posterior (its checksum is wrong: it was ...
    """
    sealed = content[-_SEALED:].startswith(_SEAL)
    body = content[: -_SEALED if sealed else _find_end(content)]
    if len(body) < len(content) and seal(body) != content:
        raise _unreadable("its checksum is wrong: it was changed, cut, or has more at its end")
    return body


def _find_end(content: bytes) -> int:
    """Return where HDF5 data end, by the end-of-file address in the superblock.

    The length of the content if that is unknown; reading then says what is wrong.
    Source: HDF5 File Format Specification 3.0, II.A.
    """
    places = {0: (13, 40), 1: (13, 44), 2: (9, 28), 3: (9, 28)}
    size, at = places.get(content[8] if len(content) > 8 else -1, (0, 0))
    if not at or len(content) < at + 8 or content[size] != 8:
        return len(content)
    return int.from_bytes(content[at : at + 8], "little")


def to_bytes(groups: Mapping[str, Group], attrs: Mapping[Any, Any]) -> bytes:
    """Return a posterior as the content of a NetCDF file; equal posteriors give equal bytes.

    Args:
        groups: arrays of numbers, truth values and texts; all coordinates are of the dimension of
            that name.
        attrs: of the whole.

    >>> from bpa_ppl.posterior.groups import label_groups
    >>> content = to_bytes(label_groups({"posterior": {"weights": [[[0.5], [1.5]]]}}), {})
    >>> groups, attrs = from_bytes(content)
    >>> groups["posterior"].arrays["weights"].tolist()
    [[[0.5], [1.5]]]
    """
    import h5netcdf

    buffer = io.BytesIO()
    with h5netcdf.File(buffer, "w") as file:
        file.attrs.update(attrs)
        for title, group in groups.items():
            node = file.create_group(title)
            node.attrs.update(group.attrs)
            dims = {**group.dims, **{name: (name,) for name in group.coords}}
            arrays = {**dict(sorted(group.coords.items())), **group.arrays}
            shapes = ((dims[name], array.shape) for name, array in arrays.items())
            node.dimensions = {d: n for shape in shapes for d, n in zip(*shape, strict=True)}
            for name, array in arrays.items():
                _write_array(node, name, dims[name], array)
    return buffer.getvalue()


def _write_array(node: Any, name: str, dims: Sequence[str], array: npt.NDArray[Any]) -> None:
    """Write an array; truth values as xarray writes them."""
    import h5py

    values = np.array(array.tolist()) if array.dtype.kind == "O" else array
    if values.dtype.kind == "U":
        node.create_variable(name, dims, h5py.string_dtype(), values.astype(object))
        return
    is_bool = values.dtype.kind == "b"
    numbers = values.astype("i1") if is_bool else values
    filters = {"compression": "gzip", "fletcher32": True, "chunks": values.shape}
    is_scalar = not values.ndim or not values.size
    variable = node.create_variable(name, dims, data=numbers, **({} if is_scalar else filters))
    if is_bool:
        variable.attrs["dtype"] = "bool"


def from_bytes(content: bytes) -> tuple[dict[str, Group], dict[str, Any]]:
    """Return the groups that a NetCDF file holds, and the attributes of the whole.

    Packed numbers, dates and other values that NetCDF encodes are left out, with a warning.

    Raises:
        DataError: if it is damaged, cut short, or not a NetCDF file.

    >>> from_bytes(b"not a posterior")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: not a readable NetCDF posterior (not an HDF5 file): give ...
    """
    import h5netcdf
    import h5py

    if not content.startswith(_HDF5):
        raise _unreadable("not an HDF5 file", f"{_REMEDY}; {OTHER_PROGRAMS}")
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            _check_storage(file, len(content))
            root = h5netcdf.File(file, phony_dims="access", decode_vlen_strings=True)
            groups = dict(root.groups) or {"posterior": root}
            result = {name: _group(group) for name, group in groups.items()}
            left_out: dict[str, list[str]] = {}
            for title, group in groups.items():
                for name in group.variables.keys() - {*result[title].arrays, *result[title].coords}:
                    left_out.setdefault(name, []).append(title)
            for name, titles in sorted(left_out.items()):
                where = "group" if len(titles) == 1 else "groups"
                problem = f"{name} of the {where} {list_names(titles)} is left out"
                warn_user(f"{problem}: it is not plain numbers")
            return result, dict(root.attrs)
    except BpaError:
        raise
    # A damaged file can make HDF5 and the libraries above it raise almost anything.
    except Exception as error:
        raise _unreadable(_first_line(error)) from error


def _group(group: Any) -> Group:
    """Return the arrays of a group that can be read; that of a dimension's name are its labels."""
    arrays: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    dims: dict[str, tuple[str, ...]] = {}
    for name, variable in group.variables.items():
        values, names = _decode_values(variable), tuple(variable.dimensions)
        if values is None:
            continue
        if names == (name,):
            coords[name] = values
        else:
            arrays[name], dims[name] = values, names
    return Group(arrays, dims, coords, dict(group.attrs))


def _decode_values(variable: Any) -> npt.NDArray[Any] | None:
    """Return numbers, truth values as xarray writes them, or texts; None for encoded values."""
    import h5py

    kind, attrs = variable.dtype, dict(variable.attrs)
    if h5py.check_string_dtype(kind) is not None:
        return np.asarray(variable[...]).astype(str)
    if attrs.get("dtype") == "bool" and kind == np.int8:
        return np.asarray(variable[...]).astype(bool)
    missing = np.asarray(attrs.get("_FillValue", np.nan))
    is_date = " since " in str(attrs.get("units", ""))
    is_masked = not np.isnan(missing).all()
    is_encoded = is_date or _ENCODED & attrs.keys() or (is_masked and kind.kind != "f")
    if kind.kind not in "iuf" or is_encoded or find_repeated(variable.dimensions):
        return None
    values = np.asarray(variable[...]).astype(kind.newbyteorder("="))
    return np.where(values == missing, np.nan, values) if is_masked else values


def _check_storage(file: Any, length: int) -> None:
    """Refuse links, too many parts, other files, and sizes that no such file holds.

    Nothing but names and sizes is read, and no memory is allocated for the arrays. A link that
    leads to a group above it would be followed without end.
    """
    import h5py

    total, groups, arrays = 0, 0, 0

    def problem_of(name: str, link: object) -> str | None:
        nonlocal total, groups, arrays
        if not isinstance(link, h5py.HardLink):
            return f"{name} is a link to another name or file"
        entry = file[name]
        groups += isinstance(entry, h5py.Group)
        arrays += isinstance(entry, h5py.Dataset)
        if groups > _GROUPS or arrays > _ARRAYS:
            what = f"{_GROUPS} groups" if groups > _GROUPS else f"{_ARRAYS:,} arrays"
            return f"it has more than {what}, which would take long to read"
        if isinstance(entry, h5py.Group) and h5py.h5o.get_info(entry.id).rc > 1:
            return f"the group {name} has two names"
        if isinstance(entry, h5py.Dataset):
            chunk = math.prod(entry.chunks or ()) * entry.dtype.itemsize
            total += max(int(entry.nbytes), chunk)
            if entry.is_virtual or entry.external:
                return f"the numbers of {name} are in another file"
        return None

    if problem := file.visititems_links(problem_of):
        raise _unreadable(problem)
    if total > max(_SMALL_FILE, _MAX_RATIO * length):
        message = f"{length:,} bytes cannot hold {total:.3g} bytes of numbers: make it again"
        raise DataError(message, code="damaged")


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]


def _unreadable(reason: str, remedy: str = _REMEDY) -> DataError:
    return DataError(f"not a readable NetCDF posterior ({reason}): {remedy}", code="damaged")
