"""Extensions in other packages: the recipes of CONTRIBUTING.md."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from bpa_ppl import NBest, Weights, registry
from bpa_ppl.cli.app import app
from bpa_ppl.registry import Registry

ROOT = Path(__file__).resolve().parent.parent
GUIDE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
REGISTRIES = {name: value for name, value in vars(registry).items() if isinstance(value, Registry)}
_ENTRY = re.compile(r"# (?P<file>\w+\.py), entry point: (?P<group>\S+) (?P<point>.+)")
_RECIPE = re.compile(r"### (\w+)\n\n```python\n(.*?)```\n\nUse:\n\n```python\n(.*?)```", re.DOTALL)
RECIPES = {kind: (module, use) for kind, module, use in _RECIPE.findall(GUIDE)}
#: kind -> (module, registry file, registry, base class), from the table.
TABLE = {
    row[0]: row[1:]
    for row in re.findall(
        r"^\| (\w+) \| `(.+?)` \| `(.+?)`: `(\w+)` \| `(.+?)` \|", GUIDE, re.MULTILINE
    )
}
CANONICAL = Weights({"LM0": 0.4, "WP0": -0.2})


#: JAX as users have it: NumPyro's `sample` broadcasts ranks implicitly.
ordinary_jax = partial(jax.numpy_rank_promotion, "allow")


@pytest.fixture
def lists() -> NBest:
    """Ten lists whose first hypotheses are the references and usually score best."""
    rng = np.random.default_rng(5)
    words = ["a", "b", "c", "d", "e", "f", "?"]
    texts = [[" ".join(rng.choice(words, size=5)) for _ in range(6)] for _ in range(10)]
    features = [rng.normal(size=(6, 2)) for _ in texts]
    return NBest.from_lists(texts, features, ["LM0", "WP0"], references=[[t[0]] for t in texts])


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


def test_every_registry_has_a_table_row_and_a_recipe() -> None:
    assert set(TABLE) == set(RECIPES)
    listed = {row[2] for row in TABLE.values()}
    assert listed == set(REGISTRIES) - {"WEIGHT_FORMATS"}
    assert {REGISTRIES[name].group for name in listed} == {
        _ENTRY.match(module)["group"] for module, _ in RECIPES.values()
    }


@pytest.mark.parametrize("kind", TABLE)
def test_built_in_components_are_in_the_documented_module(kind: str) -> None:
    """The table of CONTRIBUTING.md names the modules and base classes of built-in components."""
    module, file, name, base = TABLE[kind]
    assert (ROOT / file).samefile(registry.__file__)
    folder_of_kind = Path(module).parent
    for member in REGISTRIES[name].values():
        dotted = member.__module__.removeprefix("bpa_ppl.").replace(".", "/")
        folder = "" if dotted.startswith("models/") else "bpa_ppl/"
        assert Path(f"{folder}{dotted}.py").parent == folder_of_kind
        package, _, class_name = base.rpartition(".")
        assert issubclass(member, getattr(importlib.import_module(package), class_name))


@pytest.mark.filterwarnings("ignore:no canonical weight:bpa_ppl.errors.BpaWarning")
@pytest.mark.parametrize("installed_recipe", RECIPES, indirect=True)
def test_recipe_works_in_another_package(
    installed_recipe: Path, lists: NBest, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["installed_recipe"]
    scope: dict[str, Any] = {"lists": lists, "canonical": CANONICAL}
    with ordinary_jax():
        exec(compile(RECIPES[kind][1], f"CONTRIBUTING.md, {kind}", "exec"), scope)


@pytest.mark.parametrize("installed_recipe", ["sampler"], indirect=True)
def test_command_line_offers_the_new_sampler(
    installed_recipe: Path, lists: NBest, caplog: pytest.LogCaptureFixture
) -> None:
    from bpa_ppl import write_nbest

    caplog.set_level("INFO", logger="bpa_ppl")
    write_nbest(lists, installed_recipe / "a.nbest")
    assert lists.references is not None
    text = "".join(f"{refs[0]}\n" for refs in lists.references)
    (installed_recipe / "a.ref").write_text(text)
    (installed_recipe / "w.json").write_text('{"LM0": 0.4, "WP0": -0.2}')
    arguments = "adapt a.nbest -r a.ref -w w.json -o p.nc --sampler from-the-prior --set draws=300"
    with ordinary_jax():
        app(arguments.split(), standalone_mode=False)
    assert (installed_recipe / "p.nc").is_file()
    assert "from-the-prior, 1 chains × 300 draws" in caplog.text


def test_model_of_the_guide_runs(lists: NBest) -> None:
    from bpa_ppl import adapt, check

    (source,) = re.findall(r"```python\n(import numpyro\n.*?def learned_scale.*?)```", GUIDE, re.S)
    scope: dict[str, Any] = {}
    exec(source, scope)
    posterior = adapt(
        lists, CANONICAL, model=scope["learned_scale"], sampler="rwm-isotropic", draws=200
    )
    assert "scale" in posterior["posterior"]
    assert {finding.where for finding in check(posterior).findings} & {"scale", "LM0", "WP0"}
    assert "prior_variance" not in posterior["constant_data"]
