"""A posterior as the bytes of a NetCDF file, and back: made and read in memory, as a whole.

HDF5 may crash where a disk is full, so it never sees one: finished bytes are written. All numbers
have HDF5's Fletcher-32 checksums, and the structure of the file those of its format 1.10.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np

from bpa_ppl.errors import DataError
from bpa_ppl.posterior.arviz_functions import decoded
from bpa_ppl.posterior.groups import Group, Groups, Variable

_NUMBERS = "iufc"  # kinds of them
#: HDF5's file format: from 1.10 on all of a file's structure has checksums.
_FORMAT = ("v110", "v110")
#: zlib packs at most 1032 bytes into one; a small file may lack some of its blocks.
_RATIO, _SMALL = 1100, 1 << 26
#: Attributes of numbers that stand for others, which xarray works out.
_CODED = {"scale_factor", "add_offset", "missing_value", "_Unsigned", "units", "calendar"}

#: Attributes that say how something is stored.
_OF_FILES = {"_FillValue", "coordinates", "dtype"}


def to_bytes(data: Groups) -> bytes:
    """Return a posterior as a NetCDF file; equal posteriors give equal bytes.

    Besides the draws, memory holds the bytes: their compressed size.

    Raises:
        DataError: if NetCDF has no such values or names.

    >>> from bpa_ppl.posterior.groups import grouped
    >>> data = grouped({"posterior": {"weights": [[[0.5], [1.5]]]}})
    >>> from_bytes(to_bytes(data)).groups["posterior"].arrays["weights"].values.tolist()
    [[[0.5], [1.5]]]
    """
    import h5netcdf

    made = io.BytesIO()
    with h5netcdf.File(made, "w", libver=_FORMAT) as file:
        file.attrs.update(data.attrs)
        for name, group in data.groups.items():
            _write(group, file.create_group(name))
    return made.getvalue()


def _write(group: Group, file: Any) -> None:
    """Write a group as one of a file; truth values are small integers there, as xarray's are."""
    file.attrs.update(group.attrs)
    for dim, size in group.sizes.items():
        file.dimensions[dim] = size
    for name, (dims, values, attrs) in {**group.arrays, **group.coords}.items():
        if "/" in name:
            raise DataError(f"{name!r:.80}: a name in a posterior cannot have a slash: rename it")
        kind = values.dtype.kind
        if kind == "b":
            values, attrs = values.astype(np.int8), {**attrs, "dtype": "bool"}
        gap = attrs.get("_FillValue", np.nan)
        # NaN needs nobody to say that it is a gap.
        gap = None if gap != gap else gap
        stored = file.create_variable(
            name, dims, _type_of(name, values), fillvalue=gap, **_packed(values)
        )
        stored[...] = values
        stored.attrs.update({key: attrs[key] for key in attrs if key != "_FillValue"})


def _type_of(name: str, values: np.ndarray) -> Any:
    """Return the type that NetCDF has for values."""
    import h5py

    if values.dtype.kind in _NUMBERS:
        return values.dtype
    if values.dtype.kind in "UT" or all(isinstance(value, str) for value in values.flat):
        return h5py.string_dtype()
    raise DataError(f"{name!r:.80} is of {values.dtype}, which a posterior's file cannot hold")


def _packed(values: np.ndarray) -> dict[str, Any]:
    """Return how values are stored; HDF5 has neither filter for scalars and texts."""
    has_filters = values.ndim and values.size and values.dtype.kind in _NUMBERS
    return {"compression": "gzip", "fletcher32": True} if has_filters else {}


def from_bytes(content: bytes) -> Groups:
    """Return all that a NetCDF file holds, read to the last number.

    Raises:
        DataError: if it is damaged, cut short, or no NetCDF file.

    >>> from_bytes(b"not a posterior")
    Traceback (most recent call last):
    bpa_ppl.errors.DataError: not a readable NetCDF posterior (no HDF5 file): give ...
    """
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


def _read(content: bytes) -> Groups:
    import h5netcdf

    _check_size(content)
    opened = h5netcdf.File(io.BytesIO(content), "r", decode_vlen_strings=True)
    with warnings.catch_warnings(), opened as file:
        warnings.simplefilter("ignore")  # of groups and types that are not ours to judge
        stored = {
            name: Group(_variables(one), {}, _attrs(one)) for name, one in file.groups.items()
        }
        every = [one for group in stored.values() for one in group.arrays.values()]
        work_out = decoded if any(map(_coded, every)) else _as_they_are
        return work_out(Groups(stored, _attrs(file)))


def _variables(group: Any) -> dict[str, Variable]:
    return {
        name: Variable(tuple(one.dimensions), np.asarray(one[...]), _attrs(one))
        for name, one in group.variables.items()
    }


def _attrs(entry: Any) -> dict[str, Any]:
    return {
        name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        for name, value in entry.attrs.items()
    }


def _coded(variable: Variable) -> bool:
    """Say whether values stand for others, such as days for dates or −1 for a gap."""
    gap = np.asarray(variable.attrs.get("_FillValue", np.nan))
    gaps = gap.dtype.kind != "f" or not np.isnan(gap).all()
    return gaps or variable.values.dtype.kind in "SV" or not _CODED.isdisjoint(variable.attrs)


def _as_they_are(stored: Groups) -> Groups:
    """Return groups of a file of which only truth values and labels need to be told apart."""
    return Groups({name: _told_apart(one) for name, one in stored.groups.items()}, stored.attrs)


def _told_apart(group: Group) -> Group:
    """Return a group with its coordinates: labels of a dimension, and those that are named."""
    every = (group.attrs, *(one.attrs for one in group.arrays.values()))
    labels = set(group.sizes).union(*(str(one.get("coordinates", "")).split() for one in every))
    plain = {
        name: Variable(
            dims,
            values.astype(bool) if attrs.get("dtype") == "bool" else values,
            {key: attrs[key] for key in attrs if key not in _OF_FILES},
        )
        for name, (dims, values, attrs) in group.arrays.items()
    }
    attrs = {key: group.attrs[key] for key in group.attrs if key not in _OF_FILES}
    return Group.of(plain, labels, attrs)


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


def _unreadable(reason: str) -> DataError:
    return DataError(
        f"not a readable NetCDF posterior ({reason}): give the file that `bpa adapt` wrote"
    )
