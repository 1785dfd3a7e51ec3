"""Draws read without xarray are those that xarray reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from support.external_posterior import CHAINS, DRAWS, dataset_of, draws_of_all_kinds

from bpa_ppl import BpaWarning, read_posterior, write_posterior
from bpa_ppl.posterior.adapter import as_draws, to_arviz, to_groups
from bpa_ppl.posterior.arviz_functions import to_arviz_data, to_tree
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.files import read_draws
from bpa_ppl.posterior.record import Record
from bpa_ppl.weights import Weights

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
        "record": Record(
            others={"note": "ä\n", "list": [1, {"a": None}], "text": "[no list", "ratio": 0.5}
        ),
        "statistics": {"accepted": np.ones(SHAPE, bool), "steps": np.ones(SHAPE, np.int64)},
        "observed": {"oracle": np.arange(5), "texts": np.array(["a", "ß"], object)},
        "constants": {"other": np.array(3.0), "canonical": np.ones(3, np.float32)},
        "predictive": {"oracle": np.ones((*SHAPE, 5), np.float32)},
        "log_prior": {"weights": np.zeros(SHAPE)},
        "fixed": Weights({}),
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


def read_by_xarray(path: Path) -> Draws:
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        return as_draws(tree.load())


def assert_same(path: Path) -> None:
    """Fail unless a file is read alike with and without xarray."""
    with_xarray, without = read_by_xarray(path), read_draws(path)
    for part in fields(Draws):
        same(getattr(without, part.name), getattr(with_xarray, part.name), part.name)
    other = as_draws(read_posterior(path))
    for part in fields(Draws):
        same(getattr(other, part.name), getattr(without, part.name), part.name)


@pytest.mark.parametrize("what", WRITTEN)
def test_reads_what_is_written(what: str, tmp_path: Path) -> None:
    path, draws = tmp_path / "posterior.nc", draws_of_all_kinds(**WRITTEN[what])
    write_posterior(draws, path)
    assert_same(path)
    data = read_posterior(path)
    for name, node in to_tree(*to_groups(draws)).children.items():
        assert dataset_of(data, name).identical(node.to_dataset()), name
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
def test_reads_what_arviz_writes(engine: str, weights: str, tmp_path: Path) -> None:
    data = theirs().drop_vars({"weights"} - {weights}).rename({weights: "weights"})
    tree = xarray.DataTree.from_dict(
        {
            "posterior": data,
            "sample_stats": data[["accepted"]],
            "observed_data": xarray.Dataset({"y": ("obs", [1.0, np.nan])}),
        }
    )
    tree.attrs["list"] = "[1, 2]"
    to_arviz_data(tree).to_netcdf(str(tmp_path / "theirs.nc"), engine=engine)
    assert_same(tmp_path / "theirs.nc")


#: What NetCDF encodes -> how the dataset is changed, its encoding, and what is left out.
ENCODED: dict[str, tuple[Callable[[xarray.Dataset], xarray.Dataset], dict[str, Any], str]] = {
    "packed numbers": (
        lambda d: d.assign(steps=d["steps"] * 1.0),
        {"steps": {"dtype": "i2", "scale_factor": 1e-3, "_FillValue": -9}},
        "steps",
    ),
    "missing numbers": (lambda d: d, {"steps": {"_FillValue": 3}}, "steps"),
    "durations": (lambda d: d.assign(time=d["steps"].astype("m8[ns]")), {}, "time"),
    "complex numbers": (lambda d: d.assign(z=d["weights"] * 1j), {}, "z"),
}


@pytest.mark.parametrize("what", ENCODED)
def test_encoded_values_are_left_out_with_a_warning(what: str, tmp_path: Path) -> None:
    change, encoding, name = ENCODED[what]
    write_theirs(tmp_path / "theirs.nc", change(theirs()), encoding)
    with pytest.warns(BpaWarning, match=f"{name} of the group .*posterior is left out"):
        draws = read_draws(tmp_path / "theirs.nc")
    expected = as_draws(to_arviz_data(xarray.DataTree.from_dict({"posterior": theirs()})))
    np.testing.assert_array_equal(draws.weights, expected.weights)
    assert name not in draws.values


def test_reads_plain_values_of_others(tmp_path: Path) -> None:
    """Units, a scalar, other coordinates, lists as attributes, the other byte order, no labels."""
    changed = (
        theirs()
        .assign(steps=theirs()["steps"].assign_attrs(units="seconds"), one=3.0)
        .assign(weights=theirs()["weights"].astype(">f8"))
        .assign_coords(name=("feature", ["p", "q", "r"]))
        .assign_attrs(dims=["chain", "draw"], sizes=[2, 5])
        .drop_vars(["chain", "draw", "group"])
    )
    write_theirs(tmp_path / "theirs.nc", changed)
    draws, expected = read_draws(tmp_path / "theirs.nc"), read_by_xarray(tmp_path / "theirs.nc")
    assert draws.features == expected.features
    np.testing.assert_array_equal(draws.weights, expected.weights)
    np.testing.assert_array_equal(draws.values["steps"], expected.values["steps"])
    data = read_posterior(tmp_path / "theirs.nc")
    write_posterior(data, tmp_path / "ours.nc")
    again = read_posterior(tmp_path / "ours.nc")
    assert dataset_of(again, "posterior").identical(dataset_of(data, "posterior"))


def write_theirs(path: Path, data: xarray.Dataset, encoding: dict[str, Any] | None = None) -> None:
    data.to_netcdf(path, group="posterior", engine="h5netcdf", encoding=encoding or {})
