"""Check the programs of `posteriordb_models` with formulas and with the reference draws.

    python benchmarks/check_posteriordb_models.py [--tables densities draws] [--only arK-arK]
        [--warmup 1000] [--draws 4000]

* densities: log densities at three reference draws, in SciPy, are compared with those of the
  program, of constrained values and of unconstrained ones. Differences between the draws are
  compared, because constants do not matter; unconstrained densities are divided by the determinant
  of the Jacobian of the transformation.
* draws: means and variances of NumPyro's NUTS, four chains, are compared with those of
  the reference draws, in Monte-Carlo standard errors of both.

The exit status is 1 if a difference is too large.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from measuring import Table, run_tables
from numpyro.infer import MCMC, NUTS
from numpyro.infer.util import constrain_fn, log_density, potential_energy, unconstrain_fn
from posteriordb_models import PROGRAMS, START, read_data, read_reference
from scipy import stats
from scipy.integrate import solve_ivp
from scipy.special import logsumexp

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.posterior.statistics import ess, mcse, r_hat

#: Of log densities; that of the ODE, which two methods solve, and of all others.
ODE_TOLERANCE, TOLERANCE = 1e-4, 1e-7
#: Of about 250 means and variances, one is further off in 2% of all correct runs.
MAX_ERRORS = 4.0
Values: TypeAlias = Mapping[str, Any]
Formula: TypeAlias = Callable[[Values, Values], Any]


def normal(x: Any, mean: Any, deviation: Any) -> float:
    """Return the log density of independent normal variables."""
    return float(np.sum(stats.norm.logpdf(x, mean, deviation)))


def of_regression(data: Values, x: Values, response: str, *terms: Any) -> float:
    """Return the log likelihood of a regression on an intercept and terms."""
    mean = x["beta"][0] + sum(b * term for b, term in zip(x["beta"][1:], terms, strict=True))
    return normal(data[response], mean, x["sigma"])


def of_kid_scores(data: Values, x: Values, *terms: Any) -> float:
    """Return the log density of a regression of test scores."""
    prior = stats.cauchy.logpdf(x["sigma"], 0, 2.5)
    return of_regression(data, x, "kid_score", *terms) + prior


def of_earnings(d: Values, x: Values) -> float:
    """Return the log density of logearn_interaction."""
    logarithms = {"y": np.log(d["earn"])}
    return of_regression(logarithms, x, "y", d["height"], d["male"], d["height"] * d["male"])


def of_mesquite(d: Values, x: Values) -> float:
    """Return the log density of logmesquite."""
    d = {key: values if key == "group" else np.log(values) for key, values in d.items()}
    names = "diam1", "diam2", "canopy_height", "total_height", "density", "group"
    return of_regression(d, x, "weight", *(d[name] for name in names))


def of_nes(d: Values, x: Values) -> float:
    """Return the log density of nes."""
    ages = ((d["age_discrete"] == group).astype(float) for group in (2, 3, 4))
    others = d["educ1"], d["gender"], d["income"]
    return of_regression(d, x, "partyid7", d["real_ideo"], d["race_adj"], *ages, *others)


def of_kilpisjarvi(d: Values, x: Values) -> float:
    """Return the log density of kilpisjarvi."""
    prior = normal(x["alpha"], d["pmualpha"], d["psalpha"])
    prior += normal(x["beta"], d["pmubeta"], d["psbeta"])
    return prior + normal(d["y"], x["alpha"] + x["beta"] * d["x"], x["sigma"])


def of_blr(d: Values, x: Values) -> float:
    """Return the log density of blr."""
    likelihood = normal(d["y"], d["X"].dot(x["beta"]), x["sigma"])
    return likelihood + normal(x["beta"], 0, 10) + normal(x["sigma"], 0, 10)


def of_autoregression(d: Values, x: Values) -> float:
    """Return the log density of arK."""
    result = normal(x["alpha"], 0, 10) + normal(x["beta"], 0, 10)
    result += stats.cauchy.logpdf(x["sigma"], 0, 2.5)
    for t in range(5, len(d["y"])):
        past = d["y"][t - 5 : t][::-1]
        result += normal(d["y"][t], x["alpha"] + past @ x["beta"], x["sigma"])
    return float(result)


def of_arma(d: Values, x: Values) -> float:
    """Return the log density of arma11."""
    result = normal(x["mu"], 0, 10) + normal([x["phi"], x["theta"]], 0, 2)
    result += stats.cauchy.logpdf(x["sigma"], 0, 2.5)
    before, error = x["mu"], 0.0
    for y in d["y"]:
        predicted = x["mu"] + x["phi"] * before + x["theta"] * error
        result += normal(y, predicted, x["sigma"])
        before, error = y, y - predicted
    return float(result)


def of_garch(d: Values, x: Values) -> float:
    """Return the log density of garch11."""
    result, deviation = 0.0, d["sigma1"]
    for y in d["y"]:
        result += normal(y, x["mu"], deviation)
        square = x["alpha0"] + x["alpha1"] * (y - x["mu"]) ** 2 + x["beta1"] * deviation**2
        deviation = square**0.5
    return result


def of_eight_schools(d: Values, x: Values) -> float:
    """Return the log density of eight_schools_noncentered."""
    prior = normal(x["theta_trans"], 0, 1) + normal(x["mu"], 0, 5)
    prior += stats.cauchy.logpdf(x["tau"], 0, 5)
    return float(prior + normal(d["y"], x["theta_trans"] * x["tau"] + x["mu"], d["sigma"]))


def of_process(d: Values, x: Values) -> tuple[float, Any]:
    """Return the log prior of a Gaussian process, and its covariance matrix."""
    prior = stats.gamma.logpdf(x["rho"], 25, scale=1 / 4) + normal(x["alpha"], 0, 2)
    distances = np.subtract.outer(d["x"], d["x"])
    return prior, x["alpha"] ** 2 * np.exp(-(distances**2) / (2 * x["rho"] ** 2))


def of_gp_regression(d: Values, x: Values) -> float:
    """Return the log density of gp_regr."""
    prior, covariance = of_process(d, x)
    noise = x["sigma"] * np.eye(len(covariance))
    likelihood = stats.multivariate_normal.logpdf(d["y"], cov=covariance + noise)
    return float(prior + normal(x["sigma"], 0, 1) + likelihood)


def of_gp_poisson(d: Values, x: Values) -> float:
    """Return the log density of gp_pois_regr."""
    prior, covariance = of_process(d, x)
    f = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(covariance))) @ x["f_tilde"]
    likelihood = stats.poisson.logpmf(d["k"], np.exp(f)).sum()
    return float(prior + normal(x["f_tilde"], 0, 1) + likelihood)


def of_hidden_markov(d: Values, x: Values) -> float:
    """Return the log density of hmm_example, in logarithms."""
    transitions = np.log([x["theta1"], x["theta2"]])
    outputs = stats.norm.logpdf(d["y"][:, None], x["mu"], 1)
    forward = outputs[0]
    for output in outputs[1:]:
        forward = logsumexp(forward[:, None] + transitions, axis=0) + output
    return float(normal(x["mu"], [3, 10], 1) + logsumexp(forward))


def of_mixture(d: Values, x: Values) -> float:
    """Return the log density of low_dim_gauss_mix."""
    shares = np.array([x["theta"], 1 - x["theta"]])
    likelihood = np.log(stats.norm.pdf(d["y"][:, None], x["mu"], x["sigma"]) @ shares).sum()
    prior = normal(x["mu"], 0, 2) + normal(x["sigma"], 0, 2)
    return float(prior + stats.beta.logpdf(x["theta"], 5, 5) + likelihood)


def of_lotka_volterra(d: Values, x: Values) -> float:
    """Return the log density of lotka_volterra."""
    a, b, c, e = x["theta"]
    solution = solve_ivp(
        lambda _, z: [(a - b * z[1]) * z[0], (e * z[0] - c) * z[1]],
        (0, d["ts"][-1]),
        x["z_init"],
        "DOP853",
        d["ts"],
        rtol=1e-11,
        atol=1e-11,
    )
    prior = normal([a, c], 1, 0.5) + normal([b, e], 0.05, 0.05)
    prior += stats.lognorm.logpdf(x["sigma"], 1, scale=np.exp(-1)).sum()
    prior += stats.lognorm.logpdf(x["z_init"], 1, scale=10).sum()
    likelihood = stats.lognorm.logpdf(d["y_init"], x["sigma"], scale=x["z_init"]).sum()
    return float(
        prior + likelihood + stats.lognorm.logpdf(d["y"], x["sigma"], scale=solution.y.T).sum()
    )


#: The log density by the name of the posterior, from the data and the parameters.
FORMULAS: dict[str, Formula] = {
    "arK-arK": of_autoregression,
    "arma-arma11": of_arma,
    "earnings-logearn_interaction": of_earnings,
    "eight_schools-eight_schools_noncentered": of_eight_schools,
    "garch-garch11": of_garch,
    "gp_pois_regr-gp_pois_regr": of_gp_poisson,
    "gp_pois_regr-gp_regr": of_gp_regression,
    "hmm_example-hmm_example": of_hidden_markov,
    "hudson_lynx_hare-lotka_volterra": of_lotka_volterra,
    "kidiq-kidscore_interaction": lambda d, x: of_kid_scores(
        d, x, d["mom_hs"], d["mom_iq"], d["mom_hs"] * d["mom_iq"]
    ),
    "kidiq-kidscore_momiq": lambda d, x: of_kid_scores(d, x, d["mom_iq"]),
    "kilpisjarvi_mod-kilpisjarvi": of_kilpisjarvi,
    "low_dim_gauss_mix-low_dim_gauss_mix": of_mixture,
    "mesquite-logmesquite": of_mesquite,
    "nes1988-nes": of_nes,
    "sblrc-blr": of_blr,
    "sblri-blr": of_blr,
}


def list_points(name: str) -> Iterator[dict[str, Any]]:
    """Yield the parameters of three reference draws; those without reference are derived."""
    reference = read_reference(name)["posterior"]
    for chain in (0, 4, 8):
        x = {str(key): np.asarray(of[chain, 10 * chain]) for key, of in reference.data_vars.items()}
        if name.startswith("eight_schools"):
            x["theta_trans"] = (x.pop("theta") - x["mu"]) / x["tau"]
        if "f" in x:  # the inverse of its covariance is too inaccurate
            x["f_tilde"] = np.random.default_rng(chain).normal(size=x.pop("f").shape)
        yield x


def log_jacobian(program: Callable[..., None], data: Values, z: Values) -> float:
    """Return log |det ∂x/∂z| of constrained values x, without the last cell of a simplex."""
    flat, unflatten = ravel_pytree(z)

    def constrain(flat: jax.Array) -> jax.Array:
        z = unflatten(flat)
        x = constrain_fn(program, (), data, z)
        return jnp.concatenate([jnp.ravel(x[key])[: jnp.size(z[key])] for key in z])

    return float(np.linalg.slogdet(jax.jacfwd(constrain)(flat))[1])


def check_densities(options: argparse.Namespace) -> None:
    """Print the largest error of a difference of log densities."""
    table = Table("log densities", "constrained", "unconstrained")
    for name in options.only:
        program, data = PROGRAMS[name], read_data(name)
        errors = []
        for x in list_points(name):
            z = unconstrain_fn(program, (), data, x)
            expected = FORMULAS[name](data, x)
            constrained = float(log_density(program, (), data, x)[0])
            unconstrained = -float(potential_energy(program, (), data, z))
            unconstrained -= log_jacobian(program, data, z)
            errors.append([constrained - expected, unconstrained - expected])
        worst = np.ptp(errors, axis=0)
        table.row(name, *(f"{error:.1e}" for error in worst))
        tolerance = ODE_TOLERANCE if name.startswith("hudson") else TOLERANCE
        if not worst.max() <= tolerance:
            options.failed.append(f"{name} has another density")


def check_draws(options: argparse.Namespace) -> None:
    """Print differences of means and standard deviations in Monte-Carlo standard errors."""
    table = Table("draws of NUTS", "mean, MCSE", "variance, MCSE", "R-hat", "least ESS", "seconds")
    for name in options.only:
        program, data = PROGRAMS[name], read_data(name)
        start = perf_counter()
        mcmc = MCMC(
            NUTS(program, target_accept_prob=0.9, init_strategy=START),
            num_warmup=options.warmup,
            num_samples=options.draws,
            num_chains=4,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(0), **data)
        samples = mcmc.get_samples(group_by_chain=True)
        seconds = perf_counter() - start
        reference = dict(read_reference(name)["posterior"].data_vars)
        drawn, theirs = (join_cells(values, reference) for values in (samples, reference))
        centre = theirs.mean((0, 1))
        mean = count_errors(drawn, theirs)
        variance = count_errors((drawn - centre) ** 2, (theirs - centre) ** 2)
        worst, least = r_hat(drawn).max(), ess(drawn, "mean").min()
        cells = f"{mean:.1f}", f"{variance:.1f}", f"{worst:.3f}", f"{least:.0f}", f"{seconds:.0f}"
        table.row(name, *cells)
        if not (max(mean, variance) <= MAX_ERRORS and worst <= 1.01):
            options.failed.append(f"{name} has other draws")


def join_cells(values: Values, names: Iterable[str]) -> Float64:
    """Return the draws of all cells of variables, (chains, draws, cells)."""
    arrays = (np.asarray(values[name]) for name in names)
    return np.concatenate([x.reshape(*x.shape[:2], -1) for x in arrays], axis=-1)


def count_errors(ours: Float64, theirs: Float64) -> float:
    """Return the largest difference of means of cells, in Monte-Carlo standard errors of both."""
    difference = ours.mean((0, 1)) - theirs.mean((0, 1))
    return float(np.max(np.abs(difference) / np.hypot(mcse(ours), mcse(theirs))))


def main() -> None:
    """Print the tables, and exit with 1 if a check failed."""
    jax.config.update("jax_enable_x64", True)
    failed: list[str] = []

    def collect(check: Callable[[argparse.Namespace], None]) -> Any:
        def run(options: argparse.Namespace) -> None:
            options.failed = failed
            check(options)

        return run

    tables = {"densities": collect(check_densities), "draws": collect(check_draws)}
    run_tables(__doc__, tables, only=tuple(PROGRAMS), warmup=1000, draws=4000)
    if failed:
        sys.exit("; ".join(failed))


if __name__ == "__main__":
    main()
