"""`bpa adapt`: samplers, likelihoods, priors, several files of lists, temperature."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import refused, run, succeed

import bpa_ppl as bpa
from bpa_ppl.models import Margin
from bpa_ppl.posterior import read_draws

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-q")
MAP = (*ADAPT, "--sampler", "map", "-o", "new.nc")


def adapted(**options: object) -> bpa.Draws:
    """What the library finds on the same files."""
    lists = bpa.read_nbest("nbest", references="ref")
    return bpa.as_draws(bpa.adapt(lists, bpa.read_weights("moses.ini"), sampler="map", **options))


def test_the_posterior_is_that_of_the_library(folder: Path) -> None:
    np.testing.assert_array_equal(read_draws("good.nc").mean, adapted().mean)
    likelihood = ("--likelihood", "margin:gain_scale=ranked,unit=2")
    succeed(*MAP, *likelihood, "--prior", "isotropic:variance=0.3")
    ours = read_draws("new.nc")
    margin = Margin(gain_scale="ranked", unit=2.0)
    theirs = adapted(likelihood=margin, prior_variance=0.3)
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    assert ours.attrs["likelihood"] == theirs.attrs["likelihood"]


def test_settings_reach_the_sampler(folder: Path) -> None:
    chosen = ("--sampler", "heuristic", "--seed", 3, "--set", "draws=30", "--set", "delta=50")
    done = succeed(*ADAPT[:-1], "-o", "new.nc", *chosen)
    assert (done.out, "heuristic" in done.err) == ("", True)
    draws = read_draws("new.nc")
    assert draws.weights.shape[:2] == (1, 31)
    assert {"draws": 30, "delta": 50}.items() <= draws.attrs["settings"].items()
    assert draws.attrs["seed"] == 3


def test_fixed_features_default_weights_and_standard_output(folder: Path) -> None:
    weights = Path("moses.ini").read_text("utf-8").replace("LM0= 0.109821", "")
    Path("moses.ini").write_text(weights, "utf-8")
    chosen = ("--default", "LM0=0.25", "--fixed", "LM0")
    succeed(*MAP, *chosen)
    assert bpa.point_weights(read_draws("new.nc"))["LM0"] == 0.25
    assert "HDF" in succeed(*MAP, *chosen, "-o", "-").out


def test_weight_trace_takes_the_second_set(folder: Path) -> None:
    published = ("--sampler", "weight-trace", "--likelihood", "oracle")
    trace = (*ADAPT, "-o", "new.nc", *published)
    refused(*trace, mention="weight-trace needs the lists")
    extra = ("--extra", "nbest", "--extra-references", "ref")
    succeed(*trace, *extra, "--set", "restarts=2", "--set", "delta=20")
    draws = read_draws("new.nc")
    assert (draws.kind, draws.attrs["extra"]) == ("weighted", "nbest")
    assert draws.attrs["likelihood_exponent"] == 1 / 20
    assert {"restarts": 2, "delta": 20}.items() <= draws.attrs["settings"].items()


@pytest.mark.parametrize(
    ("options", "mention"),
    [
        (("--sampler", "gibbs"), "gibbs"),
        (("--set", "draws"), "'draws' (--set)"),
        (("--sampler", "rwm", "--set", "draws=many"), "many"),
        (("--default", "LM0=big"), "'big' (--default)"),
        (("--likelihood", "margin:gamma"), "'gamma' (--likelihood)"),
        (("--likelihood", "risk:gain_scale=rank"), "gain_scale"),
        (("--likelihood", "pairs:exponent=0"), "exponent"),
        (("--preset", "paper"), "paper"),
        (("--prior", "none.json"), "none.json: "),
        (("--extra", "nbest"), "--extra-references"),
        (("--no-sentences",), "(--no-sentences)"),
    ],
    ids=" ".join,
)
def test_options_that_cannot_be_used(folder: Path, options: tuple[str, ...], mention: str) -> None:
    refused(*MAP, *options, mention=mention)


def divide(name: str, first: int, prefix: str) -> None:
    """Cut a file in two: its first lines or lists, and the rest."""
    lines = Path(name).read_text("utf-8").splitlines(keepends=True)
    of = [int(line.split(" ||| ")[0]) if " ||| " in line else n for n, line in enumerate(lines)]
    for part in (0, 1):
        kept = [line for n, line in zip(of, lines, strict=True) if (n >= first) == part]
        Path(f"{prefix}{part}").write_text("".join(kept), "utf-8")


@pytest.fixture
def pools(folder: Path) -> Path:
    """The lists in two files, `n0` and `n1`, with ids of their own, and `r0` and `r1`."""
    divide("nbest", 5, "n")
    divide("ref", 5, "r")
    rest = [line.partition(" ||| ") for line in Path("n1").read_text("utf-8").splitlines(True)]
    Path("n1").write_text("".join(f"{int(n) - 5}{mark}{end}" for n, mark, end in rest), "utf-8")
    return folder


POOL = ("-w", "moses.ini", "--sampler", "map", "-q", "-o")


def test_several_files_are_as_one(pools: Path) -> None:
    for part in "01":
        text = Path(f"r{part}").read_text("utf-8").replace("the", "a")
        Path(f"other{part}").write_text(text, "utf-8")
    Path("other").write_text("".join(Path(f"other{n}").read_text("utf-8") for n in "01"), "utf-8")
    add = ("--add", "length:ratio=true")
    one = ("-r", "ref", "-r", "other", "-s", "ref", *add)
    two = ("-r", "r0,r1", "-r", "other0,other1", "-s", "r0,r1", *add)
    succeed("adapt", "nbest", *one, *POOL, "whole.nc")
    succeed("adapt", "n0", "n1", *two, *POOL, "parts.nc")
    np.testing.assert_array_equal(read_draws("parts.nc").weights, read_draws("whole.nc").weights)


@pytest.mark.parametrize(
    ("arguments", "mention"),
    [
        (("n0", "n1", "-r", "ref"), "2 files of n-best lists"),
        (("n0", "n1", "-r", "r0,r1", "-s", "r0"), "(--sources)"),
        (("n0", "n1", "-r", "r0,r1,ref"), "r0,r1,ref (--references)"),
        (("n0", "n1", "-r", "r1,r0"), "r1"),
        (("n0", "none", "-r", "r0,r1"), "none: no such file"),
        (("n0", "fewer", "-r", "r0,r1"), "LM0"),
        (("n0", "n1"), "(--references)"),
    ],
)
def test_files_that_do_not_go_together(
    pools: Path, arguments: tuple[str, ...], mention: str
) -> None:
    Path("fewer").write_text(Path("n1").read_text("utf-8").replace("LM0=", "LM1="), "utf-8")
    refused("adapt", *arguments, *POOL, "parts.nc", mention=mention)


@pytest.fixture
def compared(folder: Path) -> Path:
    """The folder, with lists whose candidates with more of `kiwi` were preferred, as a rule."""
    rng = np.random.default_rng(4)
    for name, first in (("first", 0), ("second", 40)):
        lines = []
        for s in range(first, first + 40):
            kiwi, noise = rng.normal(size=(2, 3)).round(3).tolist()
            ranking = np.argsort(-(kiwi + rng.logistic(size=3) / 2)).tolist()
            candidates = [
                {"id": label, "text": f"{s} {label}", "kiwi": k, "noise": n}
                for label, k, n in zip("ABC", kiwi, noise, strict=True)
            ]
            given = {"preferences": [["ABC"[k] for k in ranking[::2]]], "rankings": [ranking[:2]]}
            lines.append(json.dumps({"id": s, **given, "candidates": candidates}))
        (folder / f"{name}.jsonl").write_text("\n".join([*lines, ""]))
    return folder


PREFERENCES = ("adapt", "first.jsonl", "-w", "none", "-o", "p.nc")


def test_preferences_without_references_or_weights(compared: Path) -> None:
    succeed(*PREFERENCES, "--sampler", "laplace")
    before = read_draws("p.nc")
    assert before.attrs["likelihood"]["name"] == "preference"
    counts = {"lists": 40, "preferences": 40, "ties": 0, "rankings": 40}
    assert before.attrs["comparisons"] == counts
    assert before.mean[0] > 2 * before.deviation[0]
    succeed("rerank", "second.jsonl", "-p", "p.nc", "-o", "out", "--first-id", 40)
    lists = bpa.read_nbest("second.jsonl")
    best = lists.chosen(lists.best(lists.features[:, 0]))
    assert np.mean(np.array(Path("out").read_text().splitlines()) == best) > 0.8


def test_preferences_with_settings_of_the_likelihood(compared: Path) -> None:
    succeed(*PREFERENCES, "--likelihood", "preference:slip=0.1,nu=0.5", "--sampler", "map")
    recorded = read_draws("p.nc").attrs["likelihood"]
    assert recorded == {"name": "preference", "slip": 0.1, "nu": 0.5}
    text = Path("first.jsonl").read_text()
    Path("first.jsonl").write_text(text.replace('"rankings": [[', '"rankings": [[7, ', 1))
    refused(*PREFERENCES, mention="first.jsonl: rankings[0] of sentence 0")


@pytest.mark.parametrize(
    ("command", "given", "suggested"),
    [
        ("adapt", ("--draws", "200"), "--set draws=200"),
        ("adapt", ("--proposal-variance=0.5",), "--set proposal_variance=0.5"),
        ("tune", ("--epochs", "3"), "--set epochs=3"),
        ("compare", ("--draws", "200"), "--set SAMPLER.draws=200"),
    ],
)
def test_a_setting_given_as_an_option(command: str, given: tuple[str, ...], suggested: str) -> None:
    done = run(command, "lists", "-w", "w", "-o", "o", *given)
    assert done.code == 2
    assert suggested in " ".join(done.err.split())
    assert "--set" not in run(command, "lists", "--drawn", "200").err
