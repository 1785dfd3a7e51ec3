"""Draws read without xarray are those read with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import xarray
from external_posterior import CHAINS, DRAWS, draws_of_all_kinds

from bpa_ppl import DataError, read_posterior, write_posterior
from bpa_ppl.posterior import Draws, as_draws, files, read_draws
from bpa_ppl.posterior.adapter import to_arviz, to_tree
from bpa_ppl.posterior.arviz_functions import arviz_data, data_tree
from bpa_ppl.weights import Weights

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

SHAPE = (CHAINS, DRAWS)
#: Kinds of draws, and what NetCDF holds in other ways than numbers of double precision.
WRITTEN: dict[str, dict[str, Any]] = {
    "weighted": {"kind": "weighted", "log_weight": np.zeros(SHAPE), "log_density": None},
    "one point": {
        "kind": "point",
        "values": {"weights": np.ones((1, 1, 3))},
        "sites": ("weights",),
        "log_density": None,
        "log_likelihood": {},
        "sentence_sites": (),
        "statistics": {},
    },
    "names and types": {
        "features": ("ä[ß]", "x 0", "[no list"),
        "values": {"weights": np.ones((*SHAPE, 3)), "own ö": np.ones((*SHAPE, 2, 3, 4))},
        "sites": ("weights",),
        "dims": {"own ö": ("domain", "feature", "plain")},
        "coords": {"domain": ("news", "ä ß")},
        "sentence_ids": np.array(["1", "b", "ß", "d", "e"], object),
        "attrs": {"note": "ä\n", "list": [1, {"a": None}], "text": "[no list", "ratio": 0.5},
        "statistics": {"accepted": np.ones(SHAPE, bool), "steps": np.ones(SHAPE, np.int64)},
        "observed": {"oracle": np.arange(5), "texts": np.array(["a", "ß"], object)},
        "constants": {"other": np.array(3.0), "canonical": np.ones(3, np.float32)},
        "predictive": {"oracle": np.ones((*SHAPE, 5), np.float32)},
        "log_prior": {"weights": np.zeros(SHAPE)},
    },
    "few parts": {
        name: {} for name in ("warmup", "prior", "observed", "constants", "fixed", "attrs")
    },
}


def same(ours: Any, theirs: Any, where: str) -> None:
    """Fail unless two values are equal, in types and in the order of names too."""
    assert type(ours) is type(theirs), where
    if isinstance(ours, dict):
        assert list(ours) == list(theirs), where
        for name, value in ours.items():
            same(value, theirs[name], f"{where}/{name}")
    elif isinstance(ours, np.ndarray):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), where
        np.testing.assert_array_equal(ours, theirs, where)
    else:
        assert ours == theirs, where


def outcome(read: Callable[[Path], Posterior], path: Path) -> Draws | str:
    """Return the draws of a file, or why they cannot be read."""
    try:
        return as_draws(read(path))
    except DataError as error:
        return str(error)


def is_read(path: Path) -> bool:
    """Return whether a file can be read; fail unless it is read alike with and without xarray."""
    with_xarray, without = (outcome(read, path) for read in (read_posterior, read_draws))
    if isinstance(with_xarray, str) or isinstance(without, str):
        assert without == with_xarray
        return False
    for part in fields(Draws):
        same(getattr(without, part.name), getattr(with_xarray, part.name), part.name)
    return True


@pytest.fixture
def without_xarray(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Read the draws of a file; fail if xarray is asked."""

    def refuse(content: bytes) -> None:
        raise AssertionError("the file is read with xarray")

    def read(path: Path) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(files, "from_bytes", refuse)
            read_draws(path)

    return read


@pytest.mark.parametrize("what", WRITTEN)
def test_reads_what_is_written(
    what: str, without_xarray: Callable[[Path], None], tmp_path: Path
) -> None:
    path, changes = tmp_path / "posterior.nc", WRITTEN[what]
    if "fixed" in changes:
        changes = {**changes, "fixed": Weights({})}
    draws = draws_of_all_kinds(**changes)
    write_posterior(draws, path)
    assert is_read(path)
    without_xarray(path)
    tree = data_tree(read_posterior(path))
    for name, node in to_tree(draws).children.items():
        assert tree[name].to_dataset().identical(node.to_dataset()), name
    write_posterior(to_arviz(draws), tmp_path / "arviz.nc")
    assert (tmp_path / "arviz.nc").read_bytes() == path.read_bytes()


ENGINES = ["h5netcdf", *(["netcdf4"] if find_spec("netCDF4") else [])]


def theirs() -> xarray.Dataset:
    """Return draws as other programs have them."""
    rng = np.random.default_rng(0)
    return xarray.Dataset(
        {
            "weights": (("draw", "feature", "chain"), rng.normal(size=(5, 3, 2))),
            "accepted": (("chain", "draw"), rng.random((2, 5)) < 0.5),
            "steps": (("chain", "draw"), rng.integers(9, size=(2, 5))),
            "effects": (("chain", "draw", "group", "level"), rng.normal(size=(2, 5, 2, 3))),
        },
        {"chain": [0, 1], "draw": range(5), "feature": ["a", "b", "ß"], "group": ["x", "y"]},
        {"inference_library": "other", "created_at": "2026", "tuning_steps": 1000, "rate": 0.5},
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weights", ["weights", "effects", "steps"])
def test_reads_what_arviz_writes(
    engine: str, weights: str, without_xarray: Callable[[Path], None], tmp_path: Path
) -> None:
    data = theirs().drop_vars({"weights"} - {weights}).rename({weights: "weights"})
    tree = xarray.DataTree.from_dict(
        {
            "posterior": data,
            "sample_stats": data[["accepted"]],
            "observed_data": xarray.Dataset({"y": ("obs", [1.0, np.nan])}),
        }
    )
    tree.attrs["list"] = "[1, 2]"
    arviz_data(tree).to_netcdf(str(tmp_path / "theirs.nc"), engine=engine)
    assert is_read(tmp_path / "theirs.nc")
    without_xarray(tmp_path / "theirs.nc")


#: What NetCDF can also hold -> how the dataset is changed, and its encoding.
UNUSUAL: dict[str, tuple[Callable[[xarray.Dataset], xarray.Dataset], dict[str, Any]]] = {
    "packed numbers": (
        lambda d: d,
        {"weights": {"dtype": "i2", "scale_factor": 1e-3, "_FillValue": -9}},
    ),
    "missing numbers": (lambda d: d, {"steps": {"_FillValue": 3}}),
    "another missing value": (lambda d: d, {"weights": {"_FillValue": -1.0}}),
    "durations": (lambda d: d.assign(time=d["steps"].astype("m8[ns]")), {}),
    "texts of a fixed length": (lambda d: d.assign_coords(feature=[b"a", b"bc", b"d"]), {}),
    "dates, units, a scalar, other coordinates, lists as attributes": (
        lambda d: (
            d.assign(
                day=("draw", np.arange(5).astype("M8[D]").astype("M8[ns]")),
                steps=d["steps"].assign_attrs(units="seconds"),
                one=3.0,
            )
            .assign_coords(name=("feature", ["p", "q", "r"]))
            .assign_attrs(dims=["chain", "draw"], sizes=[2, 5])
        ),
        {},
    ),
    "texts": (lambda d: d.assign(text=(("chain", "draw"), np.full((2, 5), "é"))), {}),
    "no labels": (lambda d: d.drop_vars(["chain", "draw", "group"]), {}),
    "the other byte order": (lambda d: d.assign(weights=d["weights"].astype(">f8")), {}),
    "complex numbers": (lambda d: d.assign(z=d["weights"] * 1j), {}),
}
#: Draws are numbers, in all groups.
NO_NUMBERS = ("durations", "texts", "complex numbers")


@pytest.mark.parametrize("what", UNUSUAL)
def test_reads_what_netcdf_can_also_hold(what: str, tmp_path: Path) -> None:
    change, encoding = UNUSUAL[what]
    write_theirs(tmp_path / "theirs.nc", change(theirs()), encoding)
    assert is_read(tmp_path / "theirs.nc") == (what not in NO_NUMBERS)
    if what not in NO_NUMBERS:
        data = read_posterior(tmp_path / "theirs.nc")
        write_posterior(data, tmp_path / "ours.nc")
        result = data_tree(read_posterior(tmp_path / "ours.nc"))
        assert result.identical(data_tree(data))


def write_theirs(path: Path, data: xarray.Dataset, encoding: dict[str, Any] | None = None) -> None:
    data.to_netcdf(path, group="posterior", engine="h5netcdf", encoding=encoding or {})


def _unlimited(file: h5py.File) -> None:
    """Make a dimension longer than the arrays that have it: the rest is missing."""
    group = file["posterior"]
    del group["draw"]
    group.create_dataset("draw", data=np.arange(7))
    group["draw"].make_scale("draw")
    for name in ("weights", "accepted", "steps", "effects"):
        references = group[name].attrs["DIMENSION_LIST"]
        axis = list(theirs()[name].dims).index("draw")
        references[axis] = np.array([group["draw"].ref], dtype=object)
        group[name].attrs["DIMENSION_LIST"] = references


def _inherited(file: h5py.File) -> None:
    """Move a dimension to the group above."""
    file.move("posterior/draw", "draw")


def _nested(file: h5py.File) -> None:
    file.create_group("posterior/more").create_dataset("x", data=1.0)


def _of_the_file(file: h5py.File) -> None:
    file.create_dataset("x", data=1.0)


def _without_dimensions(file: h5py.File) -> None:
    file["posterior"].create_dataset("x", data=np.zeros((2, 5)))


def _enumeration(file: h5py.File) -> None:
    kind = h5py.enum_dtype({"no": 0, "yes": 1}, basetype="i1")
    file["posterior"].create_dataset("x", data=1, dtype=kind)


def _empty(file: h5py.File) -> None:
    file["posterior"].create_dataset("x", data=h5py.Empty("f8"))


def _renamed(file: h5py.File) -> None:
    file["posterior"].move("steps", "_nc4_non_coord_steps")


def _named_twice(file: h5py.File) -> None:
    file["posterior/again"] = file["posterior/feature"]


@pytest.mark.parametrize(
    "change",
    [
        *(_unlimited, _inherited, _nested, _of_the_file, _without_dimensions, _enumeration),
        *(_empty, _renamed, _named_twice),
    ],
)
def test_reads_other_structures(change: Callable[[h5py.File], None], tmp_path: Path) -> None:
    path = tmp_path / "theirs.nc"
    write_theirs(path, theirs())
    with h5py.File(path, "a") as file:
        change(file)
    assert is_read(path) == (change not in (_unlimited, _empty))


@pytest.mark.parametrize("text", ["one", "two words", "é", ""])
def test_reads_attributes_of_a_fixed_length(text: str, tmp_path: Path) -> None:
    """As netCDF's library for C writes them."""
    path = tmp_path / "theirs.nc"
    write_theirs(path, theirs())
    with h5py.File(path, "a") as file:
        for group in (file, file["posterior"]):
            length = max(len(text.encode()), 1)
            kind = h5py.string_dtype(length=length)
            group.attrs.create("text", text.encode(), dtype=kind)
            group.attrs.create("number", np.array([3]))
    assert is_read(path)
