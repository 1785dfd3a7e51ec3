"""Each subcommand does its job, with results and messages where they belong."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import typer
from command_line import run

import bpa_ppl
from bpa_ppl.cli import options
from bpa_ppl.cli.app import app
from bpa_ppl.formats.base import ReadOptions, Rows
from bpa_ppl.formats.moses import Moses
from bpa_ppl.options import AdaptOptions, RerankOptions
from bpa_ppl.posterior import import_arviz
from bpa_ppl.registry import METRICS, NBEST_FORMATS, RULES, SAMPLERS, TUNERS, Registry

ADAPT = ("adapt", "nbest", "-r", "ref", "-w", "moses.ini")
SENTENCES = 12  # in the lists of the fixture


def lines(text: str) -> int:
    return text.count("\n")


def test_adapt_writes_the_posterior_of_the_library(folder: Path) -> None:
    ours = bpa_ppl.adapt(
        bpa_ppl.read_nbest("nbest", references="ref"),
        bpa_ppl.read_weights("moses.ini"),
        sampler="map",
    )
    np.testing.assert_array_equal(
        bpa_ppl.read_posterior("good.nc")["posterior"]["weights"], ours["posterior"]["weights"]
    )


@pytest.mark.parametrize(
    ("sampler", "settings", "shape"),
    [
        ("rwm", {"draws": 20, "warmup": 10, "chains": 2}, (2, 20)),
        ("heuristic", {"draws": 30, "delta": 50}, (1, 31)),
    ],
)
def test_settings_reach_the_sampler(
    folder: Path, sampler: str, settings: dict[str, int], shape: tuple[int, int]
) -> None:
    chosen = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    done = run(*ADAPT, "-o", "new.nc", "--sampler", sampler, *chosen)
    assert done.code == 0
    assert done.out == ""
    assert sampler in done.err
    posterior = import_arviz().from_netcdf("new.nc")
    assert posterior["posterior"]["weights"].shape[:2] == shape
    assert settings.items() <= json.loads(posterior.attrs["settings"]).items()


def test_the_same_seed_gives_the_same_posterior(folder: Path) -> None:
    draws = []
    for name, seed in (("a.nc", 3), ("b.nc", 3), ("c.nc", 4)):
        few = ("--set", "draws=8", "--sampler", "heuristic", "--seed", seed)
        assert run(*ADAPT, "-o", name, "-q", *few).code == 0
        draws.append(bpa_ppl.read_posterior(name)["posterior"]["weights"].values)
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])


def test_fixed_features_and_default_weights(folder: Path) -> None:
    weights = Path("moses.ini").read_text("utf-8").replace("LM0= 0.109821", "")
    Path("moses.ini").write_text(weights, "utf-8")
    choice = ("--default", "LM0=0.25", "--fixed", "LM0", "--sampler", "map")
    assert run(*ADAPT, "-o", "new.nc", "-q", *choice).code == 0
    assert bpa_ppl.point_weights(bpa_ppl.read_posterior("new.nc"))["LM0"] == 0.25


def test_a_posterior_to_standard_output(folder: Path) -> None:
    done = run(*ADAPT, "-o", "-", "-q", "--sampler", "map")
    assert done.code == 0
    assert "HDF" in done.out


def test_check_prints_the_verdict(folder: Path) -> None:
    good, poor = run("check", "good.nc"), run("check", "poor.nc")
    assert (good.code, poor.code) == (0, 3)
    assert "NOT converged" not in good.out
    assert "rwm, 2 chains × 10 draws: NOT converged" in poor.out


def test_check_as_json(folder: Path) -> None:
    done = run("check", "poor.nc", "--json")
    told = json.loads(done.out)
    assert (done.code, told["passed"], told["draws"]) == (3, False, 10)
    assert {"R-hat", "bulk ESS"} <= {finding["name"] for finding in told["findings"]}


def test_rerank_to_a_file(folder: Path) -> None:
    done = run("rerank", "nbest", "-p", "good.nc", "-o", "out", "--details", "table", "-q")
    assert done == (0, "", "")
    texts = Path("out").read_text("utf-8").splitlines()
    rows = [row.split("\t") for row in Path("table").read_text("utf-8").splitlines()]
    translation = rows[0].index("translation")
    assert len(texts) == SENTENCES
    assert [row[translation] for row in rows[1:]] == texts


def test_rerank_from_standard_input_to_standard_output(folder: Path) -> None:
    given = Path("nbest").read_text("utf-8")
    piped = run("rerank", "-", "-p", "good.nc", stdin=given)
    named = run("rerank", "nbest", "-p", "good.nc", "-o", "-")
    assert piped.code == named.code == 0
    assert piped.out == named.out
    assert lines(piped.out) == SENTENCES
    assert f"of {SENTENCES} translations changed" in piped.err


def test_rerank_scores_where_there_are_references(folder: Path) -> None:
    apart = run("rerank", "nbest", "-p", "good.nc", "-r", "ref", "-o", "out", "-q")
    mixed = run("rerank", "nbest", "-p", "good.nc", "-r", "ref", "-q")
    assert "TER" in apart.out
    assert lines(mixed.out) == SENTENCES
    assert apart.out == mixed.err


@pytest.mark.parametrize("rule", ["viterbi", "map", "mean"])
def test_all_rules_agree_with_a_single_draw(folder: Path, rule: str) -> None:
    predictive = run("rerank", "nbest", "-p", "good.nc")
    assert run("rerank", "nbest", "-p", "good.nc", "--rule", rule).out == predictive.out


def test_weights_for_the_decoder(folder: Path) -> None:
    assert run("weights", "good.nc", "-o", "new.ini", "--template", "moses.ini").code == 0
    assert run("weights", "good.nc", "-o", "new.json").code == 0
    dense = run("weights", "good.nc", "-o", "-")
    assert dense.err == ""
    Path("dense").write_text(dense.out, "utf-8")
    written = [dict(bpa_ppl.read_weights(name)) for name in ("new.ini", "new.json", "dense")]
    free = [value for name, value in written[0].items() if name != "UnknownWordPenalty0"]
    assert written[1] == written[2] == pytest.approx(written[0], abs=1e-12)
    assert np.abs(free).sum() == pytest.approx(1)


def test_weights_rerank_like_the_posterior(folder: Path) -> None:
    run("weights", "good.nc", "-o", "new.json")
    lists = bpa_ppl.read_nbest("nbest")
    weights = bpa_ppl.read_weights("new.json")
    best = lists.best(lists.scores([weights[name] for name in lists.feature_names]))
    assert run("rerank", "nbest", "-p", "good.nc").out.splitlines() == lists.chosen(best)


def test_oracle_scores_and_texts(folder: Path) -> None:
    shown = run("oracle", "nbest", "-r", "ref", "-w", "moses.ini")
    mixed = run("oracle", "nbest", "-r", "ref", "-w", "moses.ini", "-o", "-", "-q")
    assert shown.out.split()[:3] == ["TER", "BLEU", "length"]
    values = [float(row.split()[1]) for row in shown.out.splitlines()[1:4]]
    assert values[1] < values[0] < values[2]
    assert lines(mixed.out) == SENTENCES
    assert "anti-oracle" in mixed.err
    own = bpa_ppl.corpus_score(mixed.out.splitlines(), bpa_ppl.read_references("ref"), "ter")
    assert own.value == pytest.approx(values[1], abs=0.01)


def test_bad_hypotheses_can_be_dropped(folder: Path) -> None:
    text = Path("nbest").read_text("utf-8").replace("WordPenalty0= -", "WordPenalty0= nan-", 1)
    Path("nbest").write_text(text, "utf-8")
    done = run("rerank", "nbest", "-p", "good.nc", "--bad", "drop")
    assert done.code == 0
    assert lines(done.out) == SENTENCES
    assert "note: nbest: 1 hypothesis dropped" in done.err


@pytest.mark.parametrize(
    ("command", "option", "registry"),
    [
        ("adapt", "sampler", SAMPLERS),
        ("adapt", "metric", METRICS),
        ("rerank", "format", NBEST_FORMATS),
        ("rerank", "rule", RULES),
        ("tune", "tuner", TUNERS),
    ],
)
def test_help_names_every_choice(command: str, option: str, registry: Registry) -> None:
    """Names are compared as words: `rwm` is a part of `rwm-isotropic`."""
    shown = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    (text,) = [p.help for p in shown.params if p.name == option]
    assert set(registry) <= set(re.findall(r"[\w+-]+", text))


@pytest.mark.parametrize(("command", "kind"), [("adapt", AdaptOptions), ("rerank", RerankOptions)])
def test_the_options_of_a_command_are_those_of_python(command: str, kind: type) -> None:
    shown = {p.name: p for p in typer.main.get_command(app).commands[command].params}  # type: ignore[attr-defined]
    library = {field.name: field for field in fields(kind)}
    python_only = {"oracle", "extra", "model", "confidence", "progress"}
    assert set(library) - python_only <= set(shown)
    assert {"model", "progress", "oracle", "confidence"}.isdisjoint(shown)
    for name in set(library) & set(shown) - {"settings", "extra"}:
        assert shown[name].default == library[name].default, name
        assert shown[name].help


@pytest.mark.parametrize(("command", "kind"), [("adapt", AdaptOptions), ("rerank", RerankOptions)])
def test_defaults_are_those_of_the_library(command: str, kind: type) -> None:
    def run_command(options: kind) -> None:  # type: ignore[valid-type]
        assert options == kind()

    run_command.__annotations__["options"] = kind
    wrapped = options.expanded(run_command)
    wrapped(**{n: p.default for n, p in inspect.signature(wrapped).parameters.items()})


@pytest.mark.parametrize("function", ["read_nbest", "iter_nbest"])
def test_reading_options_are_arguments_of_the_library(function: str) -> None:
    theirs = inspect.signature(getattr(bpa_ppl, function)).parameters
    ours = options.Reading().arguments()
    assert ours == {name: theirs[name].default for name in ours}


READERS = ("adapt", "calibrate", "compare", "oracle", "rerank", "tune")


@pytest.mark.parametrize("command", READERS)
def test_all_commands_have_the_same_reading_options(command: str) -> None:
    shown = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    found = {p.name: p.opts for p in shown.params}
    assert found["first_id"] == ["--first-id"]
    assert found["bad"] == ["--bad"]
    assert found["format"] == ["--format"]


def test_reading_options_reach_the_reader(folder: Path) -> None:
    plain = run("rerank", "nbest", "-p", "good.nc")
    assert run("rerank", "nbest", "-p", "good.nc", "--format", "moses").out == plain.out
    refused = run("rerank", "nbest", "-p", "good.nc", "--format", "xml")
    assert (refused.code, refused.out) == (2, "")
    assert "unknown format of n-best lists 'xml': choose one of auto, fairseq" in refused.err
    late = run("rerank", "nbest", "-p", "good.nc", "--first-id", "1")
    assert "sentence id 0 is below the first id, 1" in late.err


def test_plain_text_with_scores(folder: Path) -> None:
    lists = bpa_ppl.read_nbest("nbest").truncate(2).without("totals")
    settings = "plain:list_size=2,scores=scores.txt"
    bpa_ppl.write_nbest(lists, "plain", format=settings)
    bpa_ppl.write_nbest(lists, "cut")
    given = ("--list-size", 2, "--scores", "scores.txt")
    same = ("rerank", "-p", "good.nc", "--unchecked")
    assert run(*same, "plain", *given).out == run(*same, "cut").out != ""
    assert run(*same, "plain", "--format", settings).out == run(*same, "cut").out
    for wrong, message in [
        (("--scores", "scores.txt"), "--scores goes with --list-size"),
        (
            ("--list-size", 2, "--format", "csv"),
            "--list-size is for plain text, and --format is csv",
        ),
        (("--list-size", 0), "(--list-size)"),
        (("--list-size", 7), "is not a multiple of 7"),
    ]:
        refused = run(*same, "plain", *wrong)
        assert refused.code == 2
        assert message in refused.err


class Shouted(Moses, frozen=True):
    """Lists as Moses prints them, read in upper case."""

    def parse(self, blocks: Iterable[bytes], options: ReadOptions) -> Iterator[Rows]:
        for rows in super().parse(blocks, options):
            yield rows._replace(strings=[text.upper() for text in rows.strings])


def test_a_custom_format_on_the_command_line(folder: Path) -> None:
    plain = run("rerank", "nbest", "-p", "good.nc")
    NBEST_FORMATS.register("shouted", Shouted)
    try:
        upper = run("rerank", "nbest", "-p", "good.nc", "--format", "shouted")
    finally:
        del NBEST_FORMATS._members["shouted"]
    assert upper.out == plain.out.upper() != plain.out


def test_values_of_settings() -> None:
    given = ["draws=200", "delta=2.5", "start=mode", "name=a=b"]
    expected = {"draws": 200, "delta": 2.5, "start": "mode", "name": "a=b"}
    assert options.assignments(given, "--set") == expected
