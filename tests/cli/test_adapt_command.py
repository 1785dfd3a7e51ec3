"""`bpa adapt` and `bpa learn-prior`: samplers, likelihoods, priors, several files, judgements."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from support.command_line import refused, succeed
from support.judged_pairs import compared_lists
from support.posteriors import (
    ComponentRecord,
    ObservedRecord,
    name_weights,
    read_weight_draws,
    record_of,
)

import bpa_ppl as bpa
from bpa_ppl import Prior

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-q")
MAP = (*ADAPT, "--sampler", "map", "-o", "new.nc")


def test_an_adaptation_by_python_by_the_command_and_repeated(folder: Path) -> None:
    lists, weights = bpa.read_nbest("nbest", references="ref"), bpa.read_weights("moses.ini")
    names = read_weight_draws("good.nc").features
    prior = bpa.Prior.gaussian(dict.fromkeys(names, 0.25), 0.1 + np.eye(len(names)) / 3)
    prior.write("prior.json")
    chosen = ("--prior", "prior.json", "--seed", 3, "--likelihood", "margin:gamma=3")
    assert succeed(*ADAPT, *chosen, "--sampler", "map", "-o", "./new.nc") == (0, "", "")
    options = {"prior": bpa.Prior.read("prior.json"), "likelihood": "margin:gamma=3", "seed": 3}
    bpa.write_posterior(bpa.adapt(lists, weights, sampler="map", **options), "python.nc")
    assert Path("python.nc").read_bytes() == Path("new.nc").read_bytes()
    like = ("adapt", "nbest", "-r", "ref", "--like", "new.nc", "-o", "again.nc")
    Path("moses.ini").unlink()  # the weights and the prior are in the posterior
    Path("prior.json").unlink()
    assert "the draws are those of new.nc" in succeed(*like).err
    assert Path("again.nc").read_bytes() == Path("new.nc").read_bytes()
    other = ("--seed", 0, "--sampler", "laplace:draws=500")
    assert "other options, sampler, draws, seed" in succeed(*like, *other).err
    record = read_weight_draws("again.nc").record
    assert (record.seed, record.sampler.settings["draws"]) == (0, 500)


def test_fixed_features_and_standard_output(folder: Path) -> None:
    chosen = ("--fixed", "LM0")
    succeed(*MAP, *chosen)
    assert bpa.point_weights(read_weight_draws("new.nc"))["LM0"] == 0.109821
    assert "HDF" in succeed(*MAP, *chosen, "-o", "-").out


@pytest.mark.needs_extras
def test_weight_trace_takes_the_second_set(folder: Path) -> None:
    sampler, likelihood = "weight-trace:restarts=2,delta=20", ("--likelihood", "oracle")
    trace = (*ADAPT, "-o", "new.nc", *likelihood)
    refused(*trace, "--sampler", sampler, mention="weight-trace needs the lists")
    succeed(*trace, "--sampler", f"{sampler},lists=nbest,references=ref")
    draws = read_weight_draws("new.nc")
    assert draws.draws.kind == "weighted"
    assert draws.record.figures.likelihood_exponent == 1 / 20
    expected = {"restarts": 2, "delta": 20, "lists": "nbest", "references": "ref"}
    assert expected.items() <= draws.record.sampler.settings.items()
    succeed("adapt", "nbest", "-r", "ref", "--like", "new.nc", "-o", "again.nc")
    assert Path("again.nc").read_bytes() == Path("new.nc").read_bytes()


def test_several_files_are_as_one(folder: Path) -> None:
    lists = bpa.read_nbest("nbest", references="ref")
    for part, few in enumerate((lists[:5], lists[5:])):
        bpa.write_nbest(bpa.concatenate([few], renumber=True), f"n{part}", format="moses")
        texts = [refs[0] for refs in few.references or ()]
        Path(f"r{part}").write_text("".join(f"{text}\n" for text in texts), "utf-8")
        other = "".join(f"{text.replace('the', 'a')}\n" for text in texts)
        Path(f"other{part}").write_text(other, "utf-8")
    Path("other").write_text("".join(Path(f"other{n}").read_text("utf-8") for n in "01"), "utf-8")
    pool = ("-w", "moses.ini", "--sampler", "map", "-q", "--add", "length:ratio=true", "-o")
    succeed("adapt", "nbest", "-r", "ref", "-r", "other", "-s", "ref", *pool, "whole.nc")
    two = ("-r", "r0,r1", "-r", "other0,other1", "-s", "r0,r1")
    succeed("adapt", "n0", "n1", *two, *pool, "parts.nc")
    np.testing.assert_array_equal(
        read_weight_draws("parts.nc").weights, read_weight_draws("whole.nc").weights
    )


def write_shifted(path: Path, shift: float, out: str, more: bool = False) -> None:
    """Write a posterior of the demo's features, with draws around shifted weights."""
    original = read_weight_draws(path)
    names = (*original.features, *(("LengthWords",) if more else ()))
    mean = np.append(original.canonical, [0.0] * more)  # type: ignore[arg-type]
    variance = np.full(len(names), 0.1)
    rng = np.random.default_rng(len(out))
    drawn = mean + shift + 0.1 * rng.normal(size=(2, 1000, len(names)))
    record = record_of(likelihood=ComponentRecord("oracle"), observed=ObservedRecord(sentences=12))
    constants = {"canonical": mean, "prior_mean": mean, "prior_variance": variance}
    draws = name_weights(drawn, names, constants=constants, record=record)
    bpa.write_posterior(draws, out)


@pytest.fixture
def learned(folder: Path) -> Path:
    """The folder with two posteriors, of which one has a feature more, and a prior of them."""
    write_shifted(folder / "good.nc", 0.2, "talks.nc")
    write_shifted(folder / "good.nc", 0.3, "leaflets.nc", more=True)
    learn = ("learn-prior", "talks.nc", "leaflets.nc", "-o", "prior.json")
    assert "of leaflets alone" in succeed(*learn).err
    return folder


def test_the_file_is_a_prior_and_records_its_domains(learned: Path) -> None:
    prior = Prior.read("prior.json")
    assert prior.names[-1] == "LengthWords"
    record = json.loads((learned / "prior.json").read_text())
    assert list(record["domains"]) == ["talks", "leaflets"]
    assert record["domains"]["talks"]["sentences"] == 12
    canonical = bpa.read_weights("moses.ini")
    assert all(record["canonical"][name] == canonical[name] for name in prior.names[:-1])
    with pytest.warns(bpa.BpaWarning, match="LengthWords"):
        same = bpa.learn_prior(["talks.nc", "leaflets.nc"])
    np.testing.assert_allclose(prior.mean, same.mean)
    np.testing.assert_allclose(prior.covariance, same.covariance)
    done = succeed("learn-prior", "leaflets.nc", "-o", "one.json", "--without", "LengthWords")
    assert "LengthWords" not in (Prior.read("one.json").names or ())
    assert "LengthWords" not in done.err


def test_a_posterior_is_the_prior_of_more_sentences(folder: Path) -> None:
    """Its Gaussian, under any name of the file; the new posterior records it."""
    write_shifted(folder / "good.nc", 0.2, "talks")
    succeed(*MAP, "--prior", "talks")
    lists, weights = bpa.read_nbest("nbest", references="ref"), bpa.read_weights("moses.ini")
    prior = Prior.of(read_weight_draws("talks"))
    bpa.write_posterior(bpa.adapt(lists, weights, prior=prior, sampler="map"), "python.nc")
    assert Path("python.nc").read_bytes() == Path("new.nc").read_bytes()
    Path("talks").unlink()  # the prior is in the new posterior
    succeed("adapt", "nbest", "-r", "ref", "--like", "new.nc", "-o", "again.nc", "-q")
    assert Path("again.nc").read_bytes() == Path("new.nc").read_bytes()


@pytest.mark.needs_extras
def test_answers_are_adapted_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two raters."""
    from support.judge_lists import answer_questions

    monkeypatch.chdir(tmp_path)
    lists = compared_lists(count=12, size=3)
    lists = lists.without("score").with_features(["score"], lists.extras["score"][:, None])
    bpa.write_nbest(lists, "lists.jsonl")
    lists = bpa.read_nbest("lists.jsonl")
    for rater, answer in (("ann", "first"), ("bob", "second")):
        options = {"journal": f"{rater}.jsonl", "rater": rater, "exclude": ["score"]}
        answer_questions(lists, [answer], **options)
    judgements = ("--judgements", "ann.jsonl", "--judgements", "bob.jsonl", "--exclude", "score")
    adapt = ("adapt", "lists.jsonl", "-w", "none", "-o", "posterior.nc", "--sampler", "map")
    adapt += ("--likelihood", "preference:slip=0.05")  # which is fast
    assert "1 pair in common, and agreed on 0" in succeed(*adapt, *judgements).err
    comparisons = read_weight_draws("posterior.nc").adaptation.observed.comparisons
    assert (comparisons["preferences"], comparisons["ties"]) == (2, 0)
