"""`adapt` in several threads, and programs that are compiled once for data of similar size."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import jax
import numpy as np
import pytest
from support.raising import raises
from support.registries import SAMPLERS
from support.targets import run_sampler

from bpa_ppl import NBest, UsageError, adapt, as_weight_draws, from_lists, log_density
from bpa_ppl.extending import Sampled, Sampler, Target

CANONICAL = {"A": 0.1, "B": 0.2}
#: Threads of a new process: the first use of names, whose modules are loaded on first use, and
#: then the first adaptation, before which nothing is traced.
COLD = """
import threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import bpa_ppl as bpa

barrier = threading.Barrier(8)

def first(name):
    barrier.wait()
    return callable(getattr(bpa, name))

names = ["adapt", "check", "rerank", "concatenate", "compare", "read_nbest", "Reranker", "Draws"]
with ThreadPoolExecutor(8) as threads:
    assert all(threads.map(first, names))
barrier = threading.Barrier(4)

def run(thread):
    barrier.wait()
    rng = np.random.default_rng(5)
    lists = bpa.from_lists(
        [[f"w{h}" for h in range(8)] for _ in range(20)],
        [rng.normal(size=(8, 2)) for _ in range(20)],
        ["A", "B"],
        references=[("w0",)] * 20,
    )
    posterior = bpa.adapt(lists, {"A": 0.1, "B": 0.2}, sampler="map", seed=thread)
    return bpa.as_weight_draws(posterior).mean

with ThreadPoolExecutor(4) as threads:
    print(np.isfinite(list(threads.map(run, range(4)))).all())
"""


@pytest.mark.slow
def test_threads_of_a_cold_process() -> None:
    run = [sys.executable, "-c", COLD]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["True"], done.stderr


@pytest.mark.slow
def test_threads_draw_the_same_as_one(pool: NBest) -> None:
    """Shapes and samplers differ between threads, so that some trace while others run."""

    def run(seed: int) -> np.ndarray:
        sampler = SAMPLERS["nuts"](draws=100 + seed) if seed % 2 else "imh"
        return as_weight_draws(
            adapt(pool[: 5 + seed], CANONICAL, sampler=sampler, seed=seed)
        ).weights

    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(run, range(4)))
    for seed, values in enumerate(together):
        np.testing.assert_array_equal(values, run(seed))


@pytest.mark.slow
def test_one_program_runs_at_a_time(pool: NBest) -> None:
    """JAX's thread pool may not hold two programs that call LAPACK: they wait forever."""
    steps = list[tuple[int, str]]()

    def run(seed: int) -> None:
        options = {"sampler": "nuts:draws=100,warmup=100,chains=1", "seed": seed}
        adapt(pool, CANONICAL, progress=lambda *step: steps.append((seed, step[2])), **options)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(run, (0, 1)))
    sampling = (seed for seed, note in steps if "acceptance" in note)
    assert [seed for seed, _ in groupby(sampling)] in ([0, 1], [1, 0])


def test_a_failure_releases_the_lock(pool: NBest) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("of a test")

    with raises(UsageError, "not-supported", parameter="model", match="of a test"):
        adapt(pool, CANONICAL, model=broken, sampler="map")
    with ThreadPoolExecutor(1) as other:
        assert other.submit(adapt, pool, CANONICAL, sampler="map").result(timeout=120)


_EVENT = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compilations() -> Iterator[list[str]]:
    """A list that grows by one for each program that XLA compiles or loads from its cache."""
    seen: list[str] = []

    def listen(event: str, seconds: float, **_: object) -> None:
        if event == _EVENT:
            seen.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield seen
    jax.monitoring.unregister_event_duration_listener(listen)


def _pool(sentences: int, size: int, seed: int) -> NBest:
    rng = np.random.default_rng(seed)
    texts = [[f"w{h}" for h in range(size)] for _ in range(sentences)]
    features = [rng.normal(size=(size, 3)) for _ in texts]
    return from_lists(texts, features, ["A", "B", "C"], references=[("w0",)] * sentences)


THREE = {"A": 0.1, "B": 0.2, "C": 0.3}


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampler", ["imh:", "rwm:", pytest.param("nuts:warmup=20,", marks=pytest.mark.slow)]
)
def test_similar_data_are_not_compiled_again(compilations: list[str], sampler: str) -> None:
    """Nor are other numbers of draws, if chains are run in pieces of the same length."""
    adapt(_pool(50, 33, 1), THREE, sampler=f"{sampler}draws=36")
    first = len(compilations)
    adapt(_pool(52, 35, 2), THREE, sampler=f"{sampler}draws=40")
    assert first > 0
    assert len(compilations) == first


def test_the_time_of_sampling_is_without_compilation() -> None:
    clock = [0.0]

    class Sleeper(Sampler, frozen=True):
        def sample(self, target: Target, *_: object) -> Sampled:
            clock[0] += 7.0
            jax.monitoring.record_event_duration_secs(_EVENT, 7.0)
            clock[0] += 2.25
            return Sampled({"weights": np.zeros((1, 9, *target.start["weights"].shape))})

    run = run_sampler(log_density(_pool(5, 3, 1), THREE), Sleeper(), clock=lambda: clock[0])
    assert (run.sampler.seconds, run.sampler.compilation) == (2.25, 7.0)
