"""Prior: the distribution of named weights before the adaptation sentences are observed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bpa_ppl._runtime.arguments import require
from bpa_ppl._runtime.arrays import Float64, to_floats
from bpa_ppl._runtime.names import find_positions
from bpa_ppl._runtime.streams import atomic_writer, read_text
from bpa_ppl._runtime.values import load_json
from bpa_ppl.components import Component, Registry
from bpa_ppl.diagnostics.check.report import refuse_unconverged
from bpa_ppl.errors import DataError, UsageError, list_names, wrong_type, wrong_value
from bpa_ppl.models.priors.scale import LogNormalScale
from bpa_ppl.weight_draws import WEIGHTS, WeightDraws, as_weight_draws
from bpa_ppl.weights import Match

if TYPE_CHECKING:
    import numpyro.distributions as dist

    from bpa_ppl.adaptation_record import PriorRecord
    from bpa_ppl.posterior.arviz_data import Posterior


def _invalid(parameter: str, requirement: str, code: str) -> UsageError:
    problem = f"the {parameter} must be {requirement}"
    return UsageError(problem, parameter=parameter, code=code)


def _to_finite(weights: Mapping[str, float]) -> Float64:
    """Return the means of the weights."""
    require(weights, Mapping, "the mean of a prior is given by feature, {name: number}", "weights")
    mean = to_floats(list(weights.values()), "weights")
    if mean.ndim != 1:
        rule = "the weights must be one number for each feature"
        raise wrong_value(rule, mean.shape, "weights", code="wrong-length")
    for name, value in zip(weights, mean, strict=True):
        if not np.isfinite(value):
            rule = f"the weight of {name} must be finite"
            raise wrong_value(rule, float(value), "weights", code="bad-number")
    return mean


class Prior(NamedTuple):
    """p(λ | T) over the Q free features; a pytree of arrays.

    Build it with `isotropic`, `gaussian`, `of`, or with `named` from a NumPyro distribution.

    Attributes:
        mean: (Q,) float64; samplers start there.
        variance: (Q,) float64 of independent weights, or None.
        covariance: (Q, Q) float64 of a Gaussian, or None.
        other: a NumPyro distribution of event shape (Q,), if the prior is not Gaussian given a
            common scale.
        names: the features, in order; None while the prior is inside a model.
        scale: the distribution of the common scale of some weights, in units of the typical one,
            with which variance and covariance are given; None without such a scale.
        posterior: the draws that the Gaussian of `of` represents; None inside a model.
        record: how `choose_prior` chose it; None inside a model.

    >>> prior = Prior.isotropic({"LM0": 0.5, "WP0": -1.0}, variance=0.1)
    >>> prior.distribution().event_shape, prior.full_covariance.tolist()
    ((2,), [[0.1, 0.0], [0.0, 0.1]])
    >>> prior.matched(["WP0"]).mean.tolist()
    [-1.0]
    """

    mean: Any
    variance: Any = None
    covariance: Any = None
    other: Any = None
    names: Any = None
    scale: LogNormalScale | None = None
    posterior: Any = None
    record: PriorRecord | None = None

    def as_arrays(self) -> Prior:
        """Return the prior as it is inside a model: without names, draws and record."""
        return self._replace(names=None, posterior=None, record=None)

    @property
    def is_gaussian(self) -> bool:
        """Whether it is a Gaussian."""
        return self.other is None and self.scale is None

    def distribution(self) -> dist.Distribution:
        """Return the prior as a NumPyro distribution of event shape (Q,)."""
        if self.other is not None:
            return self.other
        if (scale := self.scale) is not None:
            from bpa_ppl.models.priors.shared_scale import SharedScale

            covariance = self.variance if self.covariance is None else self.covariance
            return SharedScale(self.mean, covariance, scale)
        import numpyro.distributions as dist

        if self.covariance is not None:
            # Its validation compiles two dozen small programs, and priors have been checked.
            return dist.MultivariateNormal(
                self.mean, covariance_matrix=self.covariance, validate_args=False
            )
        import jax.numpy as jnp

        return dist.Normal(self.mean, jnp.sqrt(jnp.asarray(self.variance))).to_event(1)

    @classmethod
    def isotropic(cls, weights: Mapping[str, float], variance: npt.ArrayLike = 0.1) -> Prior:
        """Return N(λ; λ_T, σ_T I), as published.

        Args:
            weights: the mean λ_T, by feature.
            variance: σ_T, a variance: one number, or one per feature.

        Raises:
            UsageError: if a variance is not positive and finite, there are too few or many, or a
                mean is not finite.

        >>> prior = Prior.isotropic({"LM0": 0.5, "WP0": -1.0}, 0.1)
        >>> prior.names, prior.mean.tolist(), prior.variance.tolist()
        (('LM0', 'WP0'), [0.5, -1.0], [0.1, 0.1])
        """
        mean, names = _to_finite(weights), tuple(weights)
        values = to_floats(variance, "variance")
        if values.shape not in ((), (len(names),)):
            rule = f"the variance must be one number or {len(names)}, one for each free feature"
            raise wrong_value(rule, values.shape, "variance", code="wrong-length")
        if not (np.isfinite(values).all() and (values > 0).all()):
            rule = "the variance must be positive and finite"
            raise wrong_value(rule, float(values.min()), "variance", code="bad-number")
        return cls(mean, np.array(np.broadcast_to(values, mean.shape)), names=names)

    @classmethod
    def gaussian(cls, weights: Mapping[str, float], covariance: npt.ArrayLike) -> Prior:
        """Return a Gaussian with a full covariance.

        Args:
            weights: the mean, by feature.
            covariance: (Q, Q), in the order of `weights`.

        Raises:
            UsageError: if it is not symmetric and positive definite, or has another shape, or a
                mean is not finite.

        >>> Prior.gaussian({"a": 0.0, "b": 1.0}, [[1.0, 0.5], [0.5, 1.0]]).covariance.shape
        (2, 2)
        """
        mean, matrix = _to_finite(weights), to_floats(covariance, "covariance")
        if matrix.shape != (len(mean),) * 2:
            rule = f"the covariance must be {len(mean)} × {len(mean)}"
            raise wrong_value(rule, matrix.shape, "covariance", code="wrong-length")
        valid = np.isfinite(matrix).all() and np.allclose(matrix, matrix.T)
        if not valid or np.linalg.eigvalsh(matrix).min() <= 0:
            raise _invalid("covariance", "symmetric and positive definite", "bad-number")
        return cls(mean, covariance=matrix, names=tuple(weights))

    @classmethod
    def named(cls, names: Sequence[str], distribution: dist.Distribution) -> Prior:
        """Return a prior from a NumPyro distribution over the weights of some features.

        Samplers start at its mean, or at its `loc` where there is no finite mean.

        Raises:
            UsageError: if it is not a distribution of one vector with a value per feature, or has
                neither a mean nor a `loc`.

        >>> import numpyro.distributions as dist
        >>> laplace = dist.Laplace(np.zeros(2), 0.3).to_event(1)
        >>> Prior.named(["LM0", "WP0"], laplace).mean.tolist()
        [0.0, 0.0]
        >>> Prior.named(["LM0"], dist.Cauchy(np.ones(1), 0.3).to_event(1)).mean.tolist()
        [1.0]
        """
        import numpyro.distributions as dist

        require(distribution, dist.Distribution, "the prior is a NumPyro distribution", "prior")
        if isinstance(names, str):
            raise wrong_type("the names must be a list of features", names, "names")
        if (shape := tuple(distribution.event_shape)) != (len(names),) or distribution.batch_shape:
            problem = f"a distribution of {len(names)} weights, not {shape}: use to_event(1)"
            raise _invalid("prior", problem, "wrong-length")
        base = distribution
        while isinstance(base, dist.Independent | dist.ExpandedDistribution):
            base = base.base_dist
        try:
            mean = np.asarray(distribution.mean, np.float64)
        except NotImplementedError:
            mean = np.full(len(names), np.nan)
        mean = np.where(np.isfinite(mean), mean, getattr(base, "loc", np.nan))
        if not np.isfinite(mean).all():
            problem = "a distribution with a finite mean, where samplers start, or with a loc"
            raise _invalid("prior", problem, "bad-number")
        return cls(mean, other=distribution, names=tuple(names))

    @classmethod
    def of(cls, posterior: Posterior, *, unchecked: bool = False) -> Prior:
        """Return the Gaussian with the mean and the covariance of a posterior's weights.

        The posterior of one domain is a prior for the next one. `adapt` logs and records how far
        the Gaussian in place of the posterior shifts the weights.

        Args:
            posterior: from `adapt`, or any other with a variable `weights` and feature names.
            unchecked: use the posterior although it fails its check.

        Raises:
            NotConverged: if the posterior fails `check` and `unchecked` is false.
            UsageError: if it has fewer draws than a covariance needs.

        >>> from bpa_ppl import Draws
        >>> rng = np.random.default_rng(0)
        >>> weights = rng.multivariate_normal([0, 1], [[2, 1], [1, 1]], (4, 1000))
        >>> from bpa_ppl.weight_draws import name_weights
        >>> learned = Prior.of(name_weights(weights, ("LM0", "WP0")))
        >>> learned.mean.round(0).tolist(), learned.covariance.round(0).tolist()
        ([0.0, 1.0], [[2.0, 1.0], [1.0, 1.0]])
        """
        draws = as_weight_draws(posterior)
        if not unchecked:
            refuse_unconverged(draws)
        if draws.draws.kind == "point":
            message = "a prior needs draws, not only a mode: adapt with imh or laplace, not map"
            raise UsageError(message, parameter="prior", code="not-supported")
        mean = dict(zip(draws.features, draws.mean.tolist(), strict=True))
        importance = draws.importance
        if importance.max() < 1:
            covariance = np.atleast_2d(np.cov(draws.flat.T, aweights=importance))
        else:  # one draw has all the weight
            covariance = np.zeros((len(draws.features),) * 2)
        if draws.draws.weighted and np.linalg.eigvalsh(covariance).min() <= 0:
            # No Gaussian, but a sampler may need the draws alone; `adapt` refuses other ones.
            return cls(draws.mean, covariance=covariance, names=draws.features, posterior=draws)
        return cls.gaussian(mean, covariance)._replace(posterior=draws)

    @classmethod
    def recorded(cls, posterior: Posterior, *, unchecked: bool = False) -> Prior:
        """Return the Gaussian prior that a posterior was adapted from.

        With a common scale it is the Gaussian whose precision is the posterior mean of the
        precision.

        Args:
            posterior: from `adapt`.
            unchecked: take that mean of a posterior although it fails its check.

        Raises:
            DataError: if it does not record a Gaussian prior.
            NotConverged: if the prior has a common scale, the posterior fails `check` and
                `unchecked` is false.

        >>> from bpa_ppl import Draws
        >>> constants = {"prior_mean": np.array([0.5]), "prior_variance": np.array([0.1])}
        >>> from bpa_ppl.weight_draws import name_weights
        >>> draws = name_weights(np.zeros((1, 10, 1)), ("LM0",), constants=constants)
        >>> Prior.recorded(draws).variance.tolist()
        [0.1]
        """
        draws = as_weight_draws(posterior)
        constants, sites = draws.draws.constants, draws.draws.sites
        mean, variance, covariance = (
            constants.get(f"prior_{name}") for name in ("mean", "variance", "covariance")
        )
        # If weights are a function of other sites, the recorded Gaussian is not their prior.
        no_spread = variance is None and covariance is None
        if mean is None or no_spread or WEIGHTS not in sites:
            message = "the posterior does not record a Gaussian prior: adapt again"
            if WEIGHTS not in sites:
                message = "its model has no Gaussian prior of the weights: adapt without a model"
            raise DataError(message, parameter="posterior", code="not-supported")
        means = dict(zip(draws.features, np.asarray(mean).tolist(), strict=True))
        scale = LogNormalScale.of(constants.get("prior_log_deviation"))
        if scale is not None:
            if not unchecked:
                refuse_unconverged(draws)
            prior = cls(np.asarray(mean), variance, covariance, scale=scale)
            typical = prior.with_scale(_mean_precision(prior, scale, draws) ** -0.5)
            variance, covariance = typical.variance, typical.covariance
        if covariance is not None:
            return cls.gaussian(means, covariance)
        return cls.isotropic(means, np.asarray(variance))

    def with_scale(self, scale: float) -> Prior:
        """Return the prior given the common scale, in units of the typical one: a Gaussian.

        >>> prior = Prior.gaussian({"a": 0.0, "b": 0.0}, [[1.0, 0.5], [0.5, 1.0]])
        >>> scale = LogNormalScale(1.0, np.array([True, True]))
        >>> prior._replace(scale=scale).with_scale(2.0).covariance.tolist()
        [[4.0, 2.0], [2.0, 4.0]]
        """
        if self.scale is None:
            return self
        factor = np.where(np.asarray(self.scale.shared), scale, 1.0)
        without_scale = self._replace(scale=None)
        if self.covariance is None:
            return without_scale._replace(variance=self.variance * factor**2)
        return without_scale._replace(covariance=self.covariance * np.outer(factor, factor))

    def matched(self, names: Sequence[str]) -> Prior:
        """Return the prior of some features, in their order, given that the other weights are 0.

        In lists without a feature its weight is 0. The other weights differ from those of lists
        with the feature, so the prior is conditioned and not marginalised.

        Raises:
            DataError: if a feature has no prior.
            UsageError: if the prior is not Gaussian, and has other features or another order.
        """
        features = tuple(self.names or ())
        if tuple(names) == features:
            return self
        covered = set(features)
        missing = [name for name in names if name not in covered]
        if missing:
            message = (
                f"no feature in the prior {list_names(missing)}: it has {list_names(features)}; "
                "fix the feature at its canonical weight (fixed), or give a prior of all features"
            )
            raise DataError(message, parameter="prior", code="missing-feature")
        if not self.is_gaussian:
            problem = f"of the free features {list_names(names)}, not of {list_names(features)}"
            raise _invalid("prior", problem, "mismatch")
        zeros = dict.fromkeys(covered.difference(names), 0.0)
        return self.conditioned(zeros)._select(names)  # noqa: SLF001

    def conditioned(self, weights: Mapping[str, float]) -> Prior:
        """Return the prior of the other features, given the weights of some.

        Weights of features without a prior are ignored.

        Raises:
            UsageError: if the prior is not Gaussian.

        >>> prior = Prior.gaussian({"a": 0.5, "b": 1.0}, [[0.2, 0.1], [0.1, 0.2]])
        >>> conditional = prior.conditioned({"a": 0.0})
        >>> conditional.names, conditional.mean.tolist(), conditional.covariance.round(3).tolist()
        (('b',), [0.75], [[0.15]])
        """
        features = tuple(self.names or ())
        rest = [name for name in features if name not in weights]
        if len(rest) == len(features):
            return self
        if not self.is_gaussian:
            problem = f"Gaussian to be restricted to {list_names(rest)}: build it for those"
            raise _invalid("prior", problem, "not-supported")
        if self.covariance is None:
            return self._select(rest)
        kept = find_positions(rest, features)
        fixed = [k for k, name in enumerate(features) if name in weights]
        covariance = np.asarray(self.covariance, np.float64)
        slope = np.linalg.solve(covariance[np.ix_(fixed, fixed)], covariance[np.ix_(fixed, kept)]).T
        shift = np.array([weights[features[k]] for k in fixed]) - self.mean[fixed]
        conditional = covariance[np.ix_(kept, kept)] - slope @ covariance[np.ix_(fixed, kept)]
        return Prior(
            self.mean[kept] + slope @ shift,
            covariance=conditional / 2 + conditional.T / 2,  # symmetric
            names=tuple(rest),
        )

    def _select(self, names: Sequence[str]) -> Prior:
        """Return the marginal prior of some features, in their order."""
        index = find_positions(names, self.names or ())
        return Prior(
            self.mean[index],
            None if self.variance is None else self.variance[index],
            None if self.covariance is None else self.covariance[np.ix_(index, index)],
            names=tuple(names),
        )

    def completed(self, others: Prior) -> Prior:
        """Return the prior of the features of `others`: this one, and `others` for the rest.

        The rest is independent; features that `others` does not have get the weight 0.

        Raises:
            DataError: if the two have no feature in common, so that this prior does not apply.
            UsageError: if this prior is not Gaussian and lacks features, or `others` is not.

        >>> learned = Prior.gaussian({"a": 0.5, "b": 1.0}, [[0.2, 0.1], [0.1, 0.2]])
        >>> both = learned.completed(Prior.isotropic({"b": 0.0, "c": 3.0}, 0.7))
        >>> both.names, both.mean.tolist(), both.covariance.round(3).tolist()
        (('b', 'c'), [0.75, 3.0], [[0.15, 0.0], [0.0, 0.7]])
        """
        names = tuple(others.names or ())
        covered = set(self.names or ())
        common = [name for name in names if name in covered]
        if len(common) in (0, len(names)) or not self.is_gaussian:
            return self.matched(names)
        if not others.is_gaussian:
            raise _invalid("others", "a Gaussian prior", "not-supported")
        mean, covariance = others.mean.copy(), others.full_covariance
        index, part = find_positions(common, names), self.matched(common)
        mean[index], covariance[np.ix_(index, index)] = part.mean, part.full_covariance
        return Prior(mean, covariance=covariance, names=names)

    @property
    def full_covariance(self) -> Float64:
        """(Q, Q) the covariance of a Gaussian; with a common scale, that given the typical one."""
        return np.diag(self.variance) if self.covariance is None else np.array(self.covariance)

    def sample(self, rng: np.random.Generator, count: int) -> Float64:
        """Draw from a prior that is Gaussian, or is so given a common scale, (count, Q).

        >>> prior = Prior.isotropic({"LM0": 0.5, "WP0": -1.0}, [1.0, 4.0])
        >>> prior.sample(np.random.default_rng(0), 10_000).std(axis=0).round(1).tolist()
        [1.0, 2.0]
        """
        unit = rng.normal(size=(count, len(self.mean)))
        if (scale := self.scale) is not None:
            unit[:, np.asarray(scale.shared)] *= scale.draw(rng, (count, 1))
        if self.covariance is None:
            return np.asarray(self.mean) + unit * np.sqrt(np.asarray(self.variance, np.float64))
        return np.asarray(self.mean) + unit @ np.linalg.cholesky(self.full_covariance).T

    def as_dict(self) -> dict[str, Any]:
        """Return a prior that is Gaussian, or is so given a common scale, as plain data, for JSON.

        >>> Prior.isotropic({"LM0": 0.5}).as_dict()
        {'mean': {'LM0': 0.5}, 'variance': {'LM0': 0.1}}
        """
        mean = dict(zip(self.names, self.mean.tolist(), strict=True))
        if self.scale is not None:
            covariance, of_weights = self.full_covariance.tolist(), self.scale.of_weights.tolist()
            return {"mean": mean, "covariance": covariance, "log_deviation": of_weights}
        if self.covariance is not None:
            return {"mean": mean, "covariance": self.covariance.tolist()}
        return {"mean": mean, "variance": dict(zip(mean, self.variance.tolist(), strict=True))}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Prior:
        """Return the prior that `as_dict` has returned.

        >>> Prior.from_dict({"mean": {"LM0": 0.5}, "covariance": [[0.1]]}).names
        ('LM0',)
        """
        mean = {str(name): float(value) for name, value in content["mean"].items()}
        if "covariance" in content:
            scale = LogNormalScale.of(content.get("log_deviation"))
            return cls.gaussian(mean, content["covariance"])._replace(scale=scale)
        return cls.isotropic(mean, [float(content["variance"][name]) for name in mean])

    def write(self, path: str | Path, record: Mapping[str, Any] | None = None) -> None:
        """Write a prior, and further plain values by name, as JSON.

        Raises:
            DataError: if the file cannot be written.
            UsageError: if the prior is not Gaussian.

        >>> Prior.isotropic({"LM0": 0.5}).write("prior.json", {"made_from": "talks"})
        >>> Prior.read("prior.json").mean.tolist()
        [0.5]
        """
        if self.other is not None:
            raise _invalid("prior", "Gaussian to be written to a file", "not-supported")
        content = self.as_dict() | dict(record or {})
        with atomic_writer(path) as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.write("\n")

    @classmethod
    def read(cls, path: str | Path) -> Prior:
        """Read a prior from a file of `write`.

        Raises:
            DataError: if the file cannot be read, or is not a prior.
        """
        try:
            return cls.from_dict(load_json(read_text(path)))
        except DataError as error:
            if error.path is None:
                raise DataError(error.message, path, code=error.code) from error
            raise
        except (
            *(ValueError, TypeError, KeyError, AttributeError, RecursionError),
            OverflowError,  # an integer beyond floats
        ) as error:
            message = (
                f"not a prior ({error}): write "
                '{"mean": {NAME: VALUE}, "variance": {NAME: VALUE}} or a "covariance" matrix'
            )
            raise DataError(message, path, code="unknown-format") from error


def _mean_precision(prior: Prior, scale: LogNormalScale, draws: WeightDraws) -> float:
    """Return the mean of 1 / scale² given the weights, over draws of them."""
    shared = scale.shared
    factor = np.linalg.cholesky(prior.full_covariance)
    units = np.linalg.solve(factor, (draws.flat - prior.mean).T)[shared]
    precision = scale.mean_precision((units**2).sum(axis=0), int(shared.sum()))
    return float(np.average(precision, weights=draws.importance))


class PriorFamily(Component, frozen=True):
    """A way to build a prior from canonical weights, chosen by name.

    >>> from bpa_ppl.models.priors.prior import PRIORS
    >>> PRIORS.resolve("isotropic", {"variance": 0.3})
    Isotropic(variance=0.3, single={}, scale=0.5477225575051661, mean=None)
    """

    def build(self, match: Match) -> Prior:
        """Return the prior of the free features, given the canonical weights that match them."""
        raise NotImplementedError

    def model(self, match: Match) -> Callable[..., None] | None:
        """Return the NumPyro program of a prior with several sites; None is the published one."""
        return None


PRIORS: Registry[PriorFamily] = Registry(
    "prior",
    "bpa_ppl.priors",
    PriorFamily,
    {
        "isotropic": "bpa_ppl.models.priors.isotropic:Isotropic",
        "horseshoe": "bpa_ppl.models.priors.sparse:Horseshoe",
    },
)
