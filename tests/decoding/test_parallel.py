"""Several processes give the same bytes as one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.external_posterior import external_posterior
from support.random_lists import NAMES, random_lists, random_sizes

from bpa_ppl import NBest, Reranker, rerank
from bpa_ppl.decoding.rules import Rule
from bpa_ppl.decoding.writing import rerank_to

LISTS = 300


@pytest.fixture(scope="module")
def lists() -> NBest:
    return random_lists(random_sizes(LISTS, 40), references=["t1 t2"] * LISTS)


@pytest.fixture(scope="module")
def posterior() -> Any:
    return external_posterior(np.random.default_rng(6).normal(0, 0.5, size=(2, 700, 3)), NAMES)


class CustomRule(Rule, frozen=True):
    """A rule that workers cannot import and receive by pickling."""

    def log_scores(self, features: Any, draws: Any) -> Any:
        return features[:, 0]


@pytest.mark.parametrize(
    "rule",
    [CustomRule(), *(pytest.param(rule, marks=pytest.mark.slow) for rule in ("predictive", "mbr"))],
)
def test_result_does_not_depend_on_processes(
    lists: NBest,
    posterior: Any,
    tmp_path: Path,
    rule: str | Rule,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Files, choices and progress are equal, also with a custom rule."""
    monkeypatch.setattr("bpa_ppl.decoding.reranker._SMALL", 1)
    result, shown = {}, {1: list[int](), 2: list[int]()}
    for jobs in (1, 2):
        names = tmp_path / f"out{jobs}", tmp_path / f"details{jobs}.gz"
        reranker = Reranker(
            posterior,
            rule=rule,
            derivations="summed",
            unchecked=True,
            jobs=jobs,
            progress=lambda done, *_, jobs=jobs: shown[jobs].append(done),
        )
        summary = rerank_to(lists.chunks(50), reranker, *names)
        result[jobs] = [name.read_bytes() for name in names], str(summary.scores)
    assert result[1] == result[2]
    assert result[1][0][0].count(b"\n") == LISTS
    assert shown[1] == shown[2] == sorted(shown[2])
    assert shown[2][-1] == LISTS


def test_small_input_starts_no_process(
    lists: NBest, posterior: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "bpa_ppl.decoding.reranker.parallel_workers",
        lambda *_: pytest.fail("a process was started"),
    )
    assert len(rerank(lists, posterior, unchecked=True, jobs=2).texts) == LISTS
