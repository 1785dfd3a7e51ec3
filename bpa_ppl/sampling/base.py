"""The input and output of every sampler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Self

import jax
import numpy as np
import psutil
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from bpa_ppl.arrays import Float64
from bpa_ppl.component import Component
from bpa_ppl.errors import UsageError, missing_extra
from bpa_ppl.models import Likelihood, Lists, Prior
from bpa_ppl.nbest import NBest
from bpa_ppl.progress import Reporter
from bpa_ppl.weights import Match

#: Most steps of all chains together: they take days, and larger arrays cannot be indexed.
_MAX_STEPS = 10**9

#: A NumPyro program over lists, a prior and a likelihood.
Model = Callable[[Lists, Prior, Likelihood], None]
#: The unconstrained values of the sites of a model, by name.
Sites = dict[str, Any]


class Data(NamedTuple):
    """The arrays that a program is run on.

    Attributes:
        lists: the tabulated sentences.
        prior: of the free features.

    >>> from bpa_ppl.models import Prior, tabulate
    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> data = Data(tabulate(nbest, match({"LM0": 0.5}, nbest)), Prior.isotropic({"LM0": 0.5}))
    >>> data.lists.features
    1
    """

    lists: Lists
    prior: Prior


@dataclass(frozen=True)
class Program:
    """A model with its likelihood, compiled once for all data of the same shapes.

    Attributes:
        model: a function of lists, a prior and a likelihood.
        likelihood: its last argument.

    >>> from bpa_ppl.models import Oracle, log_linear
    >>> Program(log_linear, Oracle()) == Program(log_linear, Oracle())
    True
    """

    model: Model
    likelihood: Likelihood

    def __call__(self, lists: Lists, prior: Prior) -> None:
        """Run the model."""
        self.model(lists, prior, self.likelihood)


@dataclass(frozen=True, eq=False)
class Target:
    """A posterior to sample.

    Attributes:
        program: the NumPyro program.
        data: the data that it conditions on, on JAX's devices.
        start: z, the unconstrained values of its sites, at the prior's mean.
        seed: the only source of randomness.
        progress: receives the progress of the sampling.
        match: the canonical weights, matched to the features of the lists.

    >>> from bpa_ppl.models import Prior
    >>> from bpa_ppl.sampling import target_of
    >>> from bpa_ppl.weights import match
    >>> nbest = NBest.from_lists([["a", "b"]], [[[0.0], [1.0]]], ["LM0"])
    >>> with jax.enable_x64(True):
    ...     prior = Prior.isotropic({"LM0": 0.5})
    ...     target = target_of(nbest, match({"LM0": 0.5}, nbest), prior, oracle=[1])
    >>> target.dimension, target.start["weights"].tolist(), target.program.likelihood
    (1, [0.5], Oracle())
    """

    program: Program
    data: Data
    start: Sites
    seed: int
    progress: Reporter
    match: Match

    @property
    def dimension(self) -> int:
        """The number of unconstrained values."""
        return sum(int(np.size(value)) for value in self.start.values())


@dataclass(frozen=True, eq=False)
class Sampled:
    """The result of a sampler (C chains, D draws).

    Attributes:
        z: for each site of the model its unconstrained values, (C, D, …).
        kind: `chains`, `weighted` or `point`.
        log_density: (C, D) log p(z, data), or None.
        log_weight: (C, D) the log importance weights of draws, or None.
        statistics: (C, D) each, under ArviZ's names, such as `acceptance_rate`. `n_steps`, the
            evaluations of the density for a kept draw, is what comparisons count; without it they
            are unknown.
        warmup: the draws of the warm-up, in the form of `z`.
        mode: the flat z of the posterior's mode, if the sampler has found it.
        log_likelihood: observed site -> (C, D, …), if the sampler has computed it.
        constants: further arrays that are stored with the posterior, by name.
        attrs: diagnostics for the posterior's attributes. `step_setting` names the setting that
            sizes the steps of a random walk.

    Two chains of a hundred draws of three weights:

    >>> Sampled(z={"weights": np.zeros((2, 100, 3))}, log_density=np.zeros((2, 100))).kind
    'chains'
    """

    z: Sites
    kind: str = "chains"
    log_density: np.ndarray | None = None
    log_weight: Float64 | None = None
    statistics: dict[str, np.ndarray] = field(default_factory=dict)
    warmup: Sites = field(default_factory=dict)
    mode: Any = None
    log_likelihood: dict[str, np.ndarray] | None = None
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)


def with_evaluations(sampled: Sampled, per_draw: int = 1) -> Sampled:
    """Return draws that record the evaluations of the density for each of them, as `n_steps`."""
    shape = np.shape(next(iter(sampled.z.values())))[:2]
    steps = np.full(shape, per_draw, np.int32)
    return replace(sampled, statistics={**sampled.statistics, "n_steps": steps})


class Sampler(Component, frozen=True):
    """A way to draw from a posterior; its fields are its settings.

    Attributes:
        exact: whether the draws, with their importance weights, follow the posterior.
        takes_extra: whether it needs lists of the out-of-domain set (see `fitted`).
        packages: the optional packages that it runs, which the extra `compare` installs.
        likelihood: the name of the likelihood that it was published with, which is then its
            default; None takes the default of the gain.

    >>> from bpa_ppl.registry import SAMPLERS
    >>> SAMPLERS.resolve("imh", {"draws": 500}).settings()["draws"]
    500
    """

    exact: ClassVar[bool] = True
    takes_extra: ClassVar[bool] = False
    packages: ClassVar[tuple[str, ...]] = ()
    likelihood: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        draws = getattr(self, "warmup", 0) + getattr(self, "draws", 1)
        chains = getattr(self, "chains", 1) or 1  # None is chosen by the sampler
        steps = chains * getattr(self, "thinning", 1) * draws
        if steps > _MAX_STEPS:
            raise UsageError(
                f"{steps:,} steps exceed the limit of {_MAX_STEPS:,}: lower draws, chains, warmup "
                "or thinning",
                parameter="draws",
            )

    def require_packages(self) -> None:
        """Refuse a sampler whose package is not installed.

        Raises:
            UsageError: if one is missing.
        """
        for package in self.packages:
            if find_spec(package) is None:
                raise missing_extra(f"this sampler needs {package}", "compare", "sampler")

    def fitted(
        self, lists: NBest, weights: Mapping[str, float], *, fixed: list[str] | None, seed: int
    ) -> Self:
        """Return the sampler fitted to the lists of the out-of-domain set.

        Args:
            lists: with references.
            weights: the canonical weights λ_T, by feature name.
            fixed: features that are not adapted; None is `UnknownWordPenalty0`.
            seed: the only source of randomness.

        Raises:
            UsageError: if it learns nothing from them.
        """
        raise UsageError(
            f"the sampler {type(self).__name__} uses no out-of-domain lists: leave them out",
            parameter="extra",
        )

    def sample(self, target: Target) -> Sampled:
        """Draw from the posterior.

        Raises:
            DataError: if the posterior cannot be sampled in this way.
            UsageError: if the sampler does not fit the model.
        """
        raise NotImplementedError


def require_memory(target: Target, draws: int) -> None:
    """Refuse a number of draws that does not fit into memory, before it is allocated.

    Each draw takes its values twice, and the log-likelihood of each sentence.

    Args:
        target: the posterior.
        draws: of all chains, including the warm-up.

    Raises:
        UsageError: if there is less free memory than they need.
    """
    needed = draws * (16 * target.dimension + 4 * len(target.data.lists.oracle))
    free = psutil.virtual_memory().available
    if needed > free:
        raise UsageError(
            f"{draws:,} draws of {target.dimension} values need {needed / 1e9:,.1f} GB of memory, "
            f"and {free / 1e9:,.1f} GB are free: lower draws or chains",
            parameter="draws",
        )


def place(data: Data) -> Data:
    """Put data on JAX's devices; with several devices, each holds an equal share of the sentences.

    The numbers of sentences must be multiples of the number of devices (see `tabulate`). XLA
    computes where the data are, and sums over devices.
    """
    devices = jax.devices()
    if len(devices) == 1:
        shardings = None
    else:
        mesh = Mesh(devices, ("sentence",), axis_types=(AxisType.Auto,))
        blocks = NamedSharding(mesh, PartitionSpec(None, "sentence"))
        sentences = NamedSharding(mesh, PartitionSpec("sentence"))
        shardings = Data(
            jax.tree.map(lambda x: sentences if np.ndim(x) == 1 else blocks, data.lists),
            jax.tree.map(lambda _: NamedSharding(mesh, PartitionSpec()), data.prior),
        )
    placed: Data = jax.device_put(data, shardings)
    return placed
