"""Every form of a posterior comes in by one door, and is taken rightly or refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pyarrow as pa
import pytest
from pyarrow import csv
from support.cmdstan import write_cmdstan
from support.command_line import run
from support.raising import raises
from xarray import Dataset, DataTree

import bpa_ppl as bpa
from bpa_ppl import DataError, Draws, UsageError, read_posterior
from bpa_ppl.posterior.arviz_functions import arviz_version, import_arviz, to_arviz_data
from bpa_ppl.posterior.opening import open_draws, open_posterior

SHAPE = 4, 300
RNG = np.random.default_rng(0)
MU, THETA = RNG.normal(size=SHAPE), RNG.normal(size=(*SHAPE, 2))
ARRAYS: dict[str, Any] = {"mu": MU, "theta": THETA}
CELLS = ["mu", "theta[0]", "theta[1]"]
pytestmark = pytest.mark.filterwarnings("ignore:Passing a dict or None as alias_mapping")


def dataset(**arrays: Any) -> Dataset:
    dims = {
        n: ["chain", "draw", *(f"{n}_{k}" for k in range(np.ndim(x) - 2))]
        for n, x in arrays.items()
    }
    return Dataset({name: (dims[name], values) for name, values in arrays.items()})


def tree(statistics: dict[str, Any], **arrays: Any) -> DataTree:
    groups = {"posterior": dataset(**arrays), "sample_stats": dataset(**statistics)}
    return DataTree.from_dict(groups)


def rows(chain: str = "chain", draw: str = "draw", **arrays: Any) -> dict[str, Any]:
    """Return the columns of a table with a row for each draw, in random order."""
    chains, draws = np.indices(SHAPE)
    order = np.random.default_rng(1).permutation(chains.size)
    return {n: np.ravel(x)[order] for n, x in {chain: chains, draw: draws, **arrays}.items()}


def write_netcdf() -> Any:
    dataset(**ARRAYS).to_netcdf("draws.nc", engine="h5netcdf")
    return "draws.nc"


def write_table() -> Any:
    columns = rows(mu=MU, **{f"theta[{k}]": THETA[..., k] for k in (0, 1)})
    csv.write_csv(pa.table(columns), "draws.csv")
    return Path("draws.csv")


def write_stan() -> Any:
    columns = ["mu", "theta.1", "theta.2"]
    write_cmdstan(Path(), columns, np.concatenate([MU[..., None], THETA], axis=-1))
    return "output_*.csv"


FORMS: dict[str, Callable[[], Any]] = {
    "dictionary": lambda: ARRAYS,
    "Dataset": lambda: dataset(**ARRAYS),
    "DataTree": lambda: DataTree.from_dict({"posterior": dataset(**ARRAYS)}),
    "data of ArviZ": lambda: to_arviz_data({"posterior": dataset(**ARRAYS)}, {}),
    "masked": lambda: {
        n: np.ma.masked_array(x, np.zeros(x.shape, bool)) for n, x in ARRAYS.items()
    },
    "lists": lambda: {n: [chain.tolist() for chain in x] for n, x in ARRAYS.items()},
    "Arrow": lambda: pa.table(rows(mu=MU, **{f"theta[{k}]": THETA[..., k] for k in (0, 1)})),
    "NetCDF": write_netcdf,
    "CSV": write_table,
    "CmdStan": write_stan,
}


@pytest.mark.parametrize("form", FORMS)
def test_all_functions_take_all_forms(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = FORMS[form]()
    draws = open_draws(data).draws
    np.testing.assert_allclose(np.stack([draws.components()[n] for n in CELLS], -1)[..., 0], MU)
    np.testing.assert_allclose(draws.components()["theta[1]"], THETA[..., 1])
    read = read_posterior(data)
    np.testing.assert_allclose(read["posterior"]["mu"], MU)
    report = bpa.check(data)
    expected = bpa.check(ARRAYS)
    assert [one.value for one in report.rows if one.name == "R-hat"] == pytest.approx(
        [one.value for one in expected.rows if one.name == "R-hat"]
    )
    if isinstance(data, str | Path):  # commands take the same
        checked = run("check", data)
        assert (checked.code, "R-hat" in checked.out) == (0 if report else 3, True)


@pytest.mark.usefixtures("without_drawing")
def test_pictures_and_pages_take_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = write_table()
    titles = [axes.get_title("left") for axes in bpa.plot_trace(data, ["mu"]).axes]
    assert "mu" in titles
    for command in (["trace", data, "-o", "a.html"], ["report", data, "-o", "b.html"]):
        assert run(*command).code == 0
    page = Path("b.html").read_text("utf-8")
    assert "theta[1]" in page
    assert "Variables" in page
    assert "What moved" not in page  # nothing of lists
    assert "weight" not in re.sub(r"<style.*?</style>|font-weight", "", page, flags=re.DOTALL)


@pytest.mark.slow
def test_numpyro_after_its_run() -> None:
    def model() -> None:
        numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([2]).to_event(1))

    kernel = numpyro.infer.BarkerMH(model)  # is compiled much faster than NUTS
    options: dict[str, Any] = {"num_samples": 50, "num_chains": 2, "chain_method": "sequential"}
    mcmc = numpyro.infer.MCMC(kernel, num_warmup=50, progress_bar=False, **options)
    with raises(DataError, "no-data", parameter="posterior", match="MCMC has no draws: run it"):
        bpa.check(mcmc)
    mcmc.run(jax.random.key(0))
    expected = mcmc.get_samples(group_by_chain=True)["mu"]
    np.testing.assert_array_equal(open_draws(mcmc).draws.values["mu"], expected)


@pytest.mark.parametrize(
    ("chain", "draw"), [(".chain", ".iteration"), ("chain__", "iter__"), ("chain", "draw")]
)
def test_rows_of_other_programs_are_draws(chain: str, draw: str) -> None:
    """The names of R's posterior, CmdStanPy and pandas; statistics of Stan are no variables."""
    table = rows(chain, draw, mu=MU, lp__=-(MU**2), **{".draw": np.arange(MU.size)})
    found = open_posterior(pa.table(table)).draws
    np.testing.assert_array_equal(found.values["mu"], MU)
    assert [*found.values] == ["mu"]
    np.testing.assert_array_equal(found.log_density, -(MU**2))


def test_a_table_without_chains_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four chains that are apart would be one chain, and agree."""
    monkeypatch.chdir(tmp_path)
    apart = MU + 8 * np.arange(4)[:, None]
    columns = rows(mu=apart)
    csv.write_csv(pa.table(columns), "apart.csv")
    assert not bpa.check("apart.csv")
    for name in ("chain", "draw"):
        csv.write_csv(pa.table({n: x for n, x in columns.items() if n != name}), "part.csv")
        with raises(DataError, "missing-column", match=rf"part\.csv: no column {name}: a table"):
            bpa.check("part.csv")
    refused = run("check", "part.csv")
    assert (refused.code, refused.out) == (2, "")
    doubled = pa.table(columns | {"draw": columns["draw"] // 2})
    with raises(DataError, "duplicate", match="two rows of draw"):
        bpa.check(doubled)
    Path("broken.csv").write_text("chain,draw,mu\n1,2\n")
    with raises(DataError, "damaged", match=r"broken\.csv: not a table of draws"):
        bpa.check("broken.csv")
    with raises(DataError, "no-data", match="no row of a draw"):
        bpa.check(pa.table({"chain": [], "draw": [], "mu": []}))
    # As R writes as.data.frame(fit) of Stan.
    csv.write_csv(pa.table({"mu": apart.ravel(), "lp__": -(apart.ravel() ** 2)}), "rstan.csv")
    with raises(DataError, "missing-column", match=r"no column chain:.*as_draws_df\(fit\)"):
        bpa.check("rstan.csv")


def test_files_of_a_pattern_have_the_same_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_cmdstan(Path(), ["mu", "tau"], np.stack([MU, MU], axis=-1))
    text = Path("output_2.csv").read_text()
    for header in ("mu,sigma", "tau,mu", "mu,tau,p_mu"):
        Path("output_2.csv").write_text(text.replace("mu,tau", header))
        with raises(DataError, "mismatch", match=r"output_1\.csv and output_2\.csv have other"):
            bpa.check("output_*.csv")


def test_chains_of_unequal_length_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    short = {name: [*values[:2], values[2][:200]] for name, values in ARRAYS.items()}
    for refused in (bpa.check, partial_compare):
        with raises(DataError, "wrong-length", match="chain 2 of mu has 200 draws, but chain 0"):
            refused(short)
    with raises(DataError, "wrong-length", match="theta of the posterior must have the shape"):
        bpa.check({"mu": MU, "theta": THETA[:, :200]})
    columns = {name: x[60:] for name, x in rows(mu=MU).items()}
    with raises(DataError, "wrong-length", match=r"chain \d has \d+ draws, but chain \d has"):
        bpa.check(pa.table(columns))
    write_cmdstan(Path(), ["mu"], MU[..., None])
    lines = Path("output_3.csv").read_text().splitlines()
    Path("output_3.csv").write_text("\n".join(lines[:-105]) + "\n")
    with raises(DataError, "wrong-length", match=r"output_3\.csv has 200 draws, but output_1"):
        bpa.check("output_*.csv")


def partial_compare(data: Any) -> Any:
    return bpa.compare(data, ARRAYS)


@pytest.mark.parametrize("form", [dict, lambda x: dataset(**x), lambda x: tree({}, **x)])
def test_chains_filled_up_with_nan_are_refused(form: Callable[..., Any]) -> None:
    padded = {name: values.copy() for name, values in ARRAYS.items()}
    for values in padded.values():
        values[2, 200:] = np.nan
    with raises(DataError, "wrong-length", match="chain 2 of the posterior has 200 draws"):
        bpa.check(form(padded))
    for values in padded.values():
        values[:, 200:] = np.nan
    with raises(DataError, "bad-number", match="the draws of the posterior from 200 on are NaN"):
        bpa.check(form(padded))


def test_draws_of_the_warm_up_are_refused() -> None:
    tune = np.broadcast_to(np.arange(SHAPE[1]) < 100, SHAPE)
    data = tree({"tune": tune}, mu=MU)
    with raises(DataError, "bad-data", match="warm-up, as tune says, up to draw 100: leave them"):
        bpa.check(data)
    assert open_draws(data.isel(draw=slice(100, None))).draws.shape == (4, 200)
    assert open_draws(tree({"tune": ~tune & tune}, mu=MU)).draws.shape == SHAPE


def test_masked_draws_are_not_finite(tmp_path: Path) -> None:
    masked = np.ma.masked_greater(np.where(RNG.uniform(size=SHAPE) < 0.1, 1e20, MU), 1e10)
    draws, left_out = open_draws({"mu": masked, "tau": MU})
    assert (list(draws.components()), left_out) == (["tau"], {"not finite": ["mu"]})
    path = tmp_path / "masked.nc"
    filled = dataset(mu=masked.filled(1e20), tau=MU)
    filled.to_netcdf(path, engine="h5netcdf", encoding={"mu": {"_FillValue": 1e20}})
    assert open_draws(path).left_out == {"not finite": ["mu"]}


WIDE = np.random.default_rng(2).normal(0.0, 1.5, (4, 4000))
WEIGHT = np.exp(WIDE**2 / 4.5 - WIDE**2 / 2)
WEIGHT = WEIGHT / WEIGHT.sum()


NAMES = ["weights", "w", "importance", "any", "logwt", "lnw"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_statistic", [False, True])
def test_importance_weights_are_named_or_there_are_none(name: str, is_statistic: bool) -> None:
    """No name and no sum makes weights of a variable."""
    values = {name: np.log(WEIGHT) + 7.0 if name.startswith("l") else WEIGHT}
    data = tree(values, mu=WIDE) if is_statistic else dataset(**values, mu=WIDE)
    draws = open_draws(data).draws
    assert not draws.weighted
    assert (name in draws.values) == (not is_statistic)
    assert "R-hat" in str(bpa.check(data))
    draws = open_draws(data, log_weights=name).draws
    np.testing.assert_allclose(draws.importance, WEIGHT.ravel())
    assert [*draws.values] == ["mu"]
    assert "Pareto" in str(bpa.check(data, log_weights=name))


def test_a_name_of_importance_weights_that_is_missing_is_an_error() -> None:
    match = "a posterior with one number for each draw"
    for data in (ARRAYS, dataset(**ARRAYS), Draws({"mu": MU})):
        for name in ("logwt", "theta", "none"):
            with raises(UsageError, "bad-name", parameter="log_weights", match=match):
                bpa.check(data, log_weights=name)


def test_the_column_of_weights_of_the_package_posterior_is_reserved() -> None:
    table = rows(mu=MU, **{".log_weight": -(MU**2)})
    draws = open_draws(pa.table(table)).draws
    assert draws.log_weight is not None
    np.testing.assert_array_equal(draws.log_weight, -(MU**2))


def test_weights_whose_kind_is_unknown_are_refused() -> None:
    logs = np.log(WEIGHT) - np.log(WEIGHT).min()
    for values in (9 * WEIGHT, logs):
        with raises(DataError, "bad-number", parameter="log_weights", match="nowhere negative"):
            open_draws(tree({"w": values}, mu=WIDE), log_weights="w")
    for name, values in {"w": WEIGHT, "log_w": logs, "u": logs - logs.max()}.items():
        draws = open_draws(tree({name: values}, mu=WIDE), log_weights=name).draws
        np.testing.assert_allclose(draws.importance, WEIGHT.ravel())


def test_texts_and_complex_numbers_are_no_variables() -> None:
    odd = {"name": np.full(SHAPE, "a"), "z": MU + 1j}
    other = dataset(mu=RNG.normal(size=(4, 2000)))
    for one, reference in ((dataset(mu=MU, **odd), other), (other, dataset(mu=MU, **odd))):
        compared = bpa.compare(one, reference)
        assert compared.left_out == ("not compared, because they are not real-valued: name, z",)
        assert "only" not in compared["a"].reason


PAGE = "docs/how-to/other-programs.md has a line for each program"


class Walkers:
    """As emcee's `EnsembleSampler` after its run."""

    def get_chain(self) -> np.ndarray:
        return np.swapaxes(THETA, 0, 1)

    def get_log_prob(self) -> np.ndarray:
        return np.swapaxes(-(MU**2), 0, 1)


@pytest.mark.parametrize("data", [MU, [ARRAYS], dataset(mu=MU)["mu"], 3.0, None, Walkers()])
def test_other_objects_are_refused_with_the_page(data: Any) -> None:
    for function in (bpa.check, bpa.plot_trace, read_posterior):
        match = rf"^a posterior is InferenceData, .*, not {type(data).__name__}: {PAGE}$"
        with raises(UsageError, "wrong-type", parameter="posterior", match=match):
            function(data)


def test_posteriors_without_draws_or_chains_are_refused_with_the_page() -> None:
    with raises(DataError, "wrong-length", match=rf"must begin with \(chains, draws\); {PAGE}"):
        bpa.check({"mu": MU[0]})
    for data, groups in (
        (DataTree.from_dict({"prior": dataset(mu=MU)}), "prior"),
        (DataTree.from_dict({"mcmc": dataset(mu=MU)}), "mcmc"),  # as files of emcee have it
    ):
        with raises(DataError, "no-data", match=f"no draws: it has the groups {groups}; {PAGE}"):
            bpa.check(data)


@pytest.mark.parametrize("refused", [bpa.check, partial_compare])
@pytest.mark.parametrize("form", [dict, lambda x: dataset(**x)])
def test_more_chains_than_draws_are_refused(
    refused: Callable[..., Any], form: Callable[..., Any]
) -> None:
    swapped = form({name: np.swapaxes(values, 0, 1) for name, values in ARRAYS.items()})
    with raises(DataError, "wrong-length", match=f"300 chains of 4 draws: exchange.*; {PAGE}"):
        refused(swapped)


def test_cells_of_one_label_are_all_checked() -> None:
    """Three counties A, of which one has not converged, and a scalar with the name of a cell."""
    apart = np.stack([MU, MU + 8 * np.arange(4)[:, None], MU + 1, MU + 2], axis=-1)
    theta = (("chain", "draw", "county"), apart)
    data = Dataset({"theta": theta}, {"county": ["A", "A", "A", "B"]})
    worst = next(one for one in bpa.check(data).failures if one.name == "R-hat")
    assert worst.where == "theta[A] (2)"
    assert not bpa.compare(data, data.isel(draw=slice(None, None, -1)) + 0.01)
    report = bpa.check({"x[0]": MU, "x": apart[..., :2]})
    assert next(one for one in report.failures if one.name == "R-hat").where == "x[1]"
    report = bpa.check({"x[0]": apart[..., 1], "x": THETA})
    assert next(one for one in report.failures if one.name == "R-hat").where == "x[0]"
    assert list(open_draws({"x[0]": MU, "x": THETA}).draws.components()) == [
        "x[0]",
        "x[0] (2)",
        "x[1]",
    ]


def test_statistics_of_other_programs_are_no_variables() -> None:
    """Turing's table, ArviZ's `to_dataframe()` and NumPyro's fields; divergences count in each."""
    wild = np.arange(MU.size).reshape(SHAPE) % 3 == 0
    internals = {"lp": -(MU**2), "tree_depth": 3.0 + 0 * MU, "n_steps": 7.0 + 0 * MU}
    # MCMCChains has these of Turing's samplers of different versions.
    densities = dict.fromkeys(("log_density", "logprior", "loglikelihood", "logjoint"), -(MU**2))
    of_groups = {"('posterior', 'mu')": MU, "('sample_stats', 'diverging')": wild}
    for statistics, variables in (
        (internals | {"numerical_error": wild}, {"mu": MU}),
        (internals | densities | {"numerical_error": wild, "is_accept": ~wild}, {"mu": MU}),
        (densities | {"numerical_error": wild}, {"mu": MU}),
        (internals | {"divergent__": wild}, {"mu": MU}),
        ({"log_prob": -(MU**2), "diverging": wild}, {"mu": MU}),
        ({}, of_groups),
    ):
        table = pa.table(rows(**variables, **statistics))
        for data in (table, variables | statistics):
            report = bpa.check(data)
            assert [*open_draws(data).draws.components()] == ["mu"]
            divergences = next(one for one in report.failures if one.name == "divergences")
            assert divergences.value == wild.sum()


def test_posteriors_without_lists_have_nothing_of_lists() -> None:
    def model() -> None:
        numpyro.sample("mu", dist.Normal(0.0, 1.0))

    data = bpa.sample(model, sampler="rwm:draws=100,warmup=10,chains=2")
    for group in ("posterior", "prior", "warmup_posterior"):
        assert [*data[group].data_vars] == ["mu"]
        assert {*data[group].dims} == {"chain", "draw"}
    assert "after a burn-in of 10" in str(bpa.check(data))
    again = bpa.as_draws(data)
    assert isinstance(again, Draws)
    assert again.warmup["mu"].shape == (2, 10)
    if arviz_version() < 1:
        import_arviz().plot_forest(data["prior"])
