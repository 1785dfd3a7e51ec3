"""Prior: the distribution of named weights before the adaptation sentences are seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import numpyro.distributions as dist

from bpa_ppl.component import Component
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.streams import atomic_writer, read_text
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import as_draws
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.weights import Match

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior


class Prior(NamedTuple):
    """p(λ | T) over the Q free features; a pytree of arrays.

    Build it by `isotropic`, `gaussian`, `of`, or by `named` from a distribution of NumPyro's.

    Attributes:
        mean: (Q,) float64, where samplers start.
        variance: (Q,) float64 of independent Gaussians, or None.
        covariance: (Q, Q) float64 of a Gaussian, or None.
        other: a NumPyro distribution of event shape (Q,) where the prior is no Gaussian.
        names: the features, in order; None while the prior is inside a model.

    >>> prior = Prior.isotropic({"LM0": 0.5, "WP0": -1.0}, variance=0.1)
    >>> prior.distribution().event_shape, prior.full_covariance.tolist()
    ((2,), [[0.1, 0.0], [0.0, 0.1]])
    >>> prior.matched(["WP0"]).mean.tolist()
    [-1.0]
    >>> {name: values.tolist() for name, values in prior.constants().items()}
    {'prior_mean': [0.5, -1.0], 'prior_variance': [0.1, 0.1]}
    """

    mean: Any
    variance: Any = None
    covariance: Any = None
    other: Any = None
    names: Any = None

    def distribution(self) -> dist.Distribution:
        """Return the prior as a NumPyro distribution of event shape (Q,)."""
        if self.other is not None:
            return self.other
        if self.covariance is not None:
            return dist.MultivariateNormal(self.mean, covariance_matrix=self.covariance)
        import jax.numpy as jnp

        return dist.Normal(self.mean, jnp.sqrt(jnp.asarray(self.variance))).to_event(1)

    @classmethod
    def isotropic(cls, weights: Mapping[str, float], variance: npt.ArrayLike = 0.1) -> Prior:
        """Return N(λ; λ_T, σ_T I), as published.

        Args:
            weights: the mean λ_T, by feature.
            variance: σ_T, a variance: one number, or one a feature.

        Raises:
            UsageError: if a variance is not positive and finite, or there are too few or many.

        >>> prior = Prior.isotropic({"LM0": 0.5, "WP0": -1.0}, 0.1)
        >>> prior.names, prior.mean.tolist(), prior.variance.tolist()
        (('LM0', 'WP0'), [0.5, -1.0], [0.1, 0.1])
        """
        names = tuple(weights)
        spread = np.asarray(variance, np.float64)
        if spread.shape not in ((), (len(names),)):
            raise UsageError(
                f"the prior variance must be one number or {len(names)}, one for each free "
                f"feature, not an array of shape {spread.shape}"
            )
        if not (np.isfinite(spread).all() and (spread > 0).all()):
            raise UsageError(f"the prior variance must be positive and finite, not {spread.min()}")
        mean = np.array([weights[name] for name in names], np.float64)
        return cls(mean, np.array(np.broadcast_to(spread, mean.shape)), names=names)

    @classmethod
    def gaussian(cls, weights: Mapping[str, float], covariance: npt.ArrayLike) -> Prior:
        """Return a Gaussian with a full covariance.

        Args:
            weights: the mean, by feature.
            covariance: (Q, Q), in the order of `weights`.

        Raises:
            UsageError: if it is not symmetric and positive definite, or has another shape.

        >>> Prior.gaussian({"a": 0.0, "b": 1.0}, [[1.0, 0.5], [0.5, 1.0]]).covariance.shape
        (2, 2)
        """
        matrix = np.asarray(covariance, np.float64)
        if matrix.shape != (len(weights),) * 2:
            raise UsageError(
                f"the prior covariance must be {len(weights)} × {len(weights)}, not "
                + " × ".join(map(str, matrix.shape))
            )
        if not np.allclose(matrix, matrix.T) or np.linalg.eigvalsh(matrix).min() <= 0:
            raise UsageError("the prior covariance must be symmetric and positive definite")
        mean = np.array([weights[name] for name in weights], np.float64)
        return cls(mean, covariance=matrix, names=tuple(weights))

    @classmethod
    def named(cls, names: Sequence[str], distribution: dist.Distribution) -> Prior:
        """Return a prior from a NumPyro distribution over the weights of some features.

        Raises:
            UsageError: if it is not of one vector, a value a feature.

        >>> laplace = dist.Laplace(np.zeros(2), 0.3).to_event(1)
        >>> Prior.named(["LM0", "WP0"], laplace).mean.tolist()
        [0.0, 0.0]
        """
        if tuple(distribution.event_shape) != (len(names),) or distribution.batch_shape:
            raise UsageError(
                f"the prior must be a distribution of one vector of {len(names)} weights; its "
                f"event shape is {tuple(distribution.event_shape)}: use to_event(1)"
            )
        mean = np.asarray(distribution.mean, np.float64)
        return cls(mean, other=distribution, names=tuple(names))

    @classmethod
    def of(cls, posterior: Posterior) -> Prior:
        """Return the Gaussian with the mean and the covariance of a posterior's weights.

        What was learned on one domain is a prior for the next one.

        Raises:
            UsageError: if it holds fewer draws than a covariance needs.

        >>> from bpa_ppl import Draws
        >>> rng = np.random.default_rng(0)
        >>> drawn = rng.multivariate_normal([0, 1], [[2, 1], [1, 1]], (4, 1000))
        >>> learned = Prior.of(Draws({"weights": drawn}, ("LM0", "WP0")))
        >>> learned.mean.round(0).tolist(), learned.covariance.round(0).tolist()
        ([0.0, 1.0], [[2.0, 1.0], [1.0, 1.0]])
        """
        draws = as_draws(posterior)
        matrix = np.atleast_2d(np.cov(draws.flat.T, aweights=draws.importance))
        mean = dict(zip(draws.features, draws.mean.tolist(), strict=True))
        return cls.gaussian(mean, matrix)

    @classmethod
    def recorded(cls, posterior: Posterior) -> Prior:
        """Return the prior that a posterior was adapted from.

        Raises:
            DataError: if it does not record a Gaussian prior.

        >>> from bpa_ppl import Draws
        >>> known = Prior.isotropic({"LM0": 0.5}).constants()
        >>> draws = Draws({"weights": np.zeros((1, 10, 1))}, ("LM0",), constants=known)
        >>> Prior.recorded(draws).variance.tolist()
        [0.1]
        """
        draws = as_draws(posterior)
        known = draws.constants
        spread = {"prior_variance", "prior_covariance"} & set(known)
        # Weights that are a function of other sites have the Gaussian as their unit at most.
        if "prior_mean" not in known or not spread or WEIGHTS not in draws.sites:
            raise DataError("the posterior does not record a Gaussian prior")
        mean = dict(zip(draws.features, np.asarray(known["prior_mean"]).tolist(), strict=True))
        if "prior_covariance" in known:
            return cls.gaussian(mean, known["prior_covariance"])
        return cls.isotropic(mean, known["prior_variance"])

    def matched(self, names: Sequence[str]) -> Prior:
        """Return the prior of some features, in their order, given that the other weights are 0.

        Lists without a feature are lists where its weight is 0. The other weights differ from those
        of lists that have it, which is why the prior is conditioned and not marginalised.

        Raises:
            DataError: if a feature has no prior.
            UsageError: if the prior is no Gaussian, and the features are not its own in order.
        """
        own = tuple(self.names or ())
        if tuple(names) == own:
            return self
        missing = [name for name in names if name not in own]
        if missing:
            raise DataError(
                f"the prior has no {', '.join(missing)}: it is of {', '.join(own)}; fix the "
                "feature at its canonical weight, or give a prior of all",
                parameter="fixed",
            )
        if self.other is not None:
            raise UsageError(
                f"this prior is of {', '.join(own)} in this order, and the free features are "
                f"{', '.join(names)}: build it for those"
            )
        return self.conditioned({name: 0.0 for name in own if name not in names})._ordered(names)

    def conditioned(self, weights: Mapping[str, float]) -> Prior:
        """Return the prior of the other features, given the weights of some; others are ignored.

        Raises:
            UsageError: if the prior is no Gaussian.

        >>> prior = Prior.gaussian({"a": 0.5, "b": 1.0}, [[0.2, 0.1], [0.1, 0.2]])
        >>> given = prior.conditioned({"a": 0.0})
        >>> given.names, given.mean.tolist(), given.covariance.round(3).tolist()
        (('b',), [0.75], [[0.15]])
        """
        own = tuple(self.names or ())
        rest = [name for name in own if name not in weights]
        if len(rest) == len(own):
            return self
        if self.other is not None:
            raise UsageError(
                f"this prior is of {', '.join(own)} and no Gaussian, so that it cannot be "
                f"restricted to {', '.join(rest)}: build it for those"
            )
        if self.covariance is None:
            return self._ordered(rest)
        at = [own.index(name) for name in rest]
        out = [k for k in range(len(own)) if k not in at]
        covariance = np.asarray(self.covariance, np.float64)
        slope = np.linalg.solve(covariance[np.ix_(out, out)], covariance[np.ix_(out, at)]).T
        shift = np.array([weights[own[k]] for k in out]) - self.mean[out]
        left = covariance[np.ix_(at, at)] - slope @ covariance[np.ix_(out, at)]
        return Prior(
            self.mean[at] + slope @ shift, covariance=(left + left.T) / 2, names=tuple(rest)
        )

    def _ordered(self, names: Sequence[str]) -> Prior:
        """Return the prior with some of its features, in their order; of dependent ones all."""
        at = [(self.names or ()).index(name) for name in names]
        return Prior(
            self.mean[at],
            None if self.variance is None else self.variance[at],
            None if self.covariance is None else self.covariance[np.ix_(at, at)],
            names=tuple(names),
        )

    def completed(self, others: Prior) -> Prior:
        """Return the prior of the features of `others`: this one, and `others` where it has none.

        What `others` gives is independent of the rest; features that it has not have the weight 0.

        Raises:
            DataError: if they have no feature in common, which no prior is meant for.
            UsageError: if something is missing of a prior that is no Gaussian, or added by one.

        >>> learned = Prior.gaussian({"a": 0.5, "b": 1.0}, [[0.2, 0.1], [0.1, 0.2]])
        >>> both = learned.completed(Prior.isotropic({"b": 0.0, "c": 3.0}, 0.7))
        >>> both.names, both.mean.tolist(), both.covariance.round(3).tolist()
        (('b', 'c'), [0.75, 3.0], [[0.15, 0.0], [0.0, 0.7]])
        """
        own, names = tuple(self.names or ()), tuple(others.names or ())
        known = [name for name in names if name in own]
        if len(known) in (0, len(names)) or self.other is not None:
            return self.matched(names)
        if others.other is not None:
            raise UsageError("only a Gaussian completes a prior")
        mean, covariance = others.mean.copy(), others.full_covariance
        at, part = [names.index(name) for name in known], self.matched(known)
        mean[at], covariance[np.ix_(at, at)] = part.mean, part.full_covariance
        return Prior(mean, covariance=covariance, names=names)

    @property
    def full_covariance(self) -> Float64:
        """(Q, Q) the covariance of a Gaussian, with zeros where features are independent."""
        return np.diag(self.variance) if self.covariance is None else np.array(self.covariance)

    def drawn(self, rng: np.random.Generator, count: int) -> Float64:
        """Return draws of a Gaussian, (count, Q).

        >>> prior = Prior.isotropic({"LM0": 0.5, "WP0": -1.0}, [1.0, 4.0])
        >>> prior.drawn(np.random.default_rng(0), 10_000).std(axis=0).round(1).tolist()
        [1.0, 2.0]
        """
        unit = rng.normal(size=(count, len(self.mean)))
        return np.asarray(self.mean) + unit @ np.linalg.cholesky(self.full_covariance).T

    def constants(self) -> dict[str, Float64]:
        """Return mean and spread as arrays, by the names under which a posterior records them."""
        known = {
            "prior_mean": self.mean,
            "prior_variance": self.variance,
            "prior_covariance": self.covariance,
        }
        return {k: np.asarray(v, np.float64) for k, v in known.items() if v is not None}

    def write(self, path: str | Path, record: Mapping[str, Any] | None = None) -> None:
        """Write a Gaussian prior as JSON, beside and renamed.

        Args:
            path: of the file.
            record: what else the file shall say, plain values by name; `read` passes over it.

        Raises:
            DataError: if the file cannot be written.
            UsageError: if the prior is no Gaussian.

        >>> Prior.isotropic({"LM0": 0.5}).write("prior.json", {"made_from": "talks"})
        >>> Prior.read("prior.json").mean.tolist()
        [0.5]
        """
        if self.other is not None:
            raise UsageError("only Gaussian priors are written to files: this one is another one")
        content: dict[str, Any] = {"mean": dict(zip(self.names, self.mean.tolist(), strict=True))}
        if self.covariance is None:
            content["variance"] = dict(zip(self.names, self.variance.tolist(), strict=True))
        else:
            content["covariance"] = self.covariance.tolist()
        content |= record or {}
        with atomic_writer(path) as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.write("\n")

    @classmethod
    def read(cls, path: str | Path) -> Prior:
        """Read what `write` wrote.

        Raises:
            DataError: if the file cannot be read, or is no prior.
        """
        try:
            content = json.loads(read_text(path))
            mean = {str(name): float(value) for name, value in content["mean"].items()}
            if "covariance" in content:
                return cls.gaussian(mean, content["covariance"])
            return cls.isotropic(mean, [float(content["variance"][name]) for name in mean])
        except DataError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise DataError(
                'not a prior: write {"mean": {NAME: VALUE}, "variance": {NAME: VALUE}}, or a '
                f'"covariance" of as many rows and columns ({error})',
                path,
            ) from error


class PriorFamily(Component, frozen=True):
    """A way to make a prior of canonical weights, chosen by name.

    `Isotropic` is the shortest; the guide to additions has one of its own.

    >>> from bpa_ppl.registry import PRIORS
    >>> PRIORS.resolve("isotropic", {"variance": 0.3})
    Isotropic(variance=0.3, single={}, scale=None)
    """

    def build(self, match: Match) -> Prior:
        """Return the prior of the free features.

        Args:
            match: the canonical weights, laid beside the features of the lists.
        """
        raise NotImplementedError

    def model(self, match: Match) -> Callable[..., None] | None:
        """Return the NumPyro program of a prior of several sites; None is the published one.

        Args:
            match: as for `build`, whose prior the program takes.
        """
        return None
