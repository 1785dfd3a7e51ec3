"""Weights of features of the texts, learned from public collections of judged lists.

They are of the columns of the sources `consensus` and `length` without settings. `pretrained.json`
holds them in units of the spread within lists, with typical spreads. `tools/learn_pretrained.py`
makes it, and `benchmarks/bench_pretrained.py` measures what they are worth on collections that they
were not learned from.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from bpa_ppl.features.consensus import Consensus
from bpa_ppl.features.length import Length
from bpa_ppl.features.source import FeatureSource


def find_pretrained(
    sources: Iterable[FeatureSource],
    columns: Iterable[Sequence[str]],
    spread: Mapping[str, float],
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the learned weights of the features that some sources have added.

    The more other features there are, the less these weights count: with K of all features known,
    means are multiplied by (known / K)². On judged lists with 3 and with 17 quality metrics this is
    better than full means and than none.

    Args:
        sources: of the added features.
        columns: the names of the columns of each source.
        spread: the standard deviation within the lists of every free feature, by name; without
            lists it is 0, and a typical one is used.

    Returns:
        the mean, and the variance, of the prior of each weight, by feature.

    >>> source = Consensus()
    >>> names = ["consensus.chrf5", "consensus.length"]
    >>> mean, variance = find_pretrained([source], [names], dict.fromkeys(names, 2.0))
    >>> mean["consensus.chrf5"] > 0, variance["consensus.length"] > 0
    (True, True)
    >>> find_pretrained([Consensus(metric="chrf")], [["consensus.chrf"]], {"consensus.chrf": 1})
    ({}, {})
    """
    learned = {}
    for source, names in zip(sources, columns, strict=True):
        for name in names if isinstance(source, Consensus | Length) else ():
            key = name.replace(f"{source.label}.", "consensus.", 1)
            if name in spread and key in _read_content()["features"]:
                learned[name] = _read_content()["features"][key]
    others = [name for name, value in spread.items() if value > 0 and name not in learned]
    share = (len(learned) / max(len(learned) + len(others), 1)) ** 2
    mean, variance = {}, {}
    for name, feature in learned.items():
        unit = spread[name] or feature["spread"]
        mean[name] = share * feature["mean"] / unit
        variance[name] = _read_content()["variance"] / unit**2
    return mean, variance


@cache
def _read_content() -> dict[str, Any]:
    text = files("bpa_ppl.features").joinpath("pretrained.json").read_text("utf-8")
    content: dict[str, Any] = json.loads(text)
    return content
