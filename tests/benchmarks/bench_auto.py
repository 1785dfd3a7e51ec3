"""How many posteriors of the default sampler, `auto`, pass their check, over all data.

    python tests/benchmarks/bench_auto.py [--tables NAME ...] [--draws 10]

Tables:
    text         lists of the decoder with features of text, 5 to 100 sentences, margin 8 per edit
    likelihoods  the same lists with their own features and each likelihood
    judged       lists judged by experts, from no canonical weights
    equal        the same from equal weights
    preferences  answers to random pairs of their candidates
    likelihoods-judged  10 to 100 judged lists of every collection with each likelihood, with and
                 without an indicator feature of each system, and priors from narrow to wide

With ten draws these are 1480 calls. Printed are the calls, how many of them fail, how many passed
after a failure of the first sampler, the samplers in the end, and the times; `fitted` counts the
draws of `imh` with proposals that were fitted to the moments. Each failure is printed in full. The
last table times each call again, with compiled programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache, partial
from time import perf_counter
from typing import Any

import numpy as np
from bench_judged import COMPUTED, OTHERS, SIX, TED, WMT23, answer_pairs, draw_lists, read_halves
from measuring import DATA, DOMAINS, Table, canonical, caption_corpus, draw, read_lists, run_tables

import bpa_ppl as bpa
from bpa_ppl.features import LanguageModel
from bpa_ppl.features.lexicon import Lexicon
from bpa_ppl.models import Margin
from bpa_ppl.nbest import NBest
from bpa_ppl.quality.column import column_of

SIZES = (5, 10, 20, 50, 100)
#: Lists, canonical weights, and options of `adapt`.
Call = tuple[NBest, Any, dict[str, Any]]


def print_row(table: Table, name: str, calls: Iterable[Call], *, warm: bool = False) -> None:
    """Adapt in each way, check, and print what happened; `warm` times a second call."""
    samplers, seconds, failed, again = Counter[str](), list[float](), 0, 0
    for nbest, weights, options in calls:
        for _ in range(1 + warm):
            start = perf_counter()
            posterior = bpa.adapt(nbest, weights, **options)
            elapsed = perf_counter() - start
        seconds.append(elapsed)
        chosen, reason = posterior.attrs["chosen"], posterior.attrs["chosen_because"]
        fitted = chosen == "imh" and "fitted" in reason
        samplers["imh, fitted" if fitted else chosen] += 1
        again += "drawn_again_because" in posterior.attrs
        if not (report := bpa.check(posterior)):
            failed += 1
            print(f"{len(nbest)} lists, {options}\n{report}", flush=True)
    counts = "; ".join(f"{sampler} {count}" for sampler, count in samplers.items())
    times = f"{np.median(seconds):.1f} / {max(seconds):.1f}"
    table.row(name, str(len(seconds)), str(failed), str(again), times, counts)


@cache
def with_text(domain: str) -> NBest:
    """Return the lists of a domain with features of its text."""
    lists = read_lists(domain, "adapt")
    if domain != "captions":
        return bpa.add_features(lists, [LanguageModel(text=str(DATA / f"{domain}/test.ref"))])
    corpus = caption_corpus()
    return bpa.add_features(lists, [LanguageModel(text=corpus[1]), Lexicon(pairs=corpus)])


def text(table: Table, draws: int) -> None:
    """Print the row of each domain with features of text."""

    def calls(domain: str) -> Iterator[Call]:
        lists = with_text(domain)
        new = dict.fromkeys(lists.feature_names[-4 if domain == "captions" else -2 :], 0.0)
        for seed in range(draws):
            for size in SIZES:
                options = {"likelihood": Margin(gamma=8.0), "metric": "ter+bleu", "seed": seed}
                yield draw(lists, size, seed), canonical(), {**options, "defaults": new}

    for domain in DOMAINS:
        print_row(table, f"text, {domain}", calls(domain))


def likelihoods(table: Table, draws: int) -> None:
    """Print the row of each likelihood on lists of the decoder."""

    def calls(likelihood: str) -> Iterator[Call]:
        for seed in range(draws):
            for domain in DOMAINS:
                size = SIZES[seed % len(SIZES)]
                lists = draw(read_lists(domain, "adapt"), size, seed)
                yield lists, canonical(), {"likelihood": likelihood, "seed": seed}

    for likelihood in ("oracle", "margin", "risk"):
        print_row(table, f"likelihood {likelihood}", calls(likelihood))


def judged(table: Table, draws: int, weights: str | None = None) -> None:
    """Print the row of each collection of judged lists."""
    sets = {
        "WMT 2023": read_halves(WMT23),
        "WMT 2023, six features": read_halves(WMT23, SIX),
        "medical, WMT 2021": read_halves(OTHERS, COMPUTED),
        "TED talks": read_halves(TED, COMPUTED),
    }
    for name, halves in sets.items():
        calls = (
            (draw_lists(halves[k % len(halves)], SIZES[k % len(SIZES)], k), weights, {"seed": k})
            for k in range(3 * draws)
        )
        complete = ((nbest, start, {**o, "metric": "mqm"}) for nbest, start, o in calls)
        print_row(table, f"{'equal weights' if weights else 'judged'}, {name}", complete)


def preferences(table: Table, draws: int) -> None:
    """Print the row of answers to pairs."""
    halves = read_halves(WMT23)
    calls = (
        (answer_pairs(halves[k % len(halves)], (20, 50, 100)[k % 3], k), None, {"seed": k})
        for k in range(4 * draws)
    )
    options = {"metric": "ter", "likelihood": "preference"}
    print_row(table, "preferences", ((nbest, w, {**o, **options}) for nbest, w, o in calls))


@cache
def with_gain(path: str, gain: str) -> NBest:
    """Return the completely judged lists of a collection, with the metrics and consensus."""
    lists = bpa.read_nbest(DATA / f"{path}.jsonl.gz")
    missing = np.add.reduceat(~np.isfinite(column_of(lists, gain)), lists.offsets[:-1])
    lists = lists[np.flatnonzero(missing == 0)]
    names = [*(name for name in lists.feature_names if name.startswith("qe_")), *COMPUTED]
    columns = np.column_stack([column_of(lists, name) for name in names])
    judgements = column_of(lists, gain)
    lists = lists.without(*lists.feature_names).without("sources", "references")
    return lists.with_features(names, columns).with_extras(**{gain: judgements})


def likelihoods_judged(table: Table, draws: int) -> None:
    """Print the row of each likelihood on judged lists of every collection."""
    gains = {
        **{f"judged/{file}": "mqm" for file in (*WMT23, *OTHERS, "bio.es-en")},
        **{f"mqm/{file}": "mqm" for file in TED},
        "judged/wmt24esa.en-cs": "esa",
        "judged/webnlg2020": "human",
        "judged/thumb.summeval": "human",
    }
    variances = (None, 0.003, 0.1, 1.0)

    def calls(likelihood: str, categorical: str | None) -> Iterator[Call]:
        for seed in range(draws):
            for number, (path, gain) in enumerate(gains.items()):
                size = (10, 20, 50, 100)[(seed + number) % 4]
                variance = variances[(seed + number // 4) % 4]
                chosen: dict[str, Any] = {} if variance is None else {"prior_variance": variance}
                options = {"likelihood": likelihood, "categorical": categorical, "seed": seed}
                lists = draw(with_gain(path, gain), size, seed)
                yield lists, None, {**options, **chosen, "metric": gain}

    for likelihood in ("risk", "margin", "oracle"):
        for categorical in (None, "system"):
            name = f"{likelihood}{', systems' if categorical else ''}, time of a second call"
            print_row(table, name, calls(likelihood, categorical), warm=True)


def main() -> None:
    """Print the selected tables as one."""
    parts = {
        "text": text,
        "likelihoods": likelihoods,
        "judged": judged,
        "equal": partial(judged, weights="equal"),
        "preferences": preferences,
        "likelihoods-judged": likelihoods_judged,
    }
    columns = ("calls", "failed", "repeated", "median / max s", "sampler in the end")
    table: Table | None = None

    def run(part: Any, options: Any) -> None:
        nonlocal table
        table = table or Table("adaptations", *columns)
        part(table, options.draws)

    run_tables(__doc__, {name: partial(run, part) for name, part in parts.items()}, draws=10)


if __name__ == "__main__":
    main()
