"""`bpa adapt`: samplers, likelihoods, priors, several files of lists, temperature."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from support.command_line import refused, succeed

import bpa_ppl as bpa
from bpa_ppl.models.likelihoods.margin import Margin
from bpa_ppl.posterior.files import read_draws

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini", "-q")
MAP = (*ADAPT, "--sampler", "map", "-o", "new.nc")


def test_an_adaptation_by_python_by_the_command_and_repeated(folder: Path) -> None:
    lists, weights = bpa.read_nbest("nbest", references="ref"), bpa.read_weights("moses.ini")
    names = read_draws("good.nc").features
    prior = bpa.Prior.gaussian(dict.fromkeys(names, 0.25), 0.1 + np.eye(len(names)) / 3)
    prior.write("prior.json")
    chosen = ("--prior", "prior.json", "--seed", 3, "--likelihood", "margin:gamma=3")
    assert succeed(*ADAPT, *chosen, "--sampler", "map", "-o", "./new.nc") == (0, "", "")
    options = {"prior": bpa.Prior.read("prior.json"), "likelihood": Margin(gamma=3), "seed": 3}
    bpa.write_posterior(bpa.adapt(lists, weights, sampler="map", **options), "python.nc")
    assert Path("python.nc").read_bytes() == Path("new.nc").read_bytes()
    like = ("adapt", "nbest", "-r", "ref", "--like", "new.nc", "-o", "again.nc")
    Path("moses.ini").unlink()  # the weights and the prior are in the posterior
    Path("prior.json").unlink()
    assert "the draws are those of new.nc" in succeed(*like).err
    assert Path("again.nc").read_bytes() == Path("new.nc").read_bytes()
    other = ("--seed", 0, "--sampler", "laplace", "--draws", "500", "--timed")
    assert "other options, sampler, draws, seed" in succeed(*like, *other).err
    record = read_draws("again.nc").record
    assert (record.seed, record.sampler.settings["draws"]) == (0, 500)
    assert record.sampler.seconds > 0


def test_fixed_features_default_weights_and_standard_output(folder: Path) -> None:
    weights = Path("moses.ini").read_text("utf-8").replace("LM0= 0.109821", "")
    Path("moses.ini").write_text(weights, "utf-8")
    chosen = ("--default", "LM0=0.25", "--fixed", "LM0")
    succeed(*MAP, *chosen)
    assert bpa.point_weights(read_draws("new.nc"))["LM0"] == 0.25
    assert "HDF" in succeed(*MAP, *chosen, "-o", "-").out


def test_weight_trace_takes_the_second_set(folder: Path) -> None:
    published = ("--sampler", "weight-trace:restarts=2,delta=20", "--likelihood", "oracle")
    trace = (*ADAPT, "-o", "new.nc", *published)
    refused(*trace, mention="weight-trace needs the lists")
    extra = ("--extra", "nbest", "--extra-references", "ref")
    succeed(*trace, *extra)
    draws = read_draws("new.nc")
    assert (draws.kind, draws.record.sampler.extra) == ("weighted", "nbest")
    assert draws.record.figures.likelihood_exponent == 1 / 20
    assert {"restarts": 2, "delta": 20}.items() <= draws.record.sampler.settings.items()


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
    np.testing.assert_array_equal(read_draws("parts.nc").weights, read_draws("whole.nc").weights)
