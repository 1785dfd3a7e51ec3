"""Studies with samplers, tuners, rules and metrics of other packages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bpa_ppl.components import Count, Positive, Registry
from bpa_ppl.decoding.rules import RULES, Viterbi
from bpa_ppl.experiments.studies.results import read_results
from bpa_ppl.experiments.studies.running import run_study
from bpa_ppl.experiments.studies.study import read_study
from bpa_ppl.experiments.tuning.tuner import TUNERS, Tuned, Tuner, TuningProblem
from bpa_ppl.sampling.sampler import SAMPLERS, Sampler
from bpa_ppl.sampling.target import Sampled, Target

STUDY = """
sizes = [4]
draws = 2
methods = ["canonical", "still", "doubled", "by-toy-rule"]

[domains.leaflet]
weights = "moses.ini"
adapt = "nbest"
adapt_references = ["ref"]
held_out = 10

[variants.doubled]
like = "keep"
factor = 2.0
gain = "ter"

[variants.by-toy-rule]
like = "still"
rule = "toy"
"""


class ConstantSampler(Sampler, frozen=True):
    """A sampler whose draws are all the prior mean."""

    exact = False
    draws: Count = 1

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


@pytest.fixture
def study_with_registered_methods(registries: list[Registry], study_file: Path) -> Path:
    SAMPLERS.register("still", ConstantSampler)
    TUNERS.register("keep", ScalingTuner)
    RULES.register("toy", CustomViterbi)
    study_file.write_text(STUDY, "utf-8")
    return study_file


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_registered_methods_run(study_with_registered_methods: Path, jobs: int) -> None:
    """Constant or scaled canonical weights give the choices of the canonical weights."""
    study = read_study(study_with_registered_methods)
    folder = study_with_registered_methods.parent / "results"
    rows = read_results(run_study(study, folder, jobs=jobs).parent)[0].to_pylist()
    assert {row["method"] for row in rows} == {method.name for method in study.methods}
    canonical = next(row for row in rows if row["method"] == "canonical")
    for row in rows:
        assert row["ter_counts"] == canonical["ter_counts"], row["method"]
