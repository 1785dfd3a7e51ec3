"""Posteriors of other programs are read, or refused in a sentence that names the page."""

from __future__ import annotations

import json
import pickle
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray
from support import reference_model
from support.command_line import run
from support.posteriors import inference_data, read_weight_draws
from support.raising import raises
from xarray import Dataset, DataTree

from bpa_ppl import (
    BpaWarning,
    DataError,
    UsageError,
    adapt,
    as_draws,
    as_weight_draws,
    check,
    from_lists,
    read_posterior,
    rerank,
    write_posterior,
)
from bpa_ppl.posterior.arviz_functions import (
    arviz_version,
    import_arviz,
    split_groups,
    to_arviz_data,
    to_datasets,
)
from bpa_ppl.posterior.opening import open_posterior

FEATURES = ["judge_a", "judge_b"]
MEAN = [1.0, 0.5]
WEIGHTS = np.random.default_rng(0).normal(MEAN, 0.3, size=(4, 200, 2))
SAMPLES = {"weights": WEIGHTS}
SCALARS = {name: WEIGHTS[..., k] for k, name in enumerate(FEATURES)}
NAMED: dict[str, Any] = {"coords": {"feature": FEATURES}, "dims": {"weights": ["feature"]}}
LISTS = from_lists([["x", "y"]], [[[0.0, 1.0], [1.0, 0.0]]], FEATURES)


def dataset(**coords: Any) -> Dataset:
    return Dataset({"weights": (("chain", "draw", "feature"), WEIGHTS)}, coords)


def labelled(**groups: Any) -> Any:
    return inference_data({"posterior": SAMPLES, **groups}, **NAMED)


def assert_right(data: Any) -> None:
    """Fail unless a posterior has the weights, by feature."""
    draws = as_weight_draws(data)
    assert draws.features == tuple(FEATURES)
    np.testing.assert_array_equal(draws.weights, WEIGHTS)
    assert rerank(LISTS, data, unchecked=True).texts == ["y"]


PAGE = "docs/how-to/other-programs.md"


@pytest.mark.parametrize(
    "form",
    [
        dataset(feature=FEATURES),
        DataTree(dataset(feature=FEATURES)),
        DataTree.from_dict({"posterior": dataset(feature=FEATURES)}),
        dataset(feature=FEATURES).transpose("feature", "draw", "chain"),
        labelled(),
    ],
    ids=["dataset", "root", "tree", "order", "arviz"],
)
def test_weights_in_any_form_are_read(form: Any, tmp_path: Path) -> None:
    assert_right(form)
    write_posterior(form, tmp_path / "posterior.nc")
    assert_right(read_posterior(tmp_path / "posterior.nc"))
    assert read_weight_draws(tmp_path / "posterior.nc").features == tuple(FEATURES)


@pytest.mark.parametrize("form", ["arviz", "dataset", "tree"])
def test_other_variables_are_no_weights(form: str) -> None:
    """The page shows how they become weights: `tests/test_examples.py` runs it."""
    data = inference_data({"posterior": SCALARS, "sample_stats": {"lp": WEIGHTS[..., 0]}})
    if form != "arviz":
        arrays = import_arviz().convert_to_dataset(data)
        data = arrays if form == "dataset" else DataTree.from_dict({"posterior": arrays})
    message = f"no variable weights in the posterior, but judge_a, judge_b: only compare.*{PAGE}"
    with raises(DataError, "no-data", match=message):
        as_weight_draws(data)


def test_missing_groups_and_variables_are_listed() -> None:
    with raises(DataError, "no-data", match=r"groups: \w+, \w+\)"):
        as_weight_draws(inference_data({"prior": SAMPLES, "sample_stats": {"lp": WEIGHTS[..., 0]}}))
    with raises(DataError, "no-data", match="groups: posterior"):
        as_weight_draws(DataTree())


def test_weights_without_labels_or_chains_are_refused() -> None:
    for form in (dataset(), DataTree.from_dict({"posterior": dataset()})):
        message = f"weights have no names of features: {PAGE} shows how to name the weights"
        with raises(DataError, "bad-name", match=message):
            as_weight_draws(form)
    one = dataset(feature=FEATURES)
    with raises(DataError, "wrong-length", match=rf"dimensions draw, feature: .*{PAGE} has a line"):
        as_weight_draws(one.sel(chain=0))
    np.testing.assert_array_equal(
        as_weight_draws(one.sel(chain=0, drop=True).expand_dims("chain")).weights, WEIGHTS[:1]
    )


def test_files_of_other_formats_are_refused_with_the_page(tmp_path: Path) -> None:
    """Files of JSON, NetCDF 3, pickle and NumPy, text tables, and folders of Zarr."""
    chains: Any = [{name: x[chain].tolist() for name, x in SCALARS.items()} for chain in range(4)]
    (tmp_path / "draws.json").write_text(json.dumps(chains))
    dataset(feature=FEATURES).to_netcdf(tmp_path / "old.nc", engine="scipy")
    (tmp_path / "samples.pkl").write_bytes(pickle.dumps(SAMPLES))
    np.savez(tmp_path / "draws.npz", **SAMPLES)
    np.save(tmp_path / "draws.npy", WEIGHTS)
    (tmp_path / "weighted_post.txt").write_text("weight logl mu\n0.5 -1 0.1\n0.5 -2 0.2\n")
    for path in sorted(tmp_path.iterdir()):
        message = (
            rf"{path.name}: not a readable NetCDF posterior \(not an HDF5 file\): .*{PAGE} has"
        )
        for function in (read_posterior, check, read_weight_draws):
            with raises(DataError, "damaged", match=message):
                function(path)
        refused = run("check", path)
        assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    (tmp_path / "draws.zarr").mkdir()
    (tmp_path / "draws.zarr" / "zarr.json").touch()
    with raises(DataError, "missing-file", match=rf"draws\.zarr: a folder: .*{PAGE} has a line"):
        read_posterior(tmp_path / "draws.zarr")


def test_numbered_features_can_be_named() -> None:
    """As ArviZ numbers them, if they have no names."""
    data = DataTree.from_dict({"posterior": dataset(feature=[0, 1])})
    with pytest.raises(DataError, match="if these number the features, name them by assign_coords"):
        rerank(LISTS, data, unchecked=True)
    assert_right(data["posterior"].to_dataset().assign_coords(feature=FEATURES))


def test_other_forms_are_refused() -> None:
    for form in ("posterior.nc", Path("posterior.nc"), WEIGHTS, [SAMPLES], SAMPLES):
        message = f"not {type(form).__name__}: read_posterior makes ArviZ's data of other forms"
        with raises(UsageError, "wrong-type", parameter="posterior", match=message):
            as_weight_draws(form)  # type: ignore[arg-type]


def test_chains_with_gaps_are_read(tmp_path: Path) -> None:
    """Selecting chains of InferenceData leaves its log prior as it is."""
    pairs = np.random.default_rng(1).normal(-0.5, 1.0, (20, 2))
    canonical = dict(zip(FEATURES, MEAN, strict=True))
    whole = adapt(
        reference_model.pairs(pairs, FEATURES),
        canonical,
        gain=reference_model.given(*[0] * 20),
        likelihood="oracle",
        sampler="auto:draws=300",
        seed=1,
    )
    datasets = to_datasets(split_groups(whole)[0])
    kept = ["posterior", "log_likelihood", "sample_stats"]
    selected = datasets | {name: datasets[name].sel(chain=[0, 1, 3]) for name in kept}
    data = to_arviz_data(selected, {})
    with pytest.warns(BpaWarning, match="log_prior of weights is left out: it has 4 × 300"):
        draws = as_weight_draws(data)
    assert draws.draws.log_prior == {}
    np.testing.assert_array_equal(draws.weights, as_weight_draws(whole).weights[[0, 1, 3]])
    with pytest.warns(BpaWarning, match="log_prior"):
        write_posterior(data, tmp_path / "posterior.nc")
    with pytest.warns(BpaWarning, match="log_prior"):
        again = read_weight_draws(tmp_path / "posterior.nc")
    np.testing.assert_array_equal(again.weights, draws.weights)
    with pytest.warns(BpaWarning, match="log_prior"):
        assert "3 chains" in str(check(data))
    selected |= {"log_likelihood": datasets["log_likelihood"], "log_prior": selected["posterior"]}
    with raises(DataError, "mismatch", match="the same chains and draws in all groups"):
        as_weight_draws(to_arviz_data(selected, {}))


#: The tables of the page: draws of a program -> the expression that makes a posterior of them, and
#: what else is named.
LINES = {
    name: (expression, option)
    for name, expression, option in re.findall(
        r"^\| (.+?) \| `([^`]+)`(?:, with `([^`]+)`)? \|$",
        (Path(__file__).parents[2] / PAGE).read_text("utf-8").partition("## A line for each")[2],
        re.MULTILINE,
    )
}
MU = np.random.default_rng(1).normal(size=(4, 300))
THETA = np.random.default_rng(2).normal(size=(4, 300, 2))
ARRAYS: dict[str, Any] = {"mu": MU, "theta": THETA}


def draw_by_blackjax() -> Any:
    blackjax = pytest.importorskip("blackjax")
    kernel = blackjax.rmh(
        lambda position: -(position["mu"] ** 2) / 2,
        lambda key, position: {"mu": position["mu"] + jax.random.normal(key)},
    )
    start = jax.vmap(kernel.init)({"mu": jax.numpy.arange(4.0)})

    def step(state: Any, key: Any) -> Any:
        state = jax.vmap(kernel.step)(jax.random.split(key, 4), state)[0]
        return state, state

    return jax.lax.scan(step, start, jax.random.split(jax.random.key(0), 30))[1]


def draw_by_emcee(backend: Any = None) -> Any:
    emcee = pytest.importorskip("emcee")
    start = np.random.default_rng(0).normal(size=(6, 1))
    sampler = emcee.EnsembleSampler(6, 1, lambda x: -(x[0] ** 2) / 2, backend=backend)
    sampler.run_mcmc(start, 40)
    return sampler


def write_emcee() -> dict[str, Any]:
    emcee = pytest.importorskip("emcee")
    sampler = draw_by_emcee(emcee.backends.HDFBackend("emcee.h5"))
    return {"emcee": emcee, "expected": {"mu": sampler.get_chain()[..., 0].T}}


def read_by_cmdstanpy() -> dict[str, Any]:
    cmdstanpy = pytest.importorskip("cmdstanpy")
    files = [str(path) for path in sorted((Path(__file__).parent / "files").glob("thinned_*.csv"))]
    expected = as_draws(read_posterior(files[0].replace("_1", "_*"))).values
    return {"fit": cmdstanpy.from_csv(files), "expected": {"sigma_obs": expected["sigma_obs"]}}


def write_zarr() -> dict[str, Any]:
    pytest.importorskip("zarr")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Consolidated metadata")
        DataTree.from_dict({"posterior": arrays_of(ARRAYS)}).to_zarr("draws.zarr")
    return {"xarray": xarray}


def arrays_of(values: dict[str, Any]) -> Dataset:
    return Dataset({n: (("chain", "draw", "k")[: x.ndim], x) for n, x in values.items()})


def write_numpy() -> dict[str, Any]:
    np.savez("draws.npz", **ARRAYS)
    return {}


def write_netcdf_3() -> dict[str, Any]:
    arrays_of(ARRAYS).to_netcdf("old.nc", engine="scipy")
    return {"xarray": xarray}


def write_turing() -> dict[str, Any]:
    """As the DataFrame of MCMCChains has the columns."""
    chains, draws = np.indices(MU.shape) + 1
    names = ["iteration", "chain", "mu", "lp", "logprior", "loglikelihood", "log_density"]
    rows = np.stack([draws, chains, MU, *[-(MU**2)] * 4], axis=-1).reshape(-1, len(names))
    np.savetxt("draws.csv", rows, delimiter=",", header=",".join(names), comments="")
    return {"expected": {"mu": MU}}


def write_text() -> dict[str, Any]:
    pytest.importorskip("pandas")
    np.savetxt("draws.txt", MU[0, :, None], header="mu", comments="")
    return {"expected": {"mu": MU[:1]}}


def nested() -> dict[str, Any]:
    """What dynesty and nautilus return of one run, with logarithms of weights."""
    logs = -(MU[0] ** 2) / 2 - 100.0
    return {
        "results": SimpleNamespace(samples=THETA[0], logwt=logs),
        "points": THETA[0],
        "log_w": logs,
        "expected": {"theta": THETA[:1]},
    }


def run_numpyro() -> dict[str, Any]:
    def model() -> None:
        numpyro.sample("mu", dist.Normal(0.0, 1.0))

    options: dict[str, Any] = {"num_samples": 50, "num_chains": 2, "chain_method": "sequential"}
    kernel = numpyro.infer.BarkerMH(model)  # is compiled much faster than NUTS
    mcmc = numpyro.infer.MCMC(kernel, num_warmup=50, progress_bar=False, **options)
    mcmc.run(jax.random.key(0))
    return {"mcmc": mcmc, "expected": {"mu": mcmc.get_samples()["mu"].reshape(2, 50)}}


def make_chains() -> dict[str, Any]:
    return {"chains": [{name: x[k].tolist() for name, x in ARRAYS.items()} for k in range(4)]}


STACKED = arrays_of(ARRAYS).stack(sample=("chain", "draw"))
#: The first words of a line -> the names in its expression, and the draws if they are not `ARRAYS`.
MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "BlackJAX": lambda: {
        "states": (states := draw_by_blackjax()),
        "expected": {"mu": states.position["mu"].T},
    },
    "CmdStanPy": read_by_cmdstanpy,
    "dynesty": nested,
    "emcee's": write_emcee,
    "emcee": lambda: {
        "sampler": (sampler := draw_by_emcee()),
        "expected": {"mu": sampler.get_chain()[..., 0].T},
    },
    "JSON": make_chains,
    "nautilus": nested,
    "NetCDF": write_netcdf_3,
    "NumPy's": write_numpy,
    "NumPyro's": run_numpyro,
    # (…, draws, chains), by its documentation.
    "PyJAGS": lambda: {"samples": {n: np.moveaxis(x, (0, 1), (-1, -2)) for n, x in ARRAYS.items()}},
    "PyMC": lambda: {"trace": inference_data({"posterior": ARRAYS})},
    "Turing": write_turing,
    "Zarr": write_zarr,
    "a text": write_text,
    "leave out": lambda: {
        "data": inference_data({"posterior": {n: pad(x) for n, x in ARRAYS.items()}})
    },
    "the same of": lambda: {
        "one_dataset": arrays_of(ARRAYS).sel(chain=0),
        "expected": {n: x[:1] for n, x in ARRAYS.items()},
    },
    "the same": lambda: {"draws": {n: pad(x) for n, x in ARRAYS.items()}},
    "keep 200": lambda: {
        "chains": {n: [*x[:3], x[3][:200]] for n, x in ARRAYS.items()},
        "expected": {n: x[:, :200] for n, x in ARRAYS.items()},
    },
    "one chain": lambda: {
        "one": {n: x[0] for n, x in ARRAYS.items()},
        "expected": {n: x[:1] for n, x in ARRAYS.items()},
    },
    "stacked": lambda: {"stacked": STACKED},
    "chains and": lambda: {"swapped": arrays_of(ARRAYS).rename({"chain": "draw", "draw": "chain"})},
    "an array": lambda: {"array": arrays_of(ARRAYS)["theta"], "expected": {"theta": THETA}},
}


def pad(values: np.ndarray) -> np.ndarray:
    """Return draws with 100 further ones before them."""
    return np.concatenate([values[:, :100] + 9, values], axis=1)


@pytest.mark.parametrize("line", LINES)
def test_the_page_has_a_line_that_reads_the_draws_of_each_program(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    start = next(words for words in MAKERS if line.startswith(words))
    expression, option = LINES[line]
    if expression.startswith("az.from_zarr") and arviz_version() < 1:
        pytest.skip("ArviZ 0.23 reads the format 2 of Zarr")
    names = MAKERS[start]()
    expected = names.pop("expected", ARRAYS)
    given: dict[str, Any] = {"az": import_arviz(), "np": np, **names}
    if "pd." in expression:
        given["pd"] = pytest.importorskip("pandas")
    options = eval(f"dict({option})")
    opened = open_posterior(eval(expression, given), **options)
    for name, values in expected.items():
        np.testing.assert_allclose(opened.draws.values[name], values, rtol=1e-6)
    assert opened.draws.weighted == bool(option)


def test_every_line_of_the_page_is_run() -> None:
    """No line is left out by its form, and no maker is without a line."""
    text = (Path(__file__).parents[2] / PAGE).read_text("utf-8").partition("## A line for each")[2]
    rows = [row for row in text.splitlines() if row.startswith("|") and "--" not in row]
    assert len(rows) - 2 == len(LINES) >= len(MAKERS)  # two rows are titles
    used = {next(words for words in MAKERS if line.startswith(words)) for line in LINES}
    assert used == {*MAKERS}


def test_stacked_draws_are_refused_with_the_page() -> None:
    """In files, draws of several chains in one dimension have no index."""
    whole = labelled()["posterior"]["weights"].to_dataset(name="weights")
    first = whole.sel(chain=0, drop=True).rename(draw="iteration")
    stacked = whole.stack(sample=("chain", "draw"))
    for data in (stacked, stacked.reset_index("sample"), first):
        for function in (as_weight_draws, check):
            with raises(DataError, "wrong-length", match=rf"needs chain and draw.*{PAGE}"):
                function(data)
