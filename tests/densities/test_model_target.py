"""What a program may compute, take as an argument, and mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from numpyro import handlers
from numpyro.contrib.control_flow import scan
from scipy.stats import norm
from support.raising import capture_notes, raises
from support.targets import starting_at_zero

from bpa_ppl import UsageError
from bpa_ppl.densities.model_target import make_model_target
from bpa_ppl.densities.target import inspect_model

DATA = np.array([1.0, 2.0, 1.5])
FRAME = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": DATA})


def observe(mean: Any) -> None:
    numpyro.sample("y", dist.Normal(mean, 1.0), obs=DATA)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("a text", "str"),
        (None, "NoneType"),
        ({"a": 1.0}, "dict"),
        ([1.0, 2.0], "list"),
        ((1.0,), "tuple"),
        (object(), "object"),
        (print, "builtin_function_or_method"),
        (np.array(["a", "b"]), "<U1"),
        (np.array([None, 1.0]), "object"),
        (np.array([1j]), "complex128"),
        (FRAME, "DataFrame"),
    ],
)
def test_deterministic_sites_that_are_no_numbers_are_left_out(value: Any, kind: str) -> None:
    def program() -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))
        assert numpyro.deterministic("odd", value) is value
        numpyro.deterministic("twice", 2 * mean)
        observe(mean)

    with capture_notes() as notes, starting_at_zero():
        target = make_model_target(program)
    (message,) = [note.message for note in notes]
    assert message.startswith("deterministic sites that are not arrays of real numbers are left")
    assert f"left out: odd ({kind});" in message
    assert inspect_model(target).deterministic == ("twice",)


@pytest.mark.parametrize("value", [2, True, 1.5, np.float32(2.0), np.arange(3)])
def test_deterministic_numbers_are_kept(value: Any) -> None:
    def program() -> None:
        numpyro.deterministic("number", value)
        observe(numpyro.sample("mean", dist.Normal(0.0, 1.0)))

    with capture_notes() as notes, starting_at_zero():
        target = make_model_target(program)
    assert not notes
    with jax.enable_x64(True):
        kept = target.constrain(target.initial_position)["number"]
    np.testing.assert_array_equal(kept, value)


def test_texts_in_a_scan_are_left_out() -> None:
    def program() -> None:
        mean = numpyro.sample("mean", dist.Normal(0.0, 1.0))

        def step(before: Any, of: Any) -> Any:
            numpyro.deterministic("unit", "kg")
            numpyro.deterministic("sum", before + mean)
            numpyro.sample("y", dist.Normal(mean, 1.0), obs=of)
            return before + mean, None

        scan(step, jnp.zeros(()), DATA)

    with capture_notes() as notes, starting_at_zero():
        target = make_model_target(program)
    assert [note.message for note in notes if "unit (str)" in note.message]
    assert inspect_model(target).deterministic == ("sum",)


def everything() -> None:
    observe(numpyro.sample("mean", dist.Normal(jnp.zeros(3), 1.0)))


def part() -> None:
    with handlers.mask(mask=False):
        everything()


@pytest.mark.parametrize("program", [handlers.mask(everything, mask=False), part])
def test_a_program_that_is_masked_everywhere_has_nothing_to_draw(program: Any) -> None:
    match = "depends on no latent site, so there is nothing to draw: leave out .*mask"
    with raises(UsageError, "no-data", parameter="model", match=match):
        make_model_target(program)


def root(slope: Any, loop: Callable[[Any, Any], Any]) -> Any:
    """Solve x = cos(slope x) by repeated substitution."""
    return loop(lambda x: jnp.cos(slope * x), jnp.ones(()))


def until_it_stands_still(step: Any, start: Any) -> Any:
    def go_on(state: Any) -> Any:
        return jnp.abs(state[0] - state[1]) > 1e-12

    return jax.lax.while_loop(go_on, lambda state: (state[1], step(state[1])), (start, step(start)))


def with_fixed_steps(step: Any, start: Any) -> Any:
    def once(_: Any, state: Any) -> Any:
        changed = step(state[1])
        is_found = jnp.abs(state[0] - state[1]) <= 1e-12
        pairs = (state[0], state[1]), (state[1], changed)
        return tuple(jnp.where(is_found, old, new) for old, new in pairs)

    return jax.lax.fori_loop(0, 200, once, (start, step(start)))


def solving(loop: Callable[[Any, Any], Any]) -> None:
    slope = numpyro.sample("slope", dist.Uniform(0.1, 0.9))
    numpyro.sample("y", dist.Normal(root(slope, loop)[1], 0.1), obs=0.8)


def test_a_loop_over_values_has_a_way_that_works() -> None:
    match = "no gradient of a loop .*: in place of lax.while_loop write lax.fori_loop with a fixed"
    with raises(UsageError, "not-supported", parameter="model", match=match):
        make_model_target(lambda: solving(until_it_stands_still))
    target = make_model_target(lambda: solving(with_fixed_steps))
    with jax.enable_x64(True):
        slope = float(target.constrain(jnp.zeros(1))["slope"])
    value, gradient = target.value_and_gradient([0.0])
    x = 1.0
    for _ in range(200):
        x = np.cos(slope * x)
    expected = norm.logpdf(0.8, x, 0.1) + np.log(0.25)  # the slope of the inverse logit at 0
    assert value == pytest.approx(expected)
    ahead, behind = (target.value_and_gradient([z])[0] for z in (1e-5, -1e-5))
    assert gradient[0] == pytest.approx((ahead - behind) / 2e-5, rel=1e-5)


def by_names(frame: Any) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(slope * frame["x"], 1.0), obs=frame["y"])


def by_attributes(frame: Any) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(slope * frame.x.values, 1.0), obs=frame.y.values)


def by_columns(x: Any, y: Any) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(slope * x.to_numpy(), 1.0), obs=y)


@pytest.mark.parametrize(
    ("program", "arguments", "listed"),
    [
        (by_names, (FRAME,), r"frame \(a data frame\)"),
        (by_attributes, (FRAME,), r"frame \(a data frame\)"),
        (by_columns, (FRAME["x"], FRAME["y"]), r"x \(a column\), y \(a column\)"),
        (lambda data: by_names(data["rows"]), ({"rows": FRAME},), r"data \(a data frame\)"),
    ],
)
def test_a_program_that_needs_a_data_frame_gets_a_remedy(
    program: Any, arguments: Any, listed: str
) -> None:
    match = rf"gets a NumPy array without names in place of {listed}: pass each column"
    with raises(UsageError, "not-supported", parameter="model", match=match):
        make_model_target(program, arguments)


def test_a_data_frame_becomes_a_matrix_with_a_message() -> None:
    def program(x: Any) -> None:
        slopes = numpyro.sample("slopes", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
        observe(x @ slopes)

    with capture_notes() as notes, starting_at_zero():
        target = make_model_target(program, (FRAME,))
    assert [note.message for note in notes if "in place of x (a data frame)" in note.message]
    z = np.array([0.3, -0.2])
    expected = norm.logpdf(z).sum() + norm.logpdf(DATA, FRAME.to_numpy() @ z).sum()
    assert target.value_and_gradient(z)[0] == pytest.approx(expected)
