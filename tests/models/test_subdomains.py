"""Latent subdomains: EM against a program of sums, planted subdomains, and going on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
import numpyro
import pytest
from planted import planted
from sklearn.metrics import adjusted_rand_score
from subdomain_program import padded, subdomain_mixture

from bpa_ppl.errors import BpaWarning, DataError, UsageError
from bpa_ppl.models.subdomains import Settings, induce
from bpa_ppl.models.subdomains.expectation_maximisation import Iteration, em
from bpa_ppl.models.subdomains.lexicon import Lexicons
from bpa_ppl.phrases.pairs import Side
from bpa_ppl.phrases.subdomains import NumberedText, Subdomains
from bpa_ppl.text.ibm1 import IBM1
from bpa_ppl.workers import parallel_workers

SIDES: tuple[Side, Side] = ("source", "target")
EXACT = {"em": "soft", "smoothing": "none", "prior": 0.0}
SMALL = planted(3, 40, 0.3, words=9, length=4)[:2]


def histories(texts: tuple[NumberedText, NumberedText], jobs: int = 1, **settings: object) -> list:
    with parallel_workers(jobs, "threads") as team:
        return list(em(*texts, Settings(**settings), team))  # type: ignore[arg-type]


def split(text: NumberedText) -> list[list[str]]:
    own = zip(text.starts[:-1], text.starts[1:], strict=True)
    return [[text.words[n] for n in text.numbers[a:b]] for a, b in own]


def agreement(found: Subdomains, truth: np.ndarray) -> float:
    return float(adjusted_rand_score(truth, found.winners()))


@pytest.mark.parametrize("given", SIDES)
def test_lexicon_of_a_part_is_that_of_ibm1(given: Side) -> None:
    source, target = map(split, planted(2, 150, 0.5, words=30, length=6)[:2])
    source[3], target[5] = [], []
    first, second = (source, target) if given == "source" else (target, source)
    part = [
        n for n in np.flatnonzero(np.random.default_rng(0).random(150) < 0.5) if n not in (3, 5)
    ]
    weights = np.isin(np.arange(150), part).astype(float)
    lexicons = Lexicons(NumberedText.of(source), NumberedText.of(target), 0.0)
    table = lexicons.flat(given)
    for _ in range(3):
        table = lexicons.step(given, table, weights)
    own = [first[n] for n in part], [second[n] for n in part]
    expected = IBM1.estimate(*own, 3).log_probabilities(*own)
    chosen = weights > 0
    found = lexicons.log_probabilities(given, table, chosen)
    np.testing.assert_allclose(found[part], expected, rtol=1e-12)
    assert not found[~chosen].any()


def test_pseudo_counts_are_shared_by_the_lexicon_of_all() -> None:
    source, target = SMALL
    lexicons = Lexicons(source, target, 2.0)
    weights = np.random.default_rng(0).random(len(source))
    table = lexicons.learned("source", [weights])
    plain = lexicons.step("source", lexicons.whole["source"], weights)
    np.testing.assert_allclose(np.bincount(lexicons.words["source"], table[0]), 1.0)
    assert table[1].sum() == pytest.approx(1.0)
    between = np.minimum(plain[0], lexicons.whole["source"][0]) - 1e-12
    assert (between <= table[0]).all()
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(table[0], plain[0])


def tables(found: list[Iteration], step: int, order: int) -> dict[str, np.ndarray]:
    """Return the parameters that the posteriors of a step of EM lead to, counted one by one."""
    k, made = len(found[0].weights), {"weights": found[step].weights}
    for name, text in zip(SIDES, SMALL, strict=True):
        own = padded(text, order)
        counts = np.zeros((k, own.sizes[0], own.sizes[1] + 1))
        rows, places = np.nonzero(own.history >= 0)
        events = own.history[rows, places], own.following[rows, places]
        for z in range(k):
            np.add.at(counts[z], events, found[1].pair_weights(z)[rows])
        made[f"{name}_next"] = counts / np.maximum(counts.sum(2, keepdims=True), 1e-300)
    lexicons = Lexicons(*SMALL, 0.0)
    pairs = lexicons.words["source"], lexicons.words["target"]
    for given, predicted in (SIDES, SIDES[::-1]):
        sizes = {name: len(text.words) for name, text in zip(SIDES, SMALL, strict=True)}
        dense = np.zeros((k, sizes[given] + 1, sizes[predicted]))
        first, second = pairs if given == "source" else pairs[::-1]
        for z in range(k):
            chain = [entry.pair_weights(z, given) for entry in found[1 : step + 1]]
            dense[z][first, second], dense[z][-1] = lexicons.learned(given, chain)
        made[f"{predicted}_given"] = dense
    return made


def program(order: int, k: int) -> Callable:
    """Return the log-likelihood of the NumPyro program, and its slope, given parameters."""
    rectangles = [padded(text, order) for text in SMALL]

    def likelihood(values: dict) -> jax.Array:
        model = numpyro.handlers.substitute(subdomain_mixture, values)
        with numpyro.validation_enabled(False):
            trace = numpyro.handlers.trace(model).get_trace(*rectangles, k)
        site = trace["pairs"]
        return site["fn"].log_prob(site["value"]).sum()

    return jax.jit(jax.value_and_grad(likelihood))


@pytest.mark.parametrize("order", [1, 3])
def test_em_has_the_likelihood_of_the_program(order: int) -> None:
    found = histories(SMALL, k=3, order=order, iterations=2, **EXACT)
    likelihood = program(order, 3)
    for step in (1, 2):
        total, _ = likelihood(tables(found, step, order))
        assert float(total) == pytest.approx(found[step + 1].log_likelihood, rel=1e-6)


def test_em_follows_the_slope_of_the_program() -> None:
    found = histories(SMALL, k=2, order=1, iterations=3, start="random", **EXACT)
    slope_of = program(1, 2)
    assert all((entry.posteriors > 0).all() for entry in found)  # at θ = 0 there is no slope
    for step in (1, 2):
        values, after = tables(found, step, 1), tables(found, step + 1, 1)
        _, slope = slope_of(values)
        for name in ("weights", "target_given", "source_given"):
            # A step of EM: θ ∂L/∂θ, normalised.
            raw = values[name] * np.nan_to_num(np.asarray(slope[name]))
            expected = raw / np.maximum(raw.sum(axis=-1, keepdims=True), 1e-300)
            np.testing.assert_allclose(after[name], expected, atol=2e-6)
            assert abs(after[name] - values[name]).max() > 1e-4


def test_the_likelihood_never_falls() -> None:
    for seed in range(4):
        texts = planted(3, 120, 0.4, seed, words=25, length=6)[:2]
        found = histories(
            texts, k=3, order=2, iterations=6, lm_iterations=6, seed=seed, start="random", **EXACT
        )
        likelihoods = np.array([entry.log_likelihood for entry in found])
        for part in (likelihoods[1:7], likelihoods[7:]):
            assert (np.diff(part) > -1e-9 * abs(part[0])).all()
            assert part[-1] > part[0] + 1


def test_with_pseudo_counts_the_posterior_density_never_falls() -> None:
    texts = planted(3, 120, 0.4, 1, words=25, length=6)[:2]
    found = histories(texts, k=3, iterations=6, em="soft", prior=3.0)
    density = np.array([entry.log_likelihood + entry.log_prior for entry in found[2:]])
    assert (np.diff(density) > -1e-9 * abs(density[0])).all()


@pytest.mark.parametrize("settings", [{}, {"em": "soft", "order": 1}, {"em": "soft", "folds": 4}])
def test_planted_subdomains_are_found(settings: dict) -> None:
    source, target, truth = planted(4, 1000, 0.5)
    found = induce(source, target, 4, **settings)
    assert agreement(found, truth) >= 0.9
    shares = np.bincount(truth) / len(truth)
    np.testing.assert_allclose(np.sort(found.weights), np.sort(shares), atol=0.02)


def test_less_is_found_where_they_differ_less() -> None:
    values = []
    for apart in (0.5, 0.25, 0.02):
        source, target, truth = planted(2, 600, apart)
        values.append(agreement(induce(source, target, 2, order=1), truth))
    assert values[0] > 0.95 > values[1] > 0.5 > 0.1 > values[2]


def test_pairs_that_models_have_not_seen_say_more() -> None:
    source, target, truth = planted(8, 1500, 0.4)
    seen, unseen = (
        agreement(induce(source, target, 8, order=1, folds=folds), truth) for folds in (1, 5)
    )
    assert unseen > seen + 0.02


def test_topics_of_lda_find_them_too() -> None:
    source, target, truth = planted(3, 300, 0.9, length=30)
    found = induce(source, target, 3, induction="lda", side="source")
    assert agreement(found, truth) >= 0.9
    assert not found.hard
    assert found.settings["lower_bound"] < 0


@pytest.mark.parametrize("settings", [{}, {"em": "soft", "folds": 2}])
def test_same_bits_whatever_the_jobs(settings: dict) -> None:
    texts = planted(3, 150, 0.4, words=40)[:2]
    alone, together = (induce(*texts, 3, jobs=jobs, **settings) for jobs in (1, 3))
    assert alone.assignment.tobytes() == together.assignment.tobytes()
    assert alone.settings == together.settings


def test_same_seed_same_bits_another_seed_others() -> None:
    texts = planted(3, 150, 0.1, words=40)[:2]
    first, again, other = (induce(*texts, 3, em="soft", seed=seed) for seed in (1, 1, 2))
    assert first.assignment.tobytes() == again.assignment.tobytes()
    assert first.assignment.tobytes() != other.assignment.tobytes()


class Killed(Exception):
    """What ends an induction in the middle."""


def killer(after: int) -> Callable[[int, int, str], None]:
    def report(done: int, total: int, note: str) -> None:
        assert done <= total
        if done >= after:
            raise Killed

    return report


@pytest.mark.parametrize("mode", ["hard", "soft"])
def test_goes_on_after_the_last_iteration(mode: str, tmp_path: Path) -> None:
    texts = planted(3, 150, 0.4, words=40)[:2]
    whole = induce(*texts, 3, em=mode)
    state = tmp_path / "state"
    # In the first language models, the second ones, and the second and third full iteration.
    for after in (3, 9, 14, 14):
        with pytest.raises(Killed):
            induce(*texts, 3, em=mode, state=state, progress=killer(after))
    done: list[int] = []
    found = induce(*texts, 3, em=mode, state=state, progress=lambda *now: done.append(now[0]))
    assert max(done) == 6 + 1 + 6  # the language models again, the words, the last iteration
    assert found.assignment.tobytes() == whole.assignment.tobytes()
    assert found.settings == whole.settings
    steps: list[str] = []
    induce(*texts, 3, em=mode, state=state, progress=lambda done, total, note: steps.append(note))
    assert steps == ["reading"]  # all is there


def test_a_state_of_something_else_is_put_aside(tmp_path: Path) -> None:
    texts = planted(3, 150, 0.4, words=40)[:2]
    state = tmp_path / "state"
    induce(*texts, 3, state=state)
    with pytest.warns(BpaWarning, match="other settings"):
        found = induce(*texts, 3, state=state, seed=1)
    assert found.assignment.tobytes() == induce(*texts, 3, seed=1).assignment.tobytes()
    state.write_bytes(state.read_bytes()[:500])
    with pytest.warns(BpaWarning, match="damaged"):
        induce(*texts, 3, state=state, seed=1)


def test_more_iterations_go_on_from_fewer(tmp_path: Path) -> None:
    texts = planted(3, 150, 0.4, words=40)[:2]
    state = tmp_path / "state"
    induce(*texts, 3, state=state, iterations=1)
    more = induce(*texts, 3, state=state, iterations=4)
    assert more.assignment.tobytes() == induce(*texts, 3, iterations=4).assignment.tobytes()
    none = induce(*texts, 3, iterations=0)
    assert len(none.settings["log_likelihoods"]) == 1


def test_sides_without_words_and_subdomains_without_pairs() -> None:
    source, target = [["a", "b"], [], ["c"]] * 4, [["x"], ["y"], []] * 4
    with pytest.warns(BpaWarning, match="no sentence pair"):
        found = induce(source, target, 6)
    assert set(found.winners()[::3].tolist()) == {int(found.winners()[0])}


def test_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    source, target = [["a"]] * 5, [["b"]] * 5
    with pytest.raises(DataError, match="the source text: 5 sentences"):
        induce(source, target[:4], 2)
    with pytest.raises(DataError, match="the target text: 1 sentence"):
        induce(source, [["b"], [], [], [], []], 2)
    with pytest.raises(UsageError, match="split the text first"):
        induce(["a"] * 5, target, 2)
    with pytest.raises(UsageError, match="em must be"):
        induce(source, target, 2, em="medium")
    with pytest.raises(UsageError, match="k must be"):
        induce(source, target, 1)
    with pytest.raises(UsageError, match="order"):
        induce(source, target, 2, induction="lda", order=2)
    with pytest.raises(UsageError, match="gibbs"):
        induce(source, target, 2, induction="gibbs")  # type: ignore[arg-type]
    (tmp_path / "fr").write_text("a\nb\n")
    with pytest.raises(DataError, match="fr: 2 sentences"):
        induce(tmp_path / "fr", target, 2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # sockets of the cluster, closed late
def test_a_cluster_brings_the_same_bits() -> None:
    distributed = pytest.importorskip("distributed", reason="needs Dask: install bpa_ppl[dask]")
    texts = planted(3, 150, 0.4, words=40)[:2]
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True
    ) as cluster:
        there = induce(*texts, 3, em="soft", backend="dask", scheduler=cluster.scheduler_address)
    assert there.assignment.tobytes() == induce(*texts, 3, em="soft").assignment.tobytes()
