"""Test TER and BLEU with a prior learned from the other domains: the tables of learned priors.

    python tests/benchmarks/bench_learned_priors.py [--tables NAME …] [--draws 10]

Tables: `shared` (the list's 14 features; prior from the two other domains, 100 sentences each),
`rich` (with a language model and a lexicon of each domain's own texts), `partial` (where only
captions have those features, and the lists adapted to do not), `held` (settings of learned priors
for those of `rich`, on adaptation sentences held out) and `sparse` (priors of 500 indicators,
simulated; ours and NumPyro's NUTS with its defaults).

Each draw has its own sentences in every domain; the mode of the posterior chooses among the
500-best lists of all 500 test sentences. Printed: TER ± 2 standard deviations over the draws /
BLEU / words over those of the references. |A| = 0 is the prior alone.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import jax
import numpy as np
from bench_features import CORPORA, DOMAINS, Task, head, row, scores
from measuring import DATA, canonical, drawn, lists
from numpyro.infer import MCMC, NUTS

import bpa_ppl as bpa
from bpa_ppl.features import LanguageModel
from bpa_ppl.features.lexicon import Lexicon
from bpa_ppl.formats.streams import read_lines
from bpa_ppl.models import Horseshoe, Margin, Prior
from bpa_ppl.nbest import NBest
from bpa_ppl.posterior.statistics import ess, r_hat
from bpa_ppl.sampling import target_of
from bpa_ppl.weights import match

#: Sentences of every other domain that a prior is learned from.
LEARNED_FROM = 100
SIZES = (0, 10, 50)
_APART = 1000  # between the seeds of other domains' sentences and those of A


class Learning:
    """Domains with their features, the posteriors of their own sentences, and priors of those.

    Args:
        task: (domain, seed) ↦ its lists.
        repeated: draw with replacement where a domain has no more than 100 sentences, too.
        options: of `adapt`.
    """

    def __init__(self, task: Callable[[str, int], Task], *, repeated: bool = False, **options: Any):
        self.task, self.repeated, self.options = cache(task), repeated, options
        self.posterior = cache(self._posterior)

    def _posterior(self, domain: str, seed: int) -> Any:
        """Return the posterior of 100 sentences of a domain: where there are no more, of all."""
        task = self.task(domain, seed)
        sample = task.pool
        if self.repeated or len(sample) > LEARNED_FROM:
            sample = drawn(sample, LEARNED_FROM, _APART + seed)
        return self.adapted(task, sample, sampler="laplace", seed=seed)

    def adapted(self, task: Task, sample: NBest, **more: Any) -> Any:
        """Return the posterior of some sentences."""
        zeros = dict.fromkeys(task.new, 0.0)
        return bpa.adapt(sample, canonical(), defaults=zeros, **self.options, **more)

    def prior(self, domain: str, seed: int, **how: Any) -> Prior:
        """Return the prior for a domain, learned from the two others."""
        others = [other for other in DOMAINS if other != domain]
        return bpa.learn_prior({other: self.posterior(other, seed) for other in others}, **how)

    def scores(self, domain: str, how: Any, size: int, seed: int) -> tuple[float, ...]:
        """Return TER, BLEU and length of one draw; `how` the prior is learned, None: not at all."""
        task = self.task(domain, seed)
        sample = drawn(task.pool, size, seed) if size else task.pool[:0]
        prior = {} if how is None else {"prior": self.prior(domain, seed, **how)}
        return scores(task.test, self.adapted(task, sample, sampler="map", **prior))


#: How priors of a table are learned.
PRIORS: dict[str, Any] = {"isotropic prior": None, "learned prior": {}}


def table(
    title: str,
    learnings: Mapping[str, Learning],
    draws: int,
    priors: Mapping[str, Any] = PRIORS,
    sizes: tuple[int, ...] = SIZES,
) -> None:
    """Print each domain, and the mean over them, with some priors."""
    head(title, sizes)
    for (name, learning), (prior, how) in product(learnings.items(), priors.items()):
        found = {d: cache(partial(learning.scores, d, how)) for d in DOMAINS}
        for domain, of_draw in found.items():
            row(f"{domain}, {name}, {prior}", sizes, draws, of_draw)
        means(f"mean of the domains, {name}, {prior}", found, draws, sizes)


def means(
    name: str, found: Mapping[str, Callable[[int, int], Any]], draws: int, sizes: tuple[int, ...]
) -> None:
    """Print the means over domains of TER, of its spread, of BLEU and of length."""
    cells = []
    for size in sizes:
        every = np.array([[of(size, seed) for seed in range(draws)] for of in found.values()])
        ter, bleu, length = every.mean(axis=(0, 1))
        spread = 2 * every[..., 0].std(axis=1, ddof=min(1, draws - 1)).mean()
        cells.append(f"{ter:.2f} ± {spread:.2f} / {bleu:.1f} / {length:.3f}")
    print(f"{name:<44}" + "".join(f"{cell:>30}" for cell in cells), flush=True)


@cache
def plain(domain: str, seed: int = 0) -> Task:
    """Return the lists of a domain with their 14 features."""
    return Task(lists(domain, "adapt"), lists(domain, "test"))


def shared_table(draws: int) -> None:
    """Print what a prior of the 14 weights is worth."""
    margin = Learning(lambda domain, seed: plain(domain), likelihood=Margin(gamma=2.0))
    published = Learning(lambda domain, seed: plain(domain), likelihood="oracle")
    table("14 features", {"published": published, "margin": margin}, draws)


class Rich:
    """Domains with a language model and a lexicon of their own texts.

    Captions have their own parallel text; of the other domains the texts are 400 of their 500
    adaptation pairs, and A is drawn from the other 100.

    Args:
        folder: for the texts.
        held: texts are 200 of those pairs, and what is tested on are the last 200; of captions
            A is drawn from one half of the adaptation sentences and tested on the other. So
            settings can be chosen without a test sentence.
    """

    def __init__(self, folder: Path, held: bool = False):
        self.folder, self.held = folder, held
        self.captions = cache(self._captions)

    def __call__(self, domain: str, seed: int) -> Task:
        """Return the lists of a domain, split anew for each draw."""
        return self._captions_of(seed) if domain == "captions" else self._split(domain, seed)

    def _captions(self) -> Task:
        sides = tuple(str(CORPORA / f"captions.train.{side}.xz") for side in ("fr", "en"))
        return with_sources("captions").with_features(
            LanguageModel(text=sides[1]), Lexicon(pairs=sides)
        )

    def _captions_of(self, seed: int) -> Task:
        task = self.captions()
        if not self.held:
            return task
        order = np.random.default_rng([seed, 7]).permutation(len(task.pool))
        half = len(order) // 2
        parts = (task.pool.select(np.sort(part)) for part in (order[:half], order[half:]))
        return Task(*parts, task.new)

    def _split(self, domain: str, seed: int) -> Task:
        pool, test, _ = with_sources(domain)
        order = np.random.default_rng([seed, 7]).permutation(len(pool))
        text, kept = order[:400], np.sort(order[400:])
        if self.held:
            text, kept, out = order[:200], np.sort(order[200:300]), np.sort(order[300:])
            test = pool.select(out)
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
    table("14 + LM, OOV and lexicon", learnings, draws)


def partial_table(draws: int, folder: Path) -> None:
    """Print what a prior is worth for 14 features, where captions have more than those."""
    rich, options = Rich(folder), {"likelihood": Margin(gamma=8.0), "metric": "ter+bleu"}
    few = Learning(lambda domain, seed: plain(domain), **options)
    many = Learning(rich, **options)
    targets = ("medical", "conversation")
    rows: dict[str, tuple[Learning, bool, dict[str, Any]]] = {
        "all without": (few, True, {}),
        "captions with, conditioned on 0": (many, True, {}),
        "captions with, left out": (many, True, {"without": rich("captions", 0).new}),
        "captions alone with, conditioned on 0": (many, False, {}),
        "captions alone with, left out": (many, False, {"without": rich("captions", 0).new}),
        "captions alone without": (few, False, {}),
    }

    def of_draw(name: str, domain: str, size: int, seed: int) -> tuple[float, ...]:
        captions, both, how = rows[name]
        posteriors = {"captions": captions.posterior("captions", seed)}
        if both:
            (other,) = set(targets) - {domain}
            posteriors[other] = few.posterior(other, seed)
        task = plain(domain)
        sample = drawn(task.pool, size, seed) if size else task.pool[:0]
        prior = bpa.learn_prior(posteriors, **how)
        return scores(task.test, few.adapted(task, sample, sampler="map", prior=prior))

    head("Features of captions alone", (0, 10))
    for name in rows:
        means(name, {d: cache(partial(of_draw, name, d)) for d in targets}, draws, (0, 10))


#: Ways to learn a prior that are compared on adaptation sentences alone.
WAYS: dict[str, Any] = {
    **{f"strength {strength:g}": {"strength": strength} for strength in (1, 2.5, 5, 10, 20)},
    **{f"shrinkage {share:g}": {"shrinkage": share} for share in (0.0125, 0.025, 0.1, 0.2)},
}


def held_table(draws: int, folder: Path) -> None:
    """Print what settings of learned priors are worth on adaptation sentences held out."""
    rich = Rich(folder, held=True)
    options: dict[str, Any] = {"likelihood": Margin(gamma=8.0), "metric": "ter+bleu"}
    title, learning = "Held out: 14 + LM, OOV and lexicon", Learning(rich, **options)
    table(title, {"mixed": learning}, draws, WAYS, (0, 10))
    repeated = Learning(learning.task, repeated=True, **options)
    table("… of sentences drawn", {"mixed": repeated}, draws, {"strength 5": {}}, (0, 10))


class Sparse(NamedTuple):
    """Simulated lists with one dense feature and many indicators, of which five matter.

    Attributes:
        pool: the lists; the first hypothesis of each was chosen by the true weights.
        truth: the weights of the indicators.
    """

    pool: NBest
    truth: Any

    @classmethod
    def simulated(cls, features: int, sentences: int = 100, hypotheses: int = 6) -> Sparse:
        """Draw the lists: an indicator fires in two of a hundred hypotheses, those five in 30."""
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
        return cls(NBest.from_lists([["w"] * hypotheses] * sentences, tables, names), truth)

    @property
    def given(self) -> bpa.Oracles:
        """The first hypothesis of each list."""
        none = np.zeros(len(self.pool))
        return bpa.Oracles(none.astype(int), none, none.astype(int), "first", "ter", "")

    def adapted(self, prior: str, **settings: Any) -> Any:
        """Return the posterior under a prior by name."""
        zeros = dict.fromkeys(self.pool.feature_names[1:], 0.0)
        options = {"likelihood": "oracle", "oracle": self.given, "prior": prior}
        return bpa.adapt(self.pool, {"LM0": 1.0}, defaults=zeros, **options, **settings)

    def plain(self, prior: Any, warmup: int, draws: int, chains: int) -> dict[str, Any]:
        """Return draws of `weights` by NumPyro's NUTS alone, as it comes, and its divergences."""
        zeros = dict.fromkeys(self.pool.feature_names[1:], 0.0)
        matched = match({"LM0": 1.0}, self.pool, defaults=zeros)
        with jax.enable_x64(True):
            target = target_of(
                self.pool,
                matched,
                prior.build(matched),
                oracle=self.given.index,
                model=prior.model(matched),
            )
            chain = MCMC(
                NUTS(target.program),
                num_warmup=warmup,
                num_samples=draws,
                num_chains=chains,
                chain_method="vectorized",
                progress_bar=False,
            )
            chain.run(jax.random.key(0), *target.data, extra_fields=("diverging", "num_steps"))
            fields = chain.get_extra_fields(group_by_chain=True)
            weights = chain.get_samples(group_by_chain=True)["weights"]
            return {"weights": np.asarray(weights), **jax.device_get(fields)}


def sparse_table(features: int, chains: int = 2, draws: int = 300) -> None:
    """Print what priors make of many indicators of which five matter (simulated lists)."""
    task = Sparse.simulated(features)
    columns = ("rms error", "of the five", "divergent", "steps", "least ESS", "R-hat", "seconds")
    print(f"\n{f'{features} indicators':<24}" + "".join(f"{name:>12}" for name in columns))

    def line(name: str, weights: Any, diverging: Any, steps: Any, seconds: float) -> None:
        error = weights.mean(axis=(0, 1))[1:] - task.truth
        cells = [np.sqrt(np.mean(e**2)) for e in (error, error[:5])]
        cells += [np.sum(diverging), np.mean(steps), np.min(ess(weights)), np.max(r_hat(weights))]
        print(f"{name:<24}" + "".join(f"{cell:>12.3g}" for cell in (*cells, seconds)), flush=True)

    start = perf_counter()
    found = task.plain(Horseshoe(), 500, draws, chains)
    seconds = perf_counter() - start
    line("horseshoe, plain NUTS", found["weights"], found["diverging"], found["num_steps"], seconds)
    for prior in ("horseshoe", "spike-slab", "isotropic"):
        start = perf_counter()
        posterior = task.adapted(prior, sampler="nuts", chains=chains, draws=draws)
        seconds, known = perf_counter() - start, bpa.as_draws(posterior)
        stats = known.statistics
        line(f"{prior}, nuts", known.weights, stats["diverging"], stats["n_steps"], seconds)
        print(bpa.check(posterior), flush=True)


def main() -> None:
    """Read the command line and print the tables."""
    names = ("shared", "rich", "partial", "held", "sparse")
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
        if "partial" in options.tables:
            partial_table(options.draws, Path(name))
        if "held" in options.tables:
            held_table(options.draws, Path(name))
        if "sparse" in options.tables:
            sparse_table(options.features)


if __name__ == "__main__":
    main()
