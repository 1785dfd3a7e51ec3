"""Broken components of other packages: errors, warnings, and no effect on built-in components."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from raising import raises

import bpa_ppl as bpa
from bpa_ppl import BpaWarning, DataError, NBest, UsageError
from bpa_ppl.formats.jsonl import Jsonl
from bpa_ppl.quality.base import counted_metrics
from bpa_ppl.quality.ter import TER
from bpa_ppl.registry import METRICS, NBEST_FORMATS, WEIGHT_FORMATS, Registry

MODULE = '''
from bpa_ppl.quality import Metric

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
    assert METRICS["mine"].__name__ == "Mine"
    for registry in registries:
        for _ in range(2 if registry is not METRICS else 0):  # the failure is not cached
            with raises(DataError, "wrong-type", match=f"{registry.kind} mine.* package theirs"):
                registry.resolve("mine")


@pytest.mark.parametrize(
    ("value", "source", "code", "reason"),
    [
        ("theirs:function", MODULE, "wrong-type", "<function function at"),
        ("theirs:Other", MODULE, "damaged", "theirs:Other .* no attribute 'Other'"),
        ("theirs:Mine", "raise KeyError('key')", "damaged", "package theirs.*: 'key'"),
        ("theirs:Mine", "import no_such_module", "damaged", "'no_such_module'"),
    ],
)
def test_component_that_cannot_be_loaded_raises(
    install_entry_points: InstallFunction, value: str, source: str, code: str, reason: str
) -> None:
    install_entry_points(METRICS, value=value, source=source)
    with raises(DataError, code, match=f"the metric mine.*{reason}"):
        METRICS.resolve("mine")


def test_other_formats_work_despite_broken_component(
    registries: list[Registry], install_entry_points: InstallFunction
) -> None:
    """Files in known formats are read without warning; an unknown file warns once."""
    install_entry_points(*registries)
    lists = NBest.from_lists([["a cat", "the cat"]], [[[-1.5], [-2.0]]], ["LM0"])
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
    install_entry_points(METRICS, source="raise ValueError('wrong')")
    with pytest.warns(BpaWarning, match="left out: the metric mine.*: wrong"):
        assert "ter" in counted_metrics()


def test_broken_built_in_component_raises() -> None:
    broken: Registry = Registry("metric", "none", METRICS.base, {"mine": "bpa_ppl.none:Mine"})
    with raises(DataError, "damaged", match=r"metric mine.*bpa_ppl\.none"):
        dict(broken.loaded())


def test_register_rejects_other_classes_and_names_in_use() -> None:
    for member in (Jsonl, TER()):
        with raises(UsageError, "wrong-type", parameter="member"):
            METRICS.register("mine", member)  # type: ignore[arg-type]
    with raises(UsageError, "duplicate", parameter="name"):
        NBEST_FORMATS.register("moses", Jsonl)
    assert "mine" not in METRICS
    assert "mine" not in NBEST_FORMATS
