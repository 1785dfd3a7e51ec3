"""Constants chosen on held-out adaptation sentences, without the test sets.

    python benchmarks/bench_held_out.py [--tables NAME ...] [--draws 10] [--gains NAME ...]
        [--gammas N ...]

Tables:
    gamma      γ of the margin with each gain: per edit for TER, and per standard deviation within
               the lists for other gains
    risk       κ of the risk, compared with the margin and the published likelihood
    strength   how strongly learned priors are shrunk; margin, learned from 100 sentences of each
               of the two other domains
    shrinkage  the variance that learned priors are shrunk to

A is drawn with replacement (seeds 0, 1, ..., the same for every row) from the first 250 adaptation
sentences of a domain, and the choices of the posterior mode are scored on the other 250. A cell has
the mean TER ± two standard deviations over the draws / BLEU / length ratio, averaged over the
domains; `sum` is the mean TER over the sizes plus half of the mean ±: less is better.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from bench_learned_priors import MARGIN, Learning
from measuring import DOMAINS, ScoreTable, Task, domain_task, run_tables

from bpa_ppl.models.likelihoods.likelihood import Observations, round_setting
from bpa_ppl.models.likelihoods.oracle import Margin, Risk

SIZES = (10, 20, 50, 100)


class PerEdit(Margin, frozen=True):
    """The margin with γ per edit, or per standard deviation of another gain within the lists."""

    edits: float = 0.0

    def defaults(self, observed: Observations) -> Margin:
        """Return the margin with γ per unit of the gain."""
        return Margin(gamma=round_setting(self.edits / (observed.edit or 1.0)))


@cache
def half_task(domain: str) -> Task:
    """Return the first half of the adaptation lists to draw from, and the second to test on."""
    pool = domain_task(domain).pool
    half = len(pool) // 2
    return Task.of(pool[:half], pool[half:])


def likelihood_table(
    options: Any, title: str, rows: Mapping[str, Any], metric: str = "ter"
) -> None:
    """Print the scores with several likelihoods."""
    table = ScoreTable(title, SIZES, options.draws, total=True)
    for name, likelihood in rows.items():
        settings = {"likelihood": likelihood, "gain": metric}
        table.add(name, *(partial(half_task(d).score_draw, **settings) for d in DOMAINS))


def prior_table(options: Any, setting: str, values: tuple[float, ...]) -> None:
    """Print the scores with learned priors, for several values of a setting."""
    learning = Learning(lambda domain, seed: half_task(domain), likelihood=MARGIN)
    table = ScoreTable("learned prior, margin", (0, *SIZES), options.draws, total=True)
    for value in values:
        domains = (partial(learning.score_draw, d, {setting: value}) for d in DOMAINS)
        table.add(f"{setting} = {value:g}", *domains)


def gamma_table(options: Any) -> None:
    """Print the scores with several values of γ, for each gain."""
    rows = {f"γ = {value:g}": PerEdit(edits=value) for value in options.gammas}
    for gain in options.gains:
        likelihood_table(options, f"margin, gain {gain}", rows, gain)


def risk_table(options: Any) -> None:
    """Print the scores with several values of κ."""
    rows = {"published": "oracle", "margin, γ = 2": MARGIN}
    rows |= {f"risk, κ = {value:g}": Risk(kappa=value) for value in (1.0, 2.0, 4.0, 8.0)}
    likelihood_table(options, "risk", rows)


if __name__ == "__main__":
    tables = {
        "gamma": gamma_table,
        "risk": risk_table,
        "strength": partial(prior_table, setting="strength", values=(1, 2.5, 5, 10, 20)),
        "shrinkage": partial(
            prior_table, setting="shrinkage", values=(0.0125, 0.025, 0.05, 0.1, 0.2)
        ),
    }
    run_tables(
        __doc__,
        tables,
        draws=10,
        gains=("ter", "bleu", "chrf", "ter+bleu"),
        gammas=(0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    )
