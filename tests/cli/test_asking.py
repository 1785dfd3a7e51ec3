"""`bpa rerank --ask`, `bpa judge` and `bpa adapt --judgements`: choose, or ask a person."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from support.command_line import refused, succeed
from support.extras import require_extras
from support.posteriors import name_weights, read_weight_draws
from support.raising import raises

import bpa_ppl as bpa
from bpa_ppl import DataError, Reranker, UsageError, from_lists
from bpa_ppl.cli import options as shared

JUDGES = ["good", "fair"]
RERANK = ("rerank", "new.jsonl", "-p", "posterior.nc", "-o", "chosen.txt")


def write_pairs(name: str, count: int, seed: int, *, answered: bool) -> None:
    """Write pairs with two judges; a person prefers the larger weighted sum."""
    rng = np.random.default_rng(seed)
    tables = rng.normal(size=(count, 2, 2)).round(3)
    logit = (tables[:, 0] - tables[:, 1]) @ np.array([3.0, 1.0])
    first = rng.random(count) < 1 / (1 + np.exp(-logit))
    texts = [[f"{seed} {number} {letter}" for letter in "ab"] for number in range(count)]
    extras = {"id": [f"{seed}-{number}" for number in range(count)]}
    if answered:
        extras["preferences"] = [[[0, 1] if is_first else [1, 0]] for is_first in first]
    lists = from_lists(texts, tables, JUDGES, sources=["?"] * count, sentence_extras=extras)
    bpa.write_nbest(lists.with_extras(system=["a", "b"] * count), name)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with answered pairs, new pairs, and a posterior; `folder` is a copy of it."""
    folder = tmp_path_factory.mktemp("asking")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_pairs("pairs.jsonl", 100, 1, answered=True)
        write_pairs("new.jsonl", 60, 2, answered=False)
        adapt = ("adapt", "pairs.jsonl", "-w", "none", "--sampler", "laplace:draws=1000", "-q")
        adapt += ("--prior", "isotropic:variance=4,mean=0")  # of which nothing is learned
        succeed(*adapt, "-o", "posterior.nc")
    return folder


@pytest.fixture
def reranker(folder: Path) -> Reranker:
    return Reranker("posterior.nc", ask_below=0.8)


def test_answers_that_the_lists_have_are_not_among_the_questions(folder: Path) -> None:
    """They would count as if they had been given again."""
    write_pairs("new.jsonl", 60, 2, answered=True)
    succeed(*RERANK, "--ask-below", "0.8", "--ask", "unsure.jsonl")
    lists = bpa.read_nbest("unsure.jsonl")
    assert (set(lists.sentence_extras), set(lists.extras)) == ({"id"}, {"system"})


def test_from_choices_to_questions_and_back(folder: Path) -> None:
    ask = ("--agree", "0.85", "--ask", "unsure.jsonl", "--details", "details.jsonl")
    printed = succeed(*RERANK, *ask).err
    details = [json.loads(line) for line in Path("details.jsonl").read_text().splitlines()]
    unsure = [row["id"] for row in details if not row["sure"]]
    assert 0 < len(unsure) < 60
    assert min(row["probability"] for row in details if row["sure"]) > max(
        row["probability"] for row in details if not row["sure"]
    )
    assert f"{60 - len(unsure)} of 60 choices are sure" in printed
    assert "bpa judge unsure.jsonl -p posterior.nc -o answers.jsonl" in printed
    assert len(Path("chosen.txt").read_text().splitlines()) == 60

    lists, new = bpa.read_nbest("unsure.jsonl"), bpa.read_nbest("new.jsonl")
    assert list(lists.ids) == unsure
    assert lists.feature_names == tuple(JUDGES)
    same = new.select([new.ids.index(identifier) for identifier in unsure])
    assert [lists.texts(s) for s in range(len(lists))] == [same.texts(s) for s in range(len(same))]
    np.testing.assert_array_equal(lists.features, same.features)

    require_extras()
    from support.judge_lists import answer_questions

    options = {"journal": "answers.jsonl", "prior": shared.parse_prior("posterior.nc")}
    session = answer_questions(lists, ("first", "second", "first"), **options)
    asked = {judgement.id for judgement in session.judgements}
    assert len(asked) == 3
    files = ("pairs.jsonl", "unsure.jsonl", "--judgements", "answers.jsonl")
    succeed("adapt", *files, "--like", "posterior.nc", "-o", "updated.nc", "-q")
    updated = read_weight_draws("updated.nc").adaptation.observed
    assert updated.comparisons["lists"] == 100 + len(asked)


@pytest.mark.needs_extras
def test_judgements_about_another_file_are_refused(folder: Path) -> None:
    from support.judge_lists import answer_questions

    answer_questions(bpa.read_nbest("new.jsonl"), ["first"], journal="answers.jsonl")
    write_pairs("other.jsonl", 5, 3, answered=True)
    files = ("pairs.jsonl", "other.jsonl", "--judgements", "answers.jsonl")
    refused("adapt", *files, "-w", "none", "-o", "updated.nc", mention="new.jsonl")


@pytest.mark.parametrize(
    ("options", "mention"),
    [
        (("--ask", "unsure.txt", "--agree", "0.9"), "unsure.txt"),
        (("--agree", "0.9", "--rule", "map"), "rule map"),
    ],
)
def test_an_agreement_that_cannot_be_promised_is_an_error(
    folder: Path, options: tuple[str, ...], mention: str
) -> None:
    refused(*RERANK, *options, mention=mention)


def test_one_list(reranker: Reranker) -> None:
    far, near = {"good": [0.0, 3.0], "fair": [0.0, 1.0]}, {"good": [0.0, 0.1], "fair": [0.0, 0.0]}
    assert reranker.choose(["a", "b"], far).sure is True
    assert reranker.choose(["a", "b"], near).sure is False
    assert pickle.loads(pickle.dumps(reranker)).choose(["a", "b"], far).sure is True
    assert Reranker(reranker.draws).choose(["a", "b"], far).sure is None
    assert reranker.choose(["a"], {"good": [1.0], "fair": [1.0]}).sure is True


def test_lists_of_three_are_refused(reranker: Reranker) -> None:
    lists = from_lists([["a", "b"], ["a", "b", "c"]], [[[0.0, 1.0]] * 2, [[0.0, 1.0]] * 3], JUDGES)
    with raises(DataError, "not-supported", parameter="ask_below", match="list 1 has 3"):
        reranker(lists)


def test_computed_features_are_not_written(folder: Path) -> None:
    lists = bpa.read_nbest("pairs.jsonl")
    prior = "isotropic:variance=4,mean=0"  # of which nothing is learned
    posterior = bpa.adapt(lists, None, prior=prior, categorical="system", sampler="laplace")
    reranker = Reranker(posterior, ask_below=0.9)
    new = bpa.read_nbest("new.jsonl")
    bpa.write_posterior(posterior, "p.nc")
    asked = ("--ask", "unsure.jsonl", "--ask-below", "0.9")
    succeed("rerank", "new.jsonl", "-p", "p.nc", "-o", "chosen.txt", *asked)
    again = bpa.read_nbest("unsure.jsonl")
    assert len(again) > 0
    assert again.feature_names == tuple(JUDGES)
    sure = reranker(new).sure
    assert sure is not None
    assert again.ids == tuple(np.array(new.ids)[~sure])
    # The same lists are asked about again.
    assert not reranker(again).sure.any()  # type: ignore[union-attr]


def test_a_posterior_without_predictions_is_refused() -> None:
    draws = name_weights(np.ones((1, 4, 2)), tuple(JUDGES))
    with raises(UsageError, "not-supported", parameter="ask_below"):
        Reranker(draws, unchecked=True, ask_below=0.9)
