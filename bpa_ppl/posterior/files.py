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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from bpa_ppl.errors import BpaError, DataError
from bpa_ppl.formats.streams import atomic_path, denied
from bpa_ppl.posterior.adapter import as_draws, from_groups, from_tree, to_groups, tree_groups
from bpa_ppl.posterior.arviz_functions import arviz_data, data_tree
from bpa_ppl.posterior.draws import SAMPLING_TIME, Draws
from bpa_ppl.posterior.groups import Group

if TYPE_CHECKING:
    from xarray import DataTree

    from bpa_ppl.posterior.adapter import Posterior
    from bpa_ppl.posterior.arviz_functions import InferenceData

T = TypeVar("T")

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
    if isinstance(posterior, Draws):
        groups, attrs = to_groups(posterior)
        content = to_bytes(groups, attrs if timed else _untimed(attrs))
    else:
        tree = data_tree(posterior).copy()
        tree.attrs = tree.attrs if timed else _untimed(tree.attrs)
        content = tree_to_bytes(tree)
    content = sealed(content)
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

    def refuse_unusable(content: bytes) -> DataTree:
        tree = from_bytes(content)
        as_draws(from_tree(tree))
        return tree

    return arviz_data(_load(path, refuse_unusable))


def read_draws(path: str | Path) -> Draws:
    """Load a posterior as plain arrays, without ArviZ and xarray; see `read_posterior`.

    >>> import numpy as np
    >>> write_posterior(Draws({"weights": np.array([[[0.5], [1.5]]])}, ("LM0",)), "posterior.nc")
    >>> read_draws("posterior.nc").mean.tolist()
    [1.0]
    """
    return _load(path, lambda content: as_draws(draws_in(content)))


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


def _untimed(attrs: Mapping[Any, Any]) -> dict[Any, Any]:
    return {name: value for name, value in attrs.items() if name != SAMPLING_TIME}


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
    >>> from_bytes(content)["posterior"]["weights"].values.tolist()
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


def tree_to_bytes(tree: DataTree) -> bytes:
    """Return any tree as the content of a NetCDF file; equal trees give equal bytes.

    A tree of plain arrays gives the bytes that equal `Draws` give; xarray writes the others.

    Raises:
        DataError: as `to_bytes`.
    """
    groups = tree_groups(tree)
    if _is_plain(tree):
        return to_bytes(groups, tree.attrs)
    encoding = {
        f"/{title}": {
            name: {"zlib": True, "fletcher32": True, "chunksizes": array.shape}
            for name, array in {**group.arrays, **group.coords}.items()
            if array.ndim and array.size and array.dtype.kind in "biufc"
        }
        for title, group in groups.items()
    }
    with _storable():
        return bytes(tree.to_netcdf(engine="h5netcdf", encoding=encoding))


def _is_plain(tree: DataTree) -> bool:
    """Return whether a tree has only what `to_bytes` writes: no dates or attributes of arrays."""

    def plain(values: npt.NDArray[Any]) -> bool:
        return values.dtype.kind in "biufU" or (
            values.dtype.kind == "O" and all(isinstance(v, str) for v in values.flat)
        )

    nodes = list(tree.children.values())
    return not (tree.variables or any(node.children for node in nodes)) and all(
        not variable.attrs
        and plain(variable.values)
        and (name in node.data_vars or variable.dims == (name,))
        for node in nodes
        for name, variable in node.variables.items()
    )


@contextmanager
def _storable() -> Iterator[None]:
    """Convert errors about values that NetCDF cannot hold."""
    import h5netcdf

    try:
        yield
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
    with _undamaged(content), warnings.catch_warnings():
        import xarray

        warnings.simplefilter("ignore")  # about groups and types that are not ours
        with xarray.open_datatree(io.BytesIO(content), engine="h5netcdf") as tree:
            tree.load()
        for node in tree.subtree:
            node.to_dataset()  # dimensions may contradict each other
        return tree


def draws_in(content: bytes) -> Draws:
    """Return the draws that a NetCDF file holds.

    Plain arrays, as this package and ArviZ write them, are read without xarray, which decodes all
    else that NetCDF's conventions allow: dates, packed numbers, dimensions of other groups.

    Raises:
        DataError: if the file is damaged, or its groups do not fit together.
    """
    import h5netcdf

    with _undamaged(content) as file:
        options = {"phony_dims": "access", "decode_vlen_strings": True}
        root = h5netcdf.File(file, **options)
        try:
            if root.variables or root.dimensions:
                raise NotImplementedError
            groups = {name: _plain_group(group) for name, group in root.groups.items()}
            attrs = _plain_attributes(root)
        except NotImplementedError:
            groups = {}
    return from_groups(groups, attrs) if groups else from_tree(from_bytes(content))


def _plain_group(group: Any) -> Group:
    """Return a group of plain arrays, whose dimensions are in the group itself.

    Raises:
        NotImplementedError: if there is anything else in it.
    """
    if group.groups:
        raise NotImplementedError
    sizes = {name: dimension.size for name, dimension in group.dimensions.items()}
    arrays: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    dims: dict[str, tuple[str, ...]] = {}
    for name, variable in group.variables.items():
        names = variable.dimensions
        of_dims = tuple(sizes.get(dim) for dim in names)
        if len(set(names)) < len(names) or of_dims != variable.shape:
            raise NotImplementedError
        if name not in sizes:
            arrays[name], dims[name] = _plain_array(variable), names
        elif names == (name,):
            coords[name] = _plain_array(variable)
        else:
            raise NotImplementedError
    return Group(arrays, dims, coords, _plain_attributes(group))


def _plain_array(variable: Any) -> npt.NDArray[Any]:
    """Return numbers, truth values (as xarray writes them) or texts that need no decoding."""
    import h5py

    kind, attrs = variable.dtype, dict(variable.attrs)
    text = h5py.check_string_dtype(kind)
    if text is not None and text.length is None and not attrs:
        return np.asarray(variable[...], dtype=object).astype(str)
    if kind.kind not in "iuf" or kind.metadata or not kind.isnative:
        raise NotImplementedError
    values = np.asarray(variable[...])
    if attrs == {"dtype": "bool"} and kind == np.int8:
        return values.astype(bool)
    missing = np.asarray(attrs.get("_FillValue"))
    unused = kind.kind == missing.dtype.kind == "f" and np.isnan(missing).all()
    if attrs and not (attrs.keys() == {"_FillValue"} and unused):
        raise NotImplementedError
    return values


def _plain_attributes(group: Any) -> dict[str, Any]:
    """Return the texts and numbers that a group records."""
    attrs = dict(group.attrs)
    plain = all(isinstance(value, str | np.integer | np.floating) for value in attrs.values())
    if not plain or "coordinates" in attrs:
        raise NotImplementedError
    return attrs


@contextmanager
def _undamaged(content: bytes) -> Iterator[Any]:
    """Open a file; what is raised while it is open is due to damage."""
    import h5py

    if not content.startswith(_HDF5):
        raise _unreadable("not an HDF5 file")
    try:
        _check_global_heaps(content)
        with h5py.File(io.BytesIO(content), "r") as file:
            _check_storage(file, len(content))
            yield file
    except BpaError:
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
