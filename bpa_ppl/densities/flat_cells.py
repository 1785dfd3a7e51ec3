"""Values that a density does not depend on, such as those that `obs_mask` of NumPyro adds.

The site `y_unobserved` of `numpyro.sample("y", …, obs=y, obs_mask=mask)` has a value for each cell
of y. Those of the observed cells are masked, and nothing depends on them: they have no posterior,
and a sampler that draws them goes ever farther. They are constants here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers
from numpyro.distributions import Distribution, MaskedDistribution, biject_to
from numpyro.distributions.constraints import Constraint
from numpyro.distributions.transforms import Transform
from numpyro.infer.util import log_density
from numpyro.primitives import Messenger

from bpa_ppl.densities.own_models import model_error
from bpa_ppl.densities.target import RUN_ONCE, SEARCH_SEED, Sites, Target, constrain, inspect_model

#: Cells are constants if the density does not depend on them at so many random places, whose
#: unconstrained values differ by at most so much from those of the start.
_PLACES, _RADIUS = 3, 2.0
#: How the names of the sites end that `obs_mask` adds for missing observations.
_UNOBSERVED = "_unobserved"


class Cells(NamedTuple):
    """Which values of a latent site are drawn.

    Attributes:
        drawn: (batch shape) whether a cell is drawn; the others are constants.
        z: the unconstrained values of all cells, which those that are not drawn keep.
    """

    drawn: np.ndarray
    z: np.ndarray

    def select(self, z: Any) -> Any:
        """Return the unconstrained values of the cells that are drawn, (drawn cells, …)."""
        return z[self.drawn]


def find_flat_cells(target: Target) -> tuple[dict[str, Cells], set[str]]:
    """Return the latent sites with masked values that the density does not depend on.

    A site without a free value, such as a Dirichlet distribution of one category, is one of them.
    The second result are the names of the sites with masked values that it depends on: draws of
    their priors are not those of the program.

    Args:
        target: a program without discrete latent sites, with its start.

    Raises:
        UsageError: if such a site is in a scan.
    """
    of_scans, used = set[str](), set[str]()

    def find_masks() -> dict[str, jax.Array]:
        program = _MaskedSites(handlers.seed(target.program, jax.random.key(0)))
        program(*target.data)
        of_scans.update(program.of_scans)
        return program.masks

    constant = {
        name: Cells(np.zeros(np.shape(z)[:-1], bool), np.asarray(z))
        for name, z in target.start.items()
        if not np.size(z)
    }
    traced = jax.jit(find_masks, compiler_options=RUN_ONCE).trace()
    masks = traced.lower().compile()() if traced.out_info else {}
    for name, masked in jax.device_get(masks).items():
        drawn = masked if masked.all() else masked | _find_used(target, name, ~masked)
        if name in of_scans and not drawn.all():
            remedy = "mask only what is observed: values of other steps then follow their prior"
            if name.removesuffix(_UNOBSERVED) in inspect_model(target).deterministic:
                remedy = "draw the values that are missing by a site outside of the scan, and put "
                remedy += "them into the data"
            raise model_error(
                f"the density does not depend on {(~drawn).sum()} of {drawn.size} values of {name},"
                f" a masked site of a scan, so they have no posterior: {remedy}",
                "not-supported",
            )
        if not drawn.all():
            constant[name] = Cells(drawn, np.asarray(target.start[name]))
        if (drawn & ~masked).any():
            used.add(name)
    return constant, used


def _find_used(target: Target, site: str, masked: np.ndarray) -> np.ndarray:
    """Return which masked cells of a site the density depends on at random places."""
    rng = np.random.default_rng([SEARCH_SEED, 9])
    used = np.zeros_like(masked)

    # One compiled program: the values that it returns are compared to the last bit.
    @partial(jax.jit, compiler_options=RUN_ONCE)
    @jax.value_and_grad
    def density(value: Any, others: Sites) -> Any:
        values = {**others, site: value}
        return log_density(target.program, target.data, {}, values)[0]

    for _ in range(_PLACES):
        values, others = (
            constrain(
                target,
                {
                    n: x + rng.uniform(-_RADIUS, _RADIUS, np.shape(x))
                    for n, x in target.start.items()
                },
            )
            for _ in range(2)
        )
        # By NumPy: JAX would compile each operation.
        values, others = jax.device_get((values, others))
        unchanged, slope = density(values[site], values)
        slopes = np.asarray(slope).reshape(*masked.shape, -1)
        flat = masked & ~slopes.any(axis=-1)
        events = np.reshape(flat, flat.shape + (1,) * (np.ndim(slope) - flat.ndim))
        changed, _ = density(np.where(events, others[site], values[site]), values)
        used |= masked & ~flat if float(unchanged) == float(changed) else masked
    return used


class _MaskedSites(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Keeps which cells of masked latent sites are not masked."""

    def __init__(self, program: Callable[..., Any]):
        self.masks: dict[str, jax.Array] = {}
        self.of_scans = set[str]()
        super().__init__(program)

    def process_message(self, site: dict[str, Any]) -> None:
        is_latent = site["type"] == "sample" and not site["is_observed"]
        if is_latent and isinstance(site["fn"], MaskedDistribution):
            if site["value"] is not None:  # it is the site of a scan
                self.of_scans.add(site["name"])
            masked = site["fn"]
            value = masked.sample(jax.random.key(0))
            left_out = (masked.log_prob(value) == 0) & (masked.base_dist.log_prob(value) != 0)
            self.masks[site["name"]] = ~left_out


class WithConstantCells(Messenger):  # type: ignore[misc] # NumPyro has no types
    """Makes some cells of latent sites constants: no unconstrained value belongs to them.

    Args:
        program: a NumPyro program.
        cells: which are drawn, by site. A site without any is deterministic.
    """

    def __init__(self, program: Callable[..., Any], cells: Mapping[str, Cells]):
        self._cells = cells
        super().__init__(program)

    def process_message(self, site: dict[str, Any]) -> None:
        if site["type"] != "sample" or site["name"] not in self._cells:
            return
        cells = self._cells[site["name"]]
        if cells.drawn.any():
            site["fn"] = _PartlyConstant(site["fn"], cells)
        else:
            site["type"] = "deterministic"
            site["value"] = biject_to(site["fn"].support)(cells.z)


class _PartlyConstant(Distribution):  # type: ignore[misc] # NumPyro has no types
    """A distribution some of whose cells are constants.

    Args:
        masked: the distribution, which leaves them out.
        cells: which are drawn.
    """

    def __init__(self, masked: Distribution, cells: Cells):
        self.base_dist, self._cells = masked, cells
        super().__init__(masked.batch_shape, masked.event_shape)

    @property
    def support(self) -> Constraint:
        """The support, with unconstrained values of the cells that are drawn."""
        return _DrawnCells(self.base_dist.support, self._cells)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        return self.base_dist.sample(key, sample_shape)

    def log_prob(self, value: Any) -> Any:
        return self.base_dist.log_prob(value)


class _DrawnCells(Constraint):  # type: ignore[misc] # NumPyro has no types
    def __init__(self, support: Constraint, cells: Cells):
        self.support, self.cells = support, cells
        self.event_dim = support.event_dim

    def __call__(self, x: Any) -> Any:
        return self.support(x)

    def feasible_like(self, prototype: Any) -> Any:
        return self.support.feasible_like(prototype)


class _ToAllCells(Transform):  # type: ignore[misc] # NumPyro has no types
    """From the unconstrained values of the cells that are drawn to the values of all cells.

    As of every transform of NumPyro, values of several draws have leading dimensions.
    """

    def __init__(self, constraint: _DrawnCells):
        self._cells = constraint.cells
        self._transform = biject_to(constraint.support)

    def _fill(self, x: Any) -> Any:
        """Return the unconstrained values of all cells, (…, *batch shape, …)."""
        drawn, z = self._cells.drawn, jnp.asarray(self._cells.z)
        leading = np.shape(x)[: np.ndim(x) - (1 + z.ndim - drawn.ndim)]
        every = (slice(None),) * len(leading)
        return jnp.broadcast_to(z, leading + z.shape).at[(*every, drawn)].set(x)

    def __call__(self, x: Any) -> Any:
        return self._transform(self._fill(x))

    def _inverse(self, y: Any) -> Any:
        z = self._transform.inv(y)
        every = (slice(None),) * (np.ndim(z) - np.ndim(self._cells.z))
        return z[(*every, self._cells.drawn)]

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        drawn = self._cells.drawn
        leading = len(shape) - (1 + np.ndim(self._cells.z) - drawn.ndim)
        result: tuple[int, ...] = self._transform.forward_shape(
            (*shape[:leading], *drawn.shape, *shape[leading + 1 :])
        )
        return result

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the values that are drawn, (…, drawn cells, …)."""
        drawn, of_all = self._cells.drawn, self._transform.inverse_shape(shape)
        leading = len(of_all) - np.ndim(self._cells.z)
        return *of_all[:leading], int(drawn.sum()), *of_all[leading + drawn.ndim :]

    def log_abs_det_jacobian(self, x: Any, y: Any, intermediates: Any = None) -> Any:
        """Return the terms of all cells, (…, *batch shape), which are 0 for constants."""
        drawn = self._cells.drawn
        terms = self._transform.log_abs_det_jacobian(self._fill(x), y)
        leading = np.ndim(x) - (1 + np.ndim(self._cells.z) - drawn.ndim)
        extra = np.ndim(terms) - leading - drawn.ndim
        return jnp.where(np.reshape(drawn, drawn.shape + (1,) * extra), terms, 0.0)


@biject_to.register(_DrawnCells)  # type: ignore[untyped-decorator] # NumPyro has no types
def _biject_to_all_cells(constraint: _DrawnCells) -> Transform:
    return _ToAllCells(constraint)
