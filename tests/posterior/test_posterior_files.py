"""Posterior files: equal draws give equal bytes, and damaged or inconsistent files are refused.

Draws read without xarray are those that xarray reads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray
from msgspec import structs
from support.posteriors import (
    CHAINS,
    DRAWS,
    NAMES,
    dataset_of,
    draws_of_all_kinds,
    external_posterior,
    inference_data,
    name_weights,
    read_weight_draws,
    with_record,
)
from support.raising import raises

from bpa_ppl import (
    BpaError,
    BpaWarning,
    DataError,
    Draws,
    Reranker,
    WeightDraws,
    Weights,
    as_draws,
    as_weight_draws,
    check,
    point_weights,
    read_posterior,
    write_posterior,
)
from bpa_ppl.posterior.arviz_data import SCHEMA_VERSION, to_arviz, to_groups
from bpa_ppl.posterior.arviz_functions import import_arviz, split_groups, to_arviz_data, to_datasets
from bpa_ppl.posterior.files import from_bytes, seal, to_bytes, unseal
from bpa_ppl.posterior.groups import Group
from bpa_ppl.posterior.record import Record

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_functions import InferenceData

Q = len(NAMES)


@pytest.fixture(scope="module")
def content() -> bytes:
    return to_bytes(*to_groups(draws_of_all_kinds().draws))


@pytest.fixture(scope="module")
def small_content() -> bytes:
    """A file with two groups, which is read in a third of the time."""
    few = np.random.default_rng(3).normal(size=(CHAINS, DRAWS, Q))
    return to_bytes(*to_groups(name_weights(few, NAMES, constants={"canonical": np.ones(Q)}).draws))


def tree_of(groups: Mapping[str, Group], attrs: Mapping[str, Any]) -> xarray.DataTree:
    tree = xarray.DataTree.from_dict(to_datasets(groups))
    tree.attrs.update(attrs)
    return tree


def test_equal_draws_and_arviz_data_give_equal_bytes(content: bytes, tmp_path: Path) -> None:
    write_posterior(draws_of_all_kinds(), tmp_path / "posterior.nc")
    assert (tmp_path / "posterior.nc").read_bytes() == seal(content)
    write_posterior(to_arviz(draws_of_all_kinds().draws), tmp_path / "posterior.nc")
    assert (tmp_path / "posterior.nc").read_bytes() == seal(content)


def test_arviz_reads_the_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "posterior.nc").write_bytes(seal(content))
    opened = import_arviz().from_netcdf(str(tmp_path / "posterior.nc"))
    ours = tree_of(*from_bytes(content))
    assert list(split_groups(opened)[0]) == list(ours.children)
    for group, node in ours.children.items():
        assert dataset_of(opened, group).identical(node.to_dataset()), group
        opened[group].close()


def test_every_flipped_bit_is_detected() -> None:
    """In the whole file; the checksum is that of `sha256sum`."""
    smallest = to_bytes({}, {"kind": "chains"})
    content = seal(smallest)
    assert content.endswith(hashlib.sha256(smallest).hexdigest().encode())
    assert unseal(content) == unseal(smallest) == smallest
    for place, bit in enumerate(np.random.default_rng(1).integers(0, 8, len(content)).tolist()):
        damaged = bytearray(content)
        damaged[place] ^= 1 << bit
        with raises(DataError, "damaged"):
            unseal(bytes(damaged))


def test_bytes_cut_or_added_at_the_end_are_detected(small_content: bytes) -> None:
    content = seal(small_content)
    for length in range(len(small_content) + 1, len(content)):
        with raises(DataError, "damaged"):
            unseal(content[:length])
    for added in (b"\0", b"\n", content[-1:], content[-72:], b" " * 200):
        for changed in (content + added, small_content + added):
            if changed != content:
                with raises(DataError, "damaged"):
                    unseal(changed)


def test_reads_file_changed_by_another_program(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "posterior.nc").write_bytes(seal(content))
    with h5py.File(tmp_path / "posterior.nc", "a") as file:
        file.attrs["note"] = "changed on purpose"
    assert read_posterior(tmp_path / "posterior.nc").attrs["note"] == "changed on purpose"


def test_rejects_files_that_are_not_posteriors(small_content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "posterior.nc"
    with raises(DataError, "missing-file", match=r"posterior\.nc"):
        read_posterior(path)
    lengths = np.linspace(0, len(small_content) - 1, 20).astype(int)
    for content in (b"not a posterior", *(small_content[:length] for length in lengths)):
        path.write_bytes(content)
        with raises(DataError, "damaged", match=r"posterior\.nc"):
            read_posterior(path)
    for weights in (b"########\n# Moses\n[weight]", b"[weight]\nLM0= 1", b"lm= 0.5", b"{}", b"CD"):
        path.write_bytes(weights)
        with raises(DataError, "damaged") as caught:
            read_posterior(path)
        assert "give a NetCDF file of `bpa adapt`" in str(caught.value)  # no draws of another form
    inference_data({"posterior": {"mu": np.zeros((2, 10))}}).to_netcdf(str(path))
    with raises(DataError, "no-data", match=r"posterior\.nc"):
        read_weight_draws(path)
    assert list(read_posterior(path)["posterior"].data_vars) == ["mu"]


def test_rejects_impossible_sizes_before_allocation(tmp_path: Path) -> None:
    path = tmp_path / "absurd.nc"
    with h5py.File(path, "w") as file:
        group = file.create_group("posterior")
        group.create_dataset("weights", (4, 10**9, 10**4), "f8", chunks=(1, 1000, 1))
    with raises(DataError, "damaged"):
        read_posterior(path)


def _virtual(group: h5py.Group, other: Path) -> None:
    layout = h5py.VirtualLayout((CHAINS, DRAWS, Q), "f8")
    layout[:] = h5py.VirtualSource(other, "weights", layout.shape)
    group.create_virtual_dataset("weights", layout)


#: Puts numbers of another file, or chunks of an impossible size, in the place of the weights.
ELSEWHERE: dict[str, Callable[[h5py.Group, Path], object]] = {
    "virtual": _virtual,
    "link": lambda group, other: group.__setitem__("weights", h5py.ExternalLink(other, "weights")),
    "external": lambda group, other: group.create_dataset(
        "weights", (CHAINS, DRAWS, Q), "f8", external=[(other, 0, 99_999)]
    ),
    "chunk": lambda group, other: group.create_dataset(
        "weights", (CHAINS, DRAWS, Q), "f8", chunks=(1 << 14, 1 << 14, Q), maxshape=[None] * 3
    ),
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_rejects_numbers_from_elsewhere(content: bytes, kind: str, tmp_path: Path) -> None:
    path, other = tmp_path / "posterior.nc", tmp_path / "other.h5"
    path.write_bytes(content)
    with h5py.File(other, "w") as file:
        file["weights"] = np.zeros((CHAINS, DRAWS, Q))
    with h5py.File(path, "a") as file:
        del file["posterior"]["weights"]
        ELSEWHERE[kind](file["posterior"], other)
    with raises(DataError, "damaged", match="posterior.nc"):
        read_posterior(path)


@pytest.mark.parametrize("top", [lambda file: file["/"], lambda file: h5py.SoftLink("/")])
def test_rejects_groups_without_end(
    content: bytes, top: Callable[[h5py.File], Any], tmp_path: Path
) -> None:
    path = tmp_path / "posterior.nc"
    path.write_bytes(content)
    with h5py.File(path, "a") as file:
        file["posterior"]["top"] = top(file)
    with raises(DataError, "damaged", match="posterior.nc"):
        read_posterior(path)


def test_main_sites_are_read_back(tmp_path: Path) -> None:
    """They keep the names of their cells; files of before recorded only those of weights."""
    coords = {"school": ("a", "b")}
    values = {"theta": np.ones((2, 5, 2)), "tau": np.ones((2, 5))}
    draws = Draws(values, main=("theta",), dims={"theta": ("school",)}, coords=coords)
    write_posterior(draws, tmp_path / "main.nc")
    again = as_draws(read_posterior(tmp_path / "main.nc"))
    assert (again.main, again.main_names) == (("theta",), ("a", "b"))
    tree = to_arviz(draws)
    del tree.attrs["main_sites"]
    assert (as_draws(tree).main, as_draws(tree).names[0]) == ((), "theta[a]")
    tree = to_arviz(draws_of_all_kinds())
    assert tree.attrs.pop("main_sites") == '["weights"]'
    assert as_draws(tree).main_names == NAMES
    tree.attrs["main_sites"] = '["none"]'
    with raises(DataError, parameter="sampled", match="the sampled site 'none'"):
        as_draws(tree)


def _nested(file: h5py.File) -> None:
    group = file
    for _ in range(800):
        group = group.create_group("g")


#: What adds so much to a file that reading it takes long.
MANY: dict[str, Callable[[h5py.File], object]] = {
    "nested groups": _nested,
    "groups": lambda file: [file.create_group(f"g{k}") for k in range(200)],
    "arrays": lambda file: [
        file["posterior"].create_dataset(f"x{k}", (1,), "f4") for k in range(2000)
    ],
}


@pytest.mark.parametrize(
    ("many", "read"),
    [
        *((many, read_weight_draws) for many in MANY),
        ("groups", read_posterior),
        ("groups", Reranker),
    ],
)
def test_rejects_many_parts_before_their_content_is_read(
    small_content: bytes,
    many: str,
    read: Callable[[Path], object],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "posterior.nc"
    path.write_bytes(small_content)
    with h5py.File(path, "a") as file:
        MANY[many](file)
    monkeypatch.setattr(h5netcdf, "File", lambda *_, **__: pytest.fail("the content is read"))
    with raises(DataError, "damaged", match=rf"posterior.nc.* {many.split()[-1]}"):
        read(path)


def test_does_not_write_more_arrays_than_it_reads(tmp_path: Path) -> None:
    draws = np.zeros((1, 4, 1))
    sites = {f"site{k}": draws[..., 0] for k in range(1000)}
    with raises(DataError, "cannot-write", match="1,004"):
        write_posterior(name_weights(draws, ("LM0",), values=sites), tmp_path / "posterior.nc")


#: Changes the groups of a posterior, or its attributes.
Change = Callable[[xarray.DataTree], None]


def _group(name: str, change: Callable[[xarray.Dataset], xarray.Dataset]) -> Change:
    def changed(tree: xarray.DataTree) -> None:
        tree[name] = xarray.DataTree(change(tree[name].to_dataset()))

    return changed


def _value(group: str, name: str, value: float) -> Change:
    def changed(tree: xarray.DataTree) -> None:
        array = tree[group][name]
        array.values.reshape(-1)[3 % array.size] = value

    return changed


def _attribute(name: str, value: Any) -> Change:
    return lambda tree: tree.attrs.update({name: value})


#: A defect -> code and parameter of the error, and the change.
CRAFTED: dict[str, tuple[str, str | None, Change]] = {
    **{
        f"schema {version}": ("unknown-format", None, _attribute("schema_version", version))
        for version in (SCHEMA_VERSION + 1, "one")
    },
    "constants of other features": (
        *("mismatch", None),
        _group("constant_data", lambda g: g.assign_coords(feature=["TM0", "LM0", "WP0"])),
    ),
    "features without names": (
        *("bad-name", None),
        _group("posterior", lambda g: g.drop_vars("feature")),
    ),
    "a fixed weight that is free too": (
        *("duplicate", "features"),
        _group("constant_data", lambda g: g.assign_coords(fixed_feature=["LM0"])),
    ),
    "fixed weights without names": (
        *("bad-name", None),
        _group("constant_data", lambda g: g.drop_vars("fixed_feature")),
    ),
    "weights that are texts": (
        *("bad-data", "sampled"),
        _group("posterior", lambda g: g.assign(weights=g["weights"].astype(str))),
    ),
    "no chains": ("wrong-length", None, _group("posterior", lambda g: g.rename(chain="run"))),
    "no draws": ("no-data", "values", _group("posterior", lambda g: g.isel(draw=slice(0)))),
    "statistics of other draws": (
        *("mismatch", None),
        _group("sample_stats", lambda g: g.isel(draw=slice(1, None))),
    ),
    "a weight that is NaN": ("bad-number", None, _value("posterior", "weights", np.nan)),
    "a mode that is NaN": ("bad-number", None, _value("constant_data", "mode", np.nan)),
    "an infinite density": ("bad-number", None, _value("sample_stats", "lp", np.inf)),
    "a kind that does not exist": ("unknown-name", "kind", _attribute("kind", "guesses")),
    "weighted draws without weights": ("bad-data", "log_weight", _attribute("kind", "weighted")),
    "a site without draws": ("bad-data", "sampled", _attribute("sites", '["weights", "slope"]')),
    "an exponent below zero": ("damaged", "attrs", _attribute("likelihood_exponent", -1.0)),
}


def crafted(what: str) -> xarray.DataTree:
    tree = tree_of(*to_groups(draws_of_all_kinds().draws))
    CRAFTED[what][-1](tree)
    return tree


@pytest.mark.parametrize("what", CRAFTED)
def test_rejects_inconsistent_groups(what: str) -> None:
    code, parameter, _ = CRAFTED[what]
    with pytest.raises(BpaError) as caught:
        as_weight_draws(crafted(what))
    assert (caught.value.code, caught.value.parameter) == (code, parameter)


@pytest.mark.parametrize("what", ["schema one", "a weight that is NaN"])
def test_rejects_inconsistent_files(what: str, tmp_path: Path) -> None:
    code, parameter, _ = CRAFTED[what]
    (tmp_path / "crafted.nc").write_bytes(to_bytes(*split_groups(crafted(what))))
    with raises(DataError, code, parameter=parameter, match=r"crafted\.nc: "):
        read_posterior(tmp_path / "crafted.nc")


def test_nan_draws_are_not_written_or_used(tmp_path: Path) -> None:
    broken = np.zeros((1, 10, Q))
    broken[0, 3, 1] = np.nan
    for posterior in (name_weights(broken, NAMES), external_posterior(broken, NAMES)):
        assert not check(posterior)
        with raises(DataError, "bad-number", match="TM0"):
            point_weights(posterior)
        with raises(DataError, "bad-number"):
            write_posterior(posterior, tmp_path / "broken.nc")
    assert os.listdir(tmp_path) == []


def test_the_duration_is_written_only_if_asked_for(tmp_path: Path) -> None:
    draws = name_weights(np.zeros((1, 4, Q)), NAMES)
    for name, seconds in {"a": 1.0, "b": 2.0}.items():
        sampler = structs.replace(draws.record.sampler, seconds=seconds)
        timed = with_record(draws, sampler=sampler)
        write_posterior(timed, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    data = to_arviz(timed)
    write_posterior(data, tmp_path / "c")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    assert data.attrs["sampling_time"] == 2.0
    write_posterior(data, tmp_path / "timed", timed=True)
    assert read_weight_draws(tmp_path / "timed").record.sampler.seconds == 2.0


def test_rejects_values_that_netcdf_cannot_store(tmp_path: Path) -> None:
    def refuse(posterior: Any, code: str = "cannot-write") -> None:
        with raises(DataError, code):
            write_posterior(posterior, tmp_path / "odd.nc")

    for value in (10**30, "a\0b", "\ud800", object()):
        refuse(draws_of_all_kinds(record=Record(others={"mine": value})))
    for value in (10**30, True, None):
        data = to_arviz(draws_of_all_kinds().draws)
        data.attrs["mine"] = value
        refuse(data)
    refuse(draws_of_all_kinds(observed={"when": np.full(3, object())}))
    refuse(draws_of_all_kinds(observed={"a/b": np.zeros(3)}), "bad-name")
    assert os.listdir(tmp_path) == []


# --- draws read without xarray are those that xarray reads

SHAPE = (CHAINS, DRAWS)
#: Kinds of draws, and what NetCDF holds in other ways than numbers of double precision.
WRITTEN: dict[str, dict[str, Any]] = {
    "weighted": {"kind": "weighted", "log_weight": np.zeros(SHAPE), "log_density": None},
    "one point": {
        "kind": "point",
        "values": {"weights": np.ones((1, 1, 3))},
        "sampled": ("weights",),
        "log_density": None,
        "log_likelihood": {},
        "statistics": {},
    },
    "names and types": {
        "features": ("ä[ß]", "x 0", "[no list"),
        "values": {"weights": np.ones((*SHAPE, 3)), "own ö": np.ones((*SHAPE, 2, 3, 4))},
        "sampled": ("weights",),
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


def read_by_xarray(path: Path) -> WeightDraws:
    with xarray.open_datatree(path, engine="h5netcdf") as tree:
        return as_weight_draws(tree.load())


def assert_same(path: Path) -> InferenceData:
    """Fail unless a file is read equally with and without xarray, and return its data."""
    with_xarray, without = read_by_xarray(path), read_weight_draws(path)
    for part in fields(Draws):
        one, other = (getattr(draws.draws, part.name) for draws in (without, with_xarray))
        same(one, other, part.name)
    data = read_posterior(path)
    again = as_weight_draws(data)
    for part in fields(Draws):
        one, other = (getattr(draws.draws, part.name) for draws in (again, without))
        same(one, other, part.name)
    return data


@pytest.mark.parametrize("what", WRITTEN)
def test_reads_what_is_written(what: str, tmp_path: Path) -> None:
    path, draws = tmp_path / "posterior.nc", draws_of_all_kinds(**WRITTEN[what])
    write_posterior(draws, path)
    data = assert_same(path)
    for name, dataset in to_datasets(to_groups(draws.draws)[0]).items():
        assert dataset_of(data, name).identical(dataset), name
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
    datasets = {
        "posterior": data,
        "sample_stats": data[["accepted"]],
        "observed_data": xarray.Dataset({"y": ("obs", [1.0, np.nan])}),
    }
    theirs_data = to_arviz_data(datasets, {"list": "[1, 2]"})
    theirs_data.to_netcdf(str(tmp_path / "theirs.nc"), engine=engine)
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
        draws = read_weight_draws(tmp_path / "theirs.nc")
    expected = as_weight_draws(to_arviz_data({"posterior": theirs()}, {}))
    np.testing.assert_array_equal(draws.weights, expected.weights)
    assert name not in draws.draws.values


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
    draws, expected = (
        read_weight_draws(tmp_path / "theirs.nc"),
        read_by_xarray(tmp_path / "theirs.nc"),
    )
    assert draws.features == expected.features
    np.testing.assert_array_equal(draws.weights, expected.weights)
    np.testing.assert_array_equal(draws.draws.values["steps"], expected.draws.values["steps"])
    data = read_posterior(tmp_path / "theirs.nc")
    write_posterior(data, tmp_path / "ours.nc")
    again = read_posterior(tmp_path / "ours.nc")
    assert dataset_of(again, "posterior").identical(dataset_of(data, "posterior"))


@pytest.mark.parametrize("owner", ["/", "/posterior"])  # groups share the dimensions of the file
def test_arrays_that_end_before_an_unlimited_dimension_are_filled(
    owner: str, tmp_path: Path
) -> None:
    path = tmp_path / "theirs.nc"
    with h5netcdf.File(path, "w") as file:
        group = file.create_group("posterior")
        (file if owner == "/" else group).dimensions = {"chain": 1, "draw": None}
        for name in ("weights", "x"):
            group.create_variable(name, ("chain", "draw"), "f8", fillvalue=np.nan)
    with h5py.File(path, "a") as h5:
        for name, size in {f"{owner}/draw": (3,), "posterior/weights": (1, 3)}.items():
            h5[name].resize(size)
        h5["posterior/x"].resize((1, 2))
        h5["posterior/weights"][...] = h5["posterior/x"][...] = 1.0
    np.testing.assert_array_equal(read_weight_draws(path).draws.values["x"], [[1, 1, np.nan]])


def write_theirs(path: Path, data: xarray.Dataset, encoding: dict[str, Any] | None = None) -> None:
    data.to_netcdf(path, group="posterior", engine="h5netcdf", encoding=encoding or {})
