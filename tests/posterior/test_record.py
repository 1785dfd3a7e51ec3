"""The record of draws: in attributes and files as it was, and with types."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from support.posteriors import draws_of_all_kinds, name_weights, read_weight_draws, with_record
from support.raising import raises

from bpa_ppl import DataError, Draws, as_weight_draws, write_posterior
from bpa_ppl.posterior.arviz_data import to_arviz
from bpa_ppl.posterior.record import (
    Figures,
    Finding,
    FromPrior,
    Record,
    SamplerRecord,
    Verdict,
    from_attributes,
    to_attributes,
)

#: A record with all fields.
FULL = Record(
    sampler=SamplerRecord(
        name="auto", settings={"draws": 10}, seconds=2.5, compilation=1.5, library="numpyro"
    ),
    seed=3,
    model="log_linear",
    versions={"jax": "0.9"},
    machine="Linux",
    figures=Figures(
        pareto_k=0.25,
        log_evidence=-3.5,
        newton_iterations=4,
        newton_decrement=1e-9,
        student_share=0.1,
        step_setting="scale",
        metric="found",
        modes=2,
        jumps=3,
        jump_sites=("tau",),
        chosen="imh",
        chosen_settings={"draws": 10},
        chosen_because="it fits",
        drawn_again_because="R-hat",
        tried=("imh",),
        likelihood_exponent=0.05,
    ),
    from_prior=FromPrior(effective=900.0, p_value=0.5, where="LM0", mean=0.1, deviation=0.2),
    verdict=Verdict(False, "5f", (Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, "more"),)),
    flat={"y_unobserved": 4},
    improper=("mu",),
    reparametrisations={"theta": "LocScaleReparam(0)"},
    others={"note": "ä", "list": [1, {"a": None}], "ratio": 0.5},
)


def parts(record: Record) -> list[Record]:
    """Return a record with nothing, and one for each field of another."""
    return [Record(), *(Record(**{n: getattr(record, n)}) for n in record.__struct_fields__)]


def test_all_fields_have_a_value() -> None:
    """A field that is added is added to `FULL`, too."""
    for part in (FULL, FULL.sampler, FULL.figures):
        empty = structs.asdict(type(part)())
        assert [name for name, value in structs.asdict(part).items() if value == empty[name]] == []


@pytest.mark.parametrize("record", [FULL, *parts(FULL)], ids=lambda record: str(record)[:40])
def test_records_are_read_back_from_attributes_and_arviz_data(record: Record) -> None:
    assert from_attributes(to_attributes(record)) == record
    draws = name_weights(np.zeros((1, 4, 1)), ("LM0",), record=record)
    assert as_weight_draws(to_arviz(draws)).record == record


@pytest.mark.parametrize("record", [FULL, Record()], ids=["all fields", "no field"])
def test_records_are_read_back_from_files(record: Record, tmp_path: Path) -> None:
    draws = name_weights(np.zeros((1, 4, 1)), ("LM0",), record=record)
    for timed in (True, False):
        write_posterior(draws, tmp_path / "posterior.nc", timed=timed)
        sampler = (
            record.sampler
            if timed
            else structs.replace(record.sampler, seconds=None, compilation=None)
        )
        expected = structs.replace(record, sampler=sampler)
        assert read_weight_draws(tmp_path / "posterior.nc").record == expected


def test_numbers_of_numpy_and_tuples_are_written_as_plain_values() -> None:
    settings: dict[str, Any] = {"scale": np.float32(0.5), "names": ("a", "b"), "grid": np.arange(2)}
    record = Record(sampler=SamplerRecord(settings=settings), seed=np.int64(3))  # type: ignore[arg-type]
    draws = name_weights(np.zeros((1, 4, 1)), ("LM0",), record=record)
    read = as_weight_draws(to_arviz(draws)).record
    assert read.sampler.settings == {"scale": 0.5, "names": ["a", "b"], "grid": [0, 1]}
    assert read.seed == 3


def test_figures_that_are_not_finite_are_kept() -> None:
    record = Record(figures=Figures(pareto_k=math.inf, newton_decrement=math.nan))
    read = from_attributes(to_attributes(record))
    assert read.figures.pareto_k == math.inf
    assert math.isnan(read.figures.newton_decrement or 0)


WRONG: list[tuple[str, Any]] = [
    ("seed", "three"),
    ("sampler", 3),
    ("settings", "many"),
    ("sampling_time", -1.0),
    ("likelihood_exponent", 0.0),
    ("check", {"passed": True}),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_an_attribute_of_another_type_is_named(name: str, value: Any, tmp_path: Path) -> None:
    tree = to_arviz(draws_of_all_kinds().draws)
    tree.attrs[name] = value if isinstance(value, str | int | float) else json.dumps(value)
    with raises(DataError, "damaged", parameter="attrs", match=f"the attribute {name} of the"):
        as_weight_draws(tree)


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_attributes_of_other_programs_may_have_any_type(name: str, value: Any) -> None:
    if name == "sampling_time":  # of ArviZ's schema
        with raises(DataError, "damaged", parameter="attrs", match=name):
            from_attributes({name: value}, foreign=True)
    else:
        record = from_attributes({name: value}, foreign=True)
        assert record == Record(others={name: value})
        assert to_attributes(record) == {}  # the names are ours in files of ours


def test_attributes_of_other_programs_that_have_our_types_are_read() -> None:
    attrs = {"inference_library": "pymc", "sampling_time": 3, "seed": 1, "created_at": "today"}
    record = from_attributes(attrs, foreign=True)
    assert (record.sampler.library, record.sampler.seconds, record.seed) == ("pymc", 3.0, 1)
    assert record.others == {"created_at": "today"}


def test_draws_are_printed_in_six_lines() -> None:
    record = Record(
        sampler=SamplerRecord(name="auto"),
        figures=Figures(chosen="imh"),
        verdict=Verdict(True, "", ()),
    )
    values = {"theta": np.zeros((4, 200, 2))}
    draws = Draws(values, observed={"y": np.zeros(8), "z": np.zeros(1)}, record=record)
    assert str(draws).splitlines() == [
        "kind      chains",
        "shape     4 chains × 200 draws",
        "values    2: theta[0], theta[1]",
        "sampler   auto (imh)",
        "observed  8 values of y, 1 value of z",
        "check     passed",
    ]
    failed = with_record(draws, verdict=FULL.verdict)
    assert str(failed).splitlines()[-1] == "check     failed: R-hat"
    many = Draws({name: np.zeros((1, 4)) for name in "abcdefghi"}, sampled=tuple("abcdefghi"))
    assert "values    9: a, b, c, d, e, …" in str(many)
