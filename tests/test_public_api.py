"""The public API: names, signatures and defaults; a change of the API changes this file."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import bpa_ppl
from bpa_ppl import registry

FUNCTIONS = {
    "adapt": "nbest weights * preset=None sampler=None likelihood=None prior='isotropic' "
    "prior_variance=None seed=0 metric='ter' ties=None lower_is_better=None oracle=None "
    "prior_only=False jobs=1 cache=True fixed=None defaults=None features=None exclude=None "
    "categorical=None add=None extra=None model=None progress=False **settings",
    "add_features": "nbest sources",
    "as_draws": "posterior * finite=True",
    "check": "posterior thresholds=None",
    "compare_baselines": "nbest posterior=None * choice=None metric=None moved_files=None",
    "corpus_score": "hypotheses references metric='ter' * sources=None",
    "gains": "nbest metric='ter' * jobs=1 cache=True progress=None",
    "iter_nbest": "path * chunk=64 references=None sources=None format='auto' first_id=0 "
    "bad='error' strict=False",
    "learn_prior": "posteriors * shrinkage=None strength=None without=()",
    "next_sentences": "pool posterior * criterion='information' draws=500 defaults=None "
    "moved_files=None unchecked=False progress=False",
    "oracles": "nbest metric='ter' * ties='canonical' preference=None jobs=1 cache=True "
    "progress=None",
    "point_weights": "posterior point='mean' draw=0",
    "read_nbest": "path * references=None sources=None format='auto' first_id=0 bad='error' "
    "strict=False",
    "read_posterior": "path",
    "read_references": "paths",
    "read_weights": "path format='auto'",
    "reestimate": "nbest weights * tuner='mert' metric='bleu' seed=0 fixed=None defaults=None "
    "extra=None progress=False **settings",
    "rerank": "nbest posterior * rule=None derivations='separate' min_confidence=None "
    "temperature=None confidence=False defaults=None moved_files=None unchecked=False jobs=1 "
    "backend='local' scheduler=None progress=False",
    "update": "posterior nbest * adaptation_lists=None metric=None oracle=None moved_files=None "
    "sampler='imh' seed=0 jobs=1 cache=True unchecked=False progress=False",
    "write_nbest": "nbest path weights=None * format='auto'",
    "write_posterior": "posterior path",
    "write_weights": "weights path * template=None format='auto'",
}
#: Class -> public members that are methods, properties or constants.
CLASSES = {
    "BpaError": "code exit_code",
    "BpaWarning": "",
    "DataError": "code",
    "Draws": "aligned at_point canonical components correlation deviation flat importance "
    "interval kind largest_shifts log_density log_weight mean pointwise reordered resampled "
    "sentence_ids sentence_sites shape sites total_log_likelihood total_log_prior weighted weights "
    "with_attrs",
    "NBest": "best chosen chunks concatenate from_arrays from_dataframe from_lists from_records "
    "ids origin references regroup rows scores select sizes sources text texts to_dataframe totals "
    "totals_normalised truncate with_extras with_features with_references with_sentence_extras "
    "with_sentences_of with_sources without without_features",
    "NotConverged": "code exit_code",
    "Oracles": "share skipped",
    "Prior": "completed conditioned constants covariance distribution full_covariance "
    "gaussian isotropic matched mean named names of other read recorded sample variance write",
    "Reestimation": "decimals scores",
    "Report": "as_dict failures passed",
    "Reranked": "changed confidence",
    "UsageError": "code",
    "Weights": "names normalised updated values_array",
}
#: Package -> its public names.
PACKAGES = {
    "decoding": "AlignedDraws AlignedWriter CRITERIA Confidence Expected GAPS RerankOptions "
    "Reranked Rule Scoreboard SentenceRanking Summary next_sentences refuse_unconverged rerank "
    "rerank_stream rerank_to scoreboard selective write_details write_texts",
    "diagnostics": "BaselineComparison Calibration Comparison Finding Loo PredictiveCheck Ranked "
    "Reliability Replication Report RiskCoverage Sensitivity Temperature Thresholds calibrate "
    "calibrated check compare compare_baselines compare_loo loo plot_trace posterior_page "
    "power_sensitivity predictive_check refuse_unconverged reliability risk_coverage "
    "subdomains_page temperature with_predictions write_page",
    "experiments": "Aggregates CurvePoint Difference aggregate read_results read_study run_study "
    "write_figures",
    "features": "Added Consensus FeatureSource Indicators Invariance LanguageModel Length Lexicon "
    "PhraseMixture add_features feature_adder of_each_string resolve_sources",
    "formats": "NBestFormat ReadOptions Rows WeightFormat atomic_path atomic_writer iter_nbest "
    "read_nbest read_references read_weights write_nbest write_weights",
    "models": "Bucket Hierarchical Horseshoe Isotropic Likelihood Lists Margin Oracle "
    "OracleChoice Preference Preparation Prior PriorFamily Risk SpikeSlab in_order "
    "log_linear log_probabilities preparation tabulate",
    "phrases": "FittedMixture NumberedText PhraseCounts PhraseTable Subdomains aligned held_out "
    "mix read_counts read_pairs read_table write_counts write_table",
    "posterior": "Draws as_draws import_arviz importance_weights inference_data kish point_weights "
    "pooled quantiles read_draws read_posterior to_arviz write_posterior",
    "quality": "Averaged BLEU CHRF ChoiceSets Column Function Headroom Metric Mixed Oracles Score "
    "Scoreboard TER by_name choice_score choice_sets column_of compared corpus_score "
    "counted_metrics demote_to_extras gains has_preferences headroom judged judged_lists "
    "numeric_columns only_judged oracles resolve statistics ter_edits",
    "rows": "Gatherer Rows SchemaReader SentenceLines",
    "sampling": "Data Model Program RandomWalk Sampled Sampler Sequential Step Target adapt "
    "adapt_draws draws_of evaluate learn_hierarchy learn_prior learn_prior_jointly perturbed "
    "target_of update",
    "tuning": "Command Redecoded Reestimation Tuned Tuner TuningLists TuningProblem redecode "
    "reestimate",
}
#: Registry -> its names in order.
CHOICES = {
    "FEATURES": "lm lexicon phrases invariance length consensus indicators",
    "LIKELIHOODS": "oracle margin risk preference",
    "METRICS": "ter bleu chrf ter+bleu unbabel-comet unbabel-cometkiwi column",
    "NBEST_FORMATS": "fairseq sockeye jsonl preference-pairs tsv csv parquet plain marian travatar "
    "cdec moses",
    "PRIORS": "isotropic horseshoe spike-slab",
    "RULES": "predictive viterbi map mean mbr",
    "SAMPLERS": "auto heuristic imh laplace map nuts rwm rwm-isotropic weight-trace",
    "TUNERS": "mert mert+ mira pro",
    "WEIGHT_FORMATS": "json yaml moses.ini numbers dense",
}


def signature(function: Callable) -> str:
    """Return names and defaults of the parameters, without types."""
    words = []
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        if kinds.index(parameter.kind) == position and parameter.kind is parameter.KEYWORD_ONLY:
            words.append("*")
        words.append(_parameter_text(parameter))
    return " ".join(words)


def _parameter_text(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{parameter.name}"
    if parameter.default is parameter.empty:
        return parameter.name
    default = parameter.default
    return f"{parameter.name}={getattr(default, '__name__', repr(default))}"


def test_public_names() -> None:
    packages = set(PACKAGES) - {"formats", "rows"}
    assert set(bpa_ppl.__all__) == {*FUNCTIONS, *CLASSES, *packages} == set(dir(bpa_ppl))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signature_of_function(name: str) -> None:
    assert signature(getattr(bpa_ppl, name)) == FUNCTIONS[name]


@pytest.mark.parametrize("name", CLASSES)
def test_members_of_class(name: str) -> None:
    kind = getattr(bpa_ppl, name)
    classes = [c for c in kind.__mro__ if c is kind or c.__module__.startswith("bpa_ppl.rows")]
    members = [m for c in classes for m in vars(c) if not m.startswith("_")]
    assert " ".join(sorted(members)) == CLASSES[name]


@pytest.mark.parametrize("package", PACKAGES)
def test_names_of_package(package: str) -> None:
    names = import_module(f"bpa_ppl.{package}").__all__
    assert " ".join(sorted(names)) == PACKAGES[package]


def test_every_package_is_listed() -> None:
    packages = {m.name for m in pkgutil.iter_modules(bpa_ppl.__path__[:1]) if m.ispkg}
    assert packages | {"diagnostics", "models"} == set(PACKAGES) | {"cli", "text"}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_of_registry(name: str) -> None:
    assert " ".join(getattr(registry, name)) == CHOICES[name]


def test_every_registry_is_listed() -> None:
    assert {n for n, v in vars(registry).items() if isinstance(v, registry.Registry)} == set(
        CHOICES
    )


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="reranked"):
        _ = bpa_ppl.reranked


@pytest.mark.parametrize("package", ["models", "diagnostics", "quality", "sampling"])
def test_packages_are_imported_lazily(package: str) -> None:
    code = (
        f"import sys, bpa_ppl as bpa; assert 'jax' not in sys.modules; print(bpa.{package}.__all__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(run.stdout) == import_module(f"bpa_ppl.{package}").__all__


@pytest.mark.slow
def test_mypy_reports_misspelt_names(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import bpa_ppl as bpa\nbpa.adapt\nbpa.adaptt\nbpa.Weigths\n")
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", str(script)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert re.findall(r"script.py:(\d)", run.stdout) == ["3", "4"], run.stdout
