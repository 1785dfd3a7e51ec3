"""Test TER and BLEU with a prior learned from the other domains.

    python benchmarks/bench_learned_priors.py [--tables NAME ...] [--draws 10]

Tables:
    shared   the 14 features of the lists; prior from 100 sentences of each of the two other domains
    rich     with a language model and a lexicon of each domain's own text
    partial  only captions have these features; medical and conversation are adapted without them
    sparse   priors of 500 simulated indicators, compared with NumPyro's NUTS with its defaults

Each draw has its own sentences in every domain. The posterior mode chooses from the 500-best lists
of 500 test sentences. A cell has the mean TER ± two standard deviations over the draws / BLEU /
length ratio; |A| = 0 is the prior alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import numpy as np
from measuring import (
    DOMAINS,
    ScoreTable,
    Table,
    Task,
    best_time,
    caption_corpus,
    domain_task,
    draw,
    few,
    run_tables,
    write_lines,
)
from numpyro.infer import MCMC, NUTS

import bpa_ppl as bpa
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.extending import Oracles
from bpa_ppl.extras.phrases.lexicon import Lexicon
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.formats.in_memory import from_lists
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.models.likelihoods.oracle import Margin
from bpa_ppl.models.priors.prior import Prior
from bpa_ppl.posterior.statistics import ess, r_hat
from bpa_ppl.samplers.sampler import SAMPLERS
from bpa_ppl.weights import StartingWeights

SIZES = (0, 10, 50)
MARGIN = Margin(gamma=2.0)
MARGIN_BOTH: dict[str, Any] = {"likelihood": Margin(gamma=8.0), "gain": "ter+bleu"}


class Learning:
    """Posteriors of all domains, and the priors learned from them.

    Args:
        task: from a domain and a seed to its lists.
        options: of `adapt`.
    """

    def __init__(self, task: Callable[[str, int], Task], **options: Any):
        self.task, self.options = cache(task), options
        self.posterior, self.prior = cache(self._posterior), cache(self._prior)

    def _posterior(self, domain: str, seed: int) -> Any:
        """Return the posterior of 100 sentences of a domain, or of all if it has fewer."""
        task = self.task(domain, seed)
        sample = draw(task.pool, 100, 1000 + seed) if len(task.pool) > 100 else task.pool
        return task.adapt(sample, sampler="laplace", seed=seed, **self.options)

    def _prior(self, domain: str, seed: int, **settings: Any) -> Prior:
        """Return the prior for a domain, learned from the other domains."""
        others = [other for other in DOMAINS if other != domain]
        posteriors = {other: self.posterior(other, seed) for other in others}
        return bpa.learn_prior(posteriors, unchecked=True, **settings)

    def score_draw(
        self, domain: str, settings: dict[str, Any] | None, size: int, seed: int
    ) -> Float64:
        """Adapt to a draw of one domain and return the test scores.

        Without settings, the prior is around the canonical weights.
        """
        prior = {} if settings is None else {"prior": self.prior(domain, seed, **settings)}
        return self.task(domain, seed).score_draw(size, seed, **self.options, **prior)


def add_domains(table: ScoreTable, name: str, learning: Learning) -> None:
    """Print each domain, and the mean over them, with both priors."""
    for prior, settings in (("isotropic prior", None), ("learned prior", {})):
        scores = {d: cache(partial(learning.score_draw, d, settings)) for d in DOMAINS}
        for domain, of_draw in scores.items():
            table.add(f"{domain}, {name}, {prior}", of_draw)
        table.add(f"mean, {name}, {prior}", *scores.values())


def shared_table(options: Any) -> None:
    """Print the scores with the list's 14 features."""
    table = ScoreTable("14 features", SIZES, options.draws)
    for name, likelihood in (("published", "oracle"), ("margin", MARGIN)):
        learning = Learning(lambda domain, seed: domain_task(domain), likelihood=likelihood)
        add_domains(table, name, learning)


@cache
def rich_captions() -> Task:
    """Return the captions with a language model and a lexicon of their own parallel text."""
    sources = LanguageModel(text=caption_corpus()[1]), Lexicon(pairs=caption_corpus())
    return domain_task("captions").with_features(*sources)


def rich_task(domain: str, seed: int) -> Task:
    """Return the lists of a domain with a language model and a lexicon of its own text.

    The text of medical and conversation consists of 400 of their 500 adaptation pairs; A is drawn
    from the others.
    """
    if domain == "captions":
        return rich_captions()
    task = domain_task(domain)
    order = np.random.default_rng([seed, 7]).permutation(len(task.pool))
    text = task.pool.select(order[:400])
    sides = (
        write_lines(f"{domain}.{seed}.src", text.sources),
        write_lines(f"{domain}.{seed}.ref", (texts[0] for texts in text.references)),
    )
    task = task._replace(pool=task.pool.select(np.sort(order[400:])))
    return task.with_features(LanguageModel(text=sides[1]), Lexicon(pairs=sides))


def rich_table(options: Any) -> None:
    """Print the scores with features from text of the domain."""
    table = ScoreTable("14 + LM, OOV and lexicon", SIZES, options.draws)
    add_domains(table, "γ = 2, ter", Learning(rich_task, likelihood=MARGIN))
    add_domains(table, "γ = 8, ter+bleu", Learning(rich_task, **MARGIN_BOTH))


def partial_table(options: Any) -> None:
    """Print the scores with 14 features if captions have more."""
    shared = Learning(lambda domain, seed: domain_task(domain), **MARGIN_BOTH)
    rich = Learning(rich_task, **MARGIN_BOTH)
    without = {"without": rich_captions().new}
    rows: dict[str, tuple[Learning, bool, dict[str, Any]]] = {
        "all without": (shared, True, {}),
        "captions with, conditioned on 0": (rich, True, {}),
        "captions with, left out": (rich, True, without),
        "captions alone with, conditioned on 0": (rich, False, {}),
        "captions alone with, left out": (rich, False, without),
        "captions alone without": (shared, False, {}),
    }
    others = ("medical", "conversation")

    def of_draw(name: str, domain: str, size: int, seed: int) -> Float64:
        captions, both, settings = rows[name]
        posteriors = {"captions": captions.posterior("captions", seed)}
        if both:
            (other,) = set(others) - {domain}
            posteriors[other] = shared.posterior(other, seed)
        prior = bpa.learn_prior(posteriors, unchecked=True, **settings)
        return domain_task(domain).score_draw(size, seed, prior=prior, **MARGIN_BOTH)

    table = ScoreTable("Features of captions alone", (0, 10), options.draws)
    for name in rows:
        table.add(name, *(partial(of_draw, name, domain) for domain in others))


def simulated_lists(
    features: int, sentences: int = 100, candidates: int = 6, seed: int = 0
) -> tuple[NBest, Float64]:
    """Simulate lists with one dense feature and many indicators, five of which have weights.

    An indicator fires in two of 100 candidates, these five in 30.

    Returns:
        the lists, with the candidate chosen by the true weights first; the weights of the
        indicators.
    """
    rng = np.random.default_rng(seed)
    truth = np.zeros(features)
    truth[:5] = [2.0, -2.0, 1.5, 3.0, -2.5]
    tables = []
    for _ in range(sentences):
        fires = rng.uniform(size=(candidates, features)) < 10 / features
        fires[:, :5] = rng.uniform(size=(candidates, 5)) < 0.3
        table = np.column_stack([rng.normal(size=candidates), fires])
        noise = rng.gumbel(size=candidates)
        best = int(np.argmax(table[:, 0] + fires @ truth + noise))
        tables.append(np.roll(table, -best, axis=0))
    names = ["LM0", *(f"x{k}" for k in range(features))]
    return from_lists([["w"] * candidates] * sentences, tables, names), truth


def with_new_features(lists: NBest) -> StartingWeights:
    """Return a canonical weight of the first feature; the others start at 0."""
    zeros = dict.fromkeys(lists.feature_names[1:], 0.0)
    return StartingWeights({"LM0": 1.0}, defaults=zeros)


def numpyro_nuts(lists: NBest, oracle: Oracles, chains: int, draws: int) -> list[Any]:
    """Sample the horseshoe with NumPyro's NUTS and its defaults.

    Returns:
        draws of the weights, divergences and leapfrog steps.
    """
    with jax.enable_x64(True):
        target = bpa.log_density(
            lists,
            with_new_features(lists),
            gain=oracle,
            likelihood="oracle",
            prior="horseshoe",
        )
        mcmc = MCMC(
            NUTS(target.program),
            num_warmup=len(few(range(500), 50)),
            num_samples=draws,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(0), *target.data, extra_fields=("diverging", "num_steps"))
        fields = mcmc.get_extra_fields(group_by_chain=True)
        weights = mcmc.get_samples(group_by_chain=True)["weights"]
        return [np.asarray(x) for x in (weights, fields["diverging"], fields["num_steps"])]


def sparse_table(options: Any) -> None:
    """Print how well priors recover five weights among many indicators, and choose with them."""
    lists, truth = simulated_lists(options.features)
    new, _ = simulated_lists(options.features, 2000, seed=1000)
    utility = new.scores(np.append(1.0, truth)).reshape(len(new), -1)
    first, zeros = np.zeros(len(lists), int), np.zeros(len(lists))
    oracle = Oracles(first, zeros, first, "first", "ter", "")
    settings = {"chains": 2, "draws": len(few(range(300), 50))}
    columns = (
        "headroom",
        "RMSE",
        "of the five",
        "divergent",
        "steps",
        "least ESS",
        "R-hat",
        "seconds",
    )
    table = Table(f"{options.features} indicators", *columns)

    def add(name: str, weights: Any, diverging: Any, steps: Any, seconds: float) -> None:
        mean = weights.mean(axis=(0, 1))
        chosen = utility[np.arange(len(new)), new.best(new.scores(mean))].mean()
        cells = [(chosen - utility.mean()) / (utility.max(axis=1).mean() - utility.mean())]
        error = mean[1:] - truth
        cells += [np.sqrt(np.mean(e**2)) for e in (error, error[:5])]
        cells += [np.sum(diverging), np.mean(steps), np.min(ess(weights)), np.max(r_hat(weights))]
        table.row(name, *(f"{cell:.3g}" for cell in (*cells, seconds)))

    seconds, _, result = best_time(partial(numpyro_nuts, lists, oracle, **settings))
    add("horseshoe, NumPyro's NUTS", *result, seconds)
    for prior in ("horseshoe", "isotropic"):
        start = with_new_features(lists)
        adapt = partial(bpa.adapt, lists, start, gain=oracle, likelihood="oracle", prior=prior)
        seconds, _, posterior = best_time(
            partial(adapt, sampler=SAMPLERS.resolve("nuts", settings))
        )
        draws = bpa.as_weight_draws(posterior)
        statistics = draws.draws.statistics
        add(
            f"{prior}, nuts", draws.weights, statistics["diverging"], statistics["n_steps"], seconds
        )
        print(bpa.check(posterior), flush=True)


if __name__ == "__main__":
    run_tables(
        __doc__, (shared_table, rich_table, partial_table, sparse_table), draws=10, features=500
    )
