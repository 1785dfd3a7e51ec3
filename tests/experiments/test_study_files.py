"""Reading study files; all mistakes are reported before the study starts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from raising import raises

from bpa_ppl import DataError
from bpa_ppl.experiments import read_study, run_study
from bpa_ppl.experiments.methods import named_methods
from bpa_ppl.experiments.study import tasks
from bpa_ppl.models import Margin, Oracle
from bpa_ppl.registry import RULES, SAMPLERS, TUNERS

ROOT = Path(__file__).resolve().parents[2]


def edited_study(study_file: Path, old: str, new: str) -> Path:
    text = study_file.read_text("utf-8")
    assert old in text
    study_file.write_text(text.replace(old, new, 1), "utf-8")
    return study_file


def test_settings_are_read(study_file: Path) -> None:
    study = read_study(study_file)
    assert (study.sizes, study.draws, study.seed, study.replacement) == ((4, 8), 3, 5, True)
    assert [method.name for method in study.methods][-1] == "mert-ter"
    mert_ter = study.methods[-1]
    assert (mert_ter.engine, mert_ter.metric, mert_ter.engine_settings) == (
        "mert",
        "ter",
        (("restarts", 2),),
    )
    assert study.domains[0].adapt.nbest == study_file.parent / "nbest"


def test_method_names() -> None:
    known = named_methods()
    assert {*SAMPLERS, *TUNERS, "canonical", "weight-trace"} < set(known)
    assert {known[name].rule for name in ("heur-vit", "mcmc-vit")} == {"viterbi"} <= set(RULES)


def test_example_study_is_valid() -> None:
    assert [domain.name for domain in read_study(ROOT / "examples/study.toml").domains] == [
        "leaflet"
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sizes = [4, 8]", "sizes = [4, ", r".*study\.toml: not a TOML file: .*line 3.*"),
        ("sizes = [4, 8]", "sizes: [4, 8]", ".*TOML file: .*: write settings as NAME = VALUE, .*"),
        ("sizes = [4, 8]", "", ".*missing required field `sizes`"),
        ("sizes = [4, 8]", "sizes = []", r".*length >= 1 - at `\$.sizes`"),
        ("sizes = [4, 8]", "sizes = [4, 4]", ".*sizes contains a value twice: .*"),
        ("sizes = [4, 8]", "sizes = [4.5]", r".*Expected `int`, got `float` - at `\$.sizes.*"),
        ("sizes = [4, 8]", "sizes = [0]", r".*>= 1 - at `\$.sizes.*"),
        ("draws = 3", "draws = true", r".*Expected `int`, got `bool` - at `\$.draws`"),
        ("draws = 3", "draws = 0", r".*>= 1 - at `\$.draws`"),
        ("seed = 5", "seed = -1", ".*seed is an integer from 0 to .*, not -1"),
        ("seed = 5", f"seed = {2**63}", ".*seed is an integer from 0 to .*"),
        ("seed = 5", "seed = 1" + 5000 * "0", ".*too large.*"),
        ("seed = 5", "seed = inf", r".*Expected `int`, got `float` - at `\$.seed`"),
        ("seed = 5", 'seed = "a\\nb\\u001b"', r".*Expected `int`, got `str` - at `\$.seed`"),
        ("seed = 5", f"seed = '{'x' * 999}'", r".*Expected `int`, got `str` - at `\$.seed`"),
        ("sizes = [4, 8]", f"sizes = [{2**63}]", r".*<= 1000000 - at `\$.sizes.*"),
        ("sizes = [4, 8]", "sizes = [1_000_001]", r".*<= 1000000 - at `\$.sizes.*"),
        ("sizes = [4, 8]", f"sizes = {'[' * 9999}{']' * 9999}", ".*too large.*"),
        (
            "[domains.leaflet]",
            '[domains."a\\nb"]',
            r".*matching regex .* - at `key` in `\$.domains`",
        ),
        ("values = [0.01, 1]", "values = [inf]", r".*in \[sweeps.prior\]: .*prior.variance.*"),
        (
            "values = [0.01, 1]",
            f"values = [1{'0' * 400}]",
            ".*must be a number > 0, not a number of 1329 bits",
        ),
        ("seed = 5", "sed = 5", ".*unknown field `sed`"),
        ('"mira"', '"mirra"', ".*unknown method 'mirra': choose one of auto, heuristic, .*"),
        ('"mira"', '"mert+"', r".*method mert\+ needs the text .*: add \[development\]"),
        ('"nbest"', '"lists"', r".*in \[domains.leaflet\]: file not found.*lists; .*"),
        ('"moses.ini"', '"none.ini"', ".*file not found: .*none.ini.*"),
        ("held_out = 10", "held_out = -1", r".*>= 0 - at `\$.domains.*held_out`"),
        ("held_out = 10", "", r".*in \[domains.leaflet\]: test is missing: .*"),
        ("held_out = 10", "holdout = 10", r".*unknown field `holdout` - at `\$.domains.*"),
        ("[domains.leaflet]", '[domains."a.b"]', r".*matching regex .* - at `key` in `\$.domains`"),
        ("restarts = 2", "restarts = 0", r".*in \[variants.mert-ter\]: restarts must be .*"),
        ("restarts = 2", "epochs = 2", r".*in \[variants.mert-ter\]: .*no setting epochs.*"),
        ("restarts = 2", "restarts = [2]", r".*restarts must be a number or a text, not \[2\]"),
        ('metric = "ter"', 'metric = "wer"', r".*unknown metric 'wer': choose one of .*"),
        ('like = "mert"', "", r".*in \[variants.mert-ter\]: like is missing: .*"),
        ("variants.mert-ter", "variants.mert", ".*mert is already the name of a method.*"),
        ("values = [0.01, 1]", "values = [0]", r".*in \[sweeps.prior\]: prior_variance .*"),
        ("values = [0.01, 1]", "values = [[1]]", r".*values must be numbers or names, not \[1\]"),
        ("values = [0.01, 1]", "values = ['/']", r".*values must be numbers or names, not '/'"),
        ('methods = ["map"]', 'methods = ["nuts"]', ".*sweep of nuts, which is not among .*"),
        ('"prior_variance"', '"delta"', r".*the sampler map has no setting delta: it has none"),
    ],
)
def test_rejects_invalid_studies(study_file: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_study(edited_study(study_file, old, new))
    assert re.fullmatch(message, str(caught.value)), str(caught.value)
    assert "\n" not in str(caught.value)


def test_rejects_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_study(tmp_path / "no.toml")
    (tmp_path / "bytes.toml").write_bytes(b"seed = 5 # \xff\n")
    with raises(DataError, line=1):
        read_study(tmp_path / "bytes.toml")


def test_methods_have_likelihoods_with_settings(study_file: Path) -> None:
    steep = '[variants.steep]\nlike = "map"\nlikelihood = "margin"\ngamma = 4\n'
    swept = (
        '[sweeps.margins]\nsetting = "gamma"\nvalues = [1, 8]\nmethods = ["steep"]\nsizes = [4]\n'
    )
    path = edited_study(study_file, "[variants.mert-ter]", f"{steep}{swept}[variants.mert-ter]")
    study = read_study(edited_study(path, 'methods = ["', 'methods = ["steep", "'))
    likely = {
        task.cell.setting: task.method.resolved_likelihood()
        for task in tasks(study)
        if task.cell.method == "steep"
    }
    assert likely == {"": Margin(gamma=4), "gamma=1": Margin(gamma=1), "gamma=8": Margin(gamma=8)}
    known = named_methods()
    assert {
        known[name].resolved_likelihood() for name in ("mcmc", "heur-vit", "rwm-isotropic")
    } == {Oracle()}
    assert known["imh"].resolved_likelihood() is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('like = "mert"\nlikelihood = "margin"', "has no likelihood: it is not a sampler"),
        ('like = "map"\nlikelihood = "hinge"', "unknown likelihood 'hinge': choose one of"),
        ('like = "map"\nlikelihood = "margin"\nkappa = 2', "has no setting kappa"),
        ('like = "map"\nlikelihood = "margin"\ngamma = -2', "gamma must be a number ≥ 0"),
    ],
)
def test_rejects_invalid_likelihoods(study_file: Path, lines: str, message: str) -> None:
    added = f"[variants.other]\n{lines}\n[variants.mert-ter]"
    with pytest.raises(DataError, match=message):
        read_study(edited_study(study_file, "[variants.mert-ter]", added))


@pytest.mark.parametrize(("value", "kind"), [("0.5", "integer"), ('"many"', ""), ("-3", "")])
def test_sampler_settings_have_types(study_file: Path, value: str, kind: str) -> None:
    added = f'[variants.few]\nlike = "imh"\ndraws = {value}\n[variants.mert-ter]'
    with raises(DataError, "invalid-setting"):
        read_study(edited_study(study_file, "[variants.mert-ter]", added))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sizes = [4, 8]", "sizes = [4, 15]\nreplacement = false", "has 14 sentences, too few"),
        ("held_out = 10", "held_out = 24", "24 of 24 sentences cannot be held out"),
    ],
)
def test_rejects_too_few_sentences(study_file: Path, old: str, new: str, message: str) -> None:
    folder = study_file.parent / "results"
    with raises(DataError, "wrong-length"):
        run_study(read_study(edited_study(study_file, old, new)), folder)
    assert not folder.exists()
