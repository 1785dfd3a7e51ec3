"""Studies with samplers, tuners, rules and metrics of other packages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from raising import raises

from bpa_ppl import DataError, UsageError
from bpa_ppl.component import Count, Positive
from bpa_ppl.decoding.rules import Viterbi
from bpa_ppl.experiments import read_study, run_study
from bpa_ppl.experiments.page import write_figures
from bpa_ppl.experiments.results import read_results
from bpa_ppl.experiments.study import named_methods
from bpa_ppl.quality import Metric
from bpa_ppl.registry import METRICS, RULES, SAMPLERS, TUNERS
from bpa_ppl.sampling import Sampled, Sampler, Target
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


class ConstantSampler(Sampler, frozen=True):
    """A sampler whose draws are all the prior mean."""

    exact = False
    draws: Count = 1
    say: bool = True

    def sample(self, target: Target) -> Sampled:
        z = {
            site: np.tile(np.asarray(start), (1, self.draws, *[1] * np.ndim(start)))
            for site, start in target.start.items()
        }
        return Sampled(z, kind="point", log_density=np.zeros((1, self.draws)))


class ScalingTuner(Tuner, frozen=True):
    """A tuner that scales the canonical weights."""

    factor: Positive = 1.0

    def tune(self, problem: TuningProblem) -> Tuned:
        return Tuned(problem.start * self.factor, problem.start[None])


class CustomViterbi(Viterbi, frozen=True):
    """Viterbi under another name."""


class LengthRatio(Metric, frozen=True):
    """The length relative to the first reference."""

    key = "length"

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
def registered_methods() -> Iterator[None]:
    """Register the classes above for one test."""
    registries = (METRICS, RULES, SAMPLERS, TUNERS)
    for registry in registries:
        list(registry)  # entry points are loaded before, so that they remain
    known = [patch.dict(table) for r in registries for table in (r._members, r.registered)]
    for each in known:
        each.start()
    SAMPLERS.register("still", ConstantSampler)
    TUNERS.register("keep", ScalingTuner)
    RULES.register("toy", CustomViterbi)
    METRICS.register("length", LengthRatio)
    yield
    for each in known:
        each.stop()


@pytest.fixture
def study_with_registered_methods(registered_methods: None, study_file: Path) -> Path:
    study_file.write_text(STUDY, "utf-8")
    return study_file


def test_registered_methods_are_listed(registered_methods: None) -> None:
    methods = named_methods()
    assert (methods["still"].kind, methods["keep"].kind) == ("sampler", "tuner")
    changed = methods["still"].with_settings({"draws": 3, "say": False})
    assert changed.sampler() == ConstantSampler(draws=3, say=False)
    with raises(UsageError, "invalid-setting", parameter="draws"):
        methods["still"].with_settings({"draws": 0})
    with raises(UsageError, "invalid-setting", parameter="say"):
        methods["still"].with_settings({"say": 1})
    with raises(UsageError, "unknown-setting", parameter="say"):
        methods["keep"].with_settings({"say": True})


def test_invalid_settings_name_the_method(study_with_registered_methods: Path) -> None:
    text = study_with_registered_methods.read_text("utf-8").replace("factor = 2.0", "factor = -2")
    study_with_registered_methods.write_text(text, "utf-8")
    with raises(DataError, "invalid-setting"):
        read_study(study_with_registered_methods)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_registered_methods_run(study_with_registered_methods: Path, jobs: int) -> None:
    """Constant or scaled canonical weights give the choices of the canonical weights."""
    study = read_study(study_with_registered_methods)
    folder = study_with_registered_methods.parent / "results"
    results, _ = read_results(run_study(study, folder, jobs=jobs).parent)
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
def test_registered_metric_is_plotted(study_with_registered_methods: Path) -> None:
    folder = study_with_registered_methods.parent / "results"
    run_study(read_study(study_with_registered_methods), folder)
    written = write_figures(folder)
    html = written[0].read_text("utf-8")
    assert "LENGTH against |A|" in html
    assert ">words</th>" in html
    assert folder / "length.png" in written
