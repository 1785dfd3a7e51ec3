"""What weights of features of the texts, learned from other judged lists, are worth.

    python benchmarks/bench_pretrained.py [--tables NAME ...] [--draws 10]

The features are those of `consensus` and `length` alone. Weights maximise the expected gain, half
of it by rank, of 300 lists of each group of collections; features and gains are in units of their
spread within the lists of a collection. Only their direction is kept. `tools/learn_pretrained.py`
learns the weights of the package in the same way, from all collections.

Tables:
    left-out  leave one group out: headroom with weights learned from the others, by the number of
              judged lists, compared with the consensus by chrF and with a prior of mean 0
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from bench_judged import SIZES, Half, adapt, cell, draw_lists, read_halves
from measuring import few, print_cells, run_tables
from scipy.stats import norm, rankdata

import bpa_ppl as bpa
from bpa_ppl import Isotropic
from bpa_ppl.formats.in_memory import concatenate
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.lists.nbest import NBest, measure_deviation
from bpa_ppl.models.likelihoods.oracle import Risk
from bpa_ppl.weights import StartingWeights

#: The collections of one group share texts, systems or raters.
GROUPS = {
    "WMT 2021 and TED": ("wmt21.en-de", "ted.zh-en"),
    "WMT 2023": ("wmt23.en-de", "wmt23.zh-en"),
    "medical": ("bio.de-en", "bio.en-fr", "bio.fr-en", "bio.es-en"),
    "WMT 2024": ("wmt24esa.en-cs",),
    "WebNLG": ("webnlg2020",),
    "summaries": ("thumb.summeval",),
}
#: Of all weights together, in units of the spread within lists. With lists of consensus features
#: alone, lengths of 0.3 to 2.5 win the same; where there are other features, shorter is better.
LENGTH = 0.3
#: Of each weight, in the same unit.
VARIANCE = 0.01
LISTS = 300


@cache
def group_halves(group: str) -> list[Half]:
    """Return the halves of the domains of a group of collections, with the consensus features."""
    return [
        half
        for file in GROUPS[group]
        for half in read_halves((file,), ("consensus_chrf",), add=("consensus", "length"))
    ]


def join(parts: list[NBest]) -> NBest:
    """Return the lists of several tables, which may have different further columns."""
    unnamed = [part.without(*({"domain"} & part.sentence_extras.keys())) for part in parts]
    return concatenate(unnamed, renumber=True, fill_missing=True)


def standardised(lists: NBest) -> NBest:
    """Return the lists with features and gains in units of their spread within lists."""
    gain = read_column(lists, "gain")
    spread = lists.spread
    table = lists.features / np.where(spread > 0, spread, 1.0)
    unit = measure_deviation(lists, gain) or 1.0
    names = lists.feature_names
    scaled = lists.without(*names).with_features(names, table)
    return scaled.with_extras(gain=gain / unit)


def half_ranked(lists: NBest) -> NBest:
    """Return the lists with the mean of each gain and its normal score within the list."""
    gain = read_column(lists, "gain").copy()
    for sentence in range(len(lists)):
        of_list = gain[lists.rows(sentence)]
        judged = ~np.isnan(of_list)
        ranks = (rankdata(of_list[judged]) - 0.5) / judged.sum()
        of_list[judged] = (of_list[judged] + norm.ppf(ranks)) / 2
    return lists.with_extras(gain=gain)


def learned_weights(groups: tuple[str, ...]) -> dict[str, float]:
    """Return the weights of the features, of length `LENGTH`, by feature."""
    parts = []
    for group in groups:
        halves = group_halves(group)
        lists = join([standardised(join([half.pool, half.test])) for half in halves[::2]])
        order = np.random.default_rng(0).permutation(len(lists))
        parts.append(lists[np.resize(order, LISTS)])
    posterior = bpa.adapt(
        half_ranked(join(parts)),
        None,
        gain="gain",
        exclude=["consensus_chrf"],
        likelihood=Risk(kappa=1.0),
        prior="isotropic:variance=1.0",
        sampler="map",
    )
    weights = bpa.point_weights(posterior, unchecked=True)
    length = np.linalg.norm(list(weights.values()))
    return {name: float(LENGTH * value / length) for name, value in weights.items()}


def left_out(options: Any) -> None:
    """Print the headroom with weights learned from the other groups."""
    rows: dict[str, dict[int, list[Any]]] = {"consensus by chrF": {0: []}}
    for group in few([*GROUPS], 2):
        means = learned_weights(tuple(other for other in GROUPS if other != group))
        for half in group_halves(group):
            chrf = half.headroom(half.test.best(read_column(half.test, "consensus_chrf")))
            rows["consensus by chrF"][0].append([chrf])
            for size in (0, *SIZES):
                for name in ("mean 0", "learned from the others"):
                    scores = [
                        headroom_with(half, size, seed, means if "learned" in name else None)
                        for seed in range(options.draws if size else 1)
                        if size or "learned" in name
                    ]
                    rows.setdefault(name, {}).setdefault(size, []).append(scores)
        print(group, flush=True)
    for name, sizes in rows.items():
        cells = [cell(size, np.mean(scores, axis=0)) for size, scores in sizes.items() if scores[0]]
        print_cells(name, cells)


def headroom_with(half: Half, size: int, seed: int, means: dict[str, float] | None) -> float:
    """Return the headroom of the default, from 0 or from given means in units of the spread."""
    lists = draw_lists(half, size, seed) if size else half.pool
    spread = dict(zip(lists.feature_names, lists.spread, strict=True))
    options: dict[str, Any] = {"exclude": ["consensus_chrf"]}
    weights = StartingWeights()
    if means is not None:
        start = {name: means[name] / (spread[name] or 1.0) for name in means}
        variance = {name: VARIANCE / (spread[name] or 1.0) ** 2 for name in means}
        weights = StartingWeights(defaults=start)
        options["prior"] = Isotropic(variance=variance)
    return half.headroom(adapt(half, lists if size else lists[:0], weights, **options))


if __name__ == "__main__":
    run_tables(__doc__, (left_out,), draws=10)
