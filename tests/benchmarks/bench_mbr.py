"""Minimum-risk decoding against the most probable translation, and against the package mbrs.

    python tests/benchmarks/bench_mbr.py [--tables quality speed] [--draws N] [--mbrs PYTHON]

`quality`: test TER, BLEU, chrF and length of the rules `predictive` and `mbr`, after adaptation at
the mode to N draws of 10 and 100 sentences; mean ± 2 standard deviations of TER over the draws.
`speed`: choices from the same lists with the same probabilities, best of three times each. PYTHON
is that of an environment of its own with mbrs (pip install mbrs): it is no dependency of this
project. Ours is one thread always; `--threads` says how many mbrs has, of whatever it has them:
processes for TER, BLEU and chrF in Python, threads of Rust (Rayon) for its `fastchrf`, of PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import warnings
from itertools import product
from time import perf_counter
from typing import Any

import numpy as np
from measuring import canonical, drawn, lists

import bpa_ppl as bpa
from bpa_ppl import NBest
from bpa_ppl.decoding.rules import Mbr
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
torch.set_num_threads(workers)
if name == "ter":
    metric = MetricTER(MetricTER.Config(num_workers=workers))
elif name == "bleu":
    metric = MetricBLEU(MetricBLEU.Config(num_workers=workers, tokenize="none", force=True))
else:
    metric = MetricChrF(MetricChrF.Config(num_workers=workers, fastchrf=name == "fastchrf"))
decoder = DecoderMBR(DecoderMBR.Config(), metric)
for line in sys.stdin:
    texts, p = json.loads(line)
    seconds = math.inf
    for _ in range(3):
        start = time.perf_counter()
        lprobs = torch.log(torch.tensor(p, dtype=torch.float64))
        found = decoder.decode(texts, texts, reference_lprobs=lprobs)
        seconds = min(seconds, time.perf_counter() - start)
    print(json.dumps([found.idx[0], found.score[0], seconds]), flush=True)
"""


def scores(texts: list[str], references: Any) -> tuple[float, ...]:
    """Return corpus TER, BLEU, chrF and length ratio."""
    bleu = bpa.corpus_score(texts, references, "bleu")
    ter, chrf = (bpa.corpus_score(texts, references, name).value for name in ("ter", "chrf"))
    return ter, bleu.value, chrf, float(bleu.details["length_ratio"])


def quality(draws: int, gains: tuple[str, ...], likelihoods: tuple[str, ...]) -> None:
    """Print what the rules choose on each domain."""
    rules = {name: rule for name, rule in RULES.items() if rule is None or rule.gain in gains}
    every: list[dict[tuple[str, int], list]] = []
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
        table(f"{domain}, {likelihood}", [found])
        every.append(found)
        if domain == DOMAINS[-1]:
            table(f"mean of the domains, {likelihood}", every)
            every.clear()


def table(title: str, every: list[dict[tuple[str, int], list]]) -> None:
    """Print one row a rule: means over domains."""
    print(f"\n{title:<30}" + "".join(f"{f'|A| = {size}':>38}" for size in SIZES))
    for name in dict.fromkeys(name for name, _ in every[0]):
        cells = [cell([one[name, size] for one in every]) for size in SIZES]
        print(f"{name:<30}" + "".join(cells), flush=True)


def probabilities(test: NBest, weights: Any) -> Any:
    """Return p(e|f, λ) of each hypothesis: the predictive distribution of a single draw."""
    scores = test.scores(weights)
    starts = test.offsets[:-1]
    p = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), test.sizes))
    return p / np.repeat(np.add.reduceat(p, starts), test.sizes)


def cell(domains: list[list]) -> str:
    """Return means of TER, BLEU, chrF and length, and the spread of TER, averaged over domains."""
    tables = [np.array(found) for found in domains]
    ter, bleu, chrf, length = np.mean([table.mean(axis=0) for table in tables], axis=0)
    spread = np.mean([2 * t[:, 0].std(ddof=min(1, len(t) - 1)) for t in tables])
    return f"{ter:.2f} ± {spread:.2f} / {bleu:.2f} / {chrf:.2f} / {length:.3f}".rjust(38)


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


def speed(
    python: str | None, metrics: list[str], sentences: int, hypotheses: int, threads: int
) -> None:
    """Print seconds a list, and how often the choices are the same."""
    number = str(threads)
    limits = {"RAYON_NUM_THREADS": number, "OMP_NUM_THREADS": number, "MKL_NUM_THREADS": number}
    print(f"\nours with 1 thread, mbrs with {threads}")
    print(f"{'seconds a list':<26}{'ours':>12}{'mbrs':>12}{'ratio':>10}{'same':>10}{'pairs':>10}")
    for domain, metric in product(DOMAINS, metrics):
        given = problems(lists(domain, "test").truncate(hypotheses), sentences)
        own = [timed_choice(texts, p, metric.removeprefix("fast")) for texts, p in given]
        pairs, ours = np.mean([len(texts) ** 2 for texts, _ in given]), np.mean([o[2] for o in own])
        line = f"{f'{domain}, {metric}':<26}{ours:>12.5f}"
        if python is not None:
            work = [python, "-c", THEIRS, metric, number]
            text = "".join(json.dumps(problem) + "\n" for problem in given)
            done = subprocess.run(
                work,
                input=text,
                capture_output=True,
                text=True,
                check=True,
                env=os.environ | limits,
            )
            theirs = [json.loads(row) for row in done.stdout.splitlines()]
            same = sum(same_choice(a, b, metric) for a, b in zip(own, theirs, strict=True))
            seconds = np.mean([row[2] for row in theirs])
            line += f"{seconds:>12.3f}{seconds / ours:>9.0f}×{f'{same} of {len(own)}':>10}"
        print(f"{line}{pairs:>10.0f}", flush=True)


def timed_choice(texts: list[str], p: list[float], metric: str) -> tuple[int, float, float]:
    """Return our choice, its expected score and the seconds that it took: the first compiles."""
    seconds = np.inf
    for _ in range(4):
        start = perf_counter()
        best, score = pairs_of(texts, metric).best(np.array(p))
        seconds = min(seconds, perf_counter() - start)
    return best, score, seconds


def same_choice(ours: tuple, theirs: list, metric: str) -> bool:
    """Return whether choices are the same, or equally good in the float32 of the other."""
    score = -theirs[1] if metric == "ter" else theirs[1]
    return ours[0] == theirs[0] or abs(ours[1] - score) < 1e-4


def main() -> None:
    """Read the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["quality", "speed"])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--gains", nargs="+", default=["ter", "bleu", "chrf"])
    parser.add_argument("--likelihoods", nargs="+", default=["margin", "oracle"])
    metrics = ["ter", "bleu", "chrf", "fastchrf"]
    parser.add_argument("--metrics", nargs="+", default=metrics, choices=metrics, help="of speed")
    parser.add_argument("--sentences", type=int, default=10, help="lists for the speed")
    parser.add_argument("--hypotheses", type=int, default=100, help="of each of them")
    parser.add_argument("--threads", type=int, default=1, help="of mbrs")
    parser.add_argument("--mbrs", help="the Python of an environment with mbrs")
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    if "speed" in options.tables:
        speed(options.mbrs, options.metrics, options.sentences, options.hypotheses, options.threads)
    if "quality" in options.tables:
        quality(options.draws, tuple(options.gains), tuple(options.likelihoods))


if __name__ == "__main__":
    main()
