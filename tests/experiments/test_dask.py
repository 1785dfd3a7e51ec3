"""A study on the workers of a Dask cluster."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bpa_ppl.experiments import read_study, run_study


@pytest.fixture(autouse=True)
def distributed() -> Any:
    """Dask's scheduler, which takes a second to import."""
    return pytest.importorskip("distributed", reason="needs Dask: install the extra dask")


def _has_worked() -> bool:
    return "bpa_ppl.experiments.running" in sys.modules


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets of the cluster, closed late
def test_two_workers_give_identical_results(
    distributed: Any, quick_study: Path, tmp_path: Path
) -> None:
    study = replace(read_study(quick_study), sizes=(4,))
    here = run_study(study, tmp_path / "here")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as cluster:
        there = run_study(
            study, tmp_path / "there", backend="dask", scheduler=cluster.scheduler_address
        )
        with distributed.Client(cluster) as client:
            assert list(client.run(_has_worked).values()) == [True, True]
    assert there.read_bytes() == here.read_bytes()
