"""A Gaussian in place of a posterior: how far it shifts the weights is measured and reported."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import reference_model

from bpa_ppl import Prior, adapt, check, write_posterior
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.adapting.finish import report_shift
from bpa_ppl.errors import BpaWarning
from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.files import read_draws
from bpa_ppl.posterior.record import ComponentRecord, Record

NAMES = ["LM0", "TM0", "WP0"]
CANONICAL = dict.fromkeys(NAMES, 0.2)
#: Old lists that make a skewed posterior, and new ones that contradict them.
OLD, LISTS = 6, 12
DIFFERENCES = np.abs(np.random.default_rng(2).normal(size=(LISTS, 3))) * [4.0, 2.0, 1.0]
MILD, STRONG = 0.4, 1.0


def posterior_of(
    first: int, last: int, *, contradiction: float, draws: int = 2000, **options: Any
) -> Draws:
    differences = DIFFERENCES.copy()
    differences[OLD:] *= -contradiction
    lists = reference_model.pairs(-differences[first:last], NAMES)
    oracle = reference_model.given(*[0] * (last - first))
    options = {"prior": "isotropic:variance=4", **options}
    options |= {"sampler": f"imh:draws={draws}", "likelihood": "oracle", "seed": 1}
    return as_draws(adapt(lists, CANONICAL, gain=oracle, **options))


@cache
def old() -> Draws:
    return posterior_of(0, OLD, contradiction=0.0)


@pytest.mark.slow
def test_the_reported_shift_is_that_of_the_joint_posterior(tmp_path: Path) -> None:
    with pytest.warns(BpaWarning, match="standard deviations"):
        updated = posterior_of(OLD, 9, contradiction=MILD, prior=Prior.of(old()))
    joint = posterior_of(0, 9, contradiction=MILD)
    record = updated.record.shift
    shift = np.array([record.shift[name] for name in NAMES])
    exact = (updated.mean - joint.mean) / updated.deviation
    assert np.abs(exact).max() > 0.3  # a shift that matters
    assert record.pareto_k <= 0.7
    assert record.error < 0.07
    assert np.abs(shift - exact).max() < 4 * record.error
    write_posterior(updated, tmp_path / "updated.nc")
    report = check(read_draws(tmp_path / "updated.nc"))
    finding = next(f for f in report.findings if f.limit == "reported")
    worst = int(np.abs(shift).argmax())
    assert (finding.value, finding.where) == (pytest.approx(abs(shift[worst])), NAMES[worst])
    assert finding.passed


@pytest.mark.slow
def test_a_shift_that_old_draws_cannot_estimate_is_unknown() -> None:
    with pytest.warns(BpaWarning, match="cannot be estimated"):
        updated = posterior_of(OLD, LISTS, contradiction=STRONG, prior=Prior.of(old()))
    assert updated.record.shift.pareto_k > 0.7
    assert (updated.record.shift.shift, updated.record.shift.error) == ({}, None)
    assert [f.where for f in check(updated).findings if f.limit == "reported"] == ["unknown"]


def test_updates_in_a_row_are_counted() -> None:
    weights = np.random.default_rng(3).normal(0.2, 0.5, size=(4, 1000, 3))
    drawn = Draws({"weights": weights}, tuple(NAMES))
    with capture_notes() as notes:
        first = posterior_of(OLD, 9, contradiction=0.01, prior=Prior.of(drawn), draws=500)
        second = posterior_of(9, LISTS, contradiction=0.01, prior=Prior.of(first), draws=500)
    assert [draws.record.shift.updates for draws in (first, second)] == [1, 2]
    assert any("2 in a row" in note.message for note in notes)


def test_another_prior_has_no_shift() -> None:
    prior = Prior.gaussian(dict.fromkeys(NAMES, 0.0), np.eye(3))
    updated = posterior_of(OLD, 9, contradiction=MILD, prior=prior, draws=500)
    assert updated.record.shift is None
    assert all(finding.limit != "reported" for finding in check(updated).findings)


def test_other_settings_of_the_likelihood_are_warned_about() -> None:
    def with_kappa(kappa: float) -> Draws:
        record = Record(likelihood=ComponentRecord("risk", {"kappa": kappa}))
        return Draws({"weights": np.zeros((1, 4, 1))}, ("LM0",), record=record)

    risk, other = with_kappa(1.5), with_kappa(2.0)
    with pytest.warns(BpaWarning, match=r"kappa=2.0.*kappa=1.5"):
        report_shift(None, risk, other)
    report_shift(None, risk, risk)
    answers = Record(likelihood=ComponentRecord("preference"))
    report_shift(None, risk, replace(risk, record=answers))  # gains, then answers
