"""False alarms and detections of the convergence check, and how often samplers pass it.

    python benchmarks/bench_checks.py [--tables alarms burn-in faults] [--runs 1000]
    python benchmarks/bench_checks.py --tables divergences [--runs 400]
        [--programs schools …]
    python benchmarks/bench_checks.py --tables passes --runs 100 [--samplers rwm imh nuts]
        [--sizes 10 100 500] [--likelihoods oracle margin risk pairs preference] [--weights 14]

* alarms: the chains start in their posterior, so each refusal is a false alarm. They are
  autoregressive, or from independence Metropolis-Hastings with the proposals of `imh` for a
  Gaussian posterior.
* burn-in: the level of the test of the burn-in alone, on the same chains and more, for three
  nominal levels of all weights together.
* faults: how often the check refuses chains with one fault, in a tenth of the runs.
* divergences: what a few divergent transitions mean. Runs of NUTS, 4 chains of 1,000 draws, a tenth
  of `--runs` for each program and target acceptance, by the number of divergent transitions: in how
  many the mean of a variable is off by more than 0.1 posterior standard deviations, or a standard
  deviation by more than 10%; how many fail no other diagnostic, and both in these. Runs without
  divergences show how often the Monte-Carlo error does that. The last column is the largest error
  of a mean that the runs of the row have in common: the mean of their errors, which has less noise
  the more runs there are. The reference is a closed form, or 4 × 10,000 draws with shorter steps,
  of centred programs those of the non-centred ones.
* passes: how often samplers pass the check at their defaults. Each run has a seed and lists of its
  own: lists of the demo with 14 Moses weights, or simulated lists whose candidates have that many
  metrics, a gain, or a preference. All have five candidates. A row also has the seconds of a run,
  and the effective draws a second.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import bench_numpyro_models as models
import gallery_programs as gallery
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from measuring import IS_LITTLE, Table, run_tables
from numpyro import handlers
from numpyro.infer.reparam import LocScaleReparam
from scipy.stats import cauchy as standard_cauchy
from scipy.stats import norm

from bpa_ppl import NBest, Weights, check, from_lists, read_nbest, read_weights
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.adapting.adapt import log_density
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.densities.target import Target
from bpa_ppl.diagnostics.check.convergence import compare_beginning
from bpa_ppl.diagnostics.check.diagnostic import list_components
from bpa_ppl.diagnostics.check.of_samplers import Divergences
from bpa_ppl.posterior.weight_draws import name_weights
from bpa_ppl.samplers.imh import accept
from bpa_ppl.sampling.finish import draw_posterior

CHAINS, DRAWS, WARMUP, DEGREES, SCALE = 4, 1000, 100, 20.0, 1.1


def autoregressive(
    rng: np.random.Generator,
    correlation: float,
    features: int,
    shape: tuple[int, int] = (DRAWS, CHAINS),
) -> Float64:
    """Return AR(1) chains of standard normal draws; the shape is of draws and chains."""
    noise = rng.normal(size=(*shape, features))
    values = np.empty_like(noise)
    values[0] = noise[0]
    for step in range(1, shape[0]):
        innovation = np.sqrt(1 - correlation**2) * noise[step]
        values[step] = correlation * values[step - 1] + innovation
    return values.transpose(1, 0, 2)


def one_chain(rng: np.random.Generator, correlation: float, features: int) -> Float64:
    """Return one AR(1) chain with as many draws as the other runs have in all."""
    return autoregressive(rng, correlation, features, (CHAINS * DRAWS, 1))


def independence(rng: np.random.Generator, features: int) -> Float64:
    """Return chains of a standard Gaussian, with proposals from a wider Student t."""
    shape = (CHAINS, WARMUP + DRAWS)
    scale = np.sqrt(SCALE * DEGREES / rng.chisquare(DEGREES, size=(*shape, 1)))
    proposed = scale * rng.normal(size=(*shape, features))
    squared = (proposed**2).sum(axis=-1)
    log_q = -(DEGREES + features) / 2 * np.log1p(squared / SCALE / DEGREES)
    position, _ = accept(-squared / 2 - log_q, rng)
    return proposed[np.arange(CHAINS)[:, None], position[:, WARMUP:]]


def common_scale(
    rng: np.random.Generator, correlation: float = 0.5, features: int = 9, deviation: float = 1.25
) -> Float64:
    """Return chains with the tails of weights with a common log-normal scale."""
    values = autoregressive(rng, correlation, features + 1)
    return np.asarray(np.exp(deviation * values[..., :1]) * values[..., 1:])


def refused(values: Float64) -> bool:
    """Return whether the check refuses the chains."""
    names = tuple(f"w{k}" for k in range(values.shape[-1]))
    return not check(name_weights(values, names))


def shift_halves(values: Float64, rng: np.random.Generator) -> None:
    """Move the second half of all chains by 0.5 standard deviations."""
    values[:, values.shape[1] // 2 :, 0] += 0.5


def start_elsewhere(values: Float64, rng: np.random.Generator) -> None:
    """Let all chains come from four standard deviations away, in about a hundred draws."""
    values[..., 0] += 4 * np.exp(-np.arange(values.shape[1]) / 50)


def shift_chain(values: Float64, rng: np.random.Generator) -> None:
    """Move one chain by 0.25 standard deviations."""
    values[0, :, 0] += 0.25


def stick(values: Float64, rng: np.random.Generator) -> None:
    """Repeat a draw of one chain for a fifth of its length."""
    length = values.shape[1] // 5
    start = rng.integers(values.shape[1] - length)
    values[0, start : start + length] = values[0, start]


def cauchy(values: Float64, rng: np.random.Generator) -> None:
    """Give one weight the tails of a Cauchy distribution, and its autocorrelation."""
    values[..., 0] = standard_cauchy.isf(norm.sf(values[..., 0]))


CASES: dict[str, Callable[[np.random.Generator], Float64]] = {
    "AR(1) 0.0, 4 weights": lambda rng: autoregressive(rng, 0.0, 4),
    "AR(1) 0.5, 4 weights": lambda rng: autoregressive(rng, 0.5, 4),
    "AR(1) 0.5, 14 weights": lambda rng: autoregressive(rng, 0.5, 14),
    "4 × 4000, AR(1) 0.8, 14 weights": lambda rng: autoregressive(rng, 0.8, 14, (4000, 4)),
    "imh, 4 weights": lambda rng: independence(rng, 4),
    "imh, 14 weights": lambda rng: independence(rng, 14),
    "one chain of 4000, AR(1) 0.0, 4 weights": lambda rng: one_chain(rng, 0.0, 4),
    "one chain of 4000, AR(1) 0.5, 4 weights": lambda rng: one_chain(rng, 0.5, 4),
    "AR(1) 0.5, 9 weights, common log-normal scale": common_scale,
}
#: Chains that fail the check, since they have few effective draws.
SHORT = {
    "AR(1) 0.9, 14 weights": lambda rng: autoregressive(rng, 0.9, 14),
    "AR(1) -0.5, 14 weights": lambda rng: autoregressive(rng, -0.5, 14),
    "50 × 40, AR(1) 0.0, 4 weights": lambda rng: autoregressive(rng, 0.0, 4, (40, 50)),
    "AR(1) 0.5, 100 weights": lambda rng: autoregressive(rng, 0.5, 100),
}
LEVELS = (0.05, 0.01, 0.001)


def alarms(options: argparse.Namespace) -> None:
    """Print the shares of correct runs that the check refuses."""
    table = Table(f"false alarms, {options.runs} runs", "refused")
    for name, sample in CASES.items():
        good = [refused(sample(np.random.default_rng(seed))) for seed in range(options.runs)]
        table.row(name, f"{np.mean(good):.1%}")


def burn_in(options: argparse.Namespace) -> None:
    """Print the shares of correct runs that the test of the burn-in refuses."""
    table = Table(f"burn-in, {options.runs} runs", *(f"at {level:.1%}" for level in LEVELS))
    for name, sample in {**CASES, **SHORT}.items():
        refusals = np.zeros(len(LEVELS))
        for seed in range(options.runs):
            values = sample(np.random.default_rng(seed))
            each = [level / (2 * values.shape[-1]) for level in LEVELS]
            largest = [np.abs(compare_beginning(values, level)).max() for level in each]
            refusals += np.array(largest) > norm.isf(each)
        table.row(name, *(f"{share:.1%}" for share in refusals / options.runs))


def faults(options: argparse.Namespace) -> None:
    """Print the shares of faulty runs that the check refuses."""
    runs = max(1, options.runs // 10)
    sizes = {f"AR {c}, 4 × {n}": (c, n) for c in (0.0, 0.5) for n in (500, 1000, 4000)}
    table = Table(f"faults, 14 weights, {runs} runs", *sizes)
    cases = {
        "the halves 0.5 sd apart": shift_halves,
        "chains start 4 sd away, e^(−t/50)": start_elsewhere,
        "one chain shifted by 0.25 sd": shift_chain,
        "one chain stuck for a fifth": stick,
        "Cauchy tails of one weight": cauchy,
    }
    for name, fault in cases.items():
        shares = []
        for correlation, draws in sizes.values():
            found = []
            for seed in range(runs):
                rng = np.random.default_rng(seed)
                values = autoregressive(rng, correlation, 14, (draws, CHAINS))
                fault(values, rng)
                found.append(refused(values))
            shares.append(f"{np.mean(found):.0%}")
        table.row(name, *shares)


class Hard(NamedTuple):
    """A program on which some transitions of NUTS diverge.

    Attributes:
        model: the program.
        data: its arguments.
        accepts: target acceptances of NUTS.
        reference: a program with the same posterior, which is sampled well; None is the same one.
        exact: the means and standard deviations of its variables in closed form, if they are known.
    """

    model: Callable[..., None]
    data: tuple[Any, ...] = ()
    accepts: tuple[float, ...] = (0.8, 0.95)
    reference: Callable[..., None] | None = None
    exact: Mapping[str, tuple[float, float]] = {}


def mild_funnel() -> None:
    """Five values, whose common scale varies by a factor of about three."""
    log_scale = numpyro.sample("log_scale", dist.Normal(0, 1))
    numpyro.sample("x", dist.Normal(0, jnp.exp(log_scale)).expand([5]).to_event(1))


def hard_programs() -> dict[str, Hard]:
    """Return programs on which some transitions of NUTS diverge, and one without (logistic)."""
    rng, group = np.random.default_rng(3), np.repeat(np.arange(15), 4)
    y = rng.normal(0.5, 0.4, size=15)[group] + rng.normal(size=60)
    schools = gallery.EFFECTS, gallery.ERRORS
    non_centred = handlers.reparam(gallery.many_groups, config={"theta": LocScaleReparam(0)})
    in_funnel = dict.fromkeys([f"x[{k}]" for k in range(5)], (0.0, float(np.e)))
    return {
        "logistic": Hard(gallery.logistic, gallery.PROGRAMS["logistic"].data, (0.8,)),
        "schools": Hard(gallery.schools, schools),
        "schools, centred": Hard(gallery.schools_centred, schools, (0.95,), gallery.schools),
        "groups, centred": Hard(gallery.many_groups, (group, y), reference=non_centred),
        "mild funnel": Hard(mild_funnel, (), (0.95,), exact={"log_scale": (0.0, 1.0), **in_funnel}),
        "Hilbert-space GP, 2-d": Hard(models.hilbert_gp_2d, models.simulate_surface(), (0.9,)),
    }


#: Groups of runs by the number of divergent transitions of 4,000.
COUNTS = {"0": (0, 0), "1–5": (1, 5), "6–20": (6, 20), "21–": (21, 4000)}


def divergences(options: argparse.Namespace) -> None:
    """Print how often runs with divergent transitions are wrong."""
    runs, columns = (
        max(1, options.runs // 10),
        ("runs", "off", "others passed", "mean off", "sd off"),
    )
    table = Table("program, target, divergences", *columns, "largest common error")
    programs = hard_programs()
    for name in options.programs or programs:
        program = programs[name]
        target = make_model_target(program.model, program.data)
        truth = program.exact or measure_moments(program)
        for aim in program.accepts:
            groups: dict[str, list[tuple[bool, Float64]]] = {group: [] for group in COUNTS}
            for seed in range(runs):
                draws = draw_posterior(target, f"nuts:target_accept={aim}", seed=seed)
                count = int(draws.statistics["diverging"].sum())
                group = next(key for key, (low, high) in COUNTS.items() if low <= count <= high)
                failed = {one.name for one in check(draws).failures} - {Divergences.title}
                names, values = list_components(draws)
                moments = zip(names, values.mean(axis=(0, 1)), values.std(axis=(0, 1)), strict=True)
                of_run = [
                    ((mean - truth[key][0]) / truth[key][1], deviation / truth[key][1] - 1)
                    for key, mean, deviation in moments
                    if key in truth
                ]
                groups[group].append((not failed, np.array(of_run)))
            for group, found in groups.items():
                if not found:
                    continue
                passed = [errors for is_sound, errors in found if is_sound]
                every = np.stack([errors for _, errors in found])
                wrong = (np.abs(every).max(axis=(1, 2)) > OFF).sum()
                cells = ["–", "–", "–"]
                if passed:
                    errors = np.stack(passed)
                    off = (np.abs(errors).max(axis=1) > OFF).sum(axis=0)
                    common = errors[..., 0].mean(axis=0)
                    worst = np.abs(common).argmax()
                    noise = errors[:, worst, 0].std() / np.sqrt(len(passed))
                    cells = [*map(str, off), f"{common[worst]:+.3f} ± {noise:.3f}"]
                table.row(f"{name}, {aim}, {group}", len(found), wrong, len(passed), *cells)


def measure_moments(program: Hard) -> dict[str, tuple[float, float]]:
    """Return the moments of the variables of a program by a long run with short steps."""
    target = make_model_target(program.reference or program.model, program.data)
    sampler = f"nuts:target_accept=0.99,warmup=1000,draws={100 if IS_LITTLE else 10_000}"
    names, values = list_components(draw_posterior(target, sampler, seed=10**6))
    return {
        name: (float(of.mean()), float(of.std()))
        for name, of in zip(names, np.moveaxis(values, -1, 0), strict=True)
    }


#: A mean that is off by more, in posterior standard deviations, is wrong; and a standard deviation
#: that is off by such a share.
OFF = 0.1
CANDIDATES = 5
KINDS = {
    "oracle, Moses lists": ("oracle", True),
    "margin, Moses lists": ("margin", True),
    "risk, Moses lists": ("risk", True),
    "risk, simulated lists": ("risk", False),
    "pairs, simulated lists": ("pairs", False),
    "preference, simulated lists": ("preference", False),
}


@cache
def demo_lists() -> tuple[NBest, Weights]:
    """Return the lists of the demo and their canonical weights."""
    demo = files("bpa_ppl.demo_data")
    pool = read_nbest(demo / "leaflet.nbest100.gz", references=demo / "leaflet.ref")
    return pool.truncate(CANDIDATES), read_weights(demo / "moses.ini")


def moses_problem(likelihood: str, size: int, seed: int) -> Target:
    """Return the adaptation to lists of the demo, drawn with replacement."""
    pool, canonical = demo_lists()
    rows = np.random.default_rng([seed, size]).integers(len(pool), size=size)
    return log_density(pool.select(rows), canonical, likelihood=likelihood)


def simulated_problem(likelihood: str, size: int, seed: int, weights: int) -> Target:
    """Return the adaptation to simulated gains or preferences, without canonical weights."""
    rng = np.random.default_rng([seed, size])
    shape = (size, CANDIDATES)
    features = rng.normal(size=(*shape, weights)) + 0.7 * rng.normal(size=(*shape, 1))
    gain = features @ rng.normal(0.1, 0.3, size=weights) + rng.gumbel(size=shape)
    texts = [[f"{s} {k}" for k in range(CANDIDATES)] for s in range(size)]
    names = [f"metric{k}" for k in range(weights)]
    lists = from_lists(texts, features, names, extras={"gain": gain.round(1).tolist()})
    if likelihood != "preference":
        return log_density(lists, gain="gain", likelihood=likelihood)
    better = [[[0, 1] if first > second else [1, 0]] for first, second, *_ in gain]
    compared = lists.without("gain").with_sentence_extras(preferences=better)
    return log_density(compared)


def passes(options: argparse.Namespace) -> None:
    """Print the shares of runs of each sampler that pass the check."""
    sizes = [f"{size} lists" for size in options.sizes]
    table = Table(f"passed, {options.runs} runs", *sizes, "s", "ESS/s")
    for name, (likelihood, is_moses) in KINDS.items():
        if (is_moses and options.weights != 14) or likelihood not in options.likelihoods:
            continue
        cells: dict[str, list[str]] = {sampler: [] for sampler in options.samplers}
        times: dict[str, list[float]] = {sampler: [] for sampler in options.samplers}
        rates: dict[str, list[float]] = {sampler: [] for sampler in options.samplers}
        for size in options.sizes:
            passed = dict.fromkeys(options.samplers, 0)
            for seed in range(options.runs):
                if is_moses:
                    problem = moses_problem(likelihood, size, seed)
                else:
                    problem = simulated_problem(likelihood, size, seed, options.weights)
                for sampler in options.samplers:
                    start = time.process_time()
                    draws = draw_posterior(problem, sampler, seed=seed)
                    seconds = time.process_time() - start
                    report = check(draws)
                    passed[sampler] += report.passed
                    if seed:  # the first run compiles
                        times[sampler].append(seconds)
                        bulk = next(f.value for f in report.rows if f.name == "bulk ESS")
                        rates[sampler].append(bulk / seconds)
            for sampler, count in passed.items():
                cells[sampler].append(f"{count / options.runs:.0%}")
        for sampler in options.samplers:
            speed = f"{np.mean(times[sampler]):.2f}", f"{np.median(rates[sampler]):.0f}"
            table.row(f"{sampler}: {name}", *cells[sampler], *speed)


if __name__ == "__main__":
    run_tables(
        __doc__,
        (alarms, burn_in, faults, divergences, passes),
        needs_data=False,
        runs=1000,
        programs=(),
        sizes=(10, 100, 500),
        samplers=("rwm", "imh", "nuts", "auto"),
        likelihoods=("oracle", "margin", "risk", "pairs", "preference"),
        weights=14,
    )
