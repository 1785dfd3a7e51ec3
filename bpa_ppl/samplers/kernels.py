"""Any Markov-chain kernel of NumPyro by name: `numpyro:BarkerMH`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import isfinite
from operator import attrgetter
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpyro.infer
from numpyro.infer.mcmc import MCMCKernel

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Count, CountOrNone
from bpa_ppl.densities.mode import mode_of
from bpa_ppl.densities.target import Sampled, Sites, Target, evaluate, potential
from bpa_ppl.errors import UsageError, unknown_name, wrong_value
from bpa_ppl.posterior.record import Figures
from bpa_ppl.samplers.chains import ARVIZ_NAMES, Chains, collect_trajectory, run_chains
from bpa_ppl.samplers.sampler import Sampler
from bpa_ppl.samplers.starting import draw_starts

#: The kernels of NumPyro that sample any density of real values.
KERNELS = ("AIES", "BarkerMH", "ESS", "HMC", "NUTS", "SA")
#: Their parameters that are not settings.
_EXCLUDED = ("model", "potential_fn", "init_strategy", "randomize_split")
#: Chains of a kernel whose chains do not interact.
_CHAINS = 4


class NumpyroKernel(Sampler, frozen=True):
    """A Markov-chain kernel of NumPyro: HMC, NUTS, BarkerMH, AIES, ESS or SA.

    Chains start at draws of N(mode, 2 × Laplace), as those of `nuts`; without a mode, around the
    medians of the prior. A kernel that adapts itself does so during the warm-up. Its parameters
    are settings, such as `step_size`, except for the model and the starting points.

    The chains of AIES and ESS interact. Their number is even, and at least twice the number of
    weights, so that their differences span all directions. An ensemble is split in the same way at
    each step: NumPyro's `randomize_split` would permute the chains, and hide their autocorrelation.

    Args:
        kernel: its name in `numpyro.infer`.
        warmup: draws of each chain that are discarded.
        draws: of each chain.
        chains: how many. None is 4, and for AIES and ESS twice the number of weights, and 2.
        thinning: steps from one draw to the next.
        options: values of the kernel's own parameters, sorted by name. They are written like other
            settings.

    >>> from bpa_ppl.samplers.sampler import SAMPLERS
    >>> sampler = SAMPLERS.resolve("numpyro:BarkerMH", {"step_size": 0.1})
    >>> sampler.settings()["step_size"], SAMPLERS.name_of(sampler)
    (0.1, 'numpyro:BarkerMH')
    >>> SAMPLERS.restore("numpyro:BarkerMH", sampler.settings()) == sampler
    True
    """

    any_coordinates = True
    variant = "kernel"
    kernel: str = "NUTS"
    warmup: CountOrNone = 500
    draws: Count = 1000
    chains: Count | None = None
    thinning: Count = 1
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of(self.kernel, KERNELS, "kernel")
        allowed = _find_parameters(self.kernel)
        for key, value in self.options:
            if key not in allowed:
                fields = [field for field in self.__struct_fields__ if field != "options"]
                owner = f"the sampler {self.kernel}"
                raise unknown_name("setting", key, [*fields, *allowed], key, owner=owner)
            if not _is_plain(value):
                rule = f"{key} must be a finite number or a text, or several"
                raise wrong_value(rule, value, key, code="invalid-setting")

    @classmethod
    def configured(cls, title: str, settings: Mapping[str, Any]) -> Self:
        """Return the sampler with some settings; those of the kernel become `options`."""
        fields = {name: value for name, value in settings.items() if name in cls.__struct_fields__}
        rest = {name: _make_hashable(v) for name, v in settings.items() if name not in fields}
        options = {"options": tuple(sorted(rest.items()))} if rest else {}
        return super().configured(title, {**fields, **options})

    def settings(self) -> dict[str, Any]:
        """Return the settings by name, with those of the kernel."""
        fields = {n: v for n, v in super().settings().items() if n != "options" and v is not None}
        return {**fields, **dict(self.options)}

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        ensemble = self._make_kernel(target).is_ensemble_kernel
        least = max(_CHAINS, 2 * target.dimension)
        chains = self.chains or (least + 2 if ensemble else _CHAINS)
        if ensemble and (chains < least or chains % 2):
            rule = f"the chains of {self.kernel} interact: it needs an even number of chains, at "
            rule += f"least {least} for {target.dimension} values"
            raise wrong_value(rule, chains, "chains", code="invalid-setting")
        start, (moments, *_) = draw_starts(target, chains, seed, progress)
        mode = None if moments is None else mode_of(target)
        sampled = run_chains(self, target, None, start, seed, progress)
        log_density, log_likelihood = evaluate(target, sampled.z)
        return replace(
            sampled,
            log_density=log_density,
            log_likelihood=log_likelihood,
            mode=None if mode is None else mode.position,
            figures=Figures() if mode is None else mode.figures,
        )

    def _make_kernel(self, target: Target) -> MCMCKernel:
        """Return the kernel for a target.

        Raises:
            UsageError: if NumPyro refuses the settings.
        """
        kind = getattr(numpyro.infer, self.kernel)
        parameters = inspect.signature(kind).parameters
        options = dict(self.options)
        if "randomize_split" in parameters:
            options["randomize_split"] = False
        # The class may check its settings.
        with _explain_refusals(self.kernel), jax.ensure_compile_time_eval():
            if "potential_fn" in parameters:
                return kind(potential_fn=partial(potential, target), **options)
            return kind(target.program, **options)

    def initialise(self, target: Target, covariance: Any, keys: jax.Array, z: Sites) -> Chains:
        """Return the chains at their starting points."""
        kernel, arguments = self._make_kernel(target), target.data
        steps = self.warmup * self.thinning

        def initial(keys: jax.Array, z: Sites) -> Any:
            return kernel.init(keys, steps, z, arguments, {})

        def step(state: Any) -> Any:
            return kernel.sample(state, arguments, {})

        if not kernel.is_ensemble_kernel:
            initial, step = jax.vmap(initial), jax.vmap(step)
        with _explain_refusals(self.kernel):
            state = initial(keys, z)
        position = attrgetter(kernel.sample_field)

        def collect(state: Any) -> dict[str, Any]:
            # An ensemble reports one rate for the half that moved last.
            sources = (state, getattr(state, "inner_state", None))
            values = {
                name: jnp.broadcast_to(getattr(source, name), keys.shape)
                for source in sources
                for name in ARVIZ_NAMES
                if hasattr(source, name)
            }
            values |= collect_trajectory(state, is_nuts=self.kernel == "NUTS")
            return {"z": position(state), **values}

        return state, step, collect


def _find_parameters(kernel: str) -> tuple[str, ...]:
    """Return the names of the parameters of a kernel that are settings."""
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(getattr(numpyro.infer, kernel)).parameters
    names = [name for name, value in parameters.items() if value.kind not in variable]
    return tuple(name for name in names if name not in _EXCLUDED)


def _is_plain(value: Any) -> bool:
    """Return whether a setting can be recorded: a finite number, a text, None, or several.

    >>> _is_plain((8, 8)), _is_plain("stretch"), _is_plain(float("nan")), _is_plain(print)
    (True, True, False, False)
    """
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | None) or (isinstance(value, float) and isfinite(value))


def _make_hashable(value: Any) -> Any:
    """Return a setting as Python's own immutable value."""
    if getattr(value, "ndim", None) == 0:
        return value.item()
    return tuple(map(_make_hashable, value)) if isinstance(value, list) else value


@contextmanager
def _explain_refusals(kernel: str) -> Iterator[None]:
    """Convert the errors with which NumPyro refuses settings, which are of many kinds."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        problem = f"NumPyro's {kernel} cannot run with these settings: {reason}"
        raise UsageError(problem, parameter="sampler", code="invalid-setting") from error
