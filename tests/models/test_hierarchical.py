"""Weights by domain: against NumPyro's own sampler, the pooled and the separate posteriors."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpyro
import pytest
from numpyro.infer import MCMC, NUTS
from support.command_line import refused, succeed
from support.moment_checks import assert_equal_moments
from support.posteriors import name_weights, recorded_comparison
from support.raising import raises
from support.targets import starting_at_zero

import bpa_ppl as bpa
from bpa_ppl import (
    BpaWarning,
    DataError,
    NBest,
    Prior,
    UsageError,
    WeightDraws,
    from_arrays,
    from_lists,
)
from bpa_ppl.extending import log_linear, observe, prepare
from bpa_ppl.models.likelihoods.oracle import Oracle
from bpa_ppl.models.log_linear import hierarchical

NAMES = ("judge a", "judge b")
#: Customers with opposite opinions of the second judge.
WEIGHTS = {"bank": (1.0, 1.5), "shop": (1.0, -1.5), "zoo": (1.0, 0.0)}
PRIOR = Prior.isotropic(dict.fromkeys(NAMES, 0.0), 1.0)
NUTS_DRAWS: dict[str, Any] = {"sampler": "nuts:draws=500,chains=2", "prior": PRIOR}


def pairs(count: int, seed: int = 0, domains: Any = WEIGHTS) -> NBest:
    """Return that many pairs of each domain, with the choices of its customers."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(list(domains), count)
    scores = rng.normal(size=(len(owner), 2, 2))
    lead = scores[:, 0] - scores[:, 1]
    odds = (lead * [WEIGHTS[name] for name in owner]).sum(axis=1)
    first = rng.random(len(owner)) < 1 / (1 + np.exp(-2 * odds))
    lists = from_arrays(["a", "b"] * len(owner), scores.reshape(-1, 2), NAMES, 2)
    gain = np.stack([first, ~first], axis=1).ravel().astype(float)
    return lists.with_sentence_extras(domain=owner.tolist()).with_extras(gain=gain)


def accuracy(posterior: Any, lists: NBest) -> float:
    """Return the share of right choices."""
    choice = bpa.rerank(lists, posterior, unchecked=True).choice
    return float(lists.extras["gain"][lists.offsets[:-1] + choice].mean())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with 40 pairs of each customer, new ones, and the posterior, by the command."""
    folder = tmp_path_factory.mktemp("customers")
    for name, lists in {"judged": pairs(40), "new": pairs(12, seed=1)}.items():
        file, gain = folder / f"{name}.jsonl", lists.extras["gain"][:, None]
        bpa.write_nbest(lists.without("gain").with_features(["gain"], gain), file)
    (folder / "zero.json").write_text(json.dumps(dict.fromkeys(NAMES, 0.0)))
    options = ("-w", folder / "zero.json", "--gain", "gain", "--prior", "isotropic:variance=1")
    options += ("-q", "--model", "hierarchical", "--sampler", "nuts:draws=1000,chains=2")
    with starting_at_zero():
        succeed("adapt", folder / "judged.jsonl", *options, "-o", folder / "post.nc")
    return folder


@pytest.fixture(scope="module")
def posterior(folder: Path) -> WeightDraws:
    return bpa.as_weight_draws(bpa.read_posterior(folder / "post.nc"))


@pytest.mark.slow
def test_each_domain_has_the_weights_of_its_customers(posterior: WeightDraws) -> None:
    assert posterior.domains == tuple(WEIGHTS)
    assert bpa.check(posterior)
    for name, truth in WEIGHTS.items():
        own = posterior.of_domain(name)
        # The scores of a pair are multiplied by 2 in the simulation.
        assert np.all(np.abs(own.mean - 2 * np.array(truth)) < 4 * own.deviation)
    bank, shop = (posterior.of_domain(name).mean[1] for name in ("bank", "shop"))
    assert bank > 0.5 > -0.5 > shop
    test = pairs(200, seed=1)
    options: dict[str, Any] = {"prior": PRIOR, "sampler": "laplace"}
    pooled = bpa.adapt(pairs(40), gain="gain", likelihood="oracle", **options)
    assert accuracy(posterior, test) > accuracy(pooled, test) + 0.08


@pytest.mark.slow
def test_the_moments_are_those_of_numpyro(posterior: WeightDraws) -> None:
    lists = pairs(40)
    observed = observe(prepare(lists, gain="gain", likelihood="oracle"))
    options: dict[str, Any] = {"progress_bar": False, "chain_method": "sequential"}
    mcmc = MCMC(NUTS(hierarchical), num_warmup=500, num_samples=1500, num_chains=2, **options)
    with jax.enable_x64(True):
        mcmc.run(jax.random.key(3), observed.table(domains=True), PRIOR, Oracle())
        reference = mcmc.get_samples(group_by_chain=True)
    for name in ("shared", "scale", "own", "weights"):
        assert_equal_moments(posterior.draws.values[name], reference[name], 200, name)


@pytest.mark.slow
def test_no_chain_of_nuts_is_stuck() -> None:
    """With this seed a pilot sample takes the posterior for a Gaussian, whose step is too long."""
    stages: list[str] = []
    options: dict[str, Any] = {"prior": PRIOR, "model": "hierarchical"}
    options |= {"sampler": "auto:draws=300,chains=2", "seed": 4}
    options |= {"progress": lambda done, total, note: stages.append(note)}
    draws = bpa.as_weight_draws(bpa.adapt(pairs(40), gain="gain", likelihood="oracle", **options))
    assert draws.record.figures.chosen == "nuts"
    assert draws.record.figures.chosen_because.endswith("are several vectors")
    order = ["nuts: pilot sample", "nuts: compiling", "nuts: warm-up", "nuts: draws"]
    first = [next(k for k, n in enumerate(stages) if n.startswith(o)) for o in order]
    assert first == sorted(first)
    assert np.mean(draws.draws.statistics["acceptance_rate"]) > 0.8
    assert np.mean(draws.draws.statistics["diverging"]) < 0.02


@pytest.mark.slow
def test_predictions_by_leave_one_out_are_those_of_the_domain(posterior: WeightDraws) -> None:
    """Of pairs, p without a list is the harmonic mean of p over the draws."""
    lists = pairs(40)
    names, gain = lists.sentence_extras["domain"], lists.extras["gain"].reshape(-1, 2)
    features = lists.features.reshape(-1, 2, 2).astype(np.float64)
    difference = (features[:, 0] - features[:, 1]) * np.where(gain[:, :1] > 0.5, 1, -1)
    recorded = recorded_comparison(posterior)
    found = np.array(recorded.predictions)[:, 0]
    for place, name in enumerate(names):
        p = 1 / (1 + np.exp(-posterior.of_domain(name).flat @ difference[place]))
        # Only 1000 draws are used; those with the smallest p are smoothed.
        assert found[place] == pytest.approx(1 / np.mean(1 / p), abs=0.03)
    assert abs(accuracy(posterior, lists) - np.mean(found > 0.5)) < 0.05


def test_a_promised_agreement_is_kept_in_new_lists_of_the_domains(posterior: WeightDraws) -> None:
    new = pairs(400, seed=5)
    result = bpa.rerank(new, posterior, agree=0.85, unchecked=True)
    right = new.extras["gain"][new.offsets[:-1] + result.choice]
    assert 0.2 < result.sure.mean() < 1
    assert right[result.sure].mean() > 0.83


def test_blocks_of_mixed_domains_and_workers_choose_the_same() -> None:
    rng = np.random.default_rng(0)
    weights, own = rng.normal(1, 0.1, (2, 50, 2)), rng.normal(1, 1, (2, 50, 3, 2))
    coords = {"domain": tuple(WEIGHTS)}
    draws = name_weights(weights, NAMES, values={"own": own}, coords=coords)
    sizes = rng.integers(1, 4, 3000)
    texts = [list("abc"[:size]) for size in sizes]
    features = [rng.normal(size=(size, 2)) for size in sizes]
    names = rng.choice([*WEIGHTS, "museum"], len(sizes)).tolist()
    lists = from_lists(texts, features, NAMES).with_sentence_extras(domain=names)
    with pytest.warns(BpaWarning, match="the domain 'museum' is new") as warned:
        together = bpa.rerank(lists, draws, unchecked=True)
    assert len(warned) == 1
    for name in set(names):
        places = np.flatnonzero(np.array(names) == name)
        weights = draws.flat if name == "museum" else draws.of_domain(name).flat
        plain = name_weights(weights[None], NAMES)
        alone = bpa.rerank(lists.select(places).without("domain"), plain, unchecked=True)
        assert alone.choice.tolist() == together.choice[places].tolist()
        p = np.concatenate([together[place] for place in places])
        assert p == pytest.approx(alone.probabilities)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-3, 30.0])
def test_between_the_pooled_and_the_separate_posteriors(scale: float) -> None:
    """Tiny differences give the pooled posterior, and huge ones the separate posteriors."""

    def with_scale(lists: Any, prior: Any, likelihood: Any) -> None:
        numpyro.handlers.condition(hierarchical, {"scale": scale})(lists, prior, likelihood)

    with_scale.dims = hierarchical.dims
    lists, variance = pairs(30, domains=("bank", "shop")), 1.0 if scale < 1 else 0.01
    options: dict[str, Any] = {**NUTS_DRAWS, "gain": "gain", "likelihood": "oracle"}
    options["prior"] = Prior.isotropic(dict.fromkeys(NAMES, 0.0), variance)
    found = bpa.as_weight_draws(bpa.adapt(lists, model=with_scale, **options))
    options["prior"] = Prior.isotropic(dict.fromkeys(NAMES, 0.0), variance * (1 + scale**2))
    for name in ("bank", "shop"):
        others = lists if scale < 1 else lists[:30] if name == "bank" else lists[30:]
        other = bpa.as_weight_draws(bpa.adapt(others, model=log_linear, **options))
        own = found.of_domain(name)
        assert np.all(np.abs(own.mean - other.mean) < 0.2 * other.deviation)
        assert own.deviation == pytest.approx(other.deviation, rel=0.2)


def test_lists_of_mixed_and_of_new_domains(posterior: WeightDraws) -> None:
    test = pairs(20, seed=2)
    mixed = test.select(np.random.default_rng(0).permutation(len(test)))
    together = bpa.rerank(mixed, posterior, unchecked=True)
    reranker = bpa.Reranker(posterior, unchecked=True)
    for place, name in enumerate(mixed.sentence_extras["domain"]):
        rows = mixed.rows(place)
        alone = reranker.choose(mixed.texts(place), mixed.features[rows], domain=name)
        assert alone.position == together.choice[place]
        assert alone.probability == pytest.approx(together.probability[place])
    with pytest.warns(BpaWarning, match="no domain is named"):
        bpa.rerank(test.without("domain"), posterior, unchecked=True)


def test_weights_of_a_new_domain_vary_as_those_of_the_others(posterior: WeightDraws) -> None:
    """Their variance is that of the shared ones, and the expected one between domains."""
    shared = posterior.draws.values["shared"].reshape(-1, 2)
    scale = posterior.draws.values["scale"].reshape(-1, 1)
    expected = shared.var(axis=0) + (scale**2).mean()
    assert posterior.flat.var(axis=0) == pytest.approx(expected, rel=0.2)


def test_files_and_the_command_line(
    folder: Path, posterior: WeightDraws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert posterior.domains == tuple(WEIGHTS)
    texts = succeed("rerank", "new.jsonl", "-p", "post.nc", "--unchecked").out.splitlines()
    new = bpa.read_nbest("new.jsonl")
    assert texts == list(bpa.rerank(new, posterior, unchecked=True).texts)
    # A file of fewer draws is read in a fraction of the time.
    few = {name: values[:, ::10] for name, values in posterior.draws.values.items()}
    parts = {name: {} for name in ("warmup", "statistics", "log_prior", "log_likelihood")}
    draws = replace(posterior.draws, values=few, log_density=None, **parts)
    bpa.write_posterior(draws, tmp_path / "few.nc")
    weights = ("weights", tmp_path / "few.nc", "--unchecked", "-o", "-", "--format", "json")
    assert "weights of a new domain: name one of bank, shop, zoo" in succeed(*weights).err
    bank = succeed(*weights, "--domain", "bank")
    assert "new domain" not in bank.err
    assert bank.out != succeed(*weights, "--domain", "shop").out
    refused(*weights, "--domain", "museum", mention="unknown domain 'museum'")
    rerank = ("rerank", "new.jsonl", "-p", tmp_path / "few.nc", "--unchecked")
    refused(*rerank, "--rule", "map", mention="the mode of the weights of a domain")
    assert "of 36 choices are sure" in succeed(*rerank, "--agree", 0.75).err


def test_what_makes_no_sense_is_refused(posterior: WeightDraws) -> None:
    with raises(DataError, "missing-column", parameter="domain"):
        bpa.adapt(pairs(5).without("domain"), gain="gain", model="hierarchical")
    with pytest.raises(DataError, match="the posterior domain 1: its model has no Gaussian prior"):
        bpa.learn_prior([posterior])
    with raises(UsageError, "unknown-name", parameter="model"):
        bpa.adapt(pairs(5), gain="gain", model="linear")


@pytest.mark.slow
def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "groups.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    exec(code, {})
    printed = capsys.readouterr().out
    assert "converged" in printed
    assert "NOT converged" not in printed
    assert "Weights({'large': " in printed
