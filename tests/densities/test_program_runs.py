"""Programs that are others at their second run: what they read is not in their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count, cycle
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro import handlers
from support.raising import raises
from support.targets import starting_at_zero

import bpa_ppl as bpa
from bpa_ppl import UsageError
from bpa_ppl.densities.model_target import make_model_target

DATA = np.array([1.0, 2.0, 1.5])
Program = Callable[[], None]


def observe(data: Any, scale: Any = 1.0) -> None:
    mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(mean, scale), obs=data)


def of_an_iterator() -> Program:
    return partial(lambda data: observe(jnp.array(list(data))), iter(DATA))


def of_a_site_for_each_row() -> Program:
    rows = iter(DATA)

    def program() -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        for k, value in enumerate(rows):
            numpyro.sample(f"y{k}", dist.Normal(mean, 1.0), obs=value)

    return program


def of_batches() -> Program:
    batches = cycle([DATA, DATA + 1])
    return lambda: observe(next(batches))


def of_popped_data() -> Program:
    data = [*DATA]
    return lambda: observe(data.pop())


def of_a_stack_of_one() -> Program:
    data = [DATA]
    return lambda: observe(data.pop())


def of_a_random_choice() -> Program:
    rng = np.random.default_rng()
    return lambda: observe(rng.permutation(np.arange(50.0)))


def of_data_that_it_changes() -> Program:
    data = DATA.copy()
    return lambda: observe(data.__imul__(2.0))


def of_a_callback() -> Program:
    numbers = count()
    shape = jax.ShapeDtypeStruct((), np.int64)
    return lambda: observe(DATA + jax.pure_callback(lambda: np.int64(next(numbers)), shape))


def of_a_counted_scale() -> Program:
    numbers = count(1)
    return lambda: observe(DATA, float(next(numbers)))


def of_a_first_run() -> Program:
    first = [0.5]
    return lambda: observe(DATA, first.pop() if first else 1.0)


def of_a_counted_prior() -> Program:
    numbers = count()

    def program() -> None:
        numpyro.sample("x", dist.Normal(float(next(numbers)), 1.0))
        observe(DATA)

    return program


def of_a_counted_shape() -> Program:
    numbers = count(1)

    def program() -> None:
        values = numpyro.sample("values", dist.Normal(0.0, 1.0).expand([next(numbers)]))
        numpyro.sample("y", dist.Normal(values.mean(), 1.0), obs=DATA)

    return program


def of_a_counted_weight() -> Program:
    numbers = count(1)
    return lambda: handlers.scale(observe, scale=float(next(numbers)))(DATA)


def of_a_counted_factor() -> Program:
    numbers = count(1)

    def program() -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        numpyro.factor("near", -next(numbers) * mean**2)

    return program


def of_a_counted_result() -> Program:
    numbers = count(1)

    def program() -> None:
        observe(DATA)
        numpyro.deterministic("number", jnp.array(next(numbers)))

    return program


@pytest.mark.parametrize(
    ("make", "difference"),
    [
        (of_an_iterator, r"the site y has the shape \(3,\), then \(0,\).*iterator"),
        (of_a_site_for_each_row, "only the first of two runs has the site y0"),
        (of_batches, "the site y observes other values"),
        (of_popped_data, "the site y observes other values"),
        (
            of_a_stack_of_one,
            "the first run succeeded, and the second one failed: .*IndexError: pop from empty list",
        ),
        (of_a_random_choice, "the site y observes other values"),
        (of_data_that_it_changes, "the site y observes other values"),
        (of_a_callback, "the site y observes other values"),
        (of_a_counted_scale, "the site y has the log density -.*, then -"),
        (of_a_first_run, "the site y has the log density -.*, then -"),
        (of_a_counted_prior, "the site x has other values"),
        (of_a_counted_shape, r"the site values has the shape \(1,\), then \(2,\)"),
        (of_a_counted_weight, "the site mean has the log density -.*, then -"),
        (of_a_counted_factor, "the site near has the log density -.*, then -"),
        (of_a_counted_result, "the site number has other values"),
    ],
)
def test_a_program_that_is_another_one_at_its_second_run_is_refused(
    make: Callable[[], Program], difference: str
) -> None:
    match = rf"another one at each call \({difference}"
    with raises(UsageError, "not-supported", parameter="model", match=match):
        make_model_target(make())


def test_a_model_of_lists_that_is_another_one_at_its_second_run_is_refused() -> None:
    numbers = count(1)

    def model(lists: Any, prior: Any, likelihood: Any) -> None:
        scale = float(next(numbers))
        weights = numpyro.sample("weights", dist.Normal(jnp.zeros(1), scale).to_event(1))
        with numpyro.plate("sentence", len(lists.oracle)):
            likelihood.observe(lists, weights)

    lists = bpa.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"], references=["b"])
    match = r"model is another one at each call \(the site oracle has the log density"
    with raises(UsageError, "not-supported", parameter="model", match=match):
        bpa.log_density(lists, {"LM0": 0.5}, likelihood="oracle", model=model)


def with_a_seed_of_its_own() -> None:
    observe(DATA + np.random.default_rng(0).normal(size=3))


def with_missing_values() -> None:
    observe(jnp.array([1.0, jnp.nan, 2.0]))


@pytest.mark.parametrize(
    "program",
    [
        handlers.seed(partial(observe, DATA), 0),
        with_a_seed_of_its_own,
        handlers.mask(partial(observe, DATA), mask=np.array([True, False, True])),
    ],
)
def test_a_program_that_repeats_itself_is_sampled(program: Program) -> None:
    with starting_at_zero():
        assert make_model_target(program).dimension


def test_missing_values_are_not_another_program() -> None:
    with raises(UsageError, "bad-number", parameter="model", match="cannot take, such as nan"):
        make_model_target(with_missing_values)
