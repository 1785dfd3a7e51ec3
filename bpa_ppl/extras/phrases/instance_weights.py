"""Instance weighting: which phrase pairs of a large table help in a new domain.

After G. Foster, C. Goutte and R. Kuhn, "Discriminative instance weighting for domain adaptation in
statistical machine translation", EMNLP 2010, Eq. 4 to 7. For pairs (x, y), of which x is predicted
from y, and the OUT pairs r of y with counts c_r:

    p(x | y) = α_y p_I(x | y) + (1 − α_y) p_o(x | y)
    p_o(x | y) = (w_x + γ u) / (κ_y Σ_r w_r + γ)
    w_r = c_r · logistic(λ · f_r)

The uniform u is over the x that OUT has with y, 1 / (κ_y n_y) for n_y rows. κ_y is 1 if all pairs
of y are in the table. If the table is a part of a larger one, c_o(y) of the whole is given, and the
missing mass gets the mean weight of the available pairs, so that the sum over all pairs of y is
κ_y Σ_r w_r, κ_y = c_o(y) / Σ_r c_r.

If only one of the tables has y, it gets all the weight, α_y = 1 or 0, unless the variant is not
complete: p(· | y) sums to one.

The density of the parameters φ is written in JAX, which derivatives come from. z are the
unconstrained values of φ, (d,): logit α or log β, log γ if it is fitted, and λ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa
from scipy.optimize import OptimizeResult, minimize

from bpa_ppl._runtime.arguments import require_one_of
from bpa_ppl._runtime.arrays import Float32, Float64
from bpa_ppl._runtime.cache import prepare_jax
from bpa_ppl._runtime.messages import warn_user
from bpa_ppl._runtime.names import find_positions
from bpa_ppl.errors import DataError, bad_value
from bpa_ppl.extras.phrases.mixtures import DIRECTIONS, check_tables, join_pairs
from bpa_ppl.extras.phrases.pair_features import GENERAL, SIMILARITY, SVM
from bpa_ppl.extras.phrases.tables import (
    PhraseCounts,
    PhrasePairs,
    PhraseTable,
    Side,
    find_index,
    sum_by_number,
)

#: The mixtures of IN and OUT (Foster, Goutte & Kuhn 2010, Eq. 4): one α, or
#: α_y = c_I(y) / (c_I(y) + β).
MIXTURES = ("linear", "map")

#: λ·f beyond which a factor is constant: e^±300 is still far inside the range of a float.
_BOUND = 300.0
_LEAST_PROBABILITY = 1e-300
_SCALE_DEVIATION = 2.0  # of log β and log γ under the prior
#: Unconstrained values beyond which the likelihood is constant in double precision.
_LIMIT = 30.0
_ITERATIONS = 1000
_PILOT = 50
#: Unconstrained values beyond which α, β or γ is practically 0, 1 or infinite.
_EXTREME = 12.0
#: A larger weight of a feature with the variance 1 makes the factor of a count 0 or 1.
_HUGE = 20.0


class MixtureData(NamedTuple):
    """The data for p(x | y; φ) of some pairs; a pytree of arrays.

    D queried pairs, with G different y among them, of which OUT has R pairs, grouped by y.

    Attributes:
        features: (R, Q) float32, f(x, y).
        count: (R,) float64, c_o(x, y).
        group: (R,) int64, the number of y, ascending from 0.
        starts: (G + 1,) int64, the first row of each y, then R.
        missing: (G,) float64 ≥ 1, κ_y: c_o(y) in the whole corpus over the sum of the rows of y.
        in_total: (G,) float64, c_I(y).
        query_group: (D,) int64, the number of the y of each queried pair.
        query_row: (D,) int64, its row, or −1 if OUT does not have it.
        query_in: (D,) float64, p_I(x | y); 0 if IN does not have it.
        weight: (D,) float64, the count of each pair in dev.
        names: (Q,) of the features.
    """

    features: Any
    count: Any
    group: Any
    starts: Any
    missing: Any
    in_total: Any
    query_group: Any
    query_row: Any
    query_in: Any
    weight: Any
    names: tuple[str, ...]

    @property
    def outside(self) -> Any:
        """(G,) bool, whether OUT has y."""
        return self.starts[1:] > self.starts[:-1]

    @property
    def supported(self) -> Any:
        """(D,) bool, whether a pair is in one of the tables; other pairs have no probability."""
        return (self.query_in > 0) | (self.query_row >= 0)

    @property
    def support(self) -> float:
        """The share of the mass p̃ of the queried pairs that has a probability."""
        return float(self.weight[self.supported].sum() / max(self.weight.sum(), 1e-300))


def collect_data(
    inside: PhraseCounts,
    outside: PhraseCounts,
    pairs: PhrasePairs,
    features: Float32,
    names: tuple[str, ...],
    side: Side = "target",
) -> MixtureData:
    """Collect the data for the probabilities of some phrase pairs.

    Args:
        inside: counts of IN, the small table of the domain.
        outside: counts of OUT, the large general one.
        pairs: dev, to fit φ on, or any other pairs to query. Their counts, if any, are their
            weights.
        features: (pairs of OUT, Q), in its order.
        names: (Q,) of the features.
        side: the predicted side, x: `target` for p(t|s), `source` for p(s|t).

    Raises:
        DataError: if a feature is not a finite number.
    """
    condition: Side = "source" if side == "target" else "target"
    # Only pairs with a queried y matter.
    y, query_group = np.unique(pairs.number(condition), return_inverse=True)
    phrases = pairs.phrases(condition).take(pa.array(y))
    group_of_pair = find_index(outside.phrases(condition), phrases)[outside.number(condition)]
    rows = np.flatnonzero(group_of_pair >= 0)
    rows = rows[np.argsort(group_of_pair[rows], kind="stable")]
    values = np.ascontiguousarray(features[rows], np.float32)
    if not (finite := np.isfinite(values)).all():
        value = float(values[~finite][0])
        raise bad_value("a feature of a phrase pair", value, "a finite number")
    group, count = group_of_pair[rows], outside.count[rows]
    of_rows = sum_by_number(group, count, len(y))
    marginals = np.maximum(outside.find_marginals(condition, phrases), of_rows)
    in_total = inside.find_marginals(condition, phrases)
    # The rows of OUT's pairs in the data, and −1 for a pair that OUT does not have.
    position = np.full(len(outside) + 1, -1)
    position[rows] = np.arange(len(rows))
    return MixtureData(
        features=values,
        count=count,
        group=group,
        starts=np.searchsorted(group, np.arange(len(y) + 1)),
        missing=np.divide(marginals, of_rows, out=np.ones_like(of_rows), where=of_rows > 0),
        in_total=in_total,
        query_group=query_group,
        query_row=position[outside.find_rows(pairs)],
        query_in=inside.find_counts(pairs) / np.maximum(in_total, 1e-300)[query_group],
        weight=pairs.count if isinstance(pairs, PhraseCounts) else np.ones(len(pairs)),
        names=tuple(names),
    )


@dataclass(frozen=True)
class Variant:
    """One form of the weighted mixture p(x | y; φ): Foster, Goutte & Kuhn (2010), Eq. 4 to 6.

    Attributes:
        mixture: `linear`, with one α for all, or `map`, α_y = c_I(y) / (c_I(y) + β).
        smoothed: whether γ is fitted; otherwise it is 0.
        link: from the weighted features to the factor of a count: `logistic`, or `exponential`.
        flat: whether each nonzero count c_o is replaced by 1.
        features: the names of the features that have a weight; None takes all.
        complete: whether the only table that has y gets all the weight, so that p(· | y) sums to
            one; otherwise, as in the equations, the share of the other table is lost.
    """

    mixture: Literal["linear", "map"] = "map"
    smoothed: bool = True
    link: Literal["logistic", "exponential"] = "logistic"
    flat: bool = False
    features: tuple[str, ...] | None = None
    complete: bool = True

    def apply(self, data: MixtureData) -> MixtureData:
        """Return data with the counts and features that the variant uses."""
        names = data.names if self.features is None else self.features
        if names != data.names:
            columns = data.features[:, find_positions(names, data.names)]
            data = data._replace(features=np.ascontiguousarray(columns, np.float32), names=names)
        return data._replace(count=np.ones_like(data.count)) if self.flat else data

    @property
    def mixing_name(self) -> str:
        """The name of the mixing parameter: `alpha` or `beta`."""
        return "alpha" if self.mixture == "linear" else "beta"


#: The forms of a mixture, by name; each is linear or MAP.
FORMS: dict[str, dict[str, Any]] = {
    "weighted": {},
    "gamma-0": {"smoothed": False},
    "flat": {"flat": True},
    "exponential": {"link": "exponential"},
    "general": {"features": GENERAL},
    "similarity": {"features": SIMILARITY},
    "svm": {"features": (SVM,)},
}


def variant_named(form: str, mixture: str = "map") -> Variant:
    """Return a form of mixture by the names of `--form` and `--mixture`.

    Raises:
        UsageError: if there is no such form or mixture.

    >>> variant_named("gamma-0").smoothed
    False
    """
    settings = FORMS[require_one_of(form, FORMS, "form of instance weighting", "form")]
    return Variant(mixture=require_one_of(mixture, MIXTURES, "mixture"), **settings)  # type: ignore[arg-type]


class Phi(NamedTuple):
    """The parameters φ.

    Attributes:
        mixing: α of a linear mixture, β of a MAP one.
        gamma: γ, the weight of the uniform distribution in p_o, in counts.
        weights: (Q,) λ, of the features.
    """

    mixing: Any
    gamma: Any
    weights: Any


@contextmanager
def on_device(data: MixtureData) -> Iterator[MixtureData]:
    """Put the arrays of some data on JAX's device, for a block of double precision."""
    prepare_jax()
    with jax.enable_x64(True):
        arrays = data._replace(features=data.features.astype(np.float64), names=())
        yield jax.device_put(arrays)


@partial(jax.jit, static_argnums=1)  # compiled as a whole, because single operations take long
def compute_probabilities(data: MixtureData, variant: Variant, phi: Phi) -> jax.Array:
    """Return p(x | y; φ) of each queried pair (D,); 0 without support.

    Args:
        data: from `Variant.apply`, without the names of features.
        variant: the form of the mixture.
        phi: its parameters.
    """
    groups, group, row = len(data.missing), data.query_group, data.query_row
    eta = jnp.clip(jnp.asarray(data.features, phi.weights.dtype) @ phi.weights, -_BOUND, _BOUND)
    factor = jax.nn.sigmoid(eta) if variant.link == "logistic" else jnp.exp(eta)
    weighted = data.count * factor
    total = jax.ops.segment_sum(weighted, data.group, groups, indices_are_sorted=True)
    in_out = data.outside
    divisor = jnp.where(in_out, data.missing * total + phi.gamma, 1.0)
    uniform = in_out / jnp.maximum(data.missing * jnp.diff(data.starts), 1.0)
    if variant.mixture == "map":
        share = data.in_total / (data.in_total + phi.mixing)
    else:
        share = jnp.full(groups, phi.mixing)
    if variant.complete:
        share = jnp.where(in_out, jnp.where(data.in_total > 0, share, 0.0), 1.0)
    count = jnp.append(weighted, 0.0)[row]
    outer = jnp.where(row < 0, 0.0, (count + phi.gamma * uniform[group]) / divisor[group])
    result: jax.Array = share[group] * data.query_in + (1 - share[group]) * outer
    return result


@partial(jax.jit, static_argnums=(1, 2))
def compute_log_densities(
    data: MixtureData, variant: Variant, deviation: float | None, z: Any
) -> tuple[jax.Array, jax.Array]:
    """Return the log posterior density of z, up to a constant, and log p(dev | φ) in it.

    It is a density of logit α, log β and log γ, so the density of α is multiplied by α (1 − α).

    Args:
        data: from `Variant.apply`, without the names of features.
        variant: the form of the mixture.
        deviation: of the normal prior of each weight λ, with mean 0; α is then uniform, and
            log β and log γ are normal with a deviation of 2. None is the likelihood alone.
        z: (d,).
    """
    used = data.supported & (data.weight > 0)
    probability = jnp.maximum(
        compute_probabilities(data, variant, constrain_phi(variant, z)), _LEAST_PROBABILITY
    )
    total = likelihood = (data.weight * jnp.log(jnp.where(used, probability, 1.0))).sum()
    if deviation is not None:
        linear, free = variant.mixture == "linear", 1 + variant.smoothed
        scales, weights = z[int(linear) : free] / _SCALE_DEVIATION, z[free:]
        total -= 0.5 * ((scales**2).sum() + (weights**2).sum() / deviation**2)
        if linear:
            total += jax.nn.log_sigmoid(z[0]) + jax.nn.log_sigmoid(-z[0])
    return total, likelihood


#: `compute_log_densities` and the gradient of the first of them, (d,).
value_and_gradient = jax.jit(
    jax.value_and_grad(compute_log_densities, argnums=3, has_aux=True), static_argnums=(1, 2)
)


def constrain_phi(variant: Variant, z: Any) -> Phi:
    """Return φ of its unconstrained values.

    >>> phi = constrain_phi(Variant("linear"), np.array([0.0, 0.0, 2.0]))
    >>> float(phi.mixing), float(phi.gamma), phi.weights.tolist()
    (0.5, 1.0, [2.0])
    """
    mixing = jax.nn.sigmoid(z[0]) if variant.mixture == "linear" else jnp.exp(z[0])
    gamma = jnp.exp(z[1]) if variant.smoothed else jnp.zeros(())
    return Phi(mixing, gamma, z[1 + variant.smoothed :])


@dataclass(frozen=True, eq=False)
class FittedWeights:
    """A weighted mixture with fitted parameters.

    Attributes:
        variant: its form.
        names: (Q,) of the features.
        phi: the parameters.
        z: (d,) their unconstrained values: logit α or log β, log γ if it is fitted, and λ.
        log_likelihood: mean log p(x | y; φ) of the dev pairs with support, in nats per occurrence.
        support: the share of the dev pairs' mass that has a probability.
        iterations: of L-BFGS, from the best start.
        converged: whether L-BFGS converged.
    """

    variant: Variant
    names: tuple[str, ...]
    phi: Phi
    z: Float64
    log_likelihood: float
    support: float
    iterations: int
    converged: bool

    def problems(self) -> tuple[str, ...]:
        """Return what makes the fit doubtful, in words; empty if nothing does.

        A weight above 20 makes the factor of a count 0 or 1, and α, β or γ is practically 0, 1 or
        infinite if its logit or logarithm is beyond ± 12: the dev pairs do not determine it.

        >>> phi, z = Phi(1.0, 1.0, np.array([0.5, -843.0])), np.array([0.0, 0.0, 0.5, -843.0])
        >>> FittedWeights(Variant(), ("one", "two"), phi, z, -0.8, 0.6, 12, True).problems()
        ('the weight of two is -843',)
        """
        result = [] if self.converged else [f"no convergence after {self.iterations} iterations"]
        scales = (self.variant.mixing_name, "gamma")[: 1 + self.variant.smoothed]
        for name, value, z in zip(scales, self.phi, self.z, strict=False):
            result += [f"{name} is at its bound, {value:.2g}"] if abs(z) > _EXTREME else []
        weights = zip(self.names, self.phi.weights, strict=True)
        result += [f"the weight of {name} is {w:.0f}" for name, w in weights if abs(w) > _HUGE]
        return tuple(result)

    def describe(self, name: str) -> str:
        """Return the parameters and the likelihood of dev in one line, as commands print it.

        Args:
            name: the probability: `p(t|s)`.
        """
        gamma = f", gamma = {self.phi.gamma:.3g}" if self.variant.smoothed else ""
        state = "converged" if self.converged else "not converged"
        return (
            f"{name}: {self.variant.mixing_name} = {self.phi.mixing:.4g}{gamma}, log-likelihood "
            f"per pair {self.log_likelihood:.4f}, {self.support:.1%} of the pairs have support; "
            f"{state} after {self.iterations} iterations"
        )

    def probabilities(self, data: MixtureData) -> Float64:
        """Return p(x | y; φ) of the queried pairs of some data, (D,); 0 without support."""
        data = self.variant.apply(data)
        with on_device(data) as arrays:
            return np.asarray(compute_probabilities(arrays, self.variant, self.phi))


def fit_weights(
    data: MixtureData, variant: Variant, *, prior_deviation: float | None = None
) -> FittedWeights:
    """Return the φ that maximises Σ p̃(x, y) log p(x | y; φ), by L-BFGS.

    Source: Foster, Goutte & Kuhn (2010), Eq. 7.

    The likelihood is not concave: the search starts with all weights 0, once with a small and once
    with a large γ, and only the better of these is continued.

    Args:
        data: IN, OUT and the dev pairs.
        variant: the form of the mixture.
        prior_deviation: the standard deviation of a normal prior of each weight, with mean 0:
            features have the standard deviation 1. α is then uniform, and log β and log γ are
            normal with a standard deviation of 2; the result is the mode of the posterior of the
            unconstrained values. None is maximum likelihood, as published, which overfits a small
            dev: then it warns.

    Raises:
        DataError: if none of the dev pairs is in one of the tables.

    OUT has b and c as translations of s. In dev b is more frequent, so its feature has a positive
    weight:

    >>> inside = PhraseCounts.of(["s", "s"], ["a", "b"], [3, 1])
    >>> outside = PhraseCounts.of(["s", "s"], ["b", "c"], [2, 2])
    >>> dev = PhraseCounts.of(["s", "s", "s"], ["a", "b", "c"], [4, 3, 1])
    >>> features = np.array([[1.0], [-1.0]], np.float32)
    >>> data = collect_data(inside, outside, dev, features, ("like-IN",))
    >>> fitted = fit_weights(data, Variant("linear", smoothed=False), prior_deviation=1.0)
    >>> fitted.converged, bool(fitted.phi.weights[0] > 0)
    (True, True)
    """
    data = variant.apply(data)
    mass = float(data.weight[data.supported].sum())
    if mass <= 0:
        message = "no phrase pair of dev in one of the tables: check languages and tokenisation"
        raise DataError(message, code="mismatch")

    bounds = [(-_LIMIT, _LIMIT)] * (1 + variant.smoothed) + [(None, None)] * len(data.names)

    def optimise(start: Float64, iterations: int) -> OptimizeResult:
        options = {"maxiter": iterations, "maxcor": len(start) + 5, "ftol": 1e-10, "gtol": 1e-7}
        return minimize(minus, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)

    first = np.zeros(len(bounds))
    first[0] = 2.0 if variant.mixture == "linear" else 0.0
    points = [first]
    if variant.smoothed:
        points.append(np.concatenate([first[:1], [3.0], first[2:]]))
    with on_device(data) as arrays:

        def minus(z: Float64) -> tuple[float, Float64]:
            (value, _), gradient = jax.device_get(
                value_and_gradient(arrays, variant, prior_deviation, z)
            )
            return -value / mass, -gradient / mass

        # A few steps show which start is best; only that one is continued to the end.
        pilots = [optimise(point, _PILOT) for point in points]
        best = min(pilots, key=lambda result: result.fun)
        steps = int(best.nit)
        if not best.success:
            best = optimise(best.x, _ITERATIONS)
            steps += int(best.nit)
        (_, log_likelihood), _ = value_and_gradient(arrays, variant, prior_deviation, best.x)
        phi = jax.device_get(constrain_phi(variant, best.x))
    fitted = FittedWeights(
        variant=variant,
        names=data.names,
        phi=Phi(float(phi.mixing), float(phi.gamma), phi.weights),
        z=best.x,
        log_likelihood=float(log_likelihood) / mass,
        support=data.support,
        iterations=steps,
        converged=bool(best.success),
    )
    if prior_deviation is None:
        warn_user(
            "the weights of features are fitted without a prior, as published, which overfits a "
            "small development set: a prior (--prior-deviation 1) is safer"
        )
    if problems := fitted.problems():
        remedy = "a prior" if prior_deviation is None else "more development text"
        warn_user(f"the fit is doubtful: {', and '.join(problems)}; {remedy} helps")
    return fitted


def weigh_tables(
    inside: PhraseCounts,
    outside: PhraseCounts,
    dev: PhraseCounts,
    features: Float32,
    names: tuple[str, ...],
    variant: Variant | None = None,
    *,
    prior_deviation: float | None = None,
    batch: int = 1 << 19,
) -> tuple[PhraseTable, dict[str, FittedWeights]]:
    """Return the table of p(t|s) and p(s|t) under weighted mixtures fitted to dev, and these.

    Args:
        inside: counts of IN.
        outside: counts of OUT.
        dev: counts of other text of the domain.
        features: (pairs of OUT, Q), in its order.
        names: (Q,) of the features.
        variant: the form of the mixture; None is the weighted MAP one.
        prior_deviation: see `fit_weights`; None is maximum likelihood, as published.
        batch: pairs whose probabilities are computed at once.

    Raises:
        DataError: if the tables and features do not fit, or no pair of dev is in the tables.
        UsageError: if dev is IN itself, or IN and OUT are swapped.

    >>> inside = PhraseCounts.of(["s", "s"], ["a", "b"], [3, 1])
    >>> outside = PhraseCounts.of(["s", "s"], ["b", "c"], [2, 2])
    >>> dev = PhraseCounts.of(["s", "s", "s"], ["a", "b", "c"], [4, 3, 1])
    >>> data = inside, outside, dev, np.array([[1.0], [-1.0]], np.float32)
    >>> table, fits = weigh_tables(*data, ("like-IN",), prior_deviation=1.0)
    >>> table.targets.to_pylist(), bool(np.isclose(table.columns["direct"].sum(), 1))
    (['a', 'b', 'c'], True)
    """
    check_tables(inside, outside, dev)
    variant, fitted, columns = variant or Variant(), {}, {}
    pairs = join_pairs(inside, outside)
    for name, side in DIRECTIONS.items():
        data = collect_data(inside, outside, dev, features, names, side)
        fitted[name] = fit_weights(data, variant, prior_deviation=prior_deviation)
        columns[name] = np.zeros(len(pairs))
        for rows in _make_batches(pairs.number("source" if side == "target" else "target"), batch):
            part = PhrasePairs(pairs.sources, pairs.targets, pairs.source[rows], pairs.target[rows])
            query = collect_data(inside, outside, part, features, names, side)
            columns[name][rows] = fitted[name].probabilities(query)
    return PhraseTable.from_pairs(pairs, columns), fitted


def _make_batches(condition: np.ndarray, size: int) -> list[np.ndarray]:
    """Return the pairs in sorted batches of about this size; all pairs of one y are in one."""
    order = np.argsort(condition, kind="stable")
    changes = np.flatnonzero(np.diff(condition[order])) + 1
    after = np.searchsorted(changes, np.arange(size, len(order), size))
    cuts = changes[np.unique(after[after < len(changes)])]
    return [np.sort(part) for part in np.split(order, cuts)]
