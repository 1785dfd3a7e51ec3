"""CSV files of CmdStan and RStan are chains without their warm-up, or refused with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.cmdstan import write_cmdstan
from support.command_line import run
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import DataError
from bpa_ppl.posterior.opening import open_draws, open_posterior

FILES = Path(__file__).parent / "files"
RNG = np.random.default_rng(3)
MU = RNG.normal(size=(4, 60, 1))
ALL = "output_*.csv"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def edit(change: Callable[[str], str], *paths: str) -> None:
    """Change the text of some files of a run."""
    for path in paths or tuple(str(path) for path in Path().glob(ALL)):
        Path(path).write_text(change(Path(path).read_text("utf-8")), "utf-8")


def without_end(text: str) -> str:
    return re.sub(r"# Adaptation terminated\n(#.*\n)+", "", text)


def test_output_of_cmdstan_itself() -> None:
    """Every third of 25 iterations of the warm-up, which are 9, and of 20, which are 7."""
    draws = open_posterior(FILES / "thinned_*.csv").draws
    assert draws.shape == (2, 7)
    shapes = {name: np.shape(x)[2:] for name, x in draws.values.items()}
    scalars = dict.fromkeys(("k", "m", "sigma_obs"), ())
    assert shapes == scalars | {"delta": (3,), "beta": (2,), "trend": (12,)}
    for chain in (0, 1):
        text = (FILES / f"thinned_{chain + 1}.csv").read_text("utf-8")
        header = next(line for line in text.splitlines() if not line.startswith("#")).split(",")
        rows = np.loadtxt(text.partition("terminated\n")[2].splitlines(), delimiter=",")
        np.testing.assert_array_equal(draws.values["k"][chain], rows[:, header.index("k")])
        for k in range(12):
            column = rows[:, header.index(f"trend.{k + 1}")]
            np.testing.assert_array_equal(draws.values["trend"][chain, :, k], column)
        for name, of_stan in (
            ("acceptance_rate", "accept_stat__"),
            ("step_size", "stepsize__"),
            ("tree_depth", "treedepth__"),
            ("n_steps", "n_leapfrog__"),
            ("diverging", "divergent__"),
            ("energy", "energy__"),
        ):
            column = rows[:, header.index(of_stan)]
            np.testing.assert_array_equal(draws.statistics[name][chain], column)
        assert draws.log_density is not None
        np.testing.assert_array_equal(draws.log_density[chain], rows[:, header.index("lp__")])


@pytest.mark.parametrize("rstan", [False, True])
@pytest.mark.parametrize("saved", [0, 20])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_rows_before_the_end_of_the_adaptation_are_the_warm_up(
    rstan: bool, saved: int, ends: str
) -> None:
    write_cmdstan(Path(), ["mu"], MU, saved=saved, rstan=rstan)
    for path in Path().glob(ALL):
        path.write_bytes(path.read_bytes().replace(b"\n", ends.encode()))
    np.testing.assert_array_equal(open_draws(ALL).draws.values["mu"], MU[:, saved:, 0])
    np.testing.assert_array_equal(bpa.read_posterior(ALL)["posterior"]["mu"], MU[:, saved:, 0])
    assert run("check", ALL).code == 3  # 160 or 240 draws are few


@pytest.mark.parametrize("rstan", [False, True])
def test_a_file_of_several_without_an_end_of_its_warm_up_is_an_error(rstan: bool) -> None:
    write_cmdstan(Path(), ["mu"], MU, saved=20, rstan=rstan)
    edit(without_end, "output_3.csv")
    with raises(DataError, "damaged", match=r"output_3\.csv: no comment says where the warm-up"):
        bpa.check(ALL)
    refused = run("check", ALL)
    assert (refused.code, refused.out, "Traceback" in refused.err) == (2, "", False)


@pytest.mark.parametrize("rstan", [False, True])
def test_without_any_end_the_settings_say_how_long_the_warm_up_is(rstan: bool) -> None:
    write_cmdstan(Path(), ["mu"], MU, saved=20, thin=7, rstan=rstan)
    edit(without_end)
    np.testing.assert_array_equal(open_draws(ALL).draws.values["mu"], MU[:, 20:, 0])
    # The first of each seven is written.
    edit(lambda text: re.sub(r"(warmup ?= ?)140", r"\g<1>139", text))
    np.testing.assert_array_equal(open_draws(ALL).draws.values["mu"], MU[:, 20:, 0])
    edit(lambda text: re.sub(r"(warmup ?= ?)139", r"\g<1>900", text))
    with raises(DataError, "no-data", match=r"no draw after the warm-up: give CSV files of a run"):
        bpa.check(ALL)
    write_cmdstan(Path(), ["mu"], MU, rstan=rstan)
    edit(without_end)
    np.testing.assert_array_equal(open_draws(ALL).draws.values["mu"], MU[..., 0])


def test_indices_of_names_are_cells_of_arrays() -> None:
    """Stan writes matrices by columns, and parts of complex numbers and tuples with other signs."""
    cells = [f"theta.{i}.{j}" for j in (1, 2, 3) for i in (1, 2)]
    others = [
        "z.real",
        "z.imag",
        "w.1.real",
        "w.1.imag",
        "pair:1",
        "pair:2.1",
        "pair:2.2",
        "n_steps",
    ]
    values = RNG.normal(size=(2, 9, len(cells) + len(others)))
    write_cmdstan(Path(), [*cells, *others], values)
    drawn = open_posterior(ALL).draws
    assert np.shape(drawn.values["theta"]) == (2, 9, 2, 3)
    for k, name in enumerate(cells):
        i, j = (int(part) - 1 for part in name.split(".")[1:])
        np.testing.assert_array_equal(drawn.values["theta"][..., i, j], values[..., k])
    found = drawn.components(derived=True)
    for name in ("z.real", "z.imag", "w.1.real", "w.1.imag", "pair:1", "n_steps"):
        at = len(cells) + others.index(name)
        np.testing.assert_array_equal(found[name], values[..., at])
    np.testing.assert_array_equal(drawn.values["pair:2"], values[..., -3:-1])
    backwards = Path("output_1.csv").read_text("utf-8").replace(",".join(cells), "CELLS")
    edit(lambda _: backwards.replace("CELLS", ",".join(reversed(cells))))
    first = open_posterior("output_1.csv").draws.values["theta"]
    np.testing.assert_array_equal(first[0, :, 1, 2], values[0, :, 0])


@pytest.mark.parametrize(
    "columns", [["x.1", "x.3"], ["x.0", "x.1"], ["x", "x.1"], ["x.1", "x.1.1"]]
)
def test_arrays_that_lack_cells_are_refused(columns: list[str]) -> None:
    write_cmdstan(Path(), columns, np.zeros((2, 9, 2)))
    message = f"output_1.csv: x is not a whole array ({', '.join(columns)}): give all columns"
    with raises(DataError, "missing-column", match=re.escape(message)):
        bpa.check(ALL)


def write_output(settings: str, header: str, rows: str = "") -> str:
    Path("out.csv").write_text(f"# stan_version_major = 2\n{settings}\n{header}\n{rows}", "utf-8")
    return "out.csv"


FIXED = "# method = sample\n#   sample\n#     algorithm = fixed_param"
#: What a method writes: its settings, the names of its columns, and a row.
OTHER_METHODS: dict[str, tuple[str, str, str]] = {
    "fixed_param": (FIXED, "lp__,accept_stat__,y", "0,0,1.5\n0,0,0.5\n"),
    # A program without parameters.
    "fixed_param ": ("# method = sample\n#  algorithm = hmc", "lp__,accept_stat__,y", "0,0,1\n"),
    "fixed_param of RStan": ("# sampler_t=FIXED_PARAM(fixed)", "lp__,accept_stat__,y", "0,0,1\n"),
    "optimize": ("# method = optimize\n#     algorithm = lbfgs", "lp__,mu,tau", "-5.3,1,0.9\n"),
    "optimize of RStan": ("# Point Estimate Generated by Stan", "lp__,mu,tau", "-5.3,1,0.9\n"),
    "diagnose": ("# method = diagnose", "# \n#  Log probability=-51.2", "#  param idx   value"),
    "diagnose of RStan": ("# Output generated by Stan (test_grad)", "#  0  1.2  -0.9", ""),
    "generate_quantities": ("# method = generate_quantities", "y.1,y.2", "1,2\n2,3\n"),
    "log_prob": ("# method = log_prob", "lp__,g_mu", "-3,1\n"),
}


@pytest.mark.parametrize("name", OTHER_METHODS)
def test_other_methods_are_no_chains_of_a_sampler(name: str) -> None:
    path, method = write_output(*OTHER_METHODS[name]), name.split()[0]
    message = f"{path}: the output of Stan's {method} is not a chain of a sampler: give the CSV"
    for function in (bpa.check, bpa.plot_trace, bpa.read_posterior):
        with raises(DataError, "no-data", match=re.escape(message)):
            function(path)
    refused = run("check", path)
    assert (refused.code, message in refused.err, refused.err.count("\n")) == (2, True, 1)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("pathfinder", "# method = pathfinder\n#   pathfinder\n#     num_paths = 4 (Default)"),
        ("laplace", "# method = laplace\n#   laplace\n#     mode = optimize.csv"),
        ("variational", "# method = variational\n#   variational\n#     algorithm = meanfield"),
        ("variational", "# Sample generated by Stan (Variational Bayes)\n# algorithm=meanfield"),
    ],
)
def test_approximations_are_independent_draws(method: str, settings: str) -> None:
    columns = {"pathfinder": "lp_approx__,lp__,path__", "laplace": "log_p__,log_q__"}
    names = columns.get(method, "lp__,log_p__,log_g__")
    rows = "".join(
        f"{','.join('1' for _ in names.split(','))},{x!r}\n" for x in MU.ravel().tolist()
    )
    end = "# Stepsize adaptation complete.\n# eta = 1\n" if method == "variational" else ""
    report = bpa.check(write_output(settings, f"{names},mu", end + rows))
    first = int(method == "variational")  # its mean
    assert (report.sampler, report.shape) == (method, (1, 240 - first))
    assert [finding.name for finding in report.rows] == ["ESS of the weights"]
    assert "independent draws: there is no R-hat" in str(report)
    np.testing.assert_array_equal(
        open_draws("out.csv").draws.values["mu"], MU.reshape(1, -1)[:, first:]
    )


def test_numbers_that_are_not_finite_are_read_and_other_texts_are_refused() -> None:
    def replace_first(value: str) -> Callable[[str], str]:
        return lambda text: text.replace(repr(MU[0, 0, 0].item()), value)

    for value, expected in (("nan", np.nan), ("-nan", np.nan), ("inf", np.inf), ("-inf", -np.inf)):
        write_cmdstan(Path(), ["mu"], MU)
        edit(replace_first(value))
        np.testing.assert_equal(open_posterior(ALL).draws.values["mu"][0, 0], expected)
    for value in ("", "a", "1,2", "1e5x"):
        write_cmdstan(Path(), ["mu"], MU)
        edit(replace_first(value))
        with raises(DataError, "damaged", match=r"output_1\.csv: not output of Stan \(.+\): give"):
            bpa.check(ALL)


@pytest.mark.parametrize(
    "head", ["", "# ", "# stan_version_major = 2\nlp__,mu\n", "chain,draw,mu\n"]
)
def test_a_line_has_a_largest_length(head: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpa_ppl._runtime.streams.LONGEST_LINE", 100_000)
    Path("out.csv").write_text(head + "1.5," * 30_000, "utf-8")
    line = head.count("\n") + 1
    with raises(DataError, "bad-line", line=line, match="out"):
        bpa.check("out.csv")


def test_rows_of_many_columns_are_read() -> None:
    """By default Arrow reads blocks of 1 MiB, and a row must fit into one."""
    values = RNG.normal(size=(2, 30_000))
    rows = [",".join(f"mu.{k + 1}" for k in range(30_000))]
    rows += [",".join(f"{value:.40f}" for value in row) for row in values.tolist()]
    Path("out.csv").write_text("\n".join(["# stan_version_major = 2", *rows]), "utf-8")
    np.testing.assert_array_equal(open_posterior("out.csv").draws.values["mu"], values[None])


def test_a_run_that_wrote_no_draw_is_refused() -> None:
    for header in ("", "lp__,accept_stat__,stepsize__,mu"):
        path = write_output("# method = sample (Default)", header)
        with raises(DataError, "no-data", match=r"out\.csv: no draw after the warm-up"):
            bpa.check(path)


def test_a_parameter_may_have_the_name_of_a_chain_or_of_a_statistic() -> None:
    """Statistics of Stan end in two underscores; other names are those of the program."""
    names: list[Any] = ["chain", "draw", "lp", "diverging", "log_density"]
    values = RNG.normal(size=(2, 9, len(names)))
    write_cmdstan(Path(), names, values)
    drawn = open_posterior(ALL).draws
    assert [*drawn.values] == names
    np.testing.assert_array_equal(drawn.values["lp"], values[..., 2])
    assert drawn.log_density is not None
    assert np.all(drawn.log_density == -3.5)
