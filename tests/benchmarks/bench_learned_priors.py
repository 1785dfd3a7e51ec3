"""Test TER and BLEU with a prior learned from the other domains: the tables of learned priors.

    python tests/benchmarks/bench_learned_priors.py [--tables NAME …] [--draws 10]

Tables: `shared` (the list's 14 features; prior from the two other domains, 100 sentences each),
`rich` (with a language model and a lexicon of each domain's own texts), `full` (the hierarchical
model sampled over all sentences at once, beside empirical Bayes) and `sparse` (priors of many
indicators, simulated).

Each draw has its own sentences in every domain; the mode of the posterior chooses among the
500-best lists of all 500 test sentences. Printed: TER ± 2 standard deviations over the draws /
BLEU. |A| = 0 is the prior alone.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from bench_features import CORPORA, DOMAINS, Task, head, row, scores
from measuring import DATA, canonical, drawn, lists

import bpa_ppl as bpa
from bpa_ppl.features import LanguageModel
from bpa_ppl.features.lexicon import Lexicon
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.models import Margin, Prior
from bpa_ppl.nbest import NBest
from bpa_ppl.sampling import learn_prior_jointly

#: Sentences of every other domain that a prior is learned from.
LEARNED_FROM = 100
SIZES = (0, 10, 50)
_APART = 1000  # between the seeds of other domains' sentences and those of A


class Learning:
    """Domains with their features, the posteriors of their own sentences, and priors of those."""

    def __init__(self, task: Callable[[str, int], Task], **options: Any):
        self.task, self.options = cache(task), options
        self.posterior = cache(self._posterior)

    def _posterior(self, domain: str, seed: int) -> Any:
        """Return the posterior of 100 sentences of a domain."""
        task = self.task(domain, seed)
        sample = drawn(task.pool, LEARNED_FROM, _APART + seed)
        return self.adapted(task, sample, sampler="laplace", seed=seed)

    def adapted(self, task: Task, sample: NBest, **more: Any) -> Any:
        """Return the posterior of some sentences."""
        zeros = dict.fromkeys(task.new, 0.0)
        return bpa.adapt(sample, canonical(), defaults=zeros, **self.options, **more)

    def prior(self, domain: str, seed: int) -> Prior:
        """Return the prior for a domain, learned from the two others."""
        others = [other for other in DOMAINS if other != domain]
        return bpa.learn_prior({other: self.posterior(other, seed) for other in others})

    def scores(self, domain: str, learned: bool, size: int, seed: int) -> tuple[float, float]:
        """Return TER and BLEU of one draw."""
        task = self.task(domain, seed)
        sample = drawn(task.pool, size, seed) if size else task.pool[:0]
        prior: dict[str, Any] = {"prior": self.prior(domain, seed)} if learned else {}
        return scores(task.test, self.adapted(task, sample, sampler="map", **prior))


def table(title: str, learnings: Mapping[str, Learning], draws: int, domains: Any) -> None:
    """Print each domain, and the mean over them, with the isotropic and with the learned prior."""
    head(title, SIZES)
    for name, learning in learnings.items():
        for prior, learned in (("isotropic", False), ("learned", True)):
            found = {d: cache(partial(learning.scores, d, learned)) for d in domains}
            for domain, of_draw in found.items():
                row(f"{domain}, {name}, {prior} prior", SIZES, draws, of_draw)
            if len(found) > 1:
                means(f"mean of the domains, {name}, {prior} prior", found, draws)


def means(name: str, found: Mapping[str, Callable[[int, int], Any]], draws: int) -> None:
    """Print the means over domains of TER, of its spread, and of BLEU."""
    cells = []
    for size in SIZES:
        every = np.array([[of(size, seed) for seed in range(draws)] for of in found.values()])
        ter, bleu = every.mean(axis=(0, 1))
        spread = 2 * every[..., 0].std(axis=1, ddof=min(1, draws - 1)).mean()
        cells.append(f"{ter:.2f} ± {spread:.2f} / {bleu:.1f}")
    print(f"{name:<44}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


@cache
def plain(domain: str, seed: int = 0) -> Task:
    """Return the lists of a domain with their 14 features."""
    return Task(lists(domain, "adapt"), lists(domain, "test"))


def shared_table(draws: int) -> None:
    """Print what a prior of the 14 weights is worth."""
    margin = Learning(lambda domain, seed: plain(domain), likelihood=Margin(gamma=2.0))
    published = Learning(lambda domain, seed: plain(domain), likelihood="oracle")
    table("14 features", {"published": published, "margin": margin}, draws, DOMAINS)


class Rich:
    """Domains with a language model and a lexicon of their own texts.

    Captions have their own parallel text; of the other domains the texts are 400 of their 500
    adaptation pairs, and A is drawn from the other 100.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self.captions = cache(self._captions)

    def __call__(self, domain: str, seed: int) -> Task:
        """Return the lists of a domain, split anew for each draw."""
        return self.captions() if domain == "captions" else self._split(domain, seed)

    def _captions(self) -> Task:
        sides = tuple(str(CORPORA / f"captions.train.{side}.xz") for side in ("fr", "en"))
        return with_sources("captions").with_features(
            LanguageModel(text=sides[1]), Lexicon(pairs=sides)
        )

    def _split(self, domain: str, seed: int) -> Task:
        pool, test, _ = with_sources(domain)
        order = np.random.default_rng([seed, 7]).permutation(len(pool))
        text, kept = order[:400], np.sort(order[400:])
        assert pool.sources is not None
        assert pool.references is not None
        sides = {
            "src": [pool.sources[k] for k in text],
            "ref": [pool.references[k][0] for k in text],
        }
        paths = [self.folder / f"{domain}.{seed}.{side}" for side in sides]
        for path, rows in zip(paths, sides.values(), strict=True):
            path.write_text("\n".join([*rows, ""]), encoding="utf-8")
        sources = LanguageModel(text=str(paths[1])), Lexicon(pairs=tuple(map(str, paths)))
        return Task(pool.select(kept), test).with_features(*sources)


@cache
def with_sources(domain: str) -> Task:
    """Return the lists of a domain with their source sentences."""
    task = plain(domain)
    parts = {"adapt": task.pool, "test": task.test}
    return Task(*(p.with_sources(read_lines(DATA / domain / f"{n}.src")) for n, p in parts.items()))


def rich_table(draws: int, folder: Path) -> None:
    """Print what a prior of all weights is worth where text of the domain makes features."""
    rich = Rich(folder)
    learnings = {
        "margin 2, TER": Learning(rich, likelihood=Margin(gamma=2.0)),
        "margin 8, mixed": Learning(rich, likelihood=Margin(gamma=8.0), metric="ter+bleu"),
    }
    table("14 + LM, OOV and lexicon", learnings, draws, DOMAINS)


def full_table(sentences: int = LEARNED_FROM, hypotheses: int = 100) -> None:
    """Print the hierarchical model beside empirical Bayes, and how long each takes."""
    likely = Margin(gamma=2.0)
    pools = {
        domain: drawn(plain(domain).pool, sentences, _APART).truncate(hypotheses)
        for domain in DOMAINS
    }
    start = perf_counter()
    posteriors = {
        domain: bpa.adapt(pool, canonical(), sampler="laplace", likelihood=likely)
        for domain, pool in pools.items()
    }
    ours, between = bpa.learn_prior(posteriors), perf_counter()
    joint = learn_prior_jointly(pools, canonical(), likelihood=likely, chains=2, draws=500)
    full, end = Prior.of(joint), perf_counter()
    print(f"\nEM {between - start:.0f} s, hierarchical model {end - between:.0f} s")
    print(bpa.check(joint))
    shared = bpa.as_draws(joint).values["shared"]
    print(f"{'the next domain':<24}{'EM':>18}{'hierarchical':>18}{'apart':>8}")
    for k, name in enumerate(full.names):
        cells = [f"{p.mean[k]:.3f} ± {np.sqrt(p.covariance[k, k]):.3f}" for p in (ours, full)]
        apart = (ours.mean[k] - shared[..., k].mean()) / shared[..., k].std()
        print(f"{name:<24}" + "".join(f"{cell:>18}" for cell in cells) + f"{apart:>+7.1f}σ")


def sparse_table(features: int, sentences: int = 200, hypotheses: int = 20) -> None:
    """Print what priors make of many indicators of which five matter (simulated lists)."""
    rng = np.random.default_rng(0)
    truth = np.zeros(features)
    truth[:5] = [2.0, -2.0, 1.5, 3.0, -2.5]
    tables = []
    for _ in range(sentences):
        fires = rng.uniform(size=(hypotheses, features)) < 10 / features
        fires[:, :5] = rng.uniform(size=(hypotheses, 5)) < 0.3
        table = np.column_stack([rng.normal(size=hypotheses), fires])
        noise = rng.gumbel(size=hypotheses)
        best = int(np.argmax(table[:, 0] + fires @ truth + noise))
        tables.append(np.roll(table, -best, axis=0))
    names = ["LM0", *(f"x{k}" for k in range(features))]
    pool = NBest.from_lists([["w"] * hypotheses] * sentences, tables, names)
    none = np.zeros(sentences)
    given = bpa.Oracles(none.astype(int), none, none.astype(int), "first", "ter", "")
    columns = ("rms error", "of the five", "divergent", "seconds")
    print(f"\n{f'{features} indicators':<16}" + "".join(f"{name:>12}" for name in columns))
    for prior in ("isotropic", "horseshoe", "spike-slab"):
        start = perf_counter()
        posterior = bpa.adapt(
            pool,
            {"LM0": 1.0},
            defaults=dict.fromkeys(names[1:], 0.0),
            oracle=given,
            prior=prior,
            sampler="nuts",
            chains=2,
            draws=500,
        )
        draws = bpa.as_draws(posterior)
        error = draws.mean[1:] - truth
        every, five = (float(np.sqrt(np.mean(e**2))) for e in (error, error[:5]))
        divergent = int(np.sum(draws.statistics["diverging"]))
        seconds = perf_counter() - start
        print(f"{prior:<16}{every:>12.3f}{five:>12.3f}{divergent:>12}{seconds:>12.0f}", flush=True)
        print("\n".join(finding.advice for finding in bpa.check(posterior).failures))


def main() -> None:
    """Read the command line and print the tables."""
    names = ("shared", "rich", "full", "sparse")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=names, choices=names)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--features", type=int, default=500, help="of the table `sparse`")
    options = parser.parse_args()
    warnings.simplefilter("ignore", bpa.BpaWarning)
    with tempfile.TemporaryDirectory() as name:
        if "shared" in options.tables:
            shared_table(options.draws)
        if "rich" in options.tables:
            rich_table(options.draws, Path(name))
        if "full" in options.tables:
            full_table()
        if "sparse" in options.tables:
            sparse_table(options.features)


if __name__ == "__main__":
    main()
