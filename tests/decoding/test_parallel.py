"""Several processes, or a Dask cluster, give the same bytes as one process."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign import foreign

from bpa_ppl import NBest, Reranked, UsageError, rerank
from bpa_ppl.decoding import reranking
from bpa_ppl.decoding.base import Rule
from bpa_ppl.decoding.outputs import rerank_to

NAMES = ("LM0", "TM0", "WP0")
LISTS = 300


@pytest.fixture(scope="module")
def lists() -> NBest:
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 40, size=LISTS)
    texts = [[f"t{rng.integers(1 + n // 2)}" for _ in range(n)] for n in sizes]
    features = [rng.normal(-20, 4, size=(n, 3)) for n in sizes]
    return NBest.from_lists(texts, features, NAMES, references=["t1 t2"] * LISTS)


@pytest.fixture(scope="module")
def posterior() -> Any:
    return foreign(np.random.default_rng(6).normal(0, 0.5, size=(2, 700, 3)), NAMES)


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the smallest input to workers."""
    monkeypatch.setattr(reranking, "_SMALL", 1)


def assert_equal(ours: Reranked, theirs: Reranked) -> None:
    for field in fields(Reranked):
        mine, other = getattr(ours, field.name), getattr(theirs, field.name)
        if isinstance(mine, np.ndarray):
            assert mine.tobytes() == other.tobytes(), field.name
        else:
            assert mine == other, field.name


class Odd(Rule, frozen=True):
    """A rule that a worker knows only because it is sent along."""

    def votes(self, features: Any, base: Any, voters: Any) -> Any:
        return features[:, 0] + base

    def combined(self, parts: Any) -> Any:
        return parts[0]


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("rule", [Odd(), pytest.param("predictive", marks=pytest.mark.slow)])
def test_processes_bring_the_same_files(
    lists: NBest, posterior: Any, tmp_path: Path, rule: str | Rule
) -> None:
    """And the same choices, by a rule of one's own too, and tell how far they are."""
    found, shown = {}, {}
    for jobs in (1, 2):
        names = tmp_path / f"out{jobs}", tmp_path / f"details{jobs}.gz"
        given = (part for part in lists.chunks(50))
        shown[jobs] = []
        summary = rerank_to(
            given,
            posterior,
            *names,
            rule=rule,
            derivations="summed",
            unchecked=True,
            jobs=jobs,
            progress=lambda done, *_, jobs=jobs: shown[jobs].append(done),
        )
        found[jobs] = [name.read_bytes() for name in names], str(summary.scores)
    assert found[1] == found[2]
    assert found[1][0][0].count(b"\n") == LISTS
    assert shown[1] == shown[2] == sorted(shown[2])
    assert shown[2][-1] == LISTS


def test_few_lists_start_no_process(
    lists: NBest, posterior: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        reranking, "parallel_workers", lambda *_: pytest.fail("a process was started")
    )
    assert len(rerank(lists, posterior, unchecked=True, jobs=2).texts) == LISTS


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"jobs": 0}, "jobs must be at least 1"),
        ({"backend": "slurm"}, "choose one of local, dask"),
        ({"backend": "dask"}, "go together"),
        ({"scheduler": "tcp://here:1"}, "go together"),
    ],
)
def test_workers_that_cannot_be(
    lists: NBest, posterior: Any, wrong: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        rerank(lists, posterior, unchecked=True, **wrong)


class Killer(Rule, frozen=True):
    """A rule that ends its process, as the system does when memory runs out."""

    def votes(self, features: Any, base: Any, voters: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def combined(self, parts: Any) -> Any:
        return parts[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets of the cluster, closed late
def test_a_dask_cluster_brings_the_same_choices(lists: NBest, posterior: Any) -> None:
    distributed = pytest.importorskip("distributed", reason="needs Dask: install bpa_ppl[dask]")
    here = rerank(lists, posterior, unchecked=True)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=None, processes=True
    ) as cluster:
        address = cluster.scheduler_address
        there = rerank(lists, posterior, unchecked=True, backend="dask", scheduler=address)
        with distributed.Client(cluster) as client:
            known = client.run(lambda: "bpa_ppl.decoding.panel" in sys.modules)
        with pytest.raises(UsageError, match=r"a worker of the cluster is lost"):
            rerank(
                lists, posterior, rule=Killer(), backend="dask", scheduler=address, unchecked=True
            )
    assert list(known.values()) == [True]
    assert_equal(here, there)


def test_no_scheduler_answers(lists: NBest, posterior: Any) -> None:
    dask = pytest.importorskip("dask", reason="needs Dask: install bpa_ppl[dask]")
    # Loaded before, it has settings of its own, which are there again when ours are taken back.
    pytest.importorskip("distributed", reason="needs Dask: install bpa_ppl[dask]")
    address = "tcp://127.0.0.1:1"
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(UsageError, match=f"no scheduler answers at {address}"),
    ):
        rerank(lists, posterior, unchecked=True, backend="dask", scheduler=address)
