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

from bpa_ppl import DataError, NBest, adapt, as_weight_draws, from_lists, write_posterior
from bpa_ppl.posterior.arviz_data import to_arviz
from bpa_ppl.posterior.record import (
    Agreement,
    ComponentRecord,
    FeatureScale,
    Figures,
    Finding,
    FromPrior,
    GainColumn,
    IndicatorsRecord,
    ObservedRecord,
    PriorRecord,
    RecipeRecord,
    Record,
    SamplerRecord,
    SourceRecord,
    Verdict,
    from_attributes,
    to_attributes,
)

LM = SourceRecord(
    source="lm",
    settings={"text": "domain.txt", "order": 2, "name": "domain"},
    file_hashes=("5f",),
    feature_names=("lm", "lm.oov"),
)
#: A record with all fields.
FULL = Record(
    sampler=SamplerRecord(
        name="auto", settings={"draws": 10}, seconds=2.5, compilation=1.5, library="numpyro"
    ),
    reading={"format": "csv:id=q", "missing": {"gpt": 0.5}},
    likelihood=ComponentRecord("preference", {"slip": "raters", "nu": None}),
    prior=PriorRecord(
        "isotropic",
        {"variance": {"LM0": 2.0}},
        scale=0.5,
        scale_learned=True,
        spread={"LM0": 1.5},
        log_deviation=1.25,
        isotropic=("a",),
    ),
    start="equal",
    pretrained=("LM0",),
    indicators=IndicatorsRecord(-4.0, ("system",)),
    seed=3,
    model="log_linear",
    observed=ObservedRecord(
        kind="preferences",
        sentences=12,
        gain="mqm",
        ties="shared",
        signature="case:lc",
        comparisons={"lists": 9, "ties": 0},
        raters={"ann": 7},
        agreement=Agreement(2, 3, 3, None),
    ),
    lists="lists.jsonl",
    data={"texts": "5f"},
    versions={"jax": "0.9"},
    machine="Linux",
    recipe=RecipeRecord(
        gain=GainColumn("mqm", True),
        chosen=(),
        excluded=("system",),
        absent=("TM0",),
        sources=(LM, SourceRecord(source="length")),
    ),
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
    feature_scales={"LM0": FeatureScale(1.5, 0.75, -1, 0.5, 0.125)},
    comparison={"unit": "mqm", "rows": [["a", None]]},
    options={"weights": "none", "seed": 3},
    verdict=Verdict(False, "5f", (Finding("R-hat", 1.2, "LM0", "≤ 1.01", False, "more"),)),
    flat={"y_unobserved": 4},
    improper=("mu",),
    reparametrisations={"theta": "LocScaleReparam(0)"},
    others={"note": "ä", "list": [1, {"a": None}], "ratio": 0.5},
)


def test_what_earlier_files_record_of_features_is_ignored() -> None:
    tree = to_arviz(draws_of_all_kinds().draws)
    earlier = {"lists": 9, "deviations": [0.5, 1.0], "agreement": 0.25, "sign": -1}
    tree.attrs["feature_scales"] = json.dumps({"LM0": {"spread": 1.5, **earlier}})
    record = as_weight_draws(tree).record
    assert record.feature_scales == {"LM0": FeatureScale(spread=1.5, sign=-1)}


def parts(record: Record) -> list[Record]:
    """Return a record with nothing, and one for each field of another."""
    return [Record(), *(Record(**{n: getattr(record, n)}) for n in record.__struct_fields__)]


def test_all_fields_have_a_value() -> None:
    """A field that is added is added to `FULL`, too."""
    groups = (FULL.sampler, FULL.observed, FULL.recipe, FULL.figures)
    for part in (FULL, *groups):
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
    ("likelihood", "oracle"),
    ("prior", {"scale": 1.0}),
    ("prior", {"name": "isotropic", "spread": {"LM0": "wide"}}),
    ("canonical_weights", "some"),
    ("observed", "much"),
    ("agreement", {"raters": 2}),
    ("gain_column", "mqm"),
    ("feature_sources", {"source": "lm"}),
    ("feature_sources", [[[[]]]]),
    ("feature_sources", [{"text": "x"}]),
    ("feature_sources", [{"source": ["known"]}]),
    ("feature_sources", [{"source": "known", "feature_names": [["known"]]}]),
    ("feature_sources", "[" * 5000 + "]" * 5000),
    ("likelihood_exponent", 0.0),
    ("feature_scales", {"LM0": [1.0, 2.0]}),
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
    assert record.canonical


def lists(**extras: Any) -> NBest:
    texts = [["the cat", "a cat"], ["a dog", "the dog"]] * 4
    made = from_lists(texts, [[[0.5, 1.0], [0.0, 3.0]]] * 8, ["comet", "length"])
    return made.with_references([("the cat",), ("the dog",)] * 4).with_extras(**extras)


@pytest.mark.parametrize("kind", ["oracles", "gains", "preferences", "nothing"])
def test_what_was_observed_is_recorded(kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "sampler": "map",
        "gain": "ter",
        "prior": "isotropic:variance=1,mean=0",
    }
    pool = lists()
    if kind == "preferences":
        pool, options = pool.with_sentence_extras(preferences=[[[0, 1]]] * 8), {"sampler": "map"}
    likelihoods = {"oracles": "oracle", "gains": "risk", "preferences": "preference"}
    posterior = adapt(pool, likelihood=likelihoods.get(kind, "none"), **options)
    results = [as_weight_draws(posterior)]
    if kind == "gains":  # files of all fields are read above
        write_posterior(posterior, tmp_path / "posterior.nc")
        results.append(read_weight_draws(tmp_path / "posterior.nc"))
    for draws in results:
        observed = draws.record.observed
        assert (observed.kind, observed.sentences) == (kind, 8 * (kind != "nothing"))
        assert observed.gain == (None if kind == "preferences" else "ter")
        assert (draws.record.start, draws.record.canonical) == ("none", False)
        assert draws.record.verdict is not None
        assert f"observed  {kind}" in str(draws)


def test_draws_are_printed_in_six_lines() -> None:
    record = Record(
        sampler=SamplerRecord(name="auto"),
        observed=ObservedRecord(kind="gains", sentences=8, gain="ter"),
        figures=Figures(chosen="imh"),
        verdict=Verdict(True, "", ()),
    )
    draws = name_weights(np.zeros((4, 200, 2)), ("comet", "length"), record=record)
    assert str(draws).splitlines() == [
        "kind      chains",
        "shape     4 chains × 200 draws",
        "values    2: comet, length",
        "sampler   auto (imh)",
        "observed  gains of 8 lists by ter",
        "check     passed",
    ]
    assert repr(draws) == "WeightDraws(draws=Draws(chains, 4 × 200, 2 values))"
    failed = with_record(draws, verdict=FULL.verdict, observed=FULL.observed)
    assert str(failed).splitlines()[-2:] == [
        "observed  preferences, 12 choices",
        "check     failed: R-hat",
    ]
    many = name_weights(np.zeros((1, 4, 9)), tuple("abcdefghi"))
    assert "values    9: a, b, c, d, e, …" in str(many)
