"""Choosing among the candidates of a speech recogniser: word error rates of LibriSpeech lists.

    python benchmarks/bench_speech.py [--tables NAME ...] [--draws 10] [--sizes 50 500]

The data are the 10-best lists in `judged/` in the data folder, with one score of the recogniser.
Each half of a file is once the pool that utterances are drawn from, and once the test set. The
tables show the WER of the test halves, ± two standard deviations over the draws.

Tables:
    fixed        first-best, consensus, minimum Bayes risk and the oracle, without adaptation
    adapted      features of the lists, and `lm=self`, adapted to transcribed utterances
    rules        decision rules for all features
    likelihoods  likelihoods for all features
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measuring
import numpy as np
from measuring import DATA, draw_lists, print_cells, probabilities, run_tables

import bpa_ppl as bpa
from bpa_ppl._runtime.arrays import Float64, Int64
from bpa_ppl.decoding.rules import Mbr
from bpa_ppl.extending import oracles
from bpa_ppl.features.consensus import Consensus
from bpa_ppl.features.length import Length
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.gains.gains import count_statistics
from bpa_ppl.lists.nbest import NBest

FILES = ("dev_clean", "dev_other")
CONSENSUS, LENGTH = Consensus(metric="wer"), Length()
#: 1 / the exponents of p ∝ exp(score / scale) for the risk without adaptation.
SCALES = (1.0, 2.0, 4.0, 1e6)

Chooser = Callable[["Half", int, int], Int64]


@dataclass(frozen=True, eq=False)
class Half:
    """One half of a file to draw transcribed utterances from, and the other half to test on.

    Attributes:
        pool: the lists to draw from.
        test: the test lists.
        counts: (candidates, 2) edits and reference words of the test lists.
    """

    pool: NBest
    test: NBest
    counts: Float64

    def wer(self, choice: Int64) -> float:
        """Return the word error rate, in percent, of choices from the test lists."""
        edits, words = self.counts[self.test.offsets[:-1] + choice].sum(axis=0)
        return float(100 * edits / words)


def read_halves(file: str) -> list[Half]:
    """Return the halves of a file, each once as the pool; the recogniser's score is the feature."""
    lists = bpa.read_nbest(DATA / "judged" / f"librispeech.{file}.jsonl.gz", features=["score"])
    lists = lists.without("sources")
    return [Half(*pair, count_statistics(pair[1], "wer")) for pair in measuring.halves(lists)]


def adapted(*sources: Any, rule: Any = None, texts: bool = False, **options: Any) -> Chooser:
    """Return the choice after adaptation to transcribed utterances.

    Args:
        sources: features to add.
        rule: the decision rule; default: that of `rerank`.
        texts: add a language model of the first-bests of the pool, which needs no transcripts.
        options: of `adapt`.
    """

    def choose(half: Half, size: int, seed: int) -> Int64:
        chosen: dict[str, Any] = {} if rule is None else {"rule": rule}
        with tempfile.TemporaryDirectory() as folder:
            add = list(sources)
            if texts:
                path = Path(folder) / "first"
                first = half.pool.chosen(np.zeros(len(half.pool), np.int64))
                path.write_text("\n".join(first) + "\n")
                add.append(LanguageModel(text=str(path), name="first"))
            settings = {"gain": "wer", "add": add, "seed": seed, **options}
            posterior = bpa.adapt(draw_lists(half.pool, size, seed), None, **settings)
            return bpa.rerank(half.test, posterior, unchecked=True, **chosen).choice

    return choose


def print_adapted(name: str, choose: Chooser, halves: dict[str, list[Half]], options: Any) -> None:
    """Print the error rates for each file and size, the mean of both halves."""
    print(f"{name:<34}", end="", flush=True)
    for of_file in halves.values():
        for size in options.sizes:
            rates = [
                np.mean([half.wer(choose(half, size, seed)) for half in of_file])
                for seed in range(options.draws)
            ]
            spread = 2 * np.std(rates, ddof=min(1, len(rates) - 1))
            print(f"  {np.mean(rates):6.2f} ± {spread:.2f}", end="", flush=True)
    print()


def print_fixed(
    name: str, choose: Callable[[NBest, Half], Int64], halves: dict[str, list[Half]]
) -> None:
    """Print the error rates of a choice without adaptation."""
    rates = [np.mean([half.wer(choose(half.test, half)) for half in h]) for h in halves.values()]
    print_cells(name, (f"{rate:6.2f}" for rate in rates))


def by_risk(scale: float) -> Callable[[NBest, Half], Int64]:
    """Return the choice with the least expected WER under p(e) ∝ exp(score / scale)."""

    def choose(lists: NBest, _: Half) -> Int64:
        p = probabilities(lists, lists.features[:, 0].astype(np.float64) / scale)
        return Mbr(gain="wer").decide(lists, p)

    return choose


def fixed(options: Any) -> None:
    """Print the error rates of choices that use no transcript."""
    halves = {file: read_halves(file) for file in FILES}
    print("\nwithout adaptation: " + ", ".join(FILES))
    print_fixed("first", lambda lists, _: lists.best(lists.features[:, 0]), halves)
    print_fixed("consensus by WER", lambda lists, _: lists.best(_column(lists)), halves)
    for scale in SCALES:
        print_fixed(f"minimum risk, scale {scale:g}", by_risk(scale), halves)
    print_fixed("oracle", lambda lists, _: oracles(lists, "wer").index, halves)


def _column(lists: NBest) -> Float64:
    return np.asarray(CONSENSUS.columns(lists)["consensus.wer"])


def with_consensus() -> dict[str, list[Half]]:
    """Return the halves of each file, with length and consensus as features."""
    result = {}
    for file in FILES:
        result[file] = [
            Half(*(bpa.add_features(x, CONSENSUS) for x in (h.pool, h.test)), h.counts)
            for h in read_halves(file)
        ]
    return result


def adapted_table(options: Any) -> None:
    """Print the error rates after adaptation, feature by feature."""
    plain = {file: read_halves(file) for file in FILES}
    full = with_consensus()
    own = LanguageModel(text="self")
    print(f"\nadapted to {options.sizes} utterances: " + ", ".join(FILES))
    print_adapted("score, length", adapted(LENGTH), plain, options)
    print_adapted("score, length, lm=self", adapted(LENGTH, own), plain, options)
    print_adapted("score, length, consensus", adapted(LENGTH), full, options)
    print_adapted("all: with consensus and lm=self", adapted(LENGTH, own), full, options)
    print_adapted("all, and lm of first-bests", adapted(LENGTH, own, texts=True), full, options)


def rules(options: Any) -> None:
    """Print the error rates of decision rules, with all features."""
    full, own = with_consensus(), LanguageModel(text="self")
    print(f"\nrules, all features, {options.sizes} utterances")
    for name in ("predictive", "mean", Mbr(gain="wer")):
        print_adapted(str(name), adapted(LENGTH, own, rule=name), full, options)


def likelihoods(options: Any) -> None:
    """Print the error rates of likelihoods, with all features."""
    full, own = with_consensus(), LanguageModel(text="self")
    print(f"\nlikelihoods, all features, {options.sizes} utterances")
    for name in ("margin", "risk", "oracle"):
        print_adapted(name, adapted(LENGTH, own, likelihood=name), full, options)


if __name__ == "__main__":
    run_tables(__doc__, (fixed, adapted_table, rules, likelihoods), draws=10, sizes=(50, 500))
