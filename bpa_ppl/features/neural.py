"""Features of neural models: quality estimates, and the similarity of source and hypothesis."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from bpa_ppl.arrays import Float32
from bpa_ppl.component import Count, CountOrNone
from bpa_ppl.errors import DataError, missing_extra
from bpa_ppl.features.base import Features, FeatureSource
from bpa_ppl.nbest import NBest
from bpa_ppl.progress import reporter
from bpa_ppl.quality.comet import CometKiwi, CpuOrGpu
from bpa_ppl.quality.scoring import scores_and_gains

_CHUNK = 64  # sentences between two reports of progress


class QualityEstimate(FeatureSource, frozen=True):
    """The quality of each hypothesis as COMETKiwi estimates it from the source, without references.

    It needs the program `comet-score`. Scores are kept in the cache folder.

    Attributes:
        model: a name that unbabel-comet can download, or the path of a checkpoint (`….ckpt`).
        batch: the number of hypotheses scored together.
        gpus: 0 computes on the CPU, 1 on the GPU.
        name: the name of the column.
    """

    main: ClassVar[str | None] = "model"
    needs: ClassVar[frozenset[str]] = frozenset({"sources"})
    model: str = "Unbabel/wmt22-cometkiwi-da"
    batch: Count = 8
    gpus: CpuOrGpu = 0
    name: str = "qe"

    def columns(self, nbest: NBest) -> Features:
        """Return the scores, computed once for each distinct text of a list.

        Raises:
            DataError: if the model cannot be loaded, or does not return one number each.
            UsageError: if unbabel-comet is not installed.
        """
        metric = CometKiwi(model=self.model, batch=self.batch, gpus=self.gpus)
        with reporter(None, self.name) as report:
            scores = scores_and_gains(nbest, metric, progress=report)[0]
        return {self.name: scores}


class EmbeddingSimilarity(FeatureSource, frozen=True):
    """The cosine of the embeddings of a hypothesis and its source.

    The package sentence-transformers computes them (the extra `embed`); the model must know both
    languages.

    Attributes:
        model: a name that sentence-transformers can download, or the folder of a model.
        batch: the number of texts embedded together.
        gpus: 0 computes on the CPU, 1 on the GPU.
        name: the name of the column.
    """

    main: ClassVar[str | None] = "model"
    needs: ClassVar[frozenset[str]] = frozenset({"sources"})
    model: str = "sentence-transformers/LaBSE"
    batch: Count = 32
    gpus: CountOrNone = 0
    name: str = "embed"

    def columns(self, nbest: NBest) -> Features:
        """Return the cosines, computed once for each distinct text of 64 lists.

        Raises:
            DataError: if the model cannot be loaded, or does not return a vector for each text.
            UsageError: if sentence-transformers is not installed.
        """
        cosines = np.empty(len(nbest.string_index), np.float32)
        with reporter(None, self.name) as report:
            for start in range(0, len(nbest), _CHUNK):
                end = min(start + _CHUNK, len(nbest))
                rows = slice(nbest.offsets[start], nbest.offsets[end])
                sources = np.repeat((nbest.sources or ())[start:end], nbest.sizes[start:end])
                texts = [nbest.strings[i] for i in nbest.string_index[rows]]
                cosines[rows] = self._cosines(sources.tolist(), texts)
                report(end, len(nbest), "sentences")
        return {self.name: cosines}

    def _cosines(self, sources: Iterable[str], texts: Iterable[str]) -> Float32:
        """Return the cosine of each source with the text at the same place."""
        pairs = list(zip(sources, texts, strict=True))
        numbers: dict[str, int] = {}
        index = np.array([[numbers.setdefault(t, len(numbers)) for t in pair] for pair in pairs])
        vectors = np.asarray(
            _loaded(self.model, "cuda" if self.gpus else "cpu").encode(
                list(numbers),
                batch_size=self.batch,
                normalize_embeddings=True,
                show_progress_bar=False,
            ),
            np.float32,
        )
        if vectors.ndim != 2 or len(vectors) != len(numbers) or not np.isfinite(vectors).all():
            message = f"{self.model} did not return one finite vector for each text"
            raise DataError(message, code="bad-number")
        cosines: Float32 = np.einsum("ij,ij->i", vectors[index[:, 0]], vectors[index[:, 1]])
        return cosines


@lru_cache(1)
def _loaded(model: str, device: str) -> Any:
    """Return a model of sentence-transformers, loaded once."""
    try:
        load = import_module("sentence_transformers").SentenceTransformer
    except (ImportError, AttributeError) as error:
        raise missing_extra("embed needs sentence-transformers", "embed", "add") from error
    try:
        return load(model, device=device)
    except Exception as error:  # torch, the hub and the network have no common error class
        remedy = "name a model of sentence-transformers that you may download, or a folder"
        message = f"the model cannot be loaded ({error}): {remedy}"
        raise DataError(message, model, code="damaged") from error
