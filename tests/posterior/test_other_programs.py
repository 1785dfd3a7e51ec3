"""Posteriors of other programs are read, or the error names a call that makes them readable."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray
from support import reference_model
from support.posteriors import inference_data
from support.raising import raises
from xarray import Dataset, DataTree

from bpa_ppl import (
    BpaWarning,
    DataError,
    UsageError,
    adapt,
    as_weight_draws,
    check,
    from_lists,
    read_posterior,
    rerank,
    write_posterior,
)
from bpa_ppl.posterior.arviz_functions import import_arviz, split_groups, to_arviz_data, to_datasets
from bpa_ppl.posterior.files import read_weight_draws

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


def suggestion(error: Exception) -> str:
    """Return the Python expression in a message: from its module to the end of its last call."""
    text = str(error)
    start = re.search(r"(arviz|xarray)\.", text).start()  # type: ignore[union-attr]
    ends = [start + m.end() for m in re.finditer(r"\)", text[start:])]
    for end in ends:
        try:
            compile(text[start:end], "message", "eval")
        except SyntaxError:
            continue
        if text[end : end + 1] not in (".", "["):
            return text[start:end]
    raise AssertionError(text)


def follow(error: Exception, **names: Any) -> Any:
    """Return the value of the expression in a message."""
    known = {"arviz": import_arviz(), "numpy": np, "xarray": xarray, "features": FEATURES, **names}
    return eval(suggestion(error), known)  # of a message of ours


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


BRMS = ("b_Intercept", "sigma", "lprior", "lp__", "sd_rater__Intercept")
#: Variables of other programs, and which of them are named in the message.
VARIABLES: dict[str, tuple[dict[str, Any], str]] = {
    "brms": (
        dict.fromkeys(BRMS, WEIGHTS[..., 0]) | {f"b_{name}": x for name, x in SCALARS.items()},
        "b_Intercept",
    ),
    "bambi": ({"Intercept": WEIGHTS[..., 0], **SCALARS}, "judge_b"),
    "pymc": ({"alpha": WEIGHTS[..., 0], "beta": WEIGHTS, "sigma": WEIGHTS[..., 0]}, "alpha, beta"),
    "groups": ({**SCALARS, "1|rater": np.ones((4, 200, 9))}, "judge_a"),
}


@pytest.mark.parametrize("form", ["arviz", "dataset", "tree"])
@pytest.mark.parametrize("program", VARIABLES)
def test_other_variables_are_made_weights(program: str, form: str) -> None:
    variables, named = VARIABLES[program]
    data = inference_data({"posterior": variables, "sample_stats": {"lp": WEIGHTS[..., 0]}})
    if form != "arviz":
        arrays = import_arviz().convert_to_dataset(data)
        data = arrays if form == "dataset" else DataTree.from_dict({"posterior": arrays})
    with raises(DataError, "no-data", match=re.escape(named)) as caught:
        as_weight_draws(data)
    assert_right(follow(caught.value, data=data))


def test_missing_groups_and_variables_are_listed() -> None:
    data = dataset(feature=["a", "b"]).rename({"weights": "beta", "feature": "judge"})
    with raises(DataError, "no-data") as caught:
        as_weight_draws(data)
    assert_right(follow(caught.value, data=data))
    with raises(DataError, "no-data", match=r"groups: \w+, \w+\)"):
        as_weight_draws(inference_data({"prior": SAMPLES, "sample_stats": {"lp": WEIGHTS[..., 0]}}))
    with raises(DataError, "no-data", match="groups: posterior"):
        as_weight_draws(DataTree())


def test_weights_without_labels_or_chains_are_refused() -> None:
    for form in (dataset(), DataTree.from_dict({"posterior": dataset()})):
        with raises(DataError, "bad-name", match="feature") as caught:
            as_weight_draws(form)
        assert_right(follow(caught.value, data=form))
    one = dataset(feature=FEATURES)
    with raises(DataError, "wrong-length", match=r"draw, feature.*sel\(chain=\[0\]\)"):
        as_weight_draws(one.sel(chain=0))
    np.testing.assert_array_equal(
        as_weight_draws(one.sel(chain=0, drop=True).expand_dims("chain")).weights, WEIGHTS[:1]
    )


@pytest.mark.slow
def test_samples_of_numpyro_are_converted_as_the_error_says() -> None:
    def model() -> None:
        with numpyro.plate("feature", 2):
            numpyro.sample("weights", dist.Normal(0.0, 1.0))

    options: dict[str, Any] = {"num_samples": 50, "num_chains": 2, "chain_method": "sequential"}
    kernel = numpyro.infer.BarkerMH(model)  # is compiled much faster than NUTS
    run = numpyro.infer.MCMC(kernel, num_warmup=50, progress_bar=False, **options)
    run.run(jax.random.key(0))
    grouped = run.get_samples(group_by_chain=True)
    forms: dict[str, list[Any]] = {"dict": [grouped, run.get_samples()], "MCMC": [run]}
    for name, form in ((name, form) for name, of in forms.items() for form in of):
        with raises(UsageError, "wrong-type", parameter="posterior", match=name) as caught:
            as_weight_draws(form)
        draws = as_weight_draws(follow(caught.value, samples=grouped, mcmc=run))
        assert draws.features == tuple(FEATURES)
        np.testing.assert_array_equal(draws.weights, np.float64(grouped["weights"]))


def test_lists_of_chains_and_files_of_json_are_converted_as_the_errors_say(tmp_path: Path) -> None:
    """As posteriordb has them, and as arrays."""
    chains: Any = [{name: x[chain].tolist() for name, x in SCALARS.items()} for chain in range(4)]
    path = tmp_path / "draws.json"
    path.write_text(json.dumps(chains))
    with raises(UsageError, "wrong-type", parameter="posterior", match="list") as of_lists:
        as_weight_draws(chains)
    with raises(DataError, "damaged", match=r"draws\.json") as in_file:
        read_posterior(path)
    for caught in (of_lists, in_file):
        data = follow(caught.value, draws=chains)
        with raises(DataError, "no-data") as caught_data:
            as_weight_draws(data)
        assert_right(follow(caught_data.value, data=data))
    path.write_text(json.dumps({"weights": WEIGHTS.tolist()}))
    with raises(DataError, "damaged", match=r"draws\.json") as in_file:
        read_posterior(path)
    data = follow(in_file.value, samples=json.loads(path.read_text()))
    np.testing.assert_array_equal(data["posterior"]["weights"], WEIGHTS)


def test_a_file_of_netcdf_3_is_converted_as_the_error_says(tmp_path: Path) -> None:
    path = tmp_path / "old.nc"
    dataset(feature=FEATURES).to_netcdf(path, engine="scipy")
    with raises(DataError, "damaged", match=r"old\.nc.*NetCDF 3"):
        read_posterior(path)


def test_pickles_have_a_call(tmp_path: Path) -> None:
    (tmp_path / "samples.pkl").write_bytes(pickle.dumps(SAMPLES))
    with pytest.raises(DataError) as caught:
        read_posterior(tmp_path / "samples.pkl")
    data = follow(caught.value, samples=SAMPLES)
    np.testing.assert_array_equal(data["posterior"]["weights"], WEIGHTS)


def test_numbered_features_can_be_named() -> None:
    """As ArviZ numbers them, if they have no names."""
    data = DataTree.from_dict({"posterior": dataset(feature=[0, 1])})
    with pytest.raises(DataError, match="if these number the features, name them by assign_coords"):
        rerank(LISTS, data, unchecked=True)
    assert_right(data["posterior"].to_dataset().assign_coords(feature=FEATURES))


def test_a_path_and_an_array_are_refused() -> None:
    for path in ("posterior.nc", Path("posterior.nc")):
        with raises(UsageError, "wrong-type", parameter="posterior", match="read_posterior"):
            as_weight_draws(path)  # type: ignore[arg-type]
    with raises(UsageError, "wrong-type", parameter="posterior", match="ndarray"):
        as_weight_draws(WEIGHTS)  # type: ignore[arg-type]
    array = dataset(feature=FEATURES)["weights"]
    with raises(UsageError, "wrong-type", parameter="posterior", match=r"to_dataset\(name="):
        as_weight_draws(array)  # type: ignore[arg-type]
    assert_right(array.to_dataset(name="weights"))


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


def test_draws_without_chains_are_converted_as_the_error_says() -> None:
    """In files, draws of several chains in one dimension have no index."""
    whole = labelled()["posterior"]["weights"].to_dataset(name="weights")
    first = whole.sel(chain=0, drop=True).rename(draw="iteration")
    stacked = whole.stack(sample=("chain", "draw"))
    for data in (stacked, stacked.reset_index("sample"), first):
        with raises(DataError, "wrong-length") as caught:
            as_weight_draws(data)
        converted = eval(f"data.{caught.value.message.partition('; call ')[2]}", {"data": data})
        chains = slice(1 if data is first else None)
        np.testing.assert_array_equal(as_weight_draws(converted).weights, WEIGHTS[chains])
