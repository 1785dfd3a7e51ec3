"""`bpa_ppl.sample` and NumPyro's NUTS on programs of the usual kinds.

    python benchmarks/bench_gallery.py [--programs linear "two modes" …] [--draws 10000]

For each program of `gallery_programs.py`: what `bpa_ppl.sample` chose, and whether its draws pass
their check; the largest errors of a mean, in posterior standard deviations, and of a standard
deviation, as a share; and effective draws of the worst variable per CPU second of the whole call,
in the first call of a process and in the second one with another seed. Next to it those of NumPyro:
`MCMC(NUTS(model), num_warmup=1000, num_samples=1000, num_chains=4)`, `run`, and
`arviz.from_numpyro`. The reference is a closed form, or a run of NumPyro's NUTS in float64 with
4 × `draws` draws, of another program with the same posterior if its chains disagree. Each way runs
in processes of its own, with an empty cache of compiled programs. Errors below 0.1 and 10% are
Monte-Carlo errors of about a thousand effective draws.
"""

from __future__ import annotations

import multiprocessing
import os
import warnings
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from measuring import Table, run_tables

if TYPE_CHECKING:
    from gallery_programs import Moments

#: Of a reference.
MAX_RHAT = 1.01


def run_ours(module: str, name: str, calls: int = 2) -> dict[str, Any]:
    """Return what calls of `bpa_ppl.sample` take and say.

    Args:
        module: of the program.
        name: of the program.
        calls: their number, with different seeds.
    """
    import bpa_ppl as bpa

    program, result = import_module(module).PROGRAMS[name], {"cpu": [], "ess": []}
    for seed in range(calls):
        start = process_time()
        try:
            data = bpa.sample(program.model, program.data, seed=seed)
        except bpa.BpaError as error:
            return {"refused": str(error), "cpu": [process_time() - start]}
        except Exception as error:  # a mistake of this package
            return {"raised": repr(error), "cpu": [process_time() - start]}
        result["cpu"].append(process_time() - start)
        result["ess"].append(count_draws(data["posterior"]))
        if not seed:
            report = bpa.check(data)
            result |= {"moments": find_moments(data["posterior"]), "passes": bool(report)}
            result["chosen"] = data.attrs.get("chosen", data.attrs.get("sampler"))
            result["problems"] = "; ".join(one.advice for one in report.failures)
    return result


def run_numpyro(module: str, name: str, calls: int = 2) -> dict[str, Any]:
    """Return what runs of NumPyro's NUTS take, and whether the draws pass the same check.

    The arguments are those of `run_ours`.
    """
    import arviz
    import jax
    from numpyro.infer import MCMC, NUTS

    import bpa_ppl as bpa

    program, result = import_module(module).PROGRAMS[name], {"cpu": [], "ess": []}
    mcmc = MCMC(
        NUTS(program.model), num_warmup=1000, num_samples=1000, num_chains=4, progress_bar=False
    )
    for seed in range(calls):
        start = process_time()
        try:
            mcmc.run(jax.random.key(seed), *program.data)
            # ArviZ cannot compute log likelihoods if discrete sites are summed out.
            data = arviz.from_numpyro(mcmc, log_likelihood=not program.is_discrete)
        except Exception as error:  # any error of NumPyro
            if seed:  # another start of the chains than that of the first call
                break
            return {"refused": str(error), "cpu": [process_time() - start]}
        result["cpu"].append(process_time() - start)
        result["ess"].append(count_draws(data["posterior"]))
        if not seed:
            result |= {"moments": find_moments(data["posterior"]), "passes": bool(bpa.check(data))}
    return result


def find_reference(name: str, draws: int) -> Moments | None:
    """Return the moments in closed form or of a long run; None if the chains of it disagree."""
    from gallery_programs import PROGRAMS

    program = PROGRAMS[name]
    if program.exact:
        return dict(program.exact)
    other, convert = program.reference or (name, dict)
    found = run_apart(run_reference, other, draws)
    return None if found is None else convert(found)


def run_reference(name: str, draws: int) -> Moments | None:
    """Return the moments of a long run of NumPyro's NUTS, or None if its chains disagree.

    It starts at the medians of the prior.
    """
    import arviz
    import jax
    from gallery_programs import PROGRAMS
    from numpyro.infer import MCMC, NUTS, init_to_median

    jax.config.update("jax_enable_x64", True)
    program = PROGRAMS[name]
    kernel = NUTS(program.model, target_accept_prob=0.95, init_strategy=init_to_median)
    mcmc = MCMC(kernel, num_warmup=2000, num_samples=draws, num_chains=4, progress_bar=False)
    try:
        mcmc.run(jax.random.key(2), *program.data)
    except Exception:  # any error of NumPyro
        return None
    samples = mcmc.get_samples(group_by_chain=True)
    largest = arviz.rhat(arviz.from_dict(posterior=samples)).to_array().max()
    return find_moments(samples) if largest <= MAX_RHAT else None


def find_moments(posterior: Any) -> Moments:
    """Return mean and standard deviation of each value of each variable, by its label."""
    found = {}
    for name in posterior:
        values = np.asarray(posterior[name], np.float64)
        values = values.reshape(values.shape[0] * values.shape[1], -1)
        for k, column in enumerate(values.T):
            label = name if values.shape[1] == 1 else f"{name}[{k}]"
            found[label] = (float(column.mean()), float(column.std()))
    return found


def count_draws(posterior: Any) -> float:
    """Return the bulk ESS of the worst value; values that do not vary are left out."""
    import arviz

    found = np.inf
    for name in posterior.data_vars:
        values = np.asarray(posterior[name], np.float64)
        of_name = np.atleast_1d(arviz.ess(posterior[[name]], method="bulk")[name].values)
        varies = np.atleast_1d(values.std(axis=(0, 1)) > 0)
        found = min(found, *of_name[varies & np.isfinite(of_name)].tolist(), np.inf)
    return float(found)


def run_apart(function: Any, *arguments: Any) -> Any:
    """Return the result of a function that runs in a new process, with an empty cache."""
    context = multiprocessing.get_context("spawn")
    with TemporaryDirectory() as folder:
        os.environ["BPA_PPL_CACHE"] = folder
        start = {"initializer": warnings.simplefilter, "initargs": ("ignore",)}
        with ProcessPoolExecutor(1, mp_context=context, **start) as pool:
            return pool.submit(function, *arguments).result()


def describe_errors(moments: Moments, reference: Moments | None) -> tuple[str, str]:
    """Return the largest errors of means and of standard deviations of the values of both."""
    both = [(moments[k], v) for k, v in (reference or {}).items() if k in moments and v[1] > 0]
    if not both:
        return "–", "–"
    mean = max(abs(own[0] - other[0]) / other[1] for own, other in both)
    deviation = max(abs(own[1] / other[1] - 1) for own, other in both)
    return f"{mean:.3f}", f"{deviation:.1%}"


def describe_speed(result: dict[str, Any], call: int) -> str:
    """Return the effective draws per CPU second of a call."""
    if call >= len(result.get("ess", ())):
        return "–"
    return f"{result['ess'][call] / result['cpu'][call]:.0f}"


def print_gallery(options: Any) -> None:
    """Print the table."""
    from gallery_programs import PROGRAMS

    warnings.simplefilter("ignore")
    columns = "expected", "chosen", "check", "mean", "sd"
    speeds = "first call", "NumPyro, first", "second call", "NumPyro, second"
    table = Table("program", *columns, *speeds, "NumPyro's check")
    for name in options.programs or PROGRAMS:
        ours, theirs = (run_apart(run, "gallery_programs", name) for run in (run_ours, run_numpyro))
        if "passes" not in ours:
            cells = ["–", next(iter(ours)), "–", "–"]
        else:
            reference = find_reference(name, options.draws)
            verdict = "passes" if ours["passes"] else "fails"
            cells = [ours["chosen"], verdict, *describe_errors(ours["moments"], reference)]
        speed = [describe_speed(result, call) for call in (0, 1) for result in (ours, theirs)]
        other = "refused" if "refused" in theirs else "passes" if theirs["passes"] else "fails"
        table.row(name, PROGRAMS[name].expected, *cells, *speed, other)


if __name__ == "__main__":
    run_tables(__doc__, (print_gallery,), programs=(), draws=10_000, needs_data=False)
