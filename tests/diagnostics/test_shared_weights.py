"""The verdicts on the weights of a learned prior: shared by the domains, or specific to one."""

from __future__ import annotations

import numpy as np

from bpa_ppl import Draws
from bpa_ppl.diagnostics.learned_prior import as_table
from bpa_ppl.models.priors.learned import DomainWeights, Hierarchy


def test_each_weight_has_its_verdict() -> None:
    """One weight of each kind, of a prior variance of 0.25; only the films have `lm`."""
    apart = {"talks": [0.02, 0.3, 0.1, 0.0], "films": [0.0, -0.1, 0.0, 0.0]}
    deviation, mean = np.array([0.05, 0.1, 0.4, 0.3]), np.array([0.5, 1.0, -0.5, 0.2])
    domains = {}
    for label in ("talks", "films", "leaflets"):
        offset, has = (
            np.array(apart.get(label, [0.0] * 4)),
            np.array([True] * 3 + [label == "films"]),
        )
        domains[label] = DomainWeights(mean + offset, 0.01 * np.eye(4), offset, deviation, has)
    between = np.diag(np.square([0.01, 0.3, 0.1, 0.2]))
    names = ("alike", "apart", "unsure", "lm")
    hierarchy = Hierarchy(names, mean, 0.01 * np.eye(4), between, domains, np.full(4, 0.25), 7)
    rows = [line.split(maxsplit=3) for line in as_table(hierarchy).splitlines()[1:]]
    assert rows == [  # in the order of √Σ in units of the prior
        ["apart", "1.000", "0.300", "own: talks (+3.0 sd)"],
        ["lm", "0.200", "0.200", "of films alone"],
        ["unsure", "-0.500", "0.100", "unknown"],
        ["alike", "0.500", "0.010", "shared"],
    ]
    posteriors = [
        Draws(
            {"weights": np.zeros((1, 1, 4))},
            names,
            "point",
            attrs={"feature_scales": {n: {"spread": spread} for n in names}},
        )
        for spread in (2.0, 8.0)
    ]
    head, first, *_ = as_table(hierarchy, posteriors).splitlines()
    assert head.startswith("weight × standard deviation within lists")
    assert first.split()[:3] == ["apart", "4.000", "1.200"]
