"""Check whether a posterior is fit for use: diagnostics, each with its threshold and advice."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.diagnostics.pages.page import Outcome, Table
from bpa_ppl.errors import NotConverged, describe_missing_package
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import WEIGHTS, Draws, kish
from bpa_ppl.posterior.record import Finding, Verdict, read_version
from bpa_ppl.posterior.statistics import (
    POOR_PARETO_K,
    bfmi,
    ess,
    estimate_tail_shapes,
    find_copied_chains,
    mcse,
    r_hat,
    smooth_log_weights,
)

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

_HEADER = ("diagnostic", "value", "limit", "", "worst at")
# Of the advice.
_MORE = 3  # times as many, as a warm-up or effective draws, where nothing says how many
#: Times as many draws as the ESS that is missing calls for: R-hat is mostly within its limit only
#: from about a thousand effective draws on, more than twice the limit of the ESS.
_RESERVE = 2.3
_MOST = 100.0  # times as many draws are advised at most; a sampler that needs more is the wrong one
#: Of a random walk: its best step in √d standard deviations of a Gaussian posterior, and how often
#: it is then accepted (Roberts, Gelman & Gilks 1997).
_BEST_STEP, _BEST_RATE = 2.38, 0.234
#: The steps of `rwm`, in posterior standard deviations, and of the published walk.
_SCALE, _ISOTROPIC = "scale", "proposal_variance"
_OTHER_SAMPLER = "use a sampler that mixes better (nuts)"
_OTHER_WALK = "use rwm, whose steps have the shape of the posterior"
_LONGER = "raise warmup (burn-in), then draws"
_ACCEPT, _MAX_ACCEPT = 0.9, 0.99  # target acceptance of NUTS
_WARMUP = 1000  # draws that NUTS needs to adapt its metric and step size
_FEWEST = 4  # draws per chain, whose halves have a variance
#: Acceptance rates that are sound. A random walk is best near 0.23 in many dimensions and 0.44 in
#: one, and has from 0.15 to 0.5 at least two thirds of the best efficiency (Roberts, Gelman & Gilks
#: 1997). Hamiltonian samplers are best near 0.65 and lose a sixth at 0.4; shorter steps only take
#: longer (Beskos et al. 2013). Independent proposals are the better the more often they are
#: accepted (Tierney 1994).
_WALK, _HAMILTONIAN, _OTHER = (0.15, 0.5), (0.4, 1.0), (0.1, 1.0)
#: The first rows of the table: those that explain others come first.
_ORDER = (
    *("draws per chain", "not finite", "constant", "copied chains", "log density", "divergences"),
    *("BFMI", "acceptance", "burn-in (|z|)", "R-hat", "bulk ESS", "tail ESS", "MCSE / sd"),
)
_MARKOV_CHAIN = "use a Markov-chain sampler (nuts, rwm)"


@dataclass(frozen=True)
class Thresholds:
    """The limits of a check.

    Attributes:
        r_hat: maximum rank-normalised split R-hat (Vehtari et al. 2021); a single chain is compared
            with itself, in four parts.
        ess: minimum bulk and tail effective sample size of all chains together (Vehtari et al.
            2021).
        importance_ess: minimum effective sample size of importance weights.
        mcse: maximum Monte-Carlo standard error of a mean, in posterior standard deviations.
        acceptance: least and largest acceptance rate. None is the sound range of the sampler: 0.15
            to 0.5 for a random walk, at least 0.4 for Hamiltonian samplers such as NUTS, which
            record divergences, and at least 0.1 for others.
        bfmi: minimum Bayesian fraction of missing information (Betancourt 2016).
        pareto_k: maximum Pareto k̂ of importance weights, and of the tails of the draws of a
            weight (Vehtari et al. 2024); beyond it, means need too many draws, or do not exist.
        level: of the tests that the first tenth and the second half of the kept draws have the same
            mean (Geweke 1992), and each chain that of the others, together: with Bonferroni
            correction for the number of weights and chains. All diagnostics together may fail 1% of
            good posteriors; these take half of it.
        equal_draws: maximum length of a sequence of equal draws, as a share of the chain, or of 100
            draws where it is shorter. Chains with 100 effective draws have a longer one in fewer
            than 1% of runs.

    >>> import numpy as np
    >>> from bpa_ppl import Draws, check
    >>> drawn = np.random.default_rng(0).normal(size=(4, 50, 1))
    >>> draws = Draws({"weights": drawn}, ("LM0",))
    >>> bool(check(draws)), bool(check(draws, Thresholds(ess=120)))
    (False, True)
    """

    r_hat: float = 1.01
    ess: float = 400.0
    importance_ess: float = 100.0
    mcse: float = 0.1
    acceptance: tuple[float, float] | None = None
    bfmi: float = 0.3
    pareto_k: float = POOR_PARETO_K
    level: float = 0.005
    equal_draws: float = 0.1


@dataclass(frozen=True)
class Report(Outcome):
    """All findings on one posterior; `str` gives the table, `bool` the verdict.

    Attributes:
        sampler: its name.
        shape: (chains, draws) kept.
        findings: in the order of the table, in which those that explain others come first.
        burn_in: draws of each chain that were discarded; None if unknown.

    >>> high = Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, "raise warmup, then draws")
    >>> report = Report("rwm", (4, 1000), (high,), 50)
    >>> print(report)
    rwm, 4 chains × 1000 draws after a burn-in of 50: NOT converged
    diagnostic  value  limit           worst at
    R-hat       1.2    ≤ 1.01  FAILED  LM0
    - raise warmup, then draws
    >>> bool(report), report.passed, report.failures == (high,), report.as_dict()["draws"]
    (False, False, True, 1000)
    """

    sampler: str
    shape: tuple[int, int]
    findings: tuple[Finding, ...]
    burn_in: int | None = None

    @property
    def passed(self) -> bool:
        """Whether all findings are within their limits."""
        return all(finding.passed for finding in self.findings)

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that are not within their limits."""
        return tuple(finding for finding in self.findings if not finding.passed)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain data, for JSON."""
        return {
            "sampler": self.sampler,
            "chains": self.shape[0],
            "draws": self.shape[1],
            "burn_in": self.burn_in,
            "passed": self.passed,
            "findings": [structs.asdict(finding) for finding in self.findings],
        }

    def _summarise(self) -> tuple[str, Table, list[str]]:
        """Return the verdict, all findings, and advice."""
        chains, draws = self.shape
        verdict = "converged" if self.passed else "NOT converged"
        rows = [finding.cells for finding in self.findings]
        table = Table(_HEADER, rows, passed=[finding.passed for finding in self.findings])
        discarded = "" if self.burn_in is None else f" after a burn-in of {self.burn_in}"
        title = f"{self.sampler}, {chains} chains × {draws} draws{discarded}: {verdict}"
        problems: dict[str, list[str]] = {}  # by their remedy
        for finding in self.failures:
            problem, _, remedy = finding.advice.rpartition(": ")
            problems.setdefault(remedy, []).append(problem)
        advice = [f"{'; '.join(filter(None, of))}: {remedy}" for remedy, of in problems.items()]
        return title, table, [line.removeprefix(": ") for line in advice]


#: Maximum squared length of the last Newton step, in posterior standard deviations.
_DECREMENT = 1e-6
#: A sequence of equal draws may be as long in a short chain as in one of so many draws.
_SHORT = 100
#: Effective draws per degree of freedom of an estimated Monte-Carlo error.
_WINDOW = 10.0


def check(posterior: Posterior, thresholds: Thresholds | None = None) -> Report:
    """Compare a posterior's diagnostics with their thresholds.

    For chains: burn-in (whether the first tenth of the kept draws differs from their second half),
    acceptance, rank-normalised split R-hat, bulk and tail ESS, MCSE, divergences and BFMI, the
    figures of ArviZ, of all components of all sites and as far as they are recorded; differences
    between chains; tails and equal draws in succession of the weights. Chains that are copies of
    one another, or repeat their own draws, fail, because draws would be counted twice. For weighted
    samples: the effective sample size of the importance weights and Pareto k̂. For a mode: the
    convergence of the optimisation. A recorded log density must be finite. How far a Gaussian in
    place of a posterior, as the prior, shifts the weights is reported without a limit. Draws that
    are not finite, that are fewer than four per chain or the same in all chains fail without
    further diagnostics of the draws.

    A pass is not a proof. A check sees only the draws, so it cannot find modes and tails that no
    chain has visited, a wrong model or wrong data, or a sampler of another density that mixes well
    (`bpa calibrate` finds it). At most 1 % of good posteriors fail with the default `Thresholds`.

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
    remedies = Remedies(draws)
    if draws.weighted:
        findings = _check_importance(draws, limits, remedies)
    elif draws.kind == "point":
        recorded = draws.record.figures.newton_decrement
        decrement = np.nan if recorded is None else recorded
        advice = "the optimisation did not converge: is the density of the model smooth?"
        limit, passed = f"≤ {_DECREMENT:g}", 0 <= decrement <= _DECREMENT
        findings = [Finding("Newton decrement", decrement, "", limit, passed, advice)]
    else:
        findings = list(_check_usable(draws))
        findings = findings or [*_check_copies(draws), *_check_components(draws, limits, remedies)]
        findings += _check_statistics(draws, limits, remedies)
    return _report(draws, findings)


def _report(draws: Draws, findings: list[Finding]) -> Report:
    """Return the report on draws, with the findings that take no time added to the others."""
    sampler, figures = draws.record.sampler.name or "unknown sampler", draws.record.figures
    if figures.chosen is not None:
        sampler += f" ({figures.chosen}: {figures.chosen_because})"
    warmup = draws.warmup.get(WEIGHTS)
    findings = [*findings, *_check_density(draws), *_check_gaussian_prior(draws)]
    findings.sort(key=lambda one: [*_ORDER, one.name].index(one.name))
    burn_in = None if warmup is None or draws.kind != "chains" else np.shape(warmup)[1]
    return Report(sampler, draws.shape, tuple(findings), burn_in)


def check_and_record(draws: Draws) -> tuple[Draws, Report]:
    """Return draws that record the verdict and the figures of their check, and the report on them.

    Draws that record it already are not checked again.

    >>> drawn = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> recorded, report = check_and_record(Draws({"weights": drawn}, ("LM0",)))
    >>> bool(report), str(recorded.record.verdict)
    (True, 'passed')
    """
    report = read_report(draws)
    if report is None:
        try:
            report = check(draws)
        except ModuleNotFoundError as error:
            problem = describe_missing_package("checking a posterior", error)
            raise ModuleNotFoundError(problem, name=error.name) from error
        verdict = Verdict(report.passed, _hash_inputs(draws), report.findings)
        draws = replace(draws, record=structs.replace(draws.record, verdict=verdict))
    return draws, report


def read_report(draws: Draws) -> Report | None:
    """Return the report that draws record, if they are those that were checked, else None.

    >>> drawn = np.random.default_rng(0).normal(size=(4, 1000, 1))
    >>> recorded, report = check_and_record(Draws({"weights": drawn}, ("LM0",)))
    >>> read_report(recorded) == report
    True
    >>> read_report(replace(recorded, values={"weights": drawn + 1}))
    """
    verdict = draws.record.verdict
    if verdict is None or verdict.checksum != _hash_inputs(draws):
        return None
    fresh = {one.name for one in (*_check_density(draws), *_check_gaussian_prior(draws))}
    return _report(draws, [one for one in verdict.findings if one.name not in fresh])


def _hash_inputs(draws: Draws) -> str:
    """Return a hash of what a check reads, and of the version of bpa_ppl."""
    digest = hashlib.sha256(read_version("bpa_ppl").encode())
    names = "newton_decrement", "pareto_k"
    recorded = ((name, getattr(draws.record.figures, name)) for name in names)
    known = {name: np.nan if value is None else value for name, value in recorded}
    arrays = {**draws.statistics, **draws.values, "log_weight": draws.log_weight, **known}
    for name, values in sorted(arrays.items()):
        if values is not None:
            numbers = np.asarray(values, np.float64)
            digest.update(f"{name} {numbers.shape}".encode() + numbers.tobytes())
    return digest.hexdigest()


def refuse_unconverged(posterior: Posterior, name: str | Path = "") -> None:
    """Raise NotConverged, with the table of the check, if a posterior fails it.

    Draws that record their check, and have not changed since, are not checked again.

    Args:
        posterior: as for `check`.
        name: what the message calls it, such as its file, if there are several.

    Raises:
        NotConverged: if it fails.

    >>> stuck = np.repeat([[0.0], [9.0]], 100, axis=1)[..., None]
    >>> refuse_unconverged(Draws({"weights": stuck + np.linspace(0, 1, 100)[:, None]}, ("LM0",)))
    Traceback (most recent call last):
    bpa_ppl.errors.NotConverged: the posterior failed its check, so it is not used...
    """
    report = check_and_record(as_draws(posterior, finite=False))[1]
    if not report:
        title = f"the posterior {name}".rstrip()
        problem = f"{title} failed its check, so it is not used unless the check is skipped"
        raise NotConverged(problem, str(report), parameter="unchecked")


class Remedies:
    """Advice for failed diagnostics, in terms of the sampler of some draws and its settings.

    A setting is named with a value to try, `draws=4000`, as Python takes it. For draws of other
    programs, whose settings are unknown, the advice names no values.

    Args:
        draws: with the record of the sampler, if it is known, and the acceptance rates of a random
            walk.

    >>> from bpa_ppl.posterior.record import Record, SamplerRecord
    >>> sampler = SamplerRecord(name="imh", settings={"draws": 1000, "warmup": 100})
    >>> draws = Draws({"weights": [[[0.0]]]}, ("LM0",), record=Record(sampler=sampler))
    >>> Remedies(draws).more_draws(3.0)
    'draw more (draws=7), or use a sampler that mixes better (nuts)'
    """

    def __init__(self, draws: Draws):
        sampler, figures = draws.record.sampler, draws.record.figures
        self._known, self._settings = sampler.settings is not None, sampler.settings or {}
        self._step, self._nuts = figures.step_setting, "diverging" in draws.statistics
        # The warm-up of independent proposals only tunes them, and no draw depends on it.
        self._count, self._burns_in = draws.shape[1], "imh" not in (sampler.name, figures.chosen)
        self._rate = float(np.mean(draws.statistics.get("acceptance_rate", _BEST_RATE)))
        sound = _WALK[0] <= self._rate <= _WALK[1]
        self._steps_are_wrong = self._known and bool(self._step) and not sound

    def more_draws(self, shortage: float = _MORE) -> str:
        """Return how to get more effective draws.

        Args:
            shortage: how many times as many effective draws are needed; infinite if unknown.
        """
        if self._steps_are_wrong or (self._step == _ISOTROPIC and shortage > _MORE):
            return self.other_steps(larger=self._rate > _BEST_RATE)
        better = self.of_nuts(_MAX_ACCEPT, "take shorter steps") if self._nuts else _OTHER_SAMPLER
        more = self._draw_more(shortage)
        if not more:
            return f"raising draws is not enough; {better}"
        return more if self._nuts else f"{more}, or {better}"

    def more_samples(self, shortage: float) -> str:
        """Return how to get importance weights with a larger effective sample size.

        Args:
            shortage: how many times as many effective samples are needed.
        """
        more = self._draw_more(shortage) if "draws" in self._settings or not self._known else ""
        return f"{more}, or {_MARKOV_CHAIN}" if more else _MARKOV_CHAIN

    def agreement(self, shortage: float, settled: bool) -> str:
        """Return how to make chains agree.

        Args:
            shortage: as for `more_draws`.
            settled: whether the second half of the draws agrees better than all of them. Only then
                a longer warm-up helps.
        """
        warmup = self._settings.get("warmup") if self._burns_in and settled else None
        if not self._known:
            return _LONGER
        if warmup is None or self._steps_are_wrong:
            return self.more_draws(shortage)
        return f"raise warmup (warmup={_round_up(int(warmup) + self._count)})"

    def movement(self) -> str:
        """Return how to keep chains from staying where they are."""
        return self.other_steps(larger=False) if self._known else _LONGER

    def other_steps(self, larger: bool) -> str:
        """Return how to change the step size."""
        if self._nuts:
            return self.of_nuts(_ACCEPT, "let the warm-up find it")
        if self._step != _SCALE:
            return _OTHER_WALK if self._step else "use nuts"
        is_best = np.isclose(self._settings.get(_SCALE, _BEST_STEP), _BEST_STEP, rtol=0.05)
        value = "" if is_best else f" ({_SCALE}={_BEST_STEP})"  # for a Gaussian
        return f"{'raise' if larger else 'lower'} {_SCALE}{value}, or use nuts"

    def of_nuts(self, target: float, action: str) -> str:
        """Return an action, with the target acceptance of NUTS to try if its settings are known."""
        name = "" if "target_accept" in self._settings else "nuts with "
        values = f" ({name}target_accept={target:g}, warmup={_WARMUP})"
        return f"{action}{values if self._known else ''}"

    def _draw_more(self, shortage: float) -> str:
        """Return the advice to draw more; empty if so many would be needed that it is useless."""
        if not shortage * _RESERVE <= _MOST:  # NaN if it is unknown
            return ""
        value = f" (draws={_round_up(self._count * shortage * _RESERVE)})"
        return f"draw more{value if 'draws' in self._settings else ''}"


def _round_up(value: float) -> int:
    """Return a whole number rounded up to two digits.

    >>> _round_up(1001), _round_up(7.2)
    (1100, 8)
    """
    unit: int = max(10 ** int(np.log10(value)) // 10, 1)
    return -(-int(np.ceil(value)) // unit) * unit


def find_shortage(report: Report) -> float:
    """Return how many times as many draws the failed diagnostics of a report call for.

    1 if none failed; infinite if one failed that more draws do not help.

    >>> few = Finding("bulk ESS", 200.0, "LM0", "≥ 400", False, "draw more")
    >>> find_shortage(Report("nuts", (4, 1000), (few,)))
    2.0
    """
    limits = Thresholds()
    return max(
        (_measure_shortage(one.name, one.value, limits) for one in report.failures), default=1.0
    )


def _measure_shortage(name: str, value: float, limits: Thresholds) -> float:
    """Return how many times as many effective draws a diagnostic calls for.

    R-hat − 1 is a ratio of variances, and falls with the number of effective draws.
    """
    with np.errstate(divide="ignore"):
        ratios = {
            "R-hat": (value - 1) / (limits.r_hat - 1),
            "bulk ESS": limits.ess / np.float64(value),
            "tail ESS": limits.ess / np.float64(value),
            "MCSE / sd": (value / limits.mcse) ** 2,
        }
    return float(np.nan_to_num(ratios.get(name, np.inf), nan=np.inf, posinf=np.inf))


def _check_usable(draws: Draws) -> Iterator[Finding]:
    """Yield the findings on draws to which the other diagnostics cannot be applied."""
    chains, count = draws.shape
    if count < _FEWEST:
        limit = f"≥ {_FEWEST}"
        advice = f"{count} draws per chain cannot be checked: draw at least {_SHORT}"
        yield Finding("draws per chain", float(count), "", limit, False, advice)
        return
    names, values = list_components(draws)
    flat = values.reshape(chains * count, -1)
    broken = np.isnan(flat).sum(axis=0)
    if broken.any():
        worst = int(broken.argmax())
        advice = (
            f"{broken[worst]} of {len(flat)} draws of {names[worst]} are NaN or infinite: the "
            "sampler or the model that produced them is wrong, and more draws do not help"
        )
        yield Finding("not finite", float(broken.sum()), names[worst], "= 0", False, advice)
    elif (constant := np.flatnonzero(np.ptp(flat, axis=0) == 0)).size:
        name = names[constant[0]]
        advice = (
            f"all draws of {name} are equal: if its value is known, fix it instead of sampling it, "
            "otherwise the sampler does not move"
        )
        yield Finding("constant", float(constant.size), name, "= 0", False, advice)


def _check_components(draws: Draws, limits: Thresholds, remedies: Remedies) -> Iterator[Finding]:
    """Yield the findings on all components of all sites."""
    from scipy.special import ndtri

    names, values = list_components(draws)
    chains, count = draws.shape
    deviation = values.std(axis=(0, 1), ddof=1)
    error = mcse(values) / np.where(deviation > 0, deviation, np.nan)
    bulk, tail, mixing = ess(values), ess(values, "tail"), r_hat(values)
    # A chain that never moves has no finite diagnostic: no number of draws is enough.
    worst = {"R-hat": mixing.max(), "bulk ESS": bulk.min(), "tail ESS": tail.min()}
    worst["MCSE / sd"] = error.max()
    shortage = max(_measure_shortage(name, float(value), limits) for name, value in worst.items())
    apart = worst["R-hat"] > limits.r_hat
    settled = apart and 2 * (r_hat(values[:, count // 2 :]).max() - 1) < worst["R-hat"] - 1
    more_draws = remedies.more_draws(shortage)
    agreement, longer = (remedies.agreement(max(shortage, _MORE), b) for b in (settled, True))
    parts = "chains" if chains > 1 else "parts of the chain"
    disagree = f"the {parts} disagree ({{value:.3f}} for {{where}}): {agreement}"
    few = "{value:.0f} effective draws of {where}: " + more_draws
    few_in_tails = "{value:.0f} effective draws in the tails: " + more_draws
    uncertain = "the mean of {where} is uncertain by {value:.2f} posterior sd: " + more_draws
    early = "the first tenth of the draws of {where} differs from their second half: " + longer
    differ = f"the mean of {{where}} differs between chains: {agreement}"
    heavy = (
        "the tails of {where} are so heavy (k̂ {value:.2f}) that its mean is unreliable or does not "
        "exist: draw more, or use a prior with lighter tails"
    )
    stuck = f"{{where}} stays where it is for {{value:.0%}} of its draws: {remedies.movement()}"
    tests = len(names) * (1 + chains if chains > 1 else 1)
    level = limits.level / (2 * tests)
    max_z = float(-ndtri(level))
    beginning = np.abs(compare_beginning(values, level))
    yield _find_worst("R-hat", mixing, names, limits.r_hat, disagree)
    yield _find_worst("bulk ESS", bulk, names, limits.ess, few, -1)
    yield _find_worst("tail ESS", tail, names, limits.ess, few_in_tails, -1)
    yield _find_worst("MCSE / sd", error, names, limits.mcse, uncertain)
    yield _find_worst("burn-in (|z|)", beginning, names, max_z, early)
    if chains > 1:
        z = np.abs(compare_chains(values, level)).max(axis=0)
        yield _find_worst("chain means (|z|)", z, names, max_z, differ)
    # Of other sites, such as scales of a horseshoe prior, the means need not exist.
    k_hat = estimate_tail_shapes(draws.weights, np.fmin(bulk, tail) / (chains * count))
    yield _find_worst("tails (Pareto k̂)", k_hat, names, limits.pareto_k, heavy)
    stays = _count_longest_equal(draws.weights) / max(count, _SHORT)
    labels = [f"chain {c}" for c in range(chains)]
    yield _find_worst("equal draws", stays, labels, limits.equal_draws, stuck)


def list_components(draws: Draws) -> tuple[list[str], Float64]:
    """Return the names and draws, (C, D, components), of all components; NaN if not finite.

    A constant component of a site whose other components vary is left out: it is structural, such
    as the diagonal of a correlation matrix.

    >>> draws = Draws({"weights": np.ones((1, 2, 1)), "s": [[3, 4]]}, ("LM0",), sites=("s",))
    >>> list_components(draws)[0]
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


def compare_beginning(values: Float64, level: float = 0.005) -> Float64:
    """Return the z-score of the first tenth of the draws against the second half, (C, D, …) ↦ (…).

    It is the difference of their means, over all chains, in units of its Monte-Carlo standard error
    (Geweke 1992), scaled as by `_z_score`. The error is that of the second half, by ArviZ, for as
    many draws as both parts have: draws that come from elsewhere vary much, and would hide it. The
    first tenth has at least four draws of each chain.

    Args:
        values: the draws.
        level: one-sided, at which the quantiles agree.

    Chains that come from four standard deviations away:

    >>> values = np.random.default_rng(0).normal(size=(4, 1000, 2))
    >>> values[..., 0] += 4 * np.exp(-np.arange(1000) / 50)
    >>> np.abs(compare_beginning(values)).round().tolist()
    [27.0, 1.0]
    """
    count = values.shape[1]
    first, second = values[:, : max(count // 10, _FEWEST)], values[:, count // 2 :]
    shift = first.mean(axis=(0, 1)) - second.mean(axis=(0, 1))
    error, effective = _measure_error(second)
    both = error * np.sqrt(1 + second.shape[1] / first.shape[1])
    return _z_score(shift, both[None], effective[None], level)


def compare_chains(values: Float64, level: float = 0.005) -> Float64:
    """Return the z-score of each chain's mean minus that of the others, (C, D, …) ↦ (C, …).

    Args:
        values: the draws of several chains.
        level: as for `compare_beginning`.

    A chain of 1000 independent draws that is 0.25 standard deviations away:

    >>> values = np.random.default_rng(0).normal(size=(4, 1000))
    >>> values[2] += 0.25
    >>> compare_chains(values).round(1).tolist()
    [-3.5, -1.9, 5.6, -0.2]
    """
    chains = len(values)
    means = values.mean(axis=1)
    measured = [_measure_error(chain[None]) for chain in values]
    error, effective = map(np.array, zip(*measured, strict=True))
    others = np.sqrt((error**2).sum(axis=0) - error**2) / (chains - 1)
    shift = (means - means.mean(axis=0)) * chains / (chains - 1)
    remaining = effective.sum(axis=0) - effective
    return _z_score(shift, np.array([error, others]), np.array([effective, remaining]), level)


def _z_score(shift: Float64, errors: Float64, effective: Float64, level: float) -> Float64:
    """Return the z-score of a difference of two means.

    Its error is estimated from windows of about ten autocorrelation times, so that the ratio is
    approximately Student's t, with ESS / 10 degrees of freedom for each estimate (Welch 1947). It
    is scaled so that its quantile is that of a normal distribution.

    Args:
        shift: (…) the difference.
        errors: (n, …) independent estimates, whose squares add up to its squared standard error.
        effective: (n, …) effective draws of each.
        level: one-sided, at which the quantiles agree.
    """
    from scipy.special import ndtri, stdtrit

    variance = (errors**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        degrees = variance**2 / (errors**4 / np.fmax(effective / _WINDOW, 1.0)).sum(axis=0)
        z = shift / np.sqrt(variance)
        return np.asarray(z * ndtri(level) / stdtrit(degrees, level))


def _count_longest_equal(values: Float64) -> Float64:
    """Return how long each chain repeats one draw at most, (C, D, Q) ↦ (C,).

    >>> _count_longest_equal(np.array([[[1.0], [2.0], [2.0], [2.0], [1.0]]])).tolist()
    [3]
    """
    moved = (np.diff(values, axis=1) != 0).any(axis=2)
    edges = [np.flatnonzero(np.concatenate(([True], moves, [True]))) for moves in moved]
    return np.array([np.diff(positions).max() for positions in edges])


def _measure_error(values: Float64) -> tuple[Float64, Float64]:
    """Return the MCSE of each mean, at least the one for independent draws, and effective draws.

    Chains whose draws alternate, as those of NUTS do, have an ESS beyond their number, but its
    estimate is then so noisy that one good chain in fifteen would seem to drift. Effective draws
    are as many independent ones as would give the mean this error.
    """
    deviation = values.std(axis=(0, 1), ddof=1)
    error = np.maximum(mcse(values), deviation / np.sqrt(values.shape[0] * values.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        return error, (deviation / error) ** 2


def _find_worst(
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


def _check_statistics(draws: Draws, limits: Thresholds, remedies: Remedies) -> Iterator[Finding]:
    """Yield the findings on acceptance, divergences and energy, as far as they are recorded."""
    if "acceptance_rate" in draws.statistics:
        rates = np.asarray(draws.statistics["acceptance_rate"]).mean(axis=1)
        sound = _HAMILTONIAN if "diverging" in draws.statistics else _OTHER
        sound = sound if draws.record.figures.step_setting is None else _WALK
        low, high = limits.acceptance or sound
        worst = int(np.argmax(np.maximum(low - rates, rates - high)))
        rate = float(rates[worst])
        side = "large" if rate < low else "small"
        remedy = remedies.other_steps(larger=side == "small")
        advice = f"acceptance {rate:.2g}, as steps are too {side} for this posterior: {remedy}"
        limit, passed = f"{low:g} to {high:g}", low <= rate <= high
        yield Finding("acceptance", rate, f"chain {worst}", limit, passed, advice)
    if "diverging" in draws.statistics:
        count = int(np.sum(draws.statistics["diverging"]))
        advice = (
            f"{count} divergent transitions: {remedies.of_nuts(_MAX_ACCEPT, 'raise target_accept')}"
            "; in a model of your own, use a non-centred parametrisation (scale × standard normal)"
        )
        yield Finding("divergences", count, "", "= 0", count == 0, advice)
    if "energy" in draws.statistics:
        remedy = remedies.of_nuts(_MAX_ACCEPT, "take shorter steps")
        slow = f"BFMI {{value:.2f}}: the energy mixes slowly; {remedy}, or reparametrise the model"
        fractions = bfmi(draws.statistics["energy"])
        labels = [f"chain {c}" for c in range(len(fractions))]
        yield _find_worst("BFMI", fractions, labels, limits.bfmi, slow, -1)


def _check_density(draws: Draws) -> Iterator[Finding]:
    """Yield a finding if a recorded log density is not finite."""
    if draws.log_density is not None and (count := int(np.sum(~np.isfinite(draws.log_density)))):
        advice = f"the log density of {count} draws is not finite: the model cannot be evaluated"
        yield Finding("log density", float(count), "", "all finite", False, advice)


def _check_gaussian_prior(draws: Draws) -> Iterator[Finding]:
    """Yield how far the Gaussian of a posterior, as a prior, shifts the weights; it never fails."""
    if (record := draws.record.shift) is not None:
        shifts = (record.shift or {"unknown": np.nan}).items()
        feature, shift = max(shifts, key=lambda item: abs(item[1]))
        name = "shift by the prior's Gaussian (sd)"
        yield Finding(name, abs(shift), feature, "reported", True, "")


def _check_copies(draws: Draws) -> Iterator[Finding]:
    """Yield a finding if some chains are copies of others, or repeat their own draws."""
    if pairs := find_copied_chains(draws.weights):
        first, second = pairs[0]
        advice = (
            f"chains {first} and {second} have the same draws: they are one run, read or passed "
            "more than once; keep each run once, or give each its own seed"
        )
        if first == second:
            advice = (
                f"chain {first} returns to its earlier draws, as no sampler does: its draws were "
                "joined or resampled; pass each draw once"
            )
        where = f"chain {second}"
        yield Finding("copied chains", float(len(pairs)), where, "= 0", False, advice)


def _check_importance(draws: Draws, limits: Thresholds, remedies: Remedies) -> list[Finding]:
    """Return the findings on importance weights: Kish's effective sample size, Pareto k̂."""
    size, min_ess = kish(draws.importance), limits.importance_ess
    # Smoothed weights record the k̂ of the raw ones, which may be larger.
    computed = smooth_log_weights(np.asarray(draws.log_weight))[1]
    recorded = draws.record.figures.pareto_k
    k_hat = computed if recorded is None else float(np.fmax(recorded, computed))
    of_all = f"{size:.1f} effective samples of {len(draws.importance)} weighted ones"
    heavy = (
        f"Pareto k̂ {k_hat:.2f}, so heavy a tail of the importance weights that averages are "
        f"unreliable: {_MARKOV_CHAIN}"
    )
    # More draws from too narrow a distribution have as heavy a tail.
    shortage = min_ess / size if k_hat <= limits.pareto_k else np.inf
    few, passed = f"{of_all}: {remedies.more_samples(shortage)}", size >= min_ess
    limit = f"≤ {limits.pareto_k:g}"
    return [
        Finding("ESS of the weights", size, "", f"≥ {min_ess:g}", passed, few),
        Finding("Pareto k̂", k_hat, "", limit, k_hat <= limits.pareto_k, heavy),
    ]
