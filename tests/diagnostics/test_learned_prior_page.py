"""The page of a learned prior: which weights domains share, which are a domain's own."""

from __future__ import annotations

import numpy as np
import pytest
from html_outline import Outline

from bpa_ppl.diagnostics.learned_prior import as_table, learned_prior_page, sharing
from bpa_ppl.models.priors.learned import DomainWeights, Hierarchy
from bpa_ppl.posterior import Draws

NAMES = ("alike", "apart", "unsure", "lm")
LABELS = ("talks", "films", "leaflets")


def hierarchy() -> Hierarchy:
    """One weight of each kind, of a prior variance of 0.25; only the films have `lm`."""
    apart = {"talks": [0.02, 0.3, 0.1, 0.0], "films": [0.0, -0.1, 0.0, 0.0]}
    deviation = np.array([0.05, 0.1, 0.4, 0.3])
    mean = np.array([0.5, 1.0, -0.5, 0.2])
    domains = {
        label: DomainWeights(
            mean + apart.get(label, np.zeros(4)),
            np.diag(np.square([0.1, 0.2, 0.3, 0.4])),
            np.asarray(apart.get(label, np.zeros(4))),
            deviation,
            np.array([True, True, True, label == "films"]),
        )
        for label in LABELS
    }
    between = np.diag(np.square([0.01, 0.3, 0.1, 0.2]))
    return Hierarchy(NAMES, mean, 0.01 * np.eye(4), between, domains, np.full(4, 0.25), 7)


def test_each_weight_has_its_verdict() -> None:
    rows = {row.name: row for row in sharing(hierarchy())}
    assert list(rows) == ["apart", "lm", "unsure", "alike"]  # in the order of √Σ in prior units
    assert {name: row.verdict for name, row in rows.items()} == {
        "alike": "shared",
        "apart": "own: talks (+3.0 sd)",
        "unsure": "unknown",
        "lm": "of films alone",
    }
    assert rows["alike"].deviations == pytest.approx(dict.fromkeys(LABELS, 0.1))
    assert rows["apart"].unit == pytest.approx(0.5)
    assert "own: talks (+3.0 sd)" in as_table(hierarchy())


def test_the_page_begins_with_the_verdict() -> None:
    given = {
        label: Draws(
            {"weights": np.zeros((1, 2, 3))},
            NAMES[:3],
            constants={"canonical": np.array([0.5, 0.6, 0.7])},
            attrs={"adaptation_sentences": 10 * len(label)},
        )
        for label in LABELS
    }
    outline = Outline(learned_prior_page(hierarchy(), given))
    texts = " ".join(outline.texts)
    assert "1 of 4 weights are shared by all domains, 1 are specific" in texts
    assert "1 are unknown" in texts
    talks = {"apart": "1.3 ± 0.2", "lm": "–", "unsure": "-0.4 ± 0.3", "alike": "0.52 ± 0.1"}
    assert outline.column(0, "talks") == talks
    assert outline.column(0, "canonical")["apart"] == "0.6"
    assert outline.column(1, "sentences")["leaflets"] == "80"
    reach = 1.96 * np.hypot(0.3, 0.1)
    new = outline.column(0, "new domain")["apart"].split(" to ")
    assert list(map(float, new)) == pytest.approx([1 - reach, 1 + reach], rel=5e-3)
