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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import BpaError, DataError
from bpa_ppl.formats.streams import atomic_path, denied
from bpa_ppl.labels import repeated
from bpa_ppl.notes import warn_user
from bpa_ppl.posterior.adapter import as_draws, from_groups, to_groups, tree_groups
from bpa_ppl.posterior.arviz_functions import arviz_data, data_tree, group_tree
from bpa_ppl.posterior.draws import SAMPLING_TIME, Draws
from bpa_ppl.posterior.groups import Group

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

T = TypeVar("T")

_HDF5 = b"\x89HDF\r\n\x1a\n"
#: What precedes the checksum of the whole file at its end, and the length of both.
_SEAL, _SEALED = b"\nsha256 ", 72
#: Attributes of numbers that stand for others: packed ones and dates.
_ENCODED = {"scale_factor", "add_offset", "calendar", "dtype"}
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
    if isinstance(posterior, Draws):
        groups, attrs = to_groups(as_draws(posterior))
    else:
        tree = data_tree(posterior)
        groups, attrs = tree_groups(tree), {str(name): v for name, v in tree.attrs.items()}
        as_draws(from_groups(groups, attrs))  # refuses what `read_posterior` would refuse
    if not timed:
        attrs.pop(SAMPLING_TIME, None)
    content = sealed(to_bytes(groups, attrs))
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

    def usable(content: bytes) -> InferenceData:
        groups, attrs = from_bytes(content)
        as_draws(from_groups(groups, attrs))
        return arviz_data(group_tree(groups, attrs))

    return _load(path, usable)


def read_draws(path: str | Path) -> Draws:
    """Load a posterior as plain arrays, without ArviZ and xarray; see `read_posterior`.

    >>> import numpy as np
    >>> write_posterior(Draws({"weights": np.array([[[0.5], [1.5]]])}, ("LM0",)), "posterior.nc")
    >>> read_draws("posterior.nc").mean.tolist()
    [1.0]
    """
    return _load(path, lambda content: as_draws(from_groups(*from_bytes(content))))


def _load(path: str | Path, load: Callable[[bytes], T]) -> T:
    """Return what a function makes of the content of a file; its errors name the file."""
    if not os.path.isfile(path):  # also of a name that no file can have
        what = "a folder" if os.path.isdir(path) else "no such file"
        problem = f"{what}: give the posterior that `bpa adapt` wrote"
        raise DataError(problem, path, code="missing-file")
    try:
        return load(unsealed(Path(path).read_bytes()))
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


def to_bytes(groups: Mapping[str, Group], attrs: Mapping[Any, Any]) -> bytes:
    """Return a posterior as the content of a NetCDF file; equal posteriors give equal bytes.

    Args:
        groups: arrays of numbers, truth values and texts; all coordinates are of the dimension of
            that name.
        attrs: of the whole.

    Raises:
        DataError: if NetCDF cannot hold its values or names.

    >>> from bpa_ppl.posterior.groups import labelled_groups
    >>> content = to_bytes(labelled_groups({"posterior": {"weights": [[[0.5], [1.5]]]}}), {})
    >>> groups, attrs = from_bytes(content)
    >>> groups["posterior"].arrays["weights"].tolist()
    [[[0.5], [1.5]]]
    """
    import h5netcdf

    buffer = io.BytesIO()
    with _storable(), h5netcdf.File(buffer, "w") as file:
        file.attrs.update(attrs)
        for title, group in groups.items():
            node = file.create_group(title)
            node.attrs.update(group.attrs)
            dims = {**group.dims, **{name: (name,) for name in group.coords}}
            arrays = {**dict(sorted(group.coords.items())), **group.arrays}
            node.dimensions = {
                dim: size
                for name, array in arrays.items()
                for dim, size in zip(dims[name], array.shape, strict=True)
            }
            for name, array in arrays.items():
                _write_array(node, name, dims[name], array)
    return buffer.getvalue()


def _write_array(node: Any, name: str, dims: Sequence[str], array: npt.NDArray[Any]) -> None:
    """Write an array; truth values as xarray writes them."""
    import h5py

    values = np.array(array.tolist()) if array.dtype.kind == "O" else array
    if values.dtype.kind == "U":
        node.create_variable(name, dims, h5py.string_dtype())[...] = values.astype(object)
        return
    kind = np.dtype("i1") if values.dtype.kind == "b" else values.dtype
    filters = {"compression": "gzip", "fletcher32": True, "chunks": values.shape}
    variable = node.create_variable(
        name, dims, kind, **(filters if values.ndim and values.size else {})
    )
    variable[...] = values
    if values.dtype.kind == "b":
        variable.attrs["dtype"] = "bool"


@contextmanager
def _storable() -> Iterator[None]:
    """Convert errors about values that NetCDF cannot hold."""
    import h5netcdf

    try:
        yield
    except (TypeError, ValueError, OverflowError, h5netcdf.CompatibilityError) as error:
        problem = f"NetCDF cannot hold this posterior ({_first_line(error)})"
        raise DataError(problem, code="cannot-write") from error


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

    with _undamaged(content) as file:
        root = h5netcdf.File(file, phony_dims="access", decode_vlen_strings=True)
        groups = {name: _group(group) for name, group in root.groups.items()}
        return groups, dict(root.attrs)


def _group(group: Any) -> Group:
    """Return the arrays of a group; an array of the dimension of its name are the labels."""
    arrays: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    dims: dict[str, tuple[str, ...]] = {}
    for name, variable in group.variables.items():
        values, names = _values(variable), tuple(variable.dimensions)
        if values is None:
            warn_user(f"{name} of the group {group.name} is left out: it is not plain numbers")
        elif names == (name,):
            coords[name] = values
        else:
            arrays[name], dims[name] = values, names
    return Group(arrays, dims, coords, dict(group.attrs))


def _values(variable: Any) -> npt.NDArray[Any] | None:
    """Return numbers, truth values as xarray writes them, or texts; None for encoded values."""
    import h5py

    kind, attrs = variable.dtype, dict(variable.attrs)
    if h5py.check_string_dtype(kind) is not None:
        return np.asarray(variable[...]).astype(str)
    if attrs.get("dtype") == "bool" and kind == np.int8:
        return np.asarray(variable[...]).astype(bool)
    missing = np.asarray(attrs.get("_FillValue", np.nan))
    is_date = " since " in str(attrs.get("units", ""))
    is_encoded = is_date or _ENCODED & attrs.keys() or not np.isnan(missing).all()
    if kind.kind not in "iuf" or is_encoded or repeated(variable.dimensions):
        return None
    return np.asarray(variable[...]).astype(kind.newbyteorder("="))


@contextmanager
def _undamaged(content: bytes) -> Iterator[Any]:
    """Open a file; what is raised while it is open is due to damage."""
    import h5py

    if not content.startswith(_HDF5):
        raise _unreadable("not an HDF5 file")
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            _check_storage(file, len(content))
            yield file
    except BpaError:
        raise
    # A damaged file can make HDF5 and the libraries above it raise almost anything.
    except Exception as error:
        raise _unreadable(_first_line(error)) from error


def _check_storage(file: Any, length: int) -> None:
    """Refuse links, what HDF5 would read from other files, and sizes that no such file holds.

    Nothing but names and sizes is read, and no memory is allocated for the arrays. A link that
    leads to a group above it would be followed without end.
    """
    import h5py

    sizes: list[int] = []

    def soft_link(name: str, link: object) -> str | None:
        is_soft = not isinstance(link, h5py.HardLink)
        return f"{name} is a link to another name or file" if is_soft else None

    def outside_data(name: str, entry: object) -> str | None:
        if isinstance(entry, h5py.Group) and h5py.h5o.get_info(entry.id).rc > 1:
            return f"the group {name} has two names"
        if isinstance(entry, h5py.Dataset):
            chunk = math.prod(entry.chunks or ()) * entry.dtype.itemsize
            sizes.append(max(int(entry.nbytes), chunk))
            if entry.is_virtual or entry.external:
                return f"the numbers of {name} are in another file"
        return None

    problem = (
        file.visititems_links(soft_link)
        or outside_data("/", file["/"])
        or file.visititems(outside_data)
    )
    if problem:
        raise _unreadable(problem)
    if sum(sizes) > max(_SMALL, _MAX_RATIO * length):
        raise DataError(
            f"claims to hold {sum(sizes):.3g} bytes of numbers, which is not possible in a file "
            f"of {length:,} bytes: make it again",
            code="damaged",
        )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]


def _unreadable(reason: str) -> DataError:
    return DataError(
        f"not a readable NetCDF posterior ({reason}): give the file that `bpa adapt` wrote",
        code="damaged",
    )
