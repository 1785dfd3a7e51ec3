"""Recipes of features before and after adapting, with small sources that read files or learn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from support.posteriors import RecipeRecord, SourceRecord, with_parts, with_record
from support.raising import raises
from support.registries import Registry

from bpa_ppl import (
    BpaWarning,
    DataError,
    Draws,
    NBest,
    UsageError,
    adapt,
    add_features,
    as_weight_draws,
    from_lists,
    read_posterior,
    rerank,
    write_posterior,
)
from bpa_ppl.extending import FeatureSource, StartingWeights
from bpa_ppl.features.recipe import Recipe
from bpa_ppl.features.source import FEATURES, SELF, TextSource, compute_by_text

pytestmark = pytest.mark.filterwarnings("ignore:no canonical weight:bpa_ppl.BpaWarning")
OPENED: list[str] = []
WEIGHTS = {"LM0": 0.5}
MODE: dict[str, Any] = {"sampler": "map", "prior": "isotropic:variance=1.0,mean=0"}


class Known(TextSource, frozen=True):
    """How many words of a candidate stand in a file, or in the adaptation references."""

    main: ClassVar[str | None] = "text"
    paths: ClassVar[tuple[str, ...]] = ("text",)
    learned: ClassVar[tuple[str, ...]] = ("lines",)
    text: str | tuple[str, ...]
    name: str = "known"
    lines: tuple[str, ...] = ()

    def texts_of(self, lists: NBest) -> Sequence[tuple[str, ...]]:
        return lists.references or ()

    def read(self) -> tuple[str, ...]:
        return tuple(Path(path).read_text() for path in self.files())

    def scorer(self, texts: Sequence[str], *, check: bool = False) -> Any:
        OPENED.append(self.name)
        words = set(" ".join(texts or self.read()).split())
        return lambda nbest: {
            self.name: compute_by_text(nbest, lambda text: sum(w in words for w in text.split()))
        }


@pytest.fixture(autouse=True)
def registered(registries: list[Registry]) -> None:
    """Offer the source, for this test."""
    FEATURES.register("known", Known)
    OPENED.clear()


@pytest.fixture
def lists() -> NBest:
    """Twenty lists, each with its reference among the candidates."""
    rng = np.random.default_rng(3)
    words = [f"w{n}" for n in range(12)]
    texts = [[" ".join(rng.choice(words, 4)) for _ in range(5)] for _ in range(20)]
    features = [rng.normal(size=(5, 1)) for _ in texts]
    return from_lists(texts, features, ["LM0"], references=[[t[0]] for t in texts])


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    """A file of words."""
    path = tmp_path / "domain.txt"
    path.write_text("w1 w2 w3\n")
    return path


@pytest.fixture
def saved(tmp_path: Path, lists: NBest, domain: Path):
    """A posterior with the words of the file as a feature, written and read again."""
    return save(tmp_path, lists, Known(text=str(domain)))


@pytest.fixture
def adapted(lists: NBest, domain: Path) -> Draws:
    """Draws with the words of the file as a feature."""
    return as_weight_draws(adapt(lists, WEIGHTS, **MODE, add=Known(text=str(domain))))


def save(tmp_path: Path, lists: NBest, source: FeatureSource):
    """Adapt with a source of features, write the posterior and read it again."""
    write_posterior(adapt(lists, WEIGHTS, **MODE, add=source), tmp_path / "p.nc")
    return read_posterior(tmp_path / "p.nc")


def test_new_lists_get_the_adapted_features(lists: NBest, domain: Path, saved: Any) -> None:
    assert as_weight_draws(saved).features == ("LM0", "known")
    chosen = rerank(lists, saved)
    extended = add_features(lists, Known(text=str(domain)))
    start = StartingWeights(WEIGHTS, defaults={"known": 0})
    again = rerank(extended, adapt(extended, start, **MODE))
    assert np.array_equal(chosen.choice, again.choice)
    assert np.array_equal(chosen.probability, again.probability)


def test_the_gain_is_no_feature_also_if_it_is_named_as_one() -> None:
    features = from_lists([["a", "b"]] * 2, [[[1.0, 2.0], [2.0, 1.0]]] * 2, ["lm", "qe"])
    bare = features.without("lm", "qe")
    for lists in (features, bare.with_extras(lm=[1.0, 2.0] * 2, qe=[2.0, 1.0] * 2)):
        with pytest.warns(BpaWarning, match="qe is the gain, and so not a feature"):
            posterior = adapt(lists, gain="qe", features=["lm", "qe"], sampler="map")
        draws = as_weight_draws(posterior)
        assert draws.features == ("lm",)
        match = r"qe is the gain, and cannot be a feature: .*\(--features\).*\(--gain\)"
        with raises(UsageError, "conflict", parameter="features", match=match):
            adapt(lists, gain="-qe", features="qe", sampler="map")
    match = r"qe is the gain, and cannot be a feature: .*\(--categorical\).*\(--gain\)"
    for options in ({"categorical": "qe"}, {"add": "indicators:column=qe"}):
        with raises(UsageError, "conflict", parameter="categorical", match=match):
            adapt(features, gain="qe", sampler="map", **options)


def test_a_stream_of_lists_opens_each_source_once(lists: NBest, adapted: Draws) -> None:
    OPENED.clear()
    assert len(rerank(lists.chunks(3), adapted).texts) == 20
    assert OPENED == ["known"]


def test_what_is_learned_leaves_out_the_sentence_itself(tmp_path: Path, lists: NBest) -> None:
    source = Known(text=SELF, folds=20)
    assert source.unlearned
    fitted = Recipe.of(as_weight_draws(save(tmp_path, lists, source)))
    assert fitted.sources == (source.fitted(lists),)
    assert not fitted.sources[0].unlearned
    # A new word of one reference is known to the other sentences alone.
    odd = lists.with_references([("odd",), *lists.references[1:]])
    strange = from_lists([["odd", "w1"]] * 20, [[[0.0], [0.0]]] * 20, ["LM0"])
    strange = strange.with_references(odd.references)
    own = add_features(strange, source).features[:, 1].reshape(20, 2)
    training = Recipe(sources=(source,)).for_training(strange).lists
    assert training.features[:, 1].tolist() == own.ravel().tolist()
    assert own[0].tolist() == [0, 1]
    assert own[1].tolist() == [1, 1]
    new = add_features(strange, source.fitted(odd)).features[:, 1].reshape(20, 2)
    assert new.tolist() == [[1, 1]] * 20


def test_changed_and_missing_files(tmp_path: Path, lists: NBest, domain: Path, saved: Any) -> None:
    kept = domain.rename(tmp_path / "kept.txt")
    with raises(DataError, "missing-file", parameter="moved_files"):
        rerank(lists, saved)
    domain.write_text("w1 w2 w3 w4\n")
    with raises(DataError, "mismatch", parameter="moved_files"):
        rerank(lists, saved)
    assert len(rerank(lists, saved, moved_files={"known": kept}).texts) == 20
    with raises(UsageError, "unknown-name", parameter="moved_files"):
        rerank(lists, saved, moved_files={"lm": kept})
    with raises(UsageError, parameter="moved_files"):
        rerank(lists, saved, moved_files={"known": ["a", "b"]})


def test_devices_and_huge_files_are_not_opened(
    tmp_path: Path, lists: NBest, adapted: Draws
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "huge", "wb") as file:
        file.truncate(1 << 40)  # takes no space
    for path in ("/dev/zero", "/dev/full", tmp_path / "pipe", tmp_path, tmp_path / "huge", "a\0b"):
        with raises(DataError, "missing-file", parameter="moved_files"):
            rerank(lists, adapted, moved_files={"known": path})


def test_damaged_records_of_learned_texts(lists: NBest, adapted: Draws) -> None:
    for learned in ("[", "[" * 100_000, "3", "[1]", '"a"'):
        constants = {**adapted.draws.constants, "feature_source_0": np.array([learned])}
        with raises(DataError, "damaged"):
            rerank(lists, with_parts(adapted, constants=constants))


def test_sources_of_one_kind_differ_by_name(tmp_path: Path, lists: NBest, domain: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("w5 w6\n")
    sources = [Known(text=str(domain)), Known(text=str(other), name="other")]
    posterior = adapt(lists, WEIGHTS, **MODE, add=sources)
    assert as_weight_draws(posterior).features == ("LM0", "known", "other")
    moved = other.rename(tmp_path / "moved.txt")
    assert len(rerank(lists, posterior, moved_files={"other": moved}).texts) == 20
    with raises(DataError, "duplicate"):
        adapt(lists, WEIGHTS, add=[sources[0], sources[0]])


def test_an_invalid_record_is_refused(lists: NBest, domain: Path, adapted: Draws) -> None:
    def with_settings(**settings: Any) -> Draws:
        sources = (SourceRecord(source="known", settings=settings),)
        return with_record(adapted, recipe=RecipeRecord(sources=sources))

    with pytest.raises(UsageError) as caught:
        rerank(lists, with_settings(text=str(domain), name=[]))
    assert caught.value.code == "invalid-setting"
    with pytest.raises(DataError) as damaged:
        rerank(lists, with_settings(text=str(domain)))
    assert damaged.value.code == "damaged"
    with raises(UsageError, "missing-setting", parameter="text"):
        Recipe.of(with_settings())
    with raises(UsageError, "invalid-setting", parameter="text"):
        Recipe.of(with_settings(text=3))
