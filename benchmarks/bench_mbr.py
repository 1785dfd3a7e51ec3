"""Minimum Bayes risk decoding, compared with the rule `predictive` and with the package mbrs.

    python benchmarks/bench_mbr.py [--tables NAME ...] [--draws 10] [--mbrs PYTHON]

Tables:
    quality  test TER ± two standard deviations over the draws / BLEU / chrF / length ratio of both
             rules, after adaptation at the mode to 10 and 100 sentences
    speed    the best time of three choices from the same lists with the same probabilities, here on
             one thread and in mbrs on `--threads`

PYTHON is the interpreter of an environment with mbrs (`pip install mbrs`). The threads of mbrs are
processes for TER, BLEU and chrF in Python, Rust threads (Rayon) for `fastchrf`, and PyTorch
threads.
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from measuring import (
    DOMAINS,
    Table,
    best_time,
    canonical,
    cell,
    draw,
    probabilities,
    read_lists,
    run_tables,
    summary,
)

import bpa_ppl as bpa
from bpa_ppl import NBest
from bpa_ppl.decoding.rules import Mbr
from bpa_ppl.gains.pairwise import make_pairs
from bpa_ppl.weights import match

SIZES = (10, 100)
RULES = {"predictive": None, **{f"mbr, {gain}": Mbr(gain=gain) for gain in ("ter", "bleu", "chrf")}}
#: Run by the other interpreter: from JSON lines of texts and probabilities to choices and seconds.
MBRS = """
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
        output = decoder.decode(texts, texts, reference_lprobs=lprobs)
        seconds = min(seconds, time.perf_counter() - start)
    print(json.dumps([output.idx[0], output.score[0], seconds]), flush=True)
"""


def scores(texts: list[str], references: Any) -> tuple[float, ...]:
    """Return corpus TER, BLEU, chrF and length ratio."""
    ter, bleu, chrf = (bpa.corpus_score(texts, references, m) for m in ("ter", "bleu", "chrf"))
    return ter.value, bleu.value, chrf.value, float(bleu.details["length_ratio"])


def quality(options: Any) -> None:
    """Print the scores of the rules on each domain, and their means."""
    results: dict[str, dict[tuple[str, int], list[Any]]] = {}
    for domain in DOMAINS:
        pool, test = read_lists(domain, "adapt"), read_lists(domain, "test")
        cells = results[domain] = {key: [] for key in product(RULES, SIZES)}
        for size, seed in product(SIZES, range(options.draws)):
            posterior = bpa.adapt(draw(pool, size, seed), canonical(), sampler="map")
            weights = bpa.as_weight_draws(posterior).aligned(test)[0]
            p = probabilities(test, test.scores(weights))
            for name, rule in RULES.items():
                choice = test.best(p) if rule is None else rule.decide(test, p)
                cells[name, size].append(scores(test.chosen(choice), test.references))
        print_quality(domain, [cells])
    print_quality("mean of the domains", list(results.values()))


def print_quality(title: str, domains: list[dict[tuple[str, int], list[Any]]]) -> None:
    """Print the means of each rule over the domains."""
    table = Table(title, *(f"|A| = {size}" for size in SIZES), width=38)
    for name in RULES:
        table.row(name, *(cell(summary([d[name, size] for d in domains])) for size in SIZES))


def problems(lists: NBest, sentences: int) -> list[tuple[list[str], list[float]]]:
    """Return the distinct texts and their probabilities, of some lists."""
    texts_and_p = []
    p = probabilities(lists, lists.scores(match(canonical(), lists, fixed=()).values))
    for s in range(len(lists) // sentences // 2, len(lists), len(lists) // sentences):
        rows = lists.rows(s)
        strings, inverse = np.unique(lists.string_index[rows], return_inverse=True)
        share = np.bincount(inverse, weights=p[rows])
        texts_and_p.append(([lists.strings[i] for i in strings], share.tolist()))
    return texts_and_p


def most_similar(texts: list[str], p: list[float], metric: str) -> tuple[int, float]:
    """Return the choice and its expected score."""
    return make_pairs(texts, metric).best(np.array(p))


def speed(options: Any) -> None:
    """Print seconds per list, and how often the choices are equal."""
    threads = str(options.threads)
    variables = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(variables, threads)
    columns = ("bpa_ppl", "mbrs", "times as fast", "equal choices", "pairs")
    table = Table(f"seconds per list, mbrs with {threads} threads", *columns)
    for domain, metric in product(DOMAINS, ("ter", "bleu", "chrf", "fastchrf")):
        lists = read_lists(domain, "test").truncate(100)
        inputs = problems(lists, options.sentences)
        results = []
        for texts, p in inputs:
            choose = partial(most_similar, texts, p, metric.removeprefix("fast"))
            choose()  # compiles
            results.append(best_time(choose, 3))
        seconds = float(np.mean([one.seconds for one in results]))
        row = [f"{seconds:.5f}", "", "", ""]
        if options.mbrs:
            run = subprocess.run(
                [options.mbrs, "-c", MBRS, metric, threads],
                input="".join(json.dumps(problem) + "\n" for problem in inputs),
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                env=environment,
            )
            others = [json.loads(line) for line in run.stdout.splitlines()]
            equal = sum(
                equal_choice(one.result, other, metric)
                for one, other in zip(results, others, strict=True)
            )
            mbrs = np.mean([other[2] for other in others])
            row[1:] = [f"{mbrs:.3f}", f"{mbrs / seconds:.0f}", f"{equal} of {len(others)}"]
        pairs = np.mean([len(texts) ** 2 for texts, _ in inputs])
        table.row(f"{domain}, {metric}", *row, f"{pairs:.0f}")


def equal_choice(choice: tuple[int, float], other: list[float], metric: str) -> bool:
    """Return whether the choices are equal, or equally good in the float32 numbers of mbrs."""
    score = -other[1] if metric == "ter" else other[1]
    return choice[0] == other[0] or abs(choice[1] - score) < 1e-4


if __name__ == "__main__":
    run_tables(__doc__, (quality, speed), draws=10, sentences=10, threads=1, mbrs="")
