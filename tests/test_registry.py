"""Broken components of other packages: errors, warnings, and no effect on built-in components."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import bpa_ppl as bpa
from bpa_ppl import BpaWarning, DataError, NBest, UsageError, registry
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.quality.base import counted_metrics
from bpa_ppl.quality.ter import TER
from bpa_ppl.registry import METRICS, NBEST_FORMATS, WEIGHT_FORMATS, Registry

REGISTRIES = [value for value in vars(registry).values() if isinstance(value, Registry)]
GROUPS = [component_registry.group for component_registry in REGISTRIES]
MODULE = '''
from bpa_ppl.quality import Metric

class Mine(Metric, frozen=True):
    """A metric."""

def function():
    """Not a class."""
'''
InstallFunction = Callable[..., None]


@pytest.fixture
def install_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[InstallFunction]:
    """A function that installs a package with entry points."""
    site, info = tmp_path / "site", tmp_path / "site" / "their_package-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(site))
    for component_registry in REGISTRIES:
        monkeypatch.setattr(component_registry, "_members", dict(component_registry._members))
        monkeypatch.setattr(component_registry, "_offered", {})
        monkeypatch.setattr(component_registry, "_left_out", set())
        monkeypatch.setattr(component_registry, "_searched", False)

    def install(*groups: str, value: str = "theirs:Mine", source: str = MODULE) -> None:
        sys.modules.pop("theirs", None)
        (site / "theirs.py").write_text(source)
        points = "".join(f"[{group}]\nmine = {value}\n" for group in groups)
        (info / "entry_points.txt").write_text(points)
        importlib.invalidate_caches()

    yield install
    sys.modules.pop("theirs", None)


@pytest.fixture
def lists() -> NBest:
    return NBest.from_lists([["a cat", "the cat"]], [[[-1.5], [-2.0]]], ["LM0"])


@pytest.mark.parametrize("component_registry", REGISTRIES, ids=GROUPS)
def test_component_of_another_kind_raises(
    component_registry: Registry, install_entry_point: InstallFunction
) -> None:
    """A metric class is accepted in the group of metrics only."""
    install_entry_point(component_registry.group)
    if component_registry is METRICS:
        assert component_registry["mine"].__name__ == "Mine"
        return
    for _ in range(2):  # the failure is not cached
        with pytest.raises(
            DataError,
            match=rf"{component_registry.kind} mine.*{component_registry.group}.*their-package",
        ):
            component_registry.resolve("mine")


@pytest.mark.parametrize(
    ("value", "source", "reason"),
    [
        ("theirs:function", MODULE, "is a function, not a subclass"),
        ("theirs:Other", MODULE, "cannot be loaded from theirs:Other .* no attribute 'Other'"),
        ("theirs:Mine", "raise KeyError('key')", r"cannot be loaded .*their-package\): 'key'"),
        ("theirs:Mine", "import no_such_module", "No module named 'no_such_module'"),
    ],
)
def test_component_that_cannot_be_loaded_raises(
    install_entry_point: InstallFunction, value: str, source: str, reason: str
) -> None:
    install_entry_point(METRICS.group, value=value, source=source)
    with pytest.raises(DataError, match=f"the metric mine.*{reason}"):
        METRICS.resolve("mine")


def test_other_formats_work_despite_broken_component(
    install_entry_point: InstallFunction, lists: NBest
) -> None:
    """Known formats are read without warning; an unknown file warns of the component once."""
    install_entry_point(*GROUPS)
    for path in ("out", "out.jsonl", "out.csv"):
        bpa.write_nbest(lists, path)
        assert bpa.read_nbest(path).texts(0) == lists.texts(0)
    Path("odd").write_text("what is this\n")
    with (
        pytest.warns(BpaWarning, match="left out: the format of n-best lists mine, theirs:Mine"),
        pytest.raises(DataError, match="not an n-best list in a known format"),
    ):
        bpa.read_nbest("odd")
    with pytest.raises(DataError, match="not an n-best list in a known format"):
        bpa.read_nbest("odd")


def test_other_weights_and_metrics_work_despite_broken_component(
    install_entry_point: InstallFunction,
) -> None:
    install_entry_point(WEIGHT_FORMATS.group)
    Path("weights").write_text("LM0= 0.5\n")
    with pytest.warns(BpaWarning, match=f"left out: the {WEIGHT_FORMATS.kind} mine"):
        assert bpa.read_weights("weights")["LM0"] == 0.5
    assert bpa.read_weights("weights")["LM0"] == 0.5
    install_entry_point(METRICS.group, source="raise ValueError('wrong')")
    with pytest.warns(BpaWarning, match="left out: the metric mine cannot be loaded .*: wrong"):
        assert "ter" in counted_metrics()


def test_broken_built_in_component_raises() -> None:
    broken: Registry = Registry("metric", "none", METRICS.base, {"mine": "bpa_ppl.none:Mine"})
    with pytest.raises(DataError, match=r"metric mine cannot be loaded from bpa_ppl\.none"):
        dict(broken.loaded())


def test_register_rejects_other_classes() -> None:
    with pytest.raises(UsageError, match=r"mine is the class Jsonl.*\.Metric"):
        METRICS.register("mine", Jsonl)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="mine is a TER"):
        METRICS.register("mine", TER())  # type: ignore[arg-type]
    assert "mine" not in METRICS
    assert "mine" not in NBEST_FORMATS
