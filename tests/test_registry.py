"""Components of other packages that cannot be used: they are named, and ours work all the same."""

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
GROUPS = [one.group for one in REGISTRIES]
MODULE = '''
from bpa_ppl.quality import Metric

class Mine(Metric, frozen=True):
    """A metric, wherever it is offered."""

def made():
    """No class at all."""
'''
Offer = Callable[..., None]


@pytest.fixture
def offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Offer]:
    """Install a package that offers something in some groups."""
    site, info = tmp_path / "site", tmp_path / "site" / "their_package-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(site))
    for one in REGISTRIES:
        monkeypatch.setattr(one, "_members", dict(one._members))
        monkeypatch.setattr(one, "_offered", {})
        monkeypatch.setattr(one, "_left_out", set())
        monkeypatch.setattr(one, "_searched", False)

    def offered(*groups: str, value: str = "theirs:Mine", source: str = MODULE) -> None:
        sys.modules.pop("theirs", None)
        (site / "theirs.py").write_text(source)
        points = "".join(f"[{group}]\nmine = {value}\n" for group in groups)
        (info / "entry_points.txt").write_text(points)
        importlib.invalidate_caches()

    yield offered
    sys.modules.pop("theirs", None)


@pytest.fixture
def lists() -> NBest:
    return NBest.from_lists([["a cat", "the cat"]], [[[-1.5], [-2.0]]], ["LM0"])


@pytest.mark.parametrize("one", REGISTRIES, ids=GROUPS)
def test_what_is_of_another_kind_is_named(one: Registry, offer: Offer) -> None:
    """A metric is one among metrics, and nowhere else."""
    offer(one.group)
    if one is METRICS:
        assert one["mine"].__name__ == "Mine"
        return
    says = (
        rf"{one.kind} mine, theirs:Mine \(entry point mine in {one.group} of the package "
        rf"their-package\), is the class Mine \(a Metric\), and must be a subclass of "
        rf"{one.base.replace(':', '.')}: correct the entry point"
    )
    for _ in range(2):  # nothing of it is kept
        with pytest.raises(DataError, match=says):
            one.resolve("mine")


@pytest.mark.parametrize(
    ("value", "source", "says"),
    [
        ("theirs:made", MODULE, "is a function, and must be a subclass of"),
        ("theirs:Other", MODULE, "cannot be loaded from theirs:Other .* no attribute 'Other'"),
        ("theirs:Mine", "raise KeyError('key')", r"cannot be loaded .*their-package\): 'key'"),
        ("theirs:Mine", "import no_such_module", "No module named 'no_such_module'"),
    ],
)
def test_what_cannot_be_loaded_is_named(offer: Offer, value: str, source: str, says: str) -> None:
    offer(METRICS.group, value=value, source=source)
    with pytest.raises(DataError, match=f"the metric mine.*{says}"):
        METRICS.resolve("mine")


def test_ours_read_and_write_beside_it(offer: Offer, lists: NBest) -> None:
    """What our formats know is read without a word; else it is told once that one was left out."""
    offer(*GROUPS)
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


def test_weights_and_metrics_beside_it(offer: Offer) -> None:
    offer(WEIGHT_FORMATS.group)
    Path("weights").write_text("LM0= 0.5\n")
    with pytest.warns(BpaWarning, match=f"left out: the {WEIGHT_FORMATS.kind} mine"):
        assert bpa.read_weights("weights")["LM0"] == 0.5
    assert bpa.read_weights("weights")["LM0"] == 0.5
    offer(METRICS.group, source="raise ValueError('wrong')")
    with pytest.warns(BpaWarning, match="left out: the metric mine cannot be loaded .*: wrong"):
        assert "ter" in counted_metrics()


def test_one_of_our_own_that_cannot_be_loaded_is_no_note() -> None:
    broken: Registry = Registry("metric", "none", METRICS.base, {"mine": "bpa_ppl.none:Mine"})
    with pytest.raises(DataError, match=r"metric mine cannot be loaded from bpa_ppl\.none"):
        dict(broken.loaded())


def test_what_is_registered_is_of_the_kind() -> None:
    with pytest.raises(UsageError, match=r"a metric is a subclass of .*\.Metric, and mine is .*Js"):
        METRICS.register("mine", Jsonl)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="and mine is a TER: register what it is"):
        METRICS.register("mine", TER())  # type: ignore[arg-type]
    assert "mine" not in METRICS
    assert "mine" not in NBEST_FORMATS
