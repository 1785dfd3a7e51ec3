"""Code in the sentences of pages: calls run, and names and settings exist."""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpyro.distributions as dist
import pytest
from support.pages import INLINE_CODE
from support.registries import REGISTRIES

import bpa_ppl
from bpa_ppl import UsageError
from bpa_ppl.diagnostics.check.advice import ADVICE
from bpa_ppl.extending import StartingWeights, log_linear, match, observe, prepare

#: What `…` stands for as the first argument of a function.
FIRST = {
    "adapt": ("lists", "canonical"),
    "learn_prior": ("posteriors",),
    "Sampled": ("z",),
}
#: Part of a call -> the reason why it is not run; its arguments are those of the function.
NOT_RUN = {
    'adapt(…, sampler="mine")': "tests/test_additions.py has such a sampler",
    "induce(": "takes minutes: tests/extras/phrases has smaller corpora",
    "addHandler(": "would change the logging of other tests: tests/test_notes.py has it",
}


class FillIn(ast.NodeTransformer):
    """Replace `…` by the usual arguments, and as a value by the variable of that name."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        first = FIRST.get(ast.unparse(node.func).rpartition(".")[2], ())
        arguments: list[ast.expr] = []
        for place, argument in enumerate(node.args):
            if is_ellipsis(argument):
                arguments += [ast.Name(name, ast.Load()) for name in first[place:]]
            else:
                arguments.append(argument)
        for keyword in node.keywords:
            if is_ellipsis(keyword.value):
                keyword.value = ast.Name(str(keyword.arg), ast.Load())
        node.args = arguments
        return ast.fix_missing_locations(node)


def is_ellipsis(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def parse_python(span: str) -> ast.Module | None:
    """Return a span as a program; None if it is not one."""
    try:
        return ast.parse(span.replace("…", "..."))
    except SyntaxError:
        return None


def is_ours(call: ast.Call) -> bool:
    """Return whether a call is of a public name, or of a name in the package."""
    root, _, rest = ast.unparse(call.func).partition(".")
    return root in bpa_ppl.__all__ if not rest else root in ("bpa", "bpa_ppl", *bpa_ppl.__all__)


def calls(program: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(program) if isinstance(node, ast.Call) and is_ours(node)]


PYTHON = [
    pytest.param(span, id=f"{page}: {span}")
    for page, span in INLINE_CODE
    if (program := parse_python(span)) is not None and calls(program)
]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The variables that calls in pages use."""
    rng = np.random.default_rng(0)
    texts = [[f"{s} a cat", f"{s} the cat", f"{s} cat"] for s in range(12)]
    features = [rng.normal(size=(3, 2)) for _ in texts]
    references = [one[1] for one in texts]
    labels = ["lm", "tm"]
    grades = [rng.normal(size=3).tolist() for _ in texts]
    lists = bpa_ppl.from_lists(
        texts, features, labels, references=references, extras={"judgement": grades}
    )
    canonical = {"lm": 0.5, "tm": 0.5}
    posteriors = [
        bpa_ppl.adapt(lists, canonical, sampler="imh:draws=300", seed=seed) for seed in range(2)
    ]
    file = tmp_path_factory.mktemp("posteriors") / "posterior.nc"
    bpa_ppl.write_posterior(posteriors[0], file)
    matched = match(canonical, lists)
    draws = bpa_ppl.as_weight_draws(posteriors[0])
    return {
        "lists": lists,
        "mine": lists,
        "others": lists,
        "canonical": canonical,
        "texts": texts,
        "features": features,
        "names": labels,
        "references": references,
        "records": [{"id": 0, "text": "a cat", "lm": 1.0}, {"id": 0, "text": "cat", "lm": 2.0}],
        "gain": "ter",
        "match": matched,
        "prepared": prepare(lists, canonical, gain="ter"),
        "observed": observe(prepare(lists, canonical, gain="ter")),
        "prior": bpa_ppl.Prior.isotropic(canonical),
        "mean": canonical,
        "covariance": np.eye(2),
        "distribution": dist.Normal(np.zeros(2), 1.0).to_event(1),
        "learned_scale": log_linear,
        "my_model": log_linear,
        "preset": "published",
        "posterior": posteriors[0],
        "posteriors": posteriors,
        "a": posteriors[0],
        "b": posteriors[1],
        "draws": draws,
        "z": draws.draws.sites,
        "file": file,
        "path": file,
    }


def quick_adapt(*arguments: Any, **options: Any) -> Any:
    """Adapt with a quick sampler unless one is chosen."""
    quick = {} if {"sampler", "preset"} & options.keys() else {"sampler": "map"}
    return ADAPT(*arguments, **options, **quick)


ADAPT = bpa_ppl.adapt


@pytest.mark.filterwarnings("ignore::bpa_ppl.BpaWarning")
@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize("span", PYTHON)
def test_calls_run(
    span: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = parse_python(span)
    assert program is not None
    monkeypatch.chdir(tmp_path)
    (tmp_path / "domain.txt").write_text("the cat\na cat\n")
    monkeypatch.setattr(bpa_ppl, "adapt", quick_adapt)
    public = {name: getattr(bpa_ppl, name) for name in bpa_ppl.__all__}
    scope = {**public, "bpa": bpa_ppl, "bpa_ppl": bpa_ppl, **names}
    for call in calls(program):
        name = ast.unparse(call.func)
        if name.startswith("bpa_ppl."):
            pkgutil.resolve_name(name)  # imports its module
    if not any(part in span for part in NOT_RUN):
        exec(compile(FillIn().visit(program), span, "exec"), scope)
        return
    for call in calls(program):
        function = eval(ast.unparse(call.func), scope)
        inspect.signature(function).bind(*call.args, **{str(k.arg): k for k in call.keywords})


@pytest.mark.needs_extras
def test_names_exist() -> None:
    """Names of the package, with the modules that they are in, and groups of entry points."""
    groups = {registry.group for registry in (ADVICE, *REGISTRIES.values())} | {"bpa_ppl.commands"}
    dotted = re.compile(r"\bbpa(?:_ppl)?(?:\.[A-Za-z_]\w*)+")
    lost = []
    for page, span in INLINE_CODE:
        for name in set(dotted.findall(span)) - groups:
            try:
                pkgutil.resolve_name(re.sub(r"^bpa\.", "bpa_ppl.", name))
            except (AttributeError, ImportError):
                lost.append((page, name))
    assert lost == []


def resolves(text: str) -> bool:
    for registry in REGISTRIES.values():
        try:
            registry.resolve(text)
        except UsageError:
            continue
        return True
    return text.startswith(("none:", "equal:")) and bool(StartingWeights.of(text))


@pytest.mark.needs_extras
def test_settings_exist() -> None:
    """Names of components with settings, `margin:gamma=4`, alone or as the value of an option."""
    written = re.compile(r"(?:^|(?<=[\s'\"]))[a-z-]+(?::\w+)?[:,][a-z_]+=[^\s'\"]+")
    shown = [(page, text) for page, span in INLINE_CODE for text in written.findall(span)]
    assert len(shown) > 30
    assert [pair for pair in shown if not resolves(pair[1])] == []
    assert not resolves("margin:no_such_setting=4")
