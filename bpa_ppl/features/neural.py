"""Quality estimates of neural models."""

from __future__ import annotations

from typing import ClassVar

from bpa_ppl.component import Count
from bpa_ppl.features.base import Features, FeatureSource
from bpa_ppl.nbest import NBest
from bpa_ppl.progress import reporter
from bpa_ppl.quality.comet import CometKiwi, CpuOrGpu
from bpa_ppl.quality.scoring import scores_and_gains


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
