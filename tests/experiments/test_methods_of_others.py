"""Samplers, tuners, rules and metrics of others in a study, registered from outside the package."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from bpa_ppl import DataError, UsageError
from bpa_ppl.component import Count, Positive
from bpa_ppl.decoding.viterbi import Viterbi
from bpa_ppl.experiments import read_results, read_study, run_study, write_figures
from bpa_ppl.experiments.methods import named_methods
from bpa_ppl.quality import Metric
from bpa_ppl.registry import METRICS, RULES, SAMPLERS, TUNERS
from bpa_ppl.sampling.base import Sampled, Sampler, Target
from bpa_ppl.tuning.base import Tuned, Tuner, TuningProblem

STUDY = """
sizes = [4]
draws = 2
methods = ["canonical", "still", "doubled", "keep", "by-toy-rule", "by-viterbi"]

[domains.leaflet]
weights = "moses.ini"
adapt = "nbest"
adapt_references = ["ref"]
held_out = 10

[variants.doubled]
like = "keep"
factor = 2.0
metric = "ter"

[variants.by-toy-rule]
like = "still"
rule = "toy"

[variants.by-viterbi]
like = "still"
rule = "viterbi"
"""


class Still(Sampler, frozen=True):
    """Draws that never leave the mean of the prior."""

    exact = False
    draws: Count = 2
    say: bool = True

    def sample(self, target: Target) -> Sampled:
        z = {
            site: np.tile(np.asarray(start), (1, self.draws, *[1] * np.ndim(start)))
            for site, start in target.start.items()
        }
        return Sampled(z, kind="point", log_density=np.zeros((1, self.draws)))


class Keep(Tuner, frozen=True):
    """The canonical weights, longer."""

    factor: Positive = 1.0

    def tune(self, problem: TuningProblem) -> Tuned:
        return Tuned(problem.start * self.factor, problem.start[None])


class Toy(Viterbi, frozen=True):
    """Viterbi under another name."""


class Length(Metric, frozen=True):
    """How many words there are for each word of the first reference."""

    key = "length"
    counted = True

    def counts(self, lists: Any, references: Any) -> Any:
        pairs = [
            (len(text.split()), len(refs[0].split()))
            for texts, refs in zip(lists, references, strict=True)
            for text in texts
        ]
        return np.array(pairs, np.float64).reshape(-1, 2)

    def value(self, sums: Any) -> Any:
        return 100 * sums[..., 0] / np.maximum(sums[..., 1], 1)

    def details_of(self, sums: Any) -> dict[str, float]:
        return {"words": float(sums[0])}


@pytest.fixture
def others() -> Iterator[None]:
    """Register what is above for one test."""
    registries = (METRICS, RULES, SAMPLERS, TUNERS)
    for registry in registries:
        list(registry)  # what other packages offer is found before, and stays
    known = [patch.dict(table) for r in registries for table in (r._members, r.registered)]
    for each in known:
        each.start()
    SAMPLERS.register("still", Still)
    TUNERS.register("keep", Keep)
    RULES.register("toy", Toy)
    METRICS.register("length", Length)
    yield
    for each in known:
        each.stop()


@pytest.fixture
def others_study(others: None, study_file: Path) -> Path:
    study_file.write_text(STUDY, "utf-8")
    return study_file


def test_they_are_methods(others: None) -> None:
    known = named_methods()
    assert (known["still"].kind, known["keep"].kind) == ("sampler", "tuner")
    assert known["still"].with_settings({"draws": 3, "say": False}).sampler() == Still(
        draws=3, say=False
    )
    with pytest.raises(UsageError, match="draws must be an integer ≥ 1, not 0"):
        known["still"].with_settings({"draws": 0})
    with pytest.raises(UsageError, match="say must be true or false, not 1"):
        known["still"].with_settings({"say": 1})
    with pytest.raises(UsageError, match="the tuner keep has no setting say: it has factor"):
        known["keep"].with_settings({"say": True})


def test_mistakes_in_their_settings_have_a_place(others_study: Path) -> None:
    text = others_study.read_text("utf-8").replace("factor = 2.0", "factor = -2")
    others_study.write_text(text, "utf-8")
    with pytest.raises(DataError, match=r"in \[variants.doubled\]: factor must be .* > 0"):
        read_study(others_study)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_they_run(others_study: Path, jobs: int) -> None:
    """Weights that stay as they are, or grow, choose what the canonical weights choose."""
    study = read_study(others_study)
    results, _ = read_results(run_study(study, others_study.parent / "results", jobs=jobs).parent)
    rows = results.to_pylist()
    assert {row["method"] for row in rows} == {method.name for method in study.methods}
    canonical = next(row for row in rows if row["method"] == "canonical")
    for row in rows:
        assert row["ter_counts"] == canonical["ter_counts"], row["method"]
        assert row["length_counts"] == canonical["length_counts"]
        counts = np.reshape(row["length_counts"], (-1, 2)).sum(axis=0)
        assert row["length"] == pytest.approx(100 * counts[0] / counts[1])
        assert row["words"] == counts[0]


@pytest.mark.slow
def test_a_metric_of_others_is_drawn(others_study: Path) -> None:
    folder = run_study(read_study(others_study), others_study.parent / "results").parent
    written = write_figures(folder)
    html = written[0].read_text("utf-8")
    assert "LENGTH against |A|" in html
    assert ">words</th>" in html
    assert folder / "length.png" in written
