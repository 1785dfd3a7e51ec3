"""COMET (Rei et al., 2020), computed by the package unbabel-comet where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bpa_ppl.component import Count, CountOrNone
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.nbest import Float64
from bpa_ppl.quality.base import Averaged, Lists, References

_MISSING = (
    "the metric unbabel-comet needs the package unbabel-comet: install bpa_ppl[comet]; scores that "
    "were computed elsewhere can be a column of the lists and be named instead"
)


class Comet(Averaged, frozen=True):
    """COMET of a hypothesis, its source and its first reference, as its model prints it.

    Its name is `unbabel-comet`, so that `comet` can be a column of the lists. Needs sources;
    a model without references (COMETKiwi) is `CometKiwi`, `unbabel-cometkiwi`.

    Args:
        model: a name that unbabel-comet can download, or the path of a checkpoint (`….ckpt`).
        batch: hypotheses that are scored at once.
        gpus: how many are used; 0 computes on the processor.

    Raises:
        UsageError: when scores are asked for and unbabel-comet is not installed.
    """

    key: ClassVar[str] = "unbabel-comet"
    needs: ClassVar[frozenset[str]] = frozenset({"sources", "references"})
    # Found in the weights of a model that may be replaced under the same name.
    kept: ClassVar[bool] = False

    model: str = "Unbabel/wmt22-comet-da"
    batch: Count = 8
    gpus: CountOrNone = 0

    @property
    def title(self) -> str:
        """COMET."""
        return "COMET"

    def signature(self, references: References, *, sentence: bool = False) -> str:
        """Return the model and the version of the package."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            known = version("unbabel-comet")
        except PackageNotFoundError:
            known = "unknown"
        return f"{self.key}|model:{self.model}|version:{known}"

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
            DataError: if the model cannot be loaded, or does not return a number each.
        """
        data = [
            {"src": source, "mt": text, **({"ref": refs[0]} if refs else {})}
            for source, texts, refs in zip(sources, lists, references, strict=True)
            for text in texts
        ]
        made = _loaded(self.model).predict(
            data, batch_size=self.batch, gpus=self.gpus, progress_bar=False
        )
        scores = np.asarray(made.scores, np.float64)
        if scores.shape != (len(data),) or not np.isfinite(scores).all():
            raise DataError(f"{self.model} did not return one finite score a hypothesis")
        return scores


class CometKiwi(Comet, frozen=True):
    """COMETKiwi: the same without references."""

    key: ClassVar[str] = "unbabel-cometkiwi"
    needs: ClassVar[frozenset[str]] = frozenset({"sources"})

    model: str = "Unbabel/wmt22-cometkiwi-da"

    @property
    def title(self) -> str:
        """COMETKiwi."""
        return "COMETKiwi"


@lru_cache(1)
def _loaded(model: str) -> Any:
    """Return a model, loaded once: it takes seconds to minutes and gigabytes."""
    try:
        comet = import_module("comet")
        download, load = comet.download_model, comet.load_from_checkpoint
    except (ImportError, AttributeError) as error:
        raise UsageError(_MISSING) from error
    is_file = Path(model).suffix == ".ckpt"
    if is_file and not Path(model).is_file():
        raise DataError("no such file: name a checkpoint of COMET", model)
    try:
        return load(model if is_file else download(model))
    except Exception as error:  # of torch, of the hub, of the network: there is no common class
        raise DataError(f"the COMET model cannot be loaded ({error}): {_REMEDY}", model) from error


_REMEDY = "name a model of huggingface.co/Unbabel that you may download, or the path of a .ckpt"
