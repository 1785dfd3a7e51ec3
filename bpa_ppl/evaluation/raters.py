"""The raters of a posterior of preferences: how they agree, and how often each one slips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from bpa_ppl.adaptation_record import AdaptationRecord, Agreement
from bpa_ppl.diagnostics.page import Outcome, Section, Table
from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.posterior.draws import quantiles
from bpa_ppl.weight_draws import RATER, SLIP

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

_PROBABILITY = 0.95


@dataclass(frozen=True)
class Raters(Outcome):
    """The raters of a posterior; `str` gives a table.

    Attributes:
        choices: the number of choices of each rater who has a name.
        agreement: on pairs that several raters answered; None with fewer than two raters.
        slips: the mean of each rater's slip rate, and the ends of its equal-tailed 95% interval;
            empty if all raters have one rate.

    >>> slips = {"ann": (0.03, 0.01, 0.07), "bob": (0.3, 0.2, 0.4)}
    >>> print(Raters({"ann": 12, "bob": 8}, Agreement(2, 5, 4, 0.6), slips))
    2 raters answered 5 pairs in common, and agreed on 4 (Krippendorff's α 0.60)
    rater  choices  slip rate  95% interval
    ann    12       0.030      0.010 to 0.070
    bob    8        0.300      0.200 to 0.400
    """

    choices: Mapping[str, int]
    agreement: Agreement | None
    slips: Mapping[str, tuple[float, float, float]]

    def _summarise(self) -> tuple[str, Table, Sequence[str]]:
        header = ["rater", "choices"]
        if self.slips:
            header += ["slip rate", f"{100 * _PROBABILITY:g}% interval"]
        rows = []
        for name in dict.fromkeys([*self.choices, *self.slips]):
            row = [name, str(self.choices.get(name, ""))]
            if name in self.slips:
                mean, low, high = self.slips[name]
                row += [f"{mean:.3f}", f"{low:.3f} to {high:.3f}"]
            rows.append(row + [""] * (len(header) - len(row)))
        caption = "The slip rate is the probability of a random answer." if self.slips else ""
        title = "" if self.agreement is None else str(self.agreement)
        return title, Table(header, rows, caption), ()

    def section(self) -> Section:
        """Return the section of a page.

        >>> Raters({"ann": 12}, None, {}).section().title
        'Raters'
        """
        agree, table, _ = self._summarise()
        return Section("Raters", [*([f"{agree}."] if agree else []), table])

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON.

        >>> Raters({"ann": 12}, None, {"ann": (0.03, 0.01, 0.07)}).as_dict()["slips"]
        {'ann': {'mean': 0.03, 'interval': [0.01, 0.07]}}
        """
        return {
            "choices": dict(self.choices),
            "agreement": None if self.agreement is None else structs.asdict(self.agreement),
            "slips": {n: {"mean": m, "interval": [*ends]} for n, (m, *ends) in self.slips.items()},
        }


def compare_raters(posterior: Posterior) -> Raters | None:
    """Return what a posterior records of its raters; None if it names none.

    >>> values = {"slip": np.array([[[0.125], [0.375]]])}
    >>> coords, dims = {"rater": ("ann",)}, {"slip": ("rater",)}
    >>> from bpa_ppl.adaptation_record import ObservedRecord
    >>> record = AdaptationRecord(observed=ObservedRecord(raters={"ann": 12})).add_to()
    >>> from bpa_ppl.posterior.draws import Draws
    >>> draws = Draws(values, coords=coords, dims=dims, record=record)
    >>> compare_raters(draws).slips["ann"][0]
    0.25
    """
    draws = as_draws(posterior)
    observed = AdaptationRecord.of(draws.record).observed
    slips: dict[str, tuple[float, float, float]] = {}
    if SLIP in draws.values and draws.dims.get(SLIP) == (RATER,):
        rates = np.asarray(draws.values[SLIP], np.float64)
        rates = rates.reshape(-1, rates.shape[-1])
        names = draws.label_cells(SLIP)
        mean = np.average(rates, axis=0, weights=draws.importance)
        tail = (1 - _PROBABILITY) / 2
        low, high = quantiles(rates, (tail, 1 - tail), draws.importance).tolist()
        slips = dict(zip(names, zip(mean.tolist(), low, high, strict=True), strict=True))
    if not observed.raters and not slips:
        return None
    return Raters(observed.raters, observed.agreement, slips)
