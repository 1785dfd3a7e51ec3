"""A file that declares its features, and a user who names some of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.raising import raises

from bpa_ppl import DataError, adapt, as_draws, from_lists, read_nbest, write_nbest
from bpa_ppl.extending import gains


@pytest.mark.parametrize("format", ["jsonl", "csv", "tsv", "parquet"])
@pytest.mark.parametrize("named", [{"exclude": "human"}, {"features": "lm"}, {"features": ["l*"]}])
def test_a_declared_feature_that_is_not_chosen_is_an_extra(
    tmp_path: Path, format: str, named: dict[str, Any]
) -> None:
    numbers = [[[-1.5, 1.0], [-2.5, 0.0]], [[-0.5, 0.0], [-3.5, 1.0]]]
    lists = from_lists([["a", "b"], ["c", "d"]], numbers, ["lm", "human"])
    write_nbest(lists, path := tmp_path / f"lists.{format}")
    assert read_nbest(path).feature_names == ("lm", "human")
    chosen = read_nbest(path, **named)
    assert chosen.feature_names == ("lm",)
    assert [*chosen.extras] == ["human"]
    assert gains(chosen, "human").tolist() == [1, 0, 0, 1]
    options: dict[str, Any] = {"sampler": "map", "prior": "isotropic:variance=1.0"}
    assert as_draws(adapt(chosen, gain="human", **options)).features == ("lm",)


def test_two_fields_of_one_name() -> None:
    """Also where neither is a feature."""
    line = '{"id": 0, "text": "a", "features": {"lm": 1, "qe": 2}, "lm": 3}'
    for features in ("lm", "qe"):
        with raises(DataError, "duplicate", line=1, match="two fields lm"):
            read_nbest([line], features=features)
