"""What a posterior records of its adaptation: in attributes and files as it was, and with types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from support.posteriors import (
    Figures,
    Record,
    SamplerRecord,
    draws_of_all_kinds,
    name_weights,
    read_weight_draws,
    to_arviz,
    with_record,
)
from support.raising import raises

from bpa_ppl import DataError, NBest, adapt, as_draws, as_weight_draws, from_lists, write_posterior
from bpa_ppl.adaptation_record import (
    AdaptationRecord,
    Agreement,
    ComponentRecord,
    FeatureScale,
    GainColumn,
    IndicatorsRecord,
    ObservedRecord,
    PriorRecord,
    RecipeRecord,
    SourceRecord,
)

LM = SourceRecord(
    source="lm",
    settings={"text": "domain.txt", "order": 2, "name": "domain"},
    file_hashes=("5f",),
    feature_names=("lm", "lm.oov"),
)
#: A record with all fields.
FULL = AdaptationRecord(
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
    recipe=RecipeRecord(
        gain=GainColumn("mqm", True),
        chosen=(),
        excluded=("system",),
        absent=("TM0",),
        sources=(LM, SourceRecord(source="length")),
    ),
    feature_scales={"LM0": FeatureScale(1.5, 0.75, -1, 0.5, 0.125)},
    comparison={"unit": "mqm", "rows": [["a", None]]},
    options={"weights": "none", "seed": 3},
)


VERSIONS = {"bpa_ppl": "1.0"}


def test_what_earlier_files_record_of_features_is_ignored() -> None:
    tree = to_arviz(draws_of_all_kinds().draws)
    earlier = {"lists": 9, "deviations": [0.5, 1.0], "agreement": 0.25, "sign": -1}
    tree.attrs["feature_scales"] = json.dumps({"LM0": {"spread": 1.5, **earlier}})
    record = as_weight_draws(tree).adaptation
    assert record.feature_scales == {"LM0": FeatureScale(spread=1.5, sign=-1)}


def parts(record: AdaptationRecord) -> list[AdaptationRecord]:
    """Return a record with nothing, and one for each field of another."""
    fields = record.__struct_fields__
    return [AdaptationRecord(), *(AdaptationRecord(**{n: getattr(record, n)}) for n in fields)]


def test_all_fields_have_a_value() -> None:
    """A field that is added is added to `FULL`, too."""
    for part in (FULL, FULL.observed, FULL.recipe):
        empty = structs.asdict(type(part)())
        assert [name for name, value in structs.asdict(part).items() if value == empty[name]] == []


@pytest.mark.parametrize("record", [FULL, *parts(FULL)], ids=lambda record: str(record)[:40])
def test_records_are_read_back_from_attributes_and_arviz_data(record: AdaptationRecord) -> None:
    others = {"note": "ä", "lists of others": [1, {"a": None}]}
    whole = record.add_to(Record(seed=3, versions=VERSIONS, others=others))
    assert AdaptationRecord.of(whole) == record
    assert whole.others == others | record.to_attributes()
    draws = name_weights(np.zeros((1, 4, 1)), ("LM0",), record=whole)
    again = as_weight_draws(to_arviz(draws))
    assert (again.adaptation, again.record) == (record, whole)


def test_records_are_read_back_from_files(tmp_path: Path) -> None:
    record = FULL.add_to(Record(versions=VERSIONS))
    draws = name_weights(np.zeros((1, 4, 1)), ("LM0",), record=record)
    write_posterior(draws, tmp_path / "posterior.nc")
    assert read_weight_draws(tmp_path / "posterior.nc").adaptation == FULL


def test_a_record_takes_the_place_of_an_earlier_one() -> None:
    earlier = FULL.add_to(Record(others={"note": 1}))
    assert AdaptationRecord(lists="a.jsonl").add_to(earlier).others == {
        "note": 1,
        "lists": "a.jsonl",
    }


WRONG: list[tuple[str, Any]] = [
    ("likelihood", "oracle"),
    ("prior", {"scale": 1.0}),
    ("prior", {"name": "isotropic", "spread": {"LM0": "wide"}}),
    ("canonical_weights", "some"),
    ("observed", "much"),
    ("agreement", {"raters": 2}),
    ("gain_column", "mqm"),
    ("feature_sources", "lm"),
    ("feature_sources", {"source": "lm"}),
    ("feature_sources", [[[[]]]]),
    ("feature_sources", [{"text": "x"}]),
    ("feature_sources", [{"source": ["known"]}]),
    ("feature_sources", [{"source": "known", "feature_names": [["known"]]}]),
    ("feature_sources", "[" * 5000 + "]" * 5000),
    ("feature_scales", {"LM0": [1.0, 2.0]}),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_an_attribute_of_another_type_is_named(name: str, value: Any, tmp_path: Path) -> None:
    """By all functions that need weights; others do not read it."""
    tree = to_arviz(draws_of_all_kinds())
    tree.attrs["versions"] = json.dumps(VERSIONS)
    tree.attrs[name] = value if isinstance(value, str | int | float) else json.dumps(value)
    with raises(DataError, "damaged", parameter="attrs", match=f"the attribute {name} of the"):
        as_weight_draws(tree)
    write_posterior(tree, tmp_path / "p.nc")
    with raises(DataError, "damaged", parameter="attrs", match=rf"p\.nc: the attribute {name} of"):
        read_weight_draws(tmp_path / "p.nc")
    assert as_draws(tree).record.others[name] is not None


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_attributes_of_other_programs_may_have_any_type(name: str, value: Any) -> None:
    assert AdaptationRecord.of(Record(others={name: value})) == AdaptationRecord()


def test_attributes_of_other_programs_that_have_our_types_are_read() -> None:
    record = AdaptationRecord.of(Record(others={"lists": "dev.jsonl", "created_at": "today"}))
    assert record == AdaptationRecord(lists="dev.jsonl")
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
        observed = draws.adaptation.observed
        assert (observed.kind, observed.sentences) == (kind, 8 * (kind != "nothing"))
        assert observed.gain == (None if kind == "preferences" else "ter")
        assert (draws.adaptation.start, draws.adaptation.canonical) == ("none", False)
        assert draws.record.verdict is not None
        assert f"adapted   {kind}" in str(draws)


def test_what_was_observed_is_printed() -> None:
    adaptation = AdaptationRecord(observed=ObservedRecord(kind="gains", sentences=8, gain="ter"))
    record = adaptation.add_to(
        Record(sampler=SamplerRecord(name="auto"), figures=Figures(chosen="imh"))
    )
    draws = name_weights(np.zeros((4, 200, 2)), ("comet", "length"), record=record)
    assert str(draws).splitlines() == [
        *str(draws.draws).splitlines(),
        "adapted   gains of 8 lists by ter",
    ]
    assert repr(draws) == "WeightDraws(draws=Draws(chains, 4 × 200, 2 values))"
    other = with_record(draws, observed=FULL.observed)
    assert str(other).splitlines()[-1] == "adapted   preferences, 12 choices"
