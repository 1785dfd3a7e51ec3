"""Which weights of a learned prior the domains share, and which differ."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bpa_ppl.drift import recorded_scales
from bpa_ppl.models.priors.learned import Hierarchy
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.tables import text_table

#: The weight of a domain is specific if it is this many posterior standard deviations from μ.
MIN_Z = 2.0
#: A weight is shared if that interval, for every domain, is within this many standard deviations of
#: the prior from μ.
NEAR = 1.0


def as_table(hierarchy: Hierarchy, posteriors: Iterable[Draws] = ()) -> str:
    """Return the verdict on each weight as a text, one line a weight, the least shared first.

    Numbers are for one standard deviation of the feature within lists, the geometric mean over the
    domains, or in raw units where a posterior does not record it.

    Args:
        hierarchy: from `learn_hierarchy`.
        posteriors: of the domains.
    """
    scales = [recorded_scales(draws.attrs) for draws in posteriors]
    spreads = [[s[name].spread for s in scales if name in s] for name in hierarchy.names]
    known = all(scales) and all(spreads) and all(min(of, default=0) > 0 for of in spreads)
    size = [np.exp(np.log(of).mean()) if known else 1.0 for of in spreads]
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
        numbers = f"{hierarchy.mean[k] * size[k]:.3f}", f"{between[k] * size[k]:.3f}"
        rows.append((hierarchy.names[k], *numbers, verdict))
    title = "weight × standard deviation within lists" if known else "weight, raw units"
    return text_table(rows, (title, "mean", "between", ""), align="lrrl")
