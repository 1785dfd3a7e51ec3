"""COMET (Rei et al., 2020), computed by the package unbabel-comet if it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bpa_ppl.component import Count, CountOrNone
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.nbest import Float64
from bpa_ppl.pretrained import call_package
from bpa_ppl.quality.base import Averaged, Lists, References


class Comet(Averaged, frozen=True):
    """COMET of a hypothesis with its source and its first reference.

    Its name is `unbabel-comet`, so that `comet` can be a column of the lists. It needs sources;
    `CometKiwi`, `unbabel-cometkiwi`, is the model without references.

    Args:
        model: a name that unbabel-comet can download, or the path of a checkpoint (`….ckpt`).
        batch: the number of hypotheses scored together.
        gpus: the number of GPUs; 0 computes on the CPU.

    Raises:
        UsageError: on use, if unbabel-comet is not installed.
    """

    key: ClassVar[str] = "unbabel-comet"
    needs: ClassVar[frozenset[str]] = frozenset({"sources", "references"})
    slow: ClassVar[bool] = True

    model: str = "Unbabel/wmt22-comet-da"
    batch: Count = 8
    gpus: CountOrNone = 0

    title = "COMET"

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return the model and the version of the package."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            installed = version("unbabel-comet")
        except PackageNotFoundError:
            installed = "unknown"
        return f"{self.key}|model:{self.model}|version:{installed}"

    def cache_signature(self, references: References) -> str | None:
        """Return the signature with the path, size and time of the checkpoint.

        Raises:
            DataError: if the model cannot be downloaded.
            UsageError: if unbabel-comet is not installed.
        """
        path = Path(_checkpoint(self.model))
        if not path.is_file():
            return None
        status = path.stat()
        return f"{self.signature(references)}|{path}|{status.st_size}|{status.st_mtime_ns}"

    def sentences(
        self,
        lists: Lists,
        references: References,
        *,
        only_best: bool,
        sources: Sequence[str] = (),
    ) -> Float64:
        """Return the score of each hypothesis, one list after the other.

        Raises:
            DataError: if the model cannot be loaded, or does not return one number each.
        """
        data = [
            {"src": source, "mt": text, **({"ref": refs[0]} if refs else {})}
            for source, texts, refs in zip(sources, lists, references, strict=True)
            for text in texts
        ]
        prediction = _loaded(self.model).predict(
            data, batch_size=self.batch, gpus=self.gpus, progress_bar=False
        )
        scores = np.asarray(prediction.scores, np.float64)
        if scores.shape != (len(data),) or not np.isfinite(scores).all():
            message = f"{self.model} did not return one finite score per hypothesis"
            raise DataError(message, code="bad-number")
        return scores


class CometKiwi(Comet, frozen=True):
    """COMETKiwi: COMET without references."""

    key: ClassVar[str] = "unbabel-cometkiwi"
    needs: ClassVar[frozenset[str]] = frozenset({"sources"})

    model: str = "Unbabel/wmt22-cometkiwi-da"

    title = "COMETKiwi"


@lru_cache(1)
def _checkpoint(model: str) -> str:
    """Return the path of a checkpoint, downloaded if it is a name."""
    if Path(model).suffix != ".ckpt":
        return str(_comet("download_model", model))
    if not Path(model).is_file():
        raise DataError("no such file: name a checkpoint of COMET", model, code="missing-file")
    return model


@lru_cache(1)
def _loaded(model: str) -> Any:
    """Return a model, loaded once: that takes seconds to minutes, and gigabytes."""
    return _comet("load_from_checkpoint", _checkpoint(model))


def _comet(function: str, model: str) -> Any:
    """Call a function of unbabel-comet for a model."""
    problem = "unbabel-comet is not installed: install bpa_ppl[comet], or add scores as a column"
    missing = UsageError(problem, parameter="metric", code="not-supported")
    remedy = "name a model such as Unbabel/wmt22-comet-da that you may download, or a .ckpt file"
    return call_package("comet", function, model, missing=missing, remedy=remedy)
