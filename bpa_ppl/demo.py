"""The main job on the data that comes along: adapt on 50 sentences, check, rerank the rest."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np

from bpa_ppl.decoding import Reranked, Scoreboard, rerank, scoreboard, write_texts
from bpa_ppl.diagnostics import Report, check, plot_trace
from bpa_ppl.formats import read_nbest, read_weights
from bpa_ppl.formats.streams import make_folder
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior import write_posterior
from bpa_ppl.progress import Reporter
from bpa_ppl.sampling import adapt
from bpa_ppl.weights import Weights

_ADAPTATION = 50
_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demo found; `str` tells it.

    Attributes:
        report: the check of the posterior.
        scores: of the reranked sentences, before and after.
        result: the reranked sentences.
        files: what was written.
    """

    report: Report
    scores: Scoreboard
    result: Reranked
    files: tuple[Path, ...]

    def __str__(self) -> str:
        changed = np.flatnonzero(self.result.changed)[:_SHOWN]
        examples = "\n\n".join(_side_by_side(self.result, s) for s in changed)
        written = "\n".join(f"wrote {path}" for path in self.files)
        return f"{self.report}\n\n{self.scores}\n\n{examples}\n\n{written}"


def run_demo(folder: Path, *, seed: int = 0, progress: bool | Reporter = False) -> Demo:
    """Adapt on 50 sentences of the demo data, check, rerank the other 190, write the results.

    Args:
        folder: where the posterior, the plot and the translations go; made if it is not there.
        seed: of the split and of the sampler.
        progress: True draws a bar on standard error.

    Raises:
        DataError: if the folder cannot be made or written.
        NotConverged: if the posterior fails its check.
    """
    make_folder(folder)
    pool, canonical = _data()
    order = np.random.default_rng(seed).permutation(len(pool))
    adaptation, rest = pool.select(order[:_ADAPTATION]), pool.select(np.sort(order[_ADAPTATION:]))
    posterior = adapt(adaptation, canonical, sampler="nuts", seed=seed, progress=progress)
    result = rerank(rest, posterior, progress=progress)
    paths = tuple(folder / name for name in ("posterior.nc", "trace.png", "translations.txt"))
    write_posterior(posterior, paths[0])
    plot_trace(posterior, paths[1])
    write_texts(result, paths[2])
    return Demo(check(posterior), scoreboard(result), result, paths)


def _data() -> tuple[NBest, Weights]:
    with as_file(files("bpa_ppl.demo_data")) as data:
        pool = read_nbest(data / "leaflet.nbest100.gz", references=data / "leaflet.ref")
        return pool, read_weights(data / "moses.ini")


def _side_by_side(result: Reranked, sentence: int) -> str:
    lines = (
        ("reference", result.references[sentence][0]),
        ("canonical", result.canonical_texts[sentence]),
        ("adapted", result.texts[sentence]),
    )
    title = f"sentence {result.sentence_ids[sentence]}"
    return "\n".join([title, *(f"  {name:<10} {text}" for name, text in lines)])
