"""Features of neural models, with stubs of the packages and, if installed, a tiny model."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from comet_environment import install
from raising import raises

from bpa_ppl import NBest, add_features
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.features import FEATURES, EmbeddingSimilarity, QualityEstimate, neural

LISTS = NBest.from_lists(
    [["a b", "b", "a b"], ["c"]], [[[0.0]] * 3, [[1.0]]], ["LM0"], sources=["a", "c"]
)


class SentenceTransformers(ModuleType):
    """A stub whose embeddings count the letters a, b and c."""

    def __init__(self) -> None:
        super().__init__("sentence_transformers")
        self.calls: list[Any] = []
        self.value = 1.0
        self.SentenceTransformer = self.load

    def load(self, model: str, device: str) -> SentenceTransformers:
        if model == "missing":
            raise OSError("no connection")
        self.calls.append((model, device))
        return self

    def encode(self, texts: list[str], **options: Any) -> np.ndarray:
        self.calls.append((texts, options))
        vectors = self.value * np.array([[t.count(x) for x in "abc"] for t in texts], np.float64)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> SentenceTransformers:
    """The stub as an importable package."""
    module = SentenceTransformers()
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    neural._loaded.cache_clear()
    return module


class TestEmbeddingSimilarity:
    def test_cosine_of_source_and_hypothesis(self, stub: SentenceTransformers) -> None:
        source = FEATURES.resolve("embed", {"model": "tiny", "batch": 2, "gpus": 1})
        lists = add_features(LISTS, source)
        assert lists.feature_names == ("LM0", "embed")
        assert lists.features[:, 1] == pytest.approx([0.5**0.5, 0.0, 0.5**0.5, 1.0])
        (loading, (texts, options)) = stub.calls
        assert loading == ("tiny", "cuda")
        assert sorted(texts) == ["a", "a b", "b", "c"]  # each distinct text once
        assert (options["batch_size"], options["normalize_embeddings"]) == (2, True)

    def test_lists_need_sources(self, stub: SentenceTransformers) -> None:
        with raises(DataError, "missing-sources", parameter="sources"):
            add_features(LISTS.without("sources"), "embed")
        assert stub.calls == []

    def test_model_that_fails(self, stub: SentenceTransformers) -> None:
        with raises(DataError, "damaged", match="missing: .*no connection"):
            add_features(LISTS, EmbeddingSimilarity(model="missing"))
        stub.value = np.nan
        with raises(DataError, "bad-number", match="tiny"):
            add_features(LISTS, EmbeddingSimilarity(model="tiny"))

    def test_package_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sentence_transformers", None)
        neural._loaded.cache_clear()
        with raises(UsageError, "missing-package", parameter="add", match="extra embed"):
            add_features(LISTS, "embed")

    def test_a_tiny_model(self, tmp_path: Path) -> None:
        reason = "sentence-transformers is not installed"
        sentence_transformers = pytest.importorskip("sentence_transformers", reason=reason)
        model = tiny_model(sentence_transformers, tmp_path)
        neural._loaded.cache_clear()
        values = add_features(LISTS, EmbeddingSimilarity(model=str(model))).features[:, 1]
        vectors = sentence_transformers.SentenceTransformer(str(model), device="cpu").encode(
            ["a", "a b", "b"]
        )
        expected = vectors[0] @ vectors[1:].T / np.linalg.norm(vectors[1:], axis=1)
        expected = expected / np.linalg.norm(vectors[0])
        assert values[:2] == pytest.approx(expected, abs=1e-5)
        assert values[3] == pytest.approx(1.0, abs=1e-5)


def tiny_model(package: Any, folder: Path) -> Path:
    """Return the folder of a model of sentence-transformers with random weights."""
    import transformers

    (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n")
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    config = transformers.BertConfig(
        vocab_size=8, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    transformers.BertModel(config).save_pretrained(folder / "bert")
    # With a model of transformers, sentence-transformers takes the mean over the tokens.
    package.SentenceTransformer(str(folder / "bert"), device="cpu").save(str(folder / "model"))
    return folder / "model"


class TestQualityEstimate:
    def test_scores_are_those_of_the_metric(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        environment = install(tmp_path, monkeypatch)
        model = str(environment.checkpoint("kiwi"))
        lists = add_features(LISTS, QualityEstimate(model=model, name="kiwi"))
        assert lists.feature_names == ("LM0", "kiwi")
        assert lists.features[:, 1] == pytest.approx([0.3, 0.1, 0.3, 0.1])
        ((scored, options),) = environment.called("predict")
        assert scored == [{"src": s, "mt": t} for s, t in [("a", "a b"), ("a", "b"), ("c", "c")]]
        assert options == [8, 0, False]
