"""Minimum-risk decoding against the most probable translation, and against the package mbrs.

    python tests/benchmarks/bench_mbr.py [--tables quality speed] [--draws N] [--mbrs PYTHON]

`quality`: test TER, BLEU and length of the rules `predictive` and `mbr`, after adaptation at the
mode to N draws of 10 and 100 sentences; mean ± 2 standard deviations over the draws.
`speed`: choices from the same lists with the same probabilities. PYTHON is that of an environment
of its own with mbrs (pip install mbrs): it is no dependency of this project.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import warnings
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from measuring import canonical, drawn, lists

import bpa_ppl as bpa
from bpa_ppl import NBest
from bpa_ppl.decoding.mbr import Mbr
from bpa_ppl.quality.pairs import pairs_of

DOMAINS = ("medical", "captions", "conversation")
SIZES = (10, 100)
RULES: dict[str, Mbr | None] = {
    "predictive": None,
    "mbr, TER": Mbr(),
    "mbr, BLEU": Mbr(gain="bleu"),
    "mbr, chrF": Mbr(gain="chrf"),
}
#: Run by the other Python: JSON lines of texts and probabilities in, choices and seconds out.
THEIRS = """
import json, sys, time, math, torch
from mbrs.decoders import DecoderMBR
from mbrs.metrics import MetricBLEU, MetricChrF, MetricTER
name, workers = sys.argv[1], int(sys.argv[2])
if name == "ter":
    metric = MetricTER(MetricTER.Config(num_workers=workers))
elif name == "bleu":
    metric = MetricBLEU(MetricBLEU.Config(num_workers=workers, tokenize="none", force=True))
else:
    metric = MetricChrF(MetricChrF.Config(num_workers=workers, fastchrf=name == "fastchrf"))
decoder = DecoderMBR(DecoderMBR.Config(), metric)
for line in sys.stdin:
    texts, p = json.loads(line)
    start = time.perf_counter()
    lprobs = torch.log(torch.tensor(p, dtype=torch.float64))
    found = decoder.decode(texts, texts, reference_lprobs=lprobs)
    seconds = time.perf_counter() - start
    print(json.dumps([found.idx[0], found.score[0], seconds]), flush=True)
"""


def scores(texts: list[str], references: Any) -> tuple[float, float, float]:
    """Return corpus TER, BLEU and length ratio."""
    bleu = bpa.corpus_score(texts, references, "bleu")
    ter = bpa.corpus_score(texts, references, "ter").value
    return ter, bleu.value, float(bleu.details["length_ratio"])


def quality(draws: int, gains: tuple[str, ...], likelihoods: tuple[str, ...]) -> None:
    """Print what the rules choose on each domain."""
    rules = {name: rule for name, rule in RULES.items() if rule is None or rule.gain in gains}
    for likelihood, domain in product(likelihoods, DOMAINS):
        pool, test = lists(domain, "adapt"), lists(domain, "test")
        found: dict[tuple[str, int], list] = {}
        for size, seed in product(SIZES, range(draws)):
            sample = drawn(pool, size, seed)
            post = bpa.adapt(sample, canonical(), sampler="map", likelihood=likelihood)
            p = probabilities(test, bpa.as_draws(post).aligned(test)[0])
            for name, rule in rules.items():
                choice = test.best(p) if rule is None else rule.decide(test, p)
                texts = test.chosen(choice)
                found.setdefault((name, size), []).append(scores(texts, test.references))
        title = f"{domain}, {likelihood}"
        print(f"\n{title:<26}" + "".join(f"{f'|A| = {size}':>32}" for size in SIZES))
        for name in rules:
            cells = [cell(found[name, size]) for size in SIZES]
            print(f"{name:<26}" + "".join(cells), flush=True)


def probabilities(test: NBest, weights: Any) -> Any:
    """Return p(e|f, λ) of each hypothesis: the predictive distribution of a single draw."""
    scores = test.scores(weights)
    starts = test.offsets[:-1]
    p = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), test.sizes))
    return p / np.repeat(np.add.reduceat(p, starts), test.sizes)


def cell(found: list) -> str:
    """Return means of TER, BLEU and length, and the spread of TER."""
    table = np.array(found)
    mean, spread = table.mean(axis=0), 2 * table.std(axis=0, ddof=min(1, len(table) - 1))
    return f"{mean[0]:.2f} ± {spread[0]:.2f} / {mean[1]:.2f} / {mean[2]:.3f}".rjust(32)


def problems(test: NBest, sentences: int) -> list[tuple[list[str], list[float]]]:
    """Return distinct texts and their probabilities, of every so many lists."""
    found = []
    p = probabilities(test, bpa.weights.match(canonical(), test, fixed=()).values)
    for s in range(len(test) // sentences // 2, len(test), len(test) // sentences):
        rows = test.rows(s)
        strings, of = np.unique(test.string_index[rows], return_inverse=True)
        share = np.bincount(of, weights=p[rows])
        found.append(([test.strings[i] for i in strings], share.tolist()))
    return found


def speed(python: str | None, sentences: int, hypotheses: int) -> None:
    """Print seconds a list, and how often the choices are the same."""
    print(f"\n{'seconds a list':<26}{'ours':>12}{'mbrs':>12}{'ratio':>10}{'same':>10}{'pairs':>10}")
    for domain, metric in product(DOMAINS, ("ter", "bleu", "chrf", "fastchrf")):
        given = problems(lists(domain, "test").truncate(hypotheses), sentences)
        for _ in range(2):  # the first time compiles
            own = [timed_choice(texts, p, metric.removeprefix("fast")) for texts, p in given]
        pairs, ours = np.mean([len(texts) ** 2 for texts, _ in given]), np.mean([o[2] for o in own])
        line = f"{f'{domain}, {metric}':<26}{ours:>12.5f}"
        if python is not None:
            work = [python, "-c", THEIRS, metric, "2"]
            text = "".join(json.dumps(problem) + "\n" for problem in given)
            done = subprocess.run(work, input=text, capture_output=True, text=True, check=True)
            theirs = [json.loads(row) for row in done.stdout.splitlines()]
            same = sum(same_choice(a, b, metric) for a, b in zip(own, theirs, strict=True))
            seconds = np.mean([row[2] for row in theirs])
            line += f"{seconds:>12.3f}{seconds / ours:>9.0f}×{f'{same} of {len(own)}':>10}"
        print(f"{line}{pairs:>10.0f}", flush=True)


def timed_choice(texts: list[str], p: list[float], metric: str) -> tuple[int, float, float]:
    """Return our choice, its expected score and the seconds that it took."""
    start = perf_counter()
    best, score = pairs_of(texts, metric).best(np.array(p))
    return best, score, perf_counter() - start


def same_choice(ours: tuple, theirs: list, metric: str) -> bool:
    """Return whether choices are the same, or equally good in the float32 of the other."""
    score = -theirs[1] if metric == "ter" else theirs[1]
    return ours[0] == theirs[0] or abs(ours[1] - score) < 1e-4


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["quality", "speed"])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--gains", nargs="+", default=["ter", "bleu", "chrf"])
    parser.add_argument("--likelihoods", nargs="+", default=["margin", "oracle"])
    parser.add_argument("--sentences", type=int, default=10, help="lists for the speed")
    parser.add_argument("--hypotheses", type=int, default=100, help="of each of them")
    parser.add_argument("--mbrs", help="the Python of an environment with mbrs")
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    if "speed" in options.tables:
        speed(options.mbrs, options.sentences, options.hypotheses)
    if "quality" in options.tables:
        quality(options.draws, tuple(options.gains), tuple(options.likelihoods))


if __name__ == "__main__":
    main()
