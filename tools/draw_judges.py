"""Draw the picture of `docs/extras/judges.md` from the data of `bpa demo --judges`.

    python tools/draw_judges.py [PICTURE]

From top to bottom: the weights of the five judges after 50 judged pairs; how many of the 200 new
pairs need a person, by the promised agreement; and the accuracy on 2,000 other pairs by the number
of judged pairs, means of 20 simulated samples.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib.figure import Figure
from simulate_judges import FOLDER, simulate_pair
from sklearn.linear_model import LogisticRegression

import bpa_ppl as bpa
from bpa_ppl import NBest
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.extras.judging.juries import judges

PICTURE = FOLDER.parent.parent / "docs" / "assets" / "which-judge.png"
PROMISES = (0.8, 0.85, 0.9)
SIZES, SAMPLES, TESTED = (5, 10, 20, 50, 100), 20, 2000
GREEN, RED, GREY = "#2a9d4b", "#c8373d", "#c4c8cc"


def simulate(count: int, seed: int) -> NBest:
    """Return simulated pairs."""
    rng = np.random.default_rng(seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.jsonl"
        pairs = (json.dumps(simulate_pair(number, rng)) for number in range(count))
        path.write_text("".join(f"{pair}\n" for pair in pairs))
        return bpa.read_nbest(path)


def find_better(lists: NBest) -> Float64:
    """Return the position of the better answer of each pair."""
    return np.array([entries[0][0] for entries in lists.sentence_extras["preferences"]])


def differences(lists: NBest) -> Float64:
    """Return the grades of the better answers minus those of the others, (pairs, judges)."""
    grades = lists.features.reshape(len(lists), 2, -1).astype(float)
    better, place = find_better(lists), np.arange(len(lists))
    return np.asarray(grades[place, better] - grades[place, 1 - better])


def accuracy(margin: Float64) -> float:
    """Return the share of right choices; equal scores count half."""
    return float(np.mean((margin > 0) + 0.5 * (margin == 0)))


def learning_curves() -> dict[str, list[float]]:
    """Return the mean accuracy for each number of judged pairs, by the way to choose."""
    test = simulate(TESTED, 1000)
    new, found = differences(test), []
    for size in SIZES:
        for seed in range(SAMPLES):
            lists = simulate(size, seed)
            posterior = bpa.as_weight_draws(bpa.adapt(lists, sampler="laplace"))
            pairs = differences(lists) / lists.spread
            fit = LogisticRegression(fit_intercept=False)
            fit.fit(np.vstack([pairs, -pairs]), np.repeat([1, 0], len(pairs)))
            ways = new @ posterior.mean, new @ (fit.coef_[0] / lists.spread)
            found.append([accuracy(way) for way in (*ways, (new / test.spread).sum(axis=1))])
    means = np.reshape(found, (len(SIZES), SAMPLES, 3)).mean(axis=1)
    return dict(zip(("bpa", "logistic regression", "mean"), means.T.tolist(), strict=True))


def main() -> None:
    """Draw the picture."""
    logging.getLogger("bpa_ppl").setLevel("ERROR")
    judged, new = (bpa.read_nbest(FOLDER / f"answers.{name}.jsonl") for name in ("judged", "new"))
    posterior = bpa.adapt(judged)
    figure = Figure((5.6, 7.2), layout="constrained")
    weights, sure, labels = figure.subplots(3, 1, height_ratios=(1.1, 1, 1.2))

    rows = judges(posterior, judged).rows
    for place, row in enumerate(rows):
        decided = row.low > 0 or row.high < 0
        color = (GREEN if row.weight > 0 else RED) if decided else "0.5"
        weights.plot((row.low, row.high), (place, place), color=color, linewidth=3)
        weights.plot(row.weight, place, "o", color=color)
    weights.axvline(0, color="0.6", linewidth=1)
    weights.set(title="Which judge?", xlabel="weight per standard deviation, 95% interval")
    weights.set(yticks=range(len(rows)), ylim=(len(rows) - 0.5, -0.5))
    weights.set_yticklabels([row.name for row in rows])

    better = find_better(new)
    for place, promise in enumerate(PROMISES):
        result = bpa.Reranker(posterior, agree=promise)(new)
        right = (result.choice == better)[result.sure]
        parts = right.sum(), len(right) - right.sum(), len(new) - len(right)
        print(f"promised {promise:.0%}: right, wrong, asked:", *parts)
        left = 0
        for count, color in zip(parts, (GREEN, RED, GREY), strict=True):
            sure.barh(place, count, left=left, color=color, height=0.7)
            if count > len(new) / 50:  # else there is no room
                sure.text(left + count / 2, place, str(count), ha="center", va="center")
            left += count
    sure.set(title="How sure?", xlabel="new pairs: green right, red wrong, grey ask a person")
    sure.set(yticks=range(len(PROMISES)), ylim=(len(PROMISES) - 0.5, -0.5), xlim=(0, len(new)))
    sure.set_yticklabels([f"promised {promise:.0%}" for promise in PROMISES])

    for (name, values), style in zip(learning_curves().items(), ("o-", "s--", ":"), strict=True):
        print(name, *(f"{value:.3f}" for value in values))
        labels.plot(SIZES, values, style, label=name)
    labels.set(title="How many labels?", xlabel="judged pairs", ylabel="right choices")
    labels.set(xscale="log", xticks=SIZES, xticklabels=SIZES, yticks=np.arange(0.7, 0.91, 0.05))
    labels.minorticks_off()
    labels.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    labels.legend(loc="upper left", frameon=False)
    figure.savefig(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE, dpi=150)


if __name__ == "__main__":
    main()
