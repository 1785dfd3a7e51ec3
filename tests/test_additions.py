"""Components by name: settings in texts, recipes of the documentation, broken components."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import jax
import numpy as np
import pytest
from support.extras import require_extras
from support.posteriors import name_weights
from support.raising import raises
from support.registries import (
    FEATURES,
    GAINS,
    LIKELIHOODS,
    NBEST_FORMATS,
    PRIORS,
    REGISTRIES,
    RULES,
    SAMPLERS,
    WEIGHT_FORMATS,
    Registry,
)

import bpa_ppl as bpa
from bpa_ppl import BpaWarning, DataError, NBest, UsageError, Weights, from_lists

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/how-to/additions.md"
GUIDE = (ROOT / PAGE).read_text("utf-8")
_ENTRY = re.compile(r"# (?P<file>\w+\.py), entry point: (?P<group>\S+) (?P<point>.+)")
_RECIPE = re.compile(r"## (\w+)\n\n```python\n(.*?)```\n\nUse:\n\n```python\n(.*?)```", re.DOTALL)
RECIPES = {kind: (module, use) for kind, module, use in _RECIPE.findall(GUIDE)}
#: kind -> registry, from the table.
TABLE = dict(re.findall(r"^\| (\w+) \| `.+?` \| `.+?`: `(\w+)` \|", GUIDE, re.MULTILINE))
CANONICAL = Weights({"LM0": 0.4, "WP0": -0.2})


#: JAX as users have it: NumPyro's `sample` broadcasts ranks implicitly.
ordinary_jax = partial(jax.numpy_rank_promotion, "allow")


@pytest.fixture
def lists() -> NBest:
    """Ten lists whose first candidates are the references and usually score best."""
    rng = np.random.default_rng(5)
    words = ["a", "b", "c", "d", "e", "f", "?"]
    texts = [[" ".join(rng.choice(words, size=5)) for _ in range(6)] for _ in range(10)]
    features = [rng.normal(size=(6, 2)) for _ in texts]
    return from_lists(texts, features, ["LM0", "WP0"], references=[[t[0]] for t in texts])


@pytest.fixture
def installed_recipe(
    tmp_path: Path,
    install_package: Callable[[str, str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Path:
    """Install a package with the module of a recipe, and change to its folder."""
    source = RECIPES[request.param][0]
    entry = _ENTRY.match(source)
    assert entry is not None, "the first line of a recipe names its file and its entry point"
    module = entry["file"].removesuffix(".py")
    install_package(module, source, f"[{entry['group']}]\n{entry['point']}\n")
    monkeypatch.setenv("BPA_PPL_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.needs_extras
def test_every_registry_has_a_table_row_and_a_recipe() -> None:
    assert set(TABLE) == set(RECIPES)
    listed = set(TABLE.values())
    assert listed == set(REGISTRIES) - {"WEIGHT_FORMATS"}
    assert {REGISTRIES[name].group for name in listed} == {
        _ENTRY.match(module)["group"] for module, _ in RECIPES.values()
    }


@pytest.mark.filterwarnings("ignore:no canonical weight:bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize(
    "installed_recipe",
    [
        pytest.param(kind, marks=[pytest.mark.slow] if kind == "sampler" else [])  # as below
        for kind in RECIPES
    ],
    indirect=True,
)
def test_recipe_works_in_another_package(
    installed_recipe: Path, lists: NBest, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["installed_recipe"]
    if kind in ("metric", "tuner"):  # the use of a metric includes tuning
        require_extras()
    scope: dict[str, Any] = {"lists": lists, "canonical": CANONICAL}
    use = RECIPES[kind][1].replace('"nuts:', '"rwm-isotropic:')  # is compiled faster
    with ordinary_jax():
        exec(compile(use, f"{PAGE}, {kind}", "exec"), scope)


@pytest.mark.filterwarnings("ignore::bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize(
    ("installed_recipe", "recipe", "built_in", "tolerance"),
    [
        ("likelihood", ("tempered", {"temperature": 1.0}), "oracle", 1e-4),
        ("sampler", ("slice", {"draws": 1000}), "imh", 0.1),
    ],
    indirect=["installed_recipe"],
)
def test_recipe_agrees_with_built_in_one_on_tied_oracles_and_weighted_preferences(
    installed_recipe: Path,
    lists: NBest,
    recipe: tuple[str, dict[str, Any]],
    built_in: str,
    tolerance: float,
) -> None:
    gain = np.random.default_rng(3).integers(0, 2, size=60).astype(float)
    answers = [[{"candidates": [0, 3], "weight": 2.5}, [4, 1]]] * 5 + [None] * 5
    judged = lists.with_extras(gain=gain).with_sentence_extras(preferences=answers)
    kind = REGISTRIES["LIKELIHOODS" if built_in == "oracle" else "SAMPLERS"]
    options: dict[str, Any] = {"gain": "gain", "likelihood": "oracle", "sampler": "map"}
    with ordinary_jax():
        one, other = (
            bpa.adapt(judged, None, prior="isotropic:variance=0.2", **options | {kind.kind: member})
            for member in (kind.resolve(*recipe), built_in)
        )
    weights = dict(bpa.point_weights(other))
    assert dict(bpa.point_weights(one)) == pytest.approx(weights, abs=tolerance)


def test_model_of_the_guide_runs(lists: NBest) -> None:
    (source,) = re.findall(r"```python\n(import numpyro\n.*?def learned_scale.*?)```", GUIDE, re.S)
    scope: dict[str, Any] = {}
    exec(source, scope)
    sampler = "rwm-isotropic:draws=200"
    posterior = bpa.adapt(lists, CANONICAL, model=scope["learned_scale"], sampler=sampler)
    assert "scale" in posterior["posterior"]
    assert {finding.where for finding in bpa.check(posterior).rows} & {"scale", "LM0", "WP0"}
    assert "prior_variance" not in posterior["constant_data"]


MODULE = '''
from bpa_ppl.extending import Metric

class Mine(Metric, frozen=True):
    """A metric."""

def function():
    """Not a class."""
'''
InstallFunction = Callable[..., None]


@pytest.fixture
def install_entry_points(install_package: Callable[[str, str, str], None]) -> InstallFunction:
    """A function that installs a package with a component `mine`."""

    def install(*registries: Registry, value: str = "theirs:Mine", source: str = MODULE) -> None:
        points = "".join(f"[{one.group}]\nmine = {value}\n" for one in registries)
        install_package("theirs", source, points)

    return install


def test_component_of_another_kind_raises(
    registries: list[Registry], install_entry_points: InstallFunction
) -> None:
    """A metric class is accepted in the group of metrics only."""
    install_entry_points(*registries)
    assert GAINS["mine"].__name__ == "Mine"
    for one in registries:
        for _ in range(2 if one is not GAINS else 0):  # the failure is not cached
            with raises(DataError, "wrong-type", match=f"{one.kind} mine.* package theirs"):
                one.resolve("mine")


@pytest.mark.parametrize(
    ("value", "source", "code", "reason"),
    [
        ("theirs:function", MODULE, "wrong-type", "<function function at"),
        ("theirs:Other", MODULE, "damaged", "theirs:Other .* no attribute 'Other'"),
        ("theirs:Mine", "raise KeyError('key')", "damaged", "package theirs.*: 'key'"),
    ],
    ids=["function", "no attribute", "no import"],
)
def test_component_that_cannot_be_loaded_raises(
    install_entry_points: InstallFunction, value: str, source: str, code: str, reason: str
) -> None:
    install_entry_points(GAINS, value=value, source=source)
    with raises(DataError, code, match=f"the metric mine.*{reason}"):
        GAINS.resolve("mine")


def test_other_formats_work_despite_broken_component(
    registries: list[Registry], install_entry_points: InstallFunction
) -> None:
    """Files in known formats are read without warning; an unknown file warns once."""
    install_entry_points(*registries)
    lists = from_lists([["a cat", "the cat"]], [[[-1.5], [-2.0]]], ["LM0"])
    for path in ("out", "out.jsonl", "out.csv"):
        bpa.write_nbest(lists, path)
        assert bpa.read_nbest(path).texts(0) == lists.texts(0)
    Path("odd").write_text("what is this\n")
    with pytest.warns(BpaWarning, match="list.* mine, theirs:Mine"), pytest.raises(DataError):
        bpa.read_nbest("odd")
    with pytest.raises(DataError):
        bpa.read_nbest("odd")


def test_other_weights_and_metrics_work_despite_broken_component(
    install_entry_points: InstallFunction,
) -> None:
    install_entry_points(WEIGHT_FORMATS)
    Path("weights").write_text("LM0= 0.5\n")
    with pytest.warns(BpaWarning, match=f"left out: the {WEIGHT_FORMATS.kind} mine"):
        assert bpa.read_weights("weights")["LM0"] == 0.5
    assert bpa.read_weights("weights")["LM0"] == 0.5
    install_entry_points(GAINS, source="raise ValueError('wrong')")
    with pytest.warns(BpaWarning, match="left out: the metric mine.*: wrong"):
        assert "ter" in dict(GAINS.load())


def test_register_rejects_other_classes_and_names_in_use() -> None:
    for member in (NBEST_FORMATS["jsonl"], GAINS["ter"]()):
        with raises(UsageError, "wrong-type", parameter="member"):
            GAINS.register("mine", member)  # type: ignore[arg-type]
    with raises(UsageError, "duplicate", parameter="name"):
        NBEST_FORMATS.register("moses", NBEST_FORMATS["jsonl"])


LISTS = from_lists(
    [["a b", "a c", "b"]] * 4, [[[0.0], [1.0], [2.0]]] * 4, ["x"], references=["a b"] * 4
)


@pytest.mark.parametrize(
    ("registry", "text", "name", "settings"),
    [
        (SAMPLERS, "nuts:warmup=50,chains=2", "nuts", {"warmup": 50, "chains": 2}),
        (SAMPLERS, "numpyro:HMC,step_size=0.5", "numpyro:HMC", {"step_size": 0.5}),
        (LIKELIHOODS, "preference:slip=0", "preference", {"slip": 0}),
        (PRIORS, "isotropic:variance=0.5", "isotropic", {"variance": 0.5}),
        (GAINS, "chrf:word_order=2", "chrf", {"word_order": 2}),
        (RULES, "mbr:gain=bleu", "mbr", {"gain": "bleu"}),
        (NBEST_FORMATS, "plain:list_size=2,scores=a", "plain", {"list_size": 2, "scores": "a"}),
        (NBEST_FORMATS, "plain:scores=a,b", "plain", {"scores": ("a", "b")}),
        pytest.param(
            *(FEATURES, "lexicon=a.fr,a.en", "lexicon", {"pairs": ("a.fr", "a.en")}),
            marks=pytest.mark.needs_extras,
        ),
        (FEATURES, "lm=in.txt,order=2", "lm", {"text": "in.txt", "order": 2}),
        (FEATURES, "length:ratio=true", "length", {"ratio": True}),
        (GAINS, "ter:", "ter", {}),
    ],
)
def test_a_text_is_a_name_with_settings(
    registry: Registry, text: str, name: str, settings: dict[str, object]
) -> None:
    assert registry.parse(text) == (name, settings)
    assert registry.resolve(text) == registry.resolve(name, settings)


@pytest.mark.parametrize(
    ("registry", "text", "code", "mention"),
    [
        (
            SAMPLERS,
            "nutz:warmup=50",
            "unknown-name",
            "sampler 'nutz' .did you mean nut.*: choose one of",
        ),
        (SAMPLERS, "nuts:50", "invalid-setting", "of the sampler nuts are written NAME=VALUE"),
        (
            SAMPLERS,
            "numpyro:HMC,step=1",
            "unknown-setting",
            "unknown setting 'step' of the sampler HMC",
        ),
        (LIKELIHOODS, "margin:gama=4", "unknown-setting", "did you mean gamma"),
        (LIKELIHOODS, "margin=4", "invalid-setting", "margin:NAME=VALUE"),
        (FEATURES, "length=x", "invalid-setting", "length:NAME=VALUE, not 'length=x'"),
    ],
)
def test_mistakes_are_named(registry: Registry, text: str, code: str, mention: str) -> None:
    with raises(UsageError, code, parameter=ANY, match=mention):
        registry.resolve(text)


@pytest.mark.parametrize("function", [bpa.Reranker, lambda *a, **b: bpa.rerank(LISTS, *a, **b)])
def test_an_unknown_keyword_is_named(function: Callable[..., object]) -> None:
    draws = name_weights(np.ones((1, 4, 1)), ("x",))
    with pytest.raises(TypeError, match=r"rules.*did you mean rule"):
        function(draws, unchecked=True, rules="mean")
