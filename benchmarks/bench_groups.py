"""Weights for each customer, language or slice: hierarchical, pooled and separate posteriors.

    python benchmarks/bench_groups.py [--tables NAME ...] [--draws 5]

Tables:
    customers     six simulated customers with weights of five judges that differ, 5, 20 and 60
                  labels of each; accuracy on 500 new pairs of each
    sections      the four sections of RewardBench (Chat, Chat Hard, Safety, Reasoning) with nine
                  reward models, 3, 5, 15 and 50 labels of each; macro accuracy and log loss on all
                  other pairs, and the section that loses most against the pooled posterior
    translations  two candidates of each list of WMT 2023 (en-de and zh-en), in seven domains, with
                  18 metrics that need no reference; 5 and 15 labels of each domain. The judgements
                  are of one kind (MQM), so all domains need similar weights

Hierarchical is `model="hierarchical"`, pooled is one posterior of all labels, separate one for each
group. All rows have the same labels. Sampled by NUTS, 2 chains of 500 draws.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpyro.distributions as dist
from bench_confidence import predict_pairs
from bench_judged import DATA, WMT23, reward_halves
from measuring import Table, answered_pairs, few, run_tables
from numpyro.primitives import Messenger

import bpa_ppl as bpa
from bpa_ppl import NBest, concatenate, from_arrays
from bpa_ppl.lists.candidate_columns import read_column
from bpa_ppl.models.log_linear import hierarchical, log_linear

CUSTOMERS, JUDGES, TESTED = len(few(range(6), 2)), 5, 500
SAMPLER = {"sampler": f"nuts:draws={len(few(range(500), 50))},chains=2"}
#: Sections of RewardBench by the beginning of the names of their subsets.
SECTIONS = {
    "Chat": ("alpacaeval", "mt-bench"),
    "Chat Hard": ("llmbar",),
    "Safety": ("xstest", "donotanswer", "refusals"),
    "Reasoning": ("math", "hep"),
}
#: Accuracy and log loss of each group.
Scores = dict[str, tuple[float, float]]
Samples = Iterator[tuple[NBest, NBest]]
#: From lists to adapt on, and to test on, to the scores by each method.
Methods = Callable[[NBest, NBest], dict[str, Scores]]


def customers(size: int, seed: int) -> tuple[NBest, NBest]:
    """Return pairs of each customer to adapt on, and to test on."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0.5, 0.5, JUDGES) + rng.normal(0, 0.8, (CUSTOMERS, JUDGES))

    def draw(count: int) -> NBest:
        owner = np.repeat(np.arange(CUSTOMERS), count)
        scores = rng.normal(size=(len(owner), 2, JUDGES))
        odds = np.einsum("nk,nk->n", scores[:, 0] - scores[:, 1], weights[owner])
        first = rng.random(len(owner)) < 1 / (1 + np.exp(-2 * odds))
        lists = answered_pairs(scores, first)
        return lists.with_sentence_extras(domain=[f"customer {k}" for k in owner])

    return draw(size), draw(TESTED)


def section_of(subset: str) -> str:
    """Return the section of a subset of RewardBench."""
    return next(name for name, starts in SECTIONS.items() if subset.startswith(starts))


def sections(size: int, draws: int) -> Samples:
    """Yield pairs of each section to adapt on, and those to test on."""
    half = reward_halves()[0]
    lists = concatenate([half.pool, half.test])
    names = np.array([section_of(subset) for subset in lists.sentence_extras["domain"]])
    yield from draw_groups(lists.with_sentence_extras(domain=names.tolist()), size, draws)


def draw_groups(lists: NBest, size: int, draws: int) -> Samples:
    """Yield pairs of each group to adapt on, and all other pairs."""
    names = np.array(lists.sentence_extras["domain"])
    kept = np.isin(names, few([*dict.fromkeys(names.tolist())], 2))
    lists, names = lists.select(np.flatnonzero(kept)), names[kept]
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        groups = [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]
        rows = np.concatenate([rng.choice(group, size, replace=False) for group in groups])
        yield lists.select(rows), lists.select(np.setdiff1d(np.arange(len(lists)), rows))


def translations(size: int, draws: int) -> Samples:
    """Yield pairs of translations of each domain to adapt on, and those to test on."""
    patterns = ["qe_*", "consensus*"]
    files = [
        bpa.read_nbest(DATA / "judged" / f"{file}.jsonl.gz", features=patterns) for file in WMT23
    ]
    names = [name for name in files[0].feature_names if name in files[1].feature_names]
    rng, scores, domains = np.random.default_rng(0), [], list[str]()
    for file, lists in zip(WMT23, files, strict=True):
        mqm, columns = read_column(lists, "mqm"), [lists.feature_names.index(n) for n in names]
        drawn = np.array([rng.choice(n, 2, replace=False) for n in lists.sizes])
        pairs = lists.offsets[:-1, None] + drawn
        pairs = np.take_along_axis(pairs, np.argsort(-mqm[pairs], axis=1), axis=1)
        differ = np.flatnonzero(mqm[pairs[:, 0]] > mqm[pairs[:, 1]])
        scores.append(lists.features[pairs[differ].ravel()][:, columns])
        domains += [f"{file[6:]} {lists.sentence_extras['domain'][k]}" for k in differ]
    pairs = from_arrays([""] * (2 * len(domains)), np.concatenate(scores), names, 2)
    pairs = pairs.with_extras(gain=np.tile([1.0, 0.0], len(domains)))
    yield from draw_groups(pairs.with_sentence_extras(domain=domains), size, draws)


def score(posterior: Any, test: NBest) -> tuple[float, float]:
    """Return accuracy and log loss."""
    p, gains, right = predict_pairs(posterior, test)
    return float(right.mean()), float(-np.log(np.maximum((p * gains).sum(axis=1), 1e-9)).mean())


def of_group(lists: NBest, name: str) -> NBest:
    """Return the lists of a group."""
    return lists.select([k for k, n in enumerate(lists.sentence_extras["domain"]) if n == name])


def split_groups(lists: NBest) -> dict[str, NBest]:
    """Return the lists of each group."""
    return {name: of_group(lists, name) for name in sorted(set(lists.sentence_extras["domain"]))}


def group_in_three_ways(lists: NBest, test: NBest) -> dict[str, Scores]:
    """Return the scores of hierarchical, pooled and separate posteriors."""
    tests = split_groups(test)
    own = bpa.adapt(lists, gain="gain", model="hierarchical", **SAMPLER)
    pooled = bpa.adapt(lists, gain="gain", **SAMPLER)
    separate = {name: bpa.adapt(of_group(lists, name), gain="gain", **SAMPLER) for name in tests}
    return {
        "**hierarchical**": {name: score(own, of) for name, of in tests.items()},
        "pooled": {name: score(pooled, of) for name, of in tests.items()},
        "separate": {name: score(separate[name], of) for name, of in tests.items()},
    }


class ScalePrior(Messenger):
    """The hierarchical model with another prior of `scale`."""

    def __init__(self, prior: dist.Distribution) -> None:
        super().__init__(hierarchical)
        self.prior, self.dims = prior, hierarchical.dims

    def process_message(self, msg: dict[str, Any]) -> None:
        """Replace the distribution of the site."""
        if msg["name"] == "scale":
            msg["fn"] = self.prior


#: With several priors of `scale`, the default in bold.
MODELS = {
    "N⁺(0, 4²)": ScalePrior(dist.HalfNormal(4.0)),
    "half-Cauchy": ScalePrior(dist.HalfCauchy(1.0)),
    "**half-t**": hierarchical,
    "N⁺(0, 1)": ScalePrior(dist.HalfNormal(1.0)),
}


def vary_scale_prior(lists: NBest, test: NBest) -> dict[str, Scores]:
    """Return the scores of hierarchical posteriors with other priors of `scale`."""
    result = {}
    for name, model in (*few([*MODELS.items()]), ("pooled", log_linear)):
        posterior = bpa.adapt(lists, gain="gain", model=model, **SAMPLER)
        result[name] = {of: score(posterior, part) for of, part in split_groups(test).items()}
    return result


def compare(title: str, samples: Samples, methods: Methods = group_in_three_ways) -> None:
    """Print macro accuracy, log loss, and the least difference of a group to the pooled one."""
    results: dict[str, list[Scores]] = {}
    for lists, test in samples:
        for name, scores in methods(lists, test).items():
            results.setdefault(name, []).append(scores)
    columns = "macro accuracy", "± 2 standard errors", "log loss", "worst group − pooled"
    table = Table(title, *columns)
    groups = list(results["pooled"][0])
    pooled = np.array([[of[g][0] for g in groups] for of in results["pooled"]])
    for name, found in results.items():
        right = np.array([[of[g][0] for g in groups] for of in found])
        loss = np.array([[of[g][1] for g in groups] for of in found])
        differences = (right - pooled).mean(axis=0)
        worst = int(differences.argmin())
        error = 2 * right.mean(axis=1).std(ddof=1) / np.sqrt(len(right))
        cells = f"{right.mean():.3f}", f"{error:.3f}", f"{loss.mean():.3f}"
        table.row(name, *cells, f"{differences[worst]:+.3f} ({groups[worst]})")


def customers_table(options: Any) -> None:
    """Print the table of the customers."""
    for size in few((5, 20, 60)):
        samples = (customers(size, seed) for seed in range(options.draws))
        compare(f"six customers, {size} labels of each", samples)


def sections_table(options: Any) -> None:
    """Print the table of the sections of RewardBench."""
    for size in few((3, 5, 15, 50)):
        compare(f"RewardBench, {size} labels of each section", sections(size, options.draws))


def translations_table(options: Any) -> None:
    """Print the table of the domains of WMT 2023."""
    for size in few((5, 15)):
        compare(f"WMT 2023, {size} labels of each domain", translations(size, options.draws))


def scales_table(options: Any) -> None:
    """Print the tables of the priors of `scale`."""
    for size in few((5, 15)):
        samples = translations(size, options.draws)
        compare(f"WMT 2023, {size} labels of each domain", samples, vary_scale_prior)
    samples = sections(15, options.draws)
    compare("RewardBench, 15 labels of each section", samples, vary_scale_prior)


if __name__ == "__main__":
    logging.getLogger("bpa_ppl").setLevel("ERROR")
    run_tables(
        __doc__, (customers_table, sections_table, translations_table, scales_table), draws=5
    )
