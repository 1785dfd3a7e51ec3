"""Which weights of a learned prior the domains share, and which differ."""

from __future__ import annotations

import numpy as np

from bpa_ppl.models.priors.learned import Hierarchy
from bpa_ppl.tables import text_table

#: The weight of a domain is specific if it is this many posterior standard deviations from μ.
MIN_Z = 2.0
#: A weight is shared if that interval, for every domain, is within this many standard deviations of
#: the prior from μ.
NEAR = 1.0


def as_table(hierarchy: Hierarchy) -> str:
    """Return the verdict on each weight as a text, one line a weight, the least shared first.

    Args:
        hierarchy: from `learn_hierarchy`.
    """
    unit = np.sqrt(hierarchy.prior_variance)  # the standard deviation of the prior
    between = np.sqrt(np.diagonal(hierarchy.between))
    rows = []
    for k in np.argsort(-between / unit, kind="stable"):
        domains = {label: domain for label, domain in hierarchy.domains.items() if domain.has[k]}
        z = {label: d.offset[k] / d.offset_deviation[k] for label, d in domains.items()}
        own = [f"{label} ({value:+.1f} sd)" for label, value in z.items() if abs(value) > MIN_Z]
        furthest = max(abs(d.offset[k]) + MIN_Z * d.offset_deviation[k] for d in domains.values())
        verdict = "shared" if furthest <= NEAR * unit[k] else "unknown"
        if len(domains) == 1:
            verdict = f"of {next(iter(domains))} alone"
        elif own:
            verdict = f"own: {', '.join(own)}"
        numbers = f"{hierarchy.mean[k]:.3f}", f"{between[k]:.3f}"
        rows.append((hierarchy.names[k], *numbers, verdict))
    return text_table(rows, ("weight", "mean", "between", ""), align="lrrl")
