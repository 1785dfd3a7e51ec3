"""Check whether a posterior is fit for use: diagnostics, each with its threshold and advice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from bpa_ppl.diagnostics.advice import Remedies
from bpa_ppl.errors import NotConverged
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws, as_draws, kish
from bpa_ppl.posterior.draws import WEIGHTS
from bpa_ppl.posterior.statistics import bfmi, ess, mcse, pareto_smoothed, r_hat
from bpa_ppl.tables import text_table

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

_HEADER = ("diagnostic", "value", "limit", "", "worst at")


@dataclass(frozen=True)
class Thresholds:
    """The limits of a check.

    Attributes:
        r_hat: maximum rank-normalised split R-hat (Vehtari et al. 2021).
        ess_per_chain: minimum bulk and tail effective sample size: 100 per chain, 400 for four
            chains (Vehtari et al. 2021); importance samples need 100.
        mcse: maximum Monte-Carlo standard error of a mean, in posterior standard deviations.
        acceptance_low: minimum acceptance rate; a random walk in many dimensions is best near
            0.234 (Roberts, Gelman & Gilks 1997), and NUTS near its target.
        acceptance_high: maximum acceptance rate, for samplers with a step size.
        bfmi: minimum Bayesian fraction of missing information (Betancourt 2016).
        pareto_k: maximum Pareto k̂ of importance weights (Vehtari et al. 2024).
        drift: level of the test that the first and second half of the kept draws have the same
            mean (after Geweke 1992), with Bonferroni correction for the number of components. All
            diagnostics together may fail 1% of good posteriors; this test takes half of it.

    >>> import numpy as np
    >>> from bpa_ppl import Draws, check
    >>> drawn = np.random.default_rng(0).normal(size=(4, 50, 1))
    >>> draws = Draws({"weights": drawn}, ("LM0",))
    >>> bool(check(draws)), bool(check(draws, Thresholds(ess_per_chain=30)))
    (False, True)
    """

    r_hat: float = 1.01
    ess_per_chain: float = 100.0
    mcse: float = 0.1
    acceptance_low: float = 0.1
    acceptance_high: float = 0.9
    bfmi: float = 0.3
    pareto_k: float = 0.7
    drift: float = 0.005


@dataclass(frozen=True)
class Finding:
    """One diagnostic compared with its threshold.

    Attributes:
        name: of the diagnostic.
        value: its worst value.
        where: the feature, the component of another site such as `raw[2]`, or the chain with that
            value; or empty.
        limit: the threshold in words, such as `≤ 1.01`.
        passed: whether the value is within the limit.
        advice: what to do otherwise, one sentence.

    >>> Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, "raise draws").cells
    ('R-hat', '1.2', '≤ 1.01', 'FAILED', 'LM0')
    """

    name: str
    value: float
    where: str
    limit: str
    passed: bool
    advice: str

    @property
    def cells(self) -> tuple[str, ...]:
        """A row of the table of findings: name, value, limit, verdict, where."""
        verdict = "ok" if self.passed else "FAILED"
        return self.name, f"{self.value:.4g}", self.limit, verdict, self.where


@dataclass(frozen=True)
class Report:
    """All findings on one posterior; `str` gives the table, `bool` the verdict.

    Attributes:
        sampler: its name.
        shape: (chains, draws) kept.
        findings: in the order of the table.

    >>> high = Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, "raise warmup, then draws")
    >>> report = Report("rwm", (4, 1000), (high,))
    >>> print(report)
    rwm, 4 chains × 1000 draws: NOT converged
    diagnostic  value  limit           worst at
    R-hat       1.2    ≤ 1.01  FAILED  LM0
    - raise warmup, then draws
    >>> bool(report), report.passed, report.failures == (high,), report.as_dict()["draws"]
    (False, False, True, 1000)
    """

    sampler: str
    shape: tuple[int, int]
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether all findings are within their limits."""
        return all(finding.passed for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that are not within their limits."""
        return tuple(finding for finding in self.findings if not finding.passed)

    def __bool__(self) -> bool:
        return self.passed

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return {
            "sampler": self.sampler,
            "chains": self.shape[0],
            "draws": self.shape[1],
            "passed": self.passed,
            "findings": [asdict(finding) for finding in self.findings],
        }

    @property
    def _title(self) -> str:
        chains, draws = self.shape
        verdict = "converged" if self.passed else "NOT converged"
        return f"{self.sampler}, {chains} chains × {draws} draws: {verdict}"

    def __str__(self) -> str:
        table = text_table([finding.cells for finding in self.findings], _HEADER)
        advice = [f"- {finding.advice}" for finding in self.failures]
        return "\n".join([self._title, table, *advice])

    def _repr_html_(self) -> str:
        from bpa_ppl.diagnostics.pages.page import Items, Table, Text

        rows = [finding.cells for finding in self.findings]
        table = Table(_HEADER, rows, passed=[finding.passed for finding in self.findings])
        advice = Items([finding.advice for finding in self.failures])
        return Text(self._title).html() + table.html() + (advice.html() if self.failures else "")


#: Maximum squared length of the last Newton step, in posterior standard deviations.
_DECREMENT = 1e-6
#: Effective draws per degree of freedom of an estimated Monte-Carlo error.
_WINDOW = 10.0


def check(posterior: Posterior, thresholds: Thresholds | None = None) -> Report:
    """Compare a posterior's diagnostics with their thresholds.

    For chains: rank-normalised split R-hat, bulk and tail ESS, MCSE and drift of all components of
    all sites, and acceptance, divergences and BFMI, as far as they are recorded. For weighted
    samples: the effective sample size of the importance weights and Pareto k̂. For a mode: the
    convergence of the optimisation.

    Args:
        posterior: draws with a site `weights`, from this library or another.
        thresholds: limits, if not the default ones.

    Returns:
        a `Report`, true if all diagnostics are within their limits.

    Raises:
        DataError: if there are no draws of `weights`.

    >>> rng = np.random.default_rng(0)
    >>> draws = Draws({"weights": rng.normal(size=(4, 1000, 2))}, ("LM0", "WP0"))
    >>> bool(check(draws))
    True
    """
    draws, limits = as_draws(posterior, finite=False), thresholds or Thresholds()
    sampler = str(draws.attrs.get("sampler", "unknown sampler"))
    if "chosen" in draws.attrs:
        reason = draws.attrs.get("chosen_because", "unknown reason")
        sampler += f" ({draws.attrs['chosen']}: {reason})"
    if draws.weighted:
        findings = _of_importance(draws, limits)
    elif draws.kind == "point":
        decrement = float(draws.attrs.get("newton_decrement", np.nan))
        advice = "the optimisation did not converge: is the density of the model smooth?"
        limit, passed = f"≤ {_DECREMENT:g}", decrement <= _DECREMENT
        findings = [Finding("Newton decrement", decrement, "", limit, passed, advice)]
    else:
        findings = [
            *_of_components(draws, limits),
            *_of_acceptance(draws, limits),
            *_of_divergences(draws),
            *_of_energy(draws, limits),
        ]
    return Report(sampler, draws.shape, tuple(findings))


def refuse_unconverged(posterior: Posterior) -> None:
    """Raise NotConverged, with the table of the check, if a posterior fails it.

    Args:
        posterior: as for `check`.

    Raises:
        NotConverged: if it fails.

    >>> stuck = np.repeat([[0.0], [9.0]], 100, axis=1)[..., None]
    >>> refuse_unconverged(Draws({"weights": stuck + np.linspace(0, 1, 100)[:, None]}, ("LM0",)))
    Traceback (most recent call last):
    bpa_ppl.errors.NotConverged: the posterior failed its check, so it is not used...
    """
    report = check(posterior)
    if not report:
        raise NotConverged(
            "the posterior failed its check, so it is not used unless the check is skipped",
            str(report),
            parameter="unchecked",
        )


def _of_components(draws: Draws, limits: Thresholds) -> list[Finding]:
    names, values = sampled_components(draws)
    min_ess, remedies = limits.ess_per_chain * draws.shape[0], Remedies(draws)
    deviation = _deviation(values)
    error = mcse(values) / np.where(deviation > 0, deviation, np.nan)
    level = limits.drift / (2 * len(names))
    more_draws, longer_warmup = remedies.more_draws(), remedies.longer_warmup()
    disagree = "the chains disagree ({value:.3f} for {where}): " + longer_warmup
    advice = "{value:.0f} effective draws of {where}: " + more_draws
    few_in_tails = "{value:.0f} effective draws in the tails: " + more_draws
    uncertain = "the mean of {where} is uncertain by {value:.2f} posterior sd: " + more_draws
    drifting = "the kept draws of {where} still drift: " + longer_warmup
    return [
        _worst("R-hat", r_hat(values), names, limits.r_hat, disagree),
        _worst("bulk ESS", ess(values), names, min_ess, advice, -1),
        _worst("tail ESS", ess(values, "tail"), names, min_ess, few_in_tails, -1),
        _worst("MCSE / sd", error, names, limits.mcse, uncertain),
        _worst(
            "drift (|z|)", np.abs(drift(values, level)), names, float(norm.isf(level)), drifting
        ),
    ]


def sampled_components(draws: Draws) -> tuple[list[str], Float64]:
    """Return the names and draws, (C, D, components), of all components; NaN if not finite.

    A constant component of a site whose other components vary is left out: it is structural, such
    as the diagonal of a correlation matrix.

    >>> draws = Draws({"weights": np.ones((1, 2, 1)), "s": [[3, 4]]}, ("LM0",), sites=("s",))
    >>> sampled_components(draws)[0]
    ['LM0', 's']
    """
    components = draws.components()
    names = list(draws.features)
    for site in (site for site in draws.sites if site != WEIGHTS):
        site_components = replace(draws, sites=(site,)).components()
        cells = [name for name in site_components if name not in draws.features]
        moving = [name for name in cells if np.ptp(site_components[name]) != 0]
        names += moving or cells
    values = np.stack([components[name] for name in names], axis=-1)
    return names, np.where(np.isfinite(values), values, np.nan)


def drift(values: Float64, level: float = 0.005) -> Float64:
    """Return the z-score of the difference between the halves of the draws, (C, D, …) ↦ (…).

    It is the difference of the means of the first and the second half, over all chains, in units
    of its Monte-Carlo standard error (after Geweke 1992, with the MCSE of ArviZ instead of the
    spectral estimate). The error is estimated from a window of about ten autocorrelation times, so
    that the ratio is approximately Student's t with ESS / 10 degrees of freedom. It is scaled so
    that its quantile is that of a normal distribution.

    Args:
        values: the draws.
        level: one-sided, at which the quantiles agree.
    """
    half = values.shape[1] // 2
    if half == 0:
        return np.full(values.shape[2:], np.nan)
    first, second = values[:, :half], values[:, -half:]
    errors = _error(first), _error(second)
    error = np.hypot(*errors)
    shift = second.mean(axis=(0, 1)) - first.mean(axis=(0, 1))
    z = shift / np.where(error > 0, error, np.nan)
    parts = zip((first, second), errors, strict=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        effective = np.sum([(_deviation(part) / sd) ** 2 for part, sd in parts], axis=0)
    return np.asarray(z * norm.isf(level) / student.isf(level, np.fmax(effective / _WINDOW, 1.0)))


def _error(values: Float64) -> Float64:
    """Return the MCSE of each mean, at least the one for independent draws.

    Chains whose draws alternate, as those of NUTS do, have an ESS beyond their number, but its
    estimate is then so noisy that one good chain in fifteen would seem to drift.
    """
    independent = _deviation(values) / np.sqrt(values.shape[0] * values.shape[1])
    return np.asarray(np.maximum(mcse(values), independent))


def _deviation(values: Float64) -> Float64:
    """Return the sample standard deviation of each component; NaN for a single draw."""
    if values.shape[0] * values.shape[1] == 1:
        return np.full(values.shape[2:], np.nan)
    return np.asarray(values.std(axis=(0, 1), ddof=1))


def _worst(
    name: str, values: Float64, names: Sequence[str], limit: float, advice: str, sign: int = 1
) -> Finding:
    """Compare the worst value with a limit: the largest, or for sign −1 the smallest."""
    # A chain that never moves has no finite diagnostic: that is the worst.
    badness = np.where(np.isfinite(values), sign * values, np.inf)
    k = int(np.argmax(badness))
    value = float(values[k])
    passed = bool(np.isfinite(value) and sign * value <= sign * limit)
    text = advice.format(value=value, where=names[k])
    return Finding(name, value, names[k], f"{'≤' if sign > 0 else '≥'} {limit:.4g}", passed, text)


def _of_acceptance(draws: Draws, limits: Thresholds) -> list[Finding]:
    recorded = draws.statistics.get("acceptance_rate")
    if recorded is None:
        return []
    rates = np.asarray(recorded).mean(axis=1)
    # Only a sampler with a step size can accept too often.
    setting = draws.attrs.get("step_setting")
    low, high = limits.acceptance_low, limits.acceptance_high if setting else 1.0
    worst = int(np.argmax(np.maximum(low - rates, rates - high)))
    rate = float(rates[worst])
    side = "large" if rate < low else "small"
    remedy = Remedies(draws).other_steps(larger=side == "small")
    advice = f"acceptance {rate:.2f}: the steps are too {side} for this posterior; {remedy}"
    limit = f"{low:g} to {high:g}"
    return [Finding("acceptance", rate, f"chain {worst}", limit, low <= rate <= high, advice)]


def _of_divergences(draws: Draws) -> list[Finding]:
    if "diverging" not in draws.statistics:
        return []
    count = int(np.sum(draws.statistics["diverging"]))
    advice = (
        f"{count} divergent transitions: {Remedies(draws).no_divergences()}; in a model of "
        "your own, use a non-centred parametrisation (scale × standard normal)"
    )
    return [Finding("divergences", count, "", "= 0", count == 0, advice)]


def _of_energy(draws: Draws, limits: Thresholds) -> list[Finding]:
    if "energy" not in draws.statistics:
        return []
    fractions = bfmi(draws.statistics["energy"])
    worst = int(np.argmin(fractions))
    value = float(fractions[worst])
    remedy = Remedies(draws).longer_warmup()
    advice = f"BFMI {value:.2f}: the energy mixes slowly; {remedy}, or reparametrise the model"
    limit = f"≥ {limits.bfmi:g}"
    return [Finding("BFMI", value, f"chain {worst}", limit, value >= limits.bfmi, advice)]


def _of_importance(draws: Draws, limits: Thresholds) -> list[Finding]:
    """Return the findings on importance weights: Kish's effective sample size, Pareto k̂."""
    size, min_ess = kish(draws.importance), limits.ess_per_chain
    log_weight = np.zeros(draws.shape) if draws.log_weight is None else draws.log_weight
    # Smoothed weights have the recorded k̂ of the raw ones.
    k_hat = float(draws.attrs.get("pareto_k") or pareto_smoothed(log_weight)[1])
    remedies = Remedies(draws)
    advice = (
        f"{size:.1f} effective samples of {len(draws.importance)} weighted ones: "
        + remedies.more_samples()
    )
    heavy = (
        f"Pareto k̂ {k_hat:.2f}: the tail of the importance weights is so heavy that averages are "
        f"unreliable; {remedies.markov_chain()}"
    )
    limit = f"≤ {limits.pareto_k:g}"
    return [
        Finding("ESS of the weights", size, "", f"≥ {min_ess:g}", size >= min_ess, advice),
        Finding("Pareto k̂", k_hat, "", limit, k_hat <= limits.pareto_k, heavy),
    ]
