"""The page about a learned prior: which weights the domains share, and which differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bpa_ppl.arrays import Float64
from bpa_ppl.diagnostics.pages.page import Section, Table, Verdict, page
from bpa_ppl.models.priors.learned import Hierarchy
from bpa_ppl.posterior import Draws
from bpa_ppl.tables import text_table

#: The weight of a domain is specific if it is this many posterior standard deviations from μ.
MIN_Z = 2.0
#: A weight is shared if that interval, for every domain, is within this many standard deviations of
#: the prior from μ.
NEAR = 1.0
_WIDE = 1.96  # standard deviations of a 95 % interval


class Sharing(NamedTuple):
    """One weight over the domains.

    Attributes:
        name: of the feature.
        mean: μ.
        uncertainty: the standard deviation of μ.
        between: the standard deviation of the weights of domains around μ, √Σ.
        unit: the standard deviation of its prior before any domain was seen.
        weights: by domain, of those that have the feature.
        deviations: their posterior standard deviations.
        specific: domains with a specific weight, and its distance in posterior standard deviations.
        near: whether the weights of all domains are within `NEAR` units of μ.
    """

    name: str
    mean: float
    uncertainty: float
    between: float
    unit: float
    weights: dict[str, float]
    deviations: dict[str, float]
    specific: dict[str, float]
    near: bool

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if len(self.weights) == 1:
            return f"of {next(iter(self.weights))} alone"
        if self.specific:
            return "own: " + ", ".join(f"{name} ({z:+.1f} sd)" for name, z in self.specific.items())
        return "shared" if self.near else "unknown"


def sharing(hierarchy: Hierarchy) -> list[Sharing]:
    """Return how domains share each weight, the least shared weight first.

    Args:
        hierarchy: from `learn_hierarchy`.
    """
    rows = []
    for k, name in enumerate(hierarchy.names):
        domains = {label: domain for label, domain in hierarchy.domains.items() if domain.has[k]}
        unit = float(np.sqrt(hierarchy.prior_variance[k]))
        furthest = [abs(d.offset[k]) + MIN_Z * d.offset_deviation[k] for d in domains.values()]
        z = {label: float(d.offset[k] / d.offset_deviation[k]) for label, d in domains.items()}
        row = Sharing(
            name=name,
            mean=float(hierarchy.mean[k]),
            uncertainty=_deviation(hierarchy.mean_covariance, k),
            between=_deviation(hierarchy.between, k),
            unit=unit,
            weights={label: float(domain.mean[k]) for label, domain in domains.items()},
            deviations={label: _deviation(d.covariance, k) for label, d in domains.items()},
            specific={label: value for label, value in z.items() if abs(value) > MIN_Z},
            near=bool(max(furthest) <= NEAR * unit),
        )
        rows.append(row)
    # In units of the prior; the least shared weight comes first.
    return sorted(rows, key=lambda row: -row.between / row.unit)


def as_table(hierarchy: Hierarchy) -> str:
    """Return the verdict on each weight as a text, one line a weight."""
    rows = [(r.name, f"{r.mean:.3f}", f"{r.between:.3f}", r.verdict) for r in sharing(hierarchy)]
    return text_table(rows, ("weight", "mean", "between", ""), align="lrrl")


def learned_prior_page(hierarchy: Hierarchy, draws: Mapping[str, Draws]) -> str:
    """Return a self-contained HTML page about a learned prior.

    Args:
        hierarchy: from `learn_hierarchy`.
        draws: the posteriors, by the same labels.
    """
    rows, labels = sharing(hierarchy), list(hierarchy.domains)
    canonical: dict[str, float] = {}
    for posterior in draws.values():
        if posterior.canonical is not None:
            canonical |= dict(zip(posterior.features, posterior.canonical.tolist(), strict=True))
    header = ("weight", "", "canonical", "mean μ", "± sd", "between domains", "new domain")
    cells: list[list[str]] = []
    for row in rows:
        numbers = (canonical.get(row.name), row.mean, row.uncertainty, row.between)
        shown = ["–" if number is None else f"{number:.3g}" for number in numbers]
        reach = _WIDE * float(np.hypot(row.uncertainty, row.between))
        shown.append(f"{row.mean - reach:.3g} to {row.mean + reach:.3g}")
        shown += [
            f"{row.weights[label]:.3g} ± {row.deviations[label]:.2g}"
            if label in row.weights
            else "–"
            for label in labels
        ]
        cells.append([row.name, row.verdict, *shown])
    note = (
        "The weights of a domain are a draw from N(μ, Σ). A weight is specific to a domain (own) "
        f"if it is more than {MIN_Z:g} posterior standard deviations from μ. It is shared if these "
        f"intervals of all domains are within {NEAR:g} prior standard deviation from μ; otherwise "
        "more sentences are needed. Weights are sorted by their variation between domains, in "
        "units of their prior. New domain: its predictive 95% interval; ±: standard deviations."
    )
    learned = [
        [label, str(posterior.attrs.get("adaptation_sentences", "–")), str(len(posterior.features))]
        for label, posterior in draws.items()
    ]
    verdicts = [row.verdict for row in rows]
    specific = sum(bool(row.specific) for row in rows)
    summary = (
        f"{verdicts.count('shared')} of {len(rows)} weights are shared by all domains"
        + (f", {specific} are specific to some domain" if specific else "")
        + (f", {unknown} are unknown" if (unknown := verdicts.count("unknown")) else "")
    )
    sections = [
        Section("Weights", (note, Table([*header, *labels], cells))),
        Section("Domains", (Table(("domain", "sentences", "weights"), learned),)),
    ]
    return page("Learned prior", Verdict(summary), sections)


def _deviation(covariance: Float64, k: int) -> float:
    return float(np.sqrt(covariance[k, k]))
