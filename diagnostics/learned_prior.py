"""What a learned prior found: which weights all domains share, and which are a domain's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from bpa_ppl.diagnostics.pages.page import Section, Table, Verdict, page
from bpa_ppl.models.priors.learned import Hierarchy
from bpa_ppl.nbest import Float64
from bpa_ppl.posterior import Draws

#: A weight is a domain's own where it lies so many posterior standard deviations from μ.
APART = 2.0


class Sharing(NamedTuple):
    """One weight over the domains.

    Attributes:
        name: of the feature.
        mean: μ.
        uncertainty: the standard deviation of μ.
        between: the standard deviation of the weights of domains around μ, √Σ.
        weights: by domain; those that have the feature.
        own: domains whose weight lies apart, and by how many posterior standard deviations.
    """

    name: str
    mean: float
    uncertainty: float
    between: float
    weights: dict[str, float]
    own: dict[str, float]

    @property
    def verdict(self) -> str:
        """Who has this weight, in words."""
        if len(self.weights) == 1:
            return f"of {next(iter(self.weights))} alone"
        if not self.own:
            return "shared"
        return "own: " + ", ".join(f"{label} ({z:+.1f} sd)" for label, z in self.own.items())


def sharing(found: Hierarchy) -> list[Sharing]:
    """Return for each weight what domains share of it, the least shared first.

    Args:
        found: from `learn_hierarchy`.
    """
    apart = {
        label: domain.apart / domain.apart_deviation for label, domain in found.domains.items()
    }
    rows = []
    for k, name in enumerate(found.names):
        have = [label for label, domain in found.domains.items() if domain.has[k]]
        rows.append(
            Sharing(
                name,
                float(found.mean[k]),
                _deviation(found.mean_covariance, k),
                _deviation(found.between, k),
                {label: float(found.domains[label].mean[k]) for label in have},
                {label: float(apart[label][k]) for label in have if abs(apart[label][k]) > APART},
            )
        )
    # In units of the prior: what varies most is least shared.
    unit = dict(zip(found.names, np.sqrt(found.prior_variance).tolist(), strict=True))
    return sorted(rows, key=lambda row: -row.between / unit[row.name])


def as_table(found: Hierarchy) -> str:
    """Return as text which weights are shared, one a line."""
    rows = [("weight", "mean", "between", "")]
    rows += [(r.name, f"{r.mean:.3f}", f"{r.between:.3f}", r.verdict) for r in sharing(found)]
    width = max(len(row[0]) for row in rows)
    return "\n".join(f"{n:<{width}}{m:>9}{b:>9}  {v}".rstrip() for n, m, b, v in rows)


def learned_prior_page(found: Hierarchy, draws: Mapping[str, Draws]) -> str:
    """Return a page: what domains share, and where it was learned.

    Args:
        found: from `learn_hierarchy`.
        draws: the posteriors, by the same labels.
    """
    rows = sharing(found)
    canonical: dict[str, float] = {}
    for one in draws.values():
        if one.canonical is not None:
            canonical |= dict(zip(one.features, one.canonical.tolist(), strict=True))
    labels = list(found.domains)
    header = ("weight", "canonical", "mean μ", "± sd", "between domains", *labels, "")
    cells = [
        [
            row.name,
            *(_number(canonical.get(row.name)), _number(row.mean)),
            *(_number(row.uncertainty), _number(row.between)),
            *(_number(row.weights.get(label)) for label in labels),
            row.verdict,
        ]
        for row in rows
    ]
    note = (
        "The weights of a domain are a draw of N(μ, Σ). A weight is a domain's own where it lies "
        f"more than {APART:g} posterior standard deviations from μ; those that vary most between "
        "domains, in units of their prior, come first."
    )
    learned = [
        [label, str(one.attrs.get("adaptation_sentences", "–")), str(len(one.features))]
        for label, one in draws.items()
    ]
    shared = sum(row.verdict == "shared" for row in rows)
    return page(
        "Learned prior",
        Verdict(f"{shared} of {len(rows)} weights are shared by all domains", None),
        [
            Section("Weights", (Table(header, cells, note),)),
            Section("Domains", (Table(("domain", "sentences", "weights"), learned),)),
        ],
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _deviation(covariance: Float64, k: int) -> float:
    return float(np.sqrt(covariance[k, k]))
