"""Areas of programs: arguments of any type, command lines, extreme numbers, forks and threads."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from attempts import TEXTS, area, changed, odd_array, odd_value, verdict
from binary_areas import sample_draws
from cyclopts import App
from fuzzing import ACCEPTED, REFUSED, Failure, outcome
from text_areas import sample_lists

from bpa_ppl import (
    NBest,
    Prior,
    adapt,
    add_features,
    as_draws,
    corpus_score,
    gains,
    oracles,
    point_weights,
    rerank,
    write_nbest,
    write_posterior,
    write_weights,
)
from bpa_ppl.models import tabulate
from bpa_ppl.registry import FEATURES, LIKELIHOODS, METRICS, PRIORS, RULES, SAMPLERS, TUNERS
from bpa_ppl.weights import Weights, match

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))

TIMEOUT = 300.0  # seconds for a process of its own, on a busy machine

_LISTS: dict[str, Any] = {
    "texts": [["a cat", "the cat"], ["b"]],
    "features": [[[1.0, 2.0], [0.5, 0.0]], [[3.0, 4.0]]],
    "feature_names": ["LM0", "W"],
    "references": ["the cat", ("b", "c")],
    "totals": [[0.0, 1.0], [2.0]],
    "sources": ["un chat", "b"],
    "extras": {"mqm": [[1, 2], [None]]},
    "sentence_extras": {"doc": ["x", "y"]},
    "sentence_ids": [0, 4],
}
_ARRAYS: dict[str, Any] = _LISTS | {
    "texts": ["a cat", "the cat", "b"],
    "features": [[1.0, 2.0], [0.5, 0.0], [3.0, 4.0]],
    "sizes": [2, 1],
    "totals": [0.0, 1.0, 2.0],
    "extras": {"mqm": [1, 2, None]},
}
_RECORDS: dict[str, Any] = {
    "records": [
        {"id": 0, "text": "a", "lm": 1, "source": "b", "scores": {"tm": 1}},
        {"id": 0, "text": "b", "lm": 2.5, "source": "b", "scores": {"tm": 2}},
    ],
    "references": ["the cat"],
    "sources": ["un chat"],
    "bad": "error",
    "first_id": 0,
}


def _of_lists(method: str, *arguments: Any, **named: Any) -> tuple[Callable[..., Any], Any]:
    """Return a method of lists and its valid arguments by position or name."""
    return (
        lambda args, named: getattr(sample_lists(), method)(*args, **named),
        {"args": list(arguments), "named": named},
    )


def _setting(registry: Any, name: str, **settings: Any) -> tuple[Callable[..., Any], Any]:
    return registry.resolve, {"chosen": name, "settings": settings}


#: Public functions with valid arguments, of which some are replaced.
_CALLS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    *((NBest.from_lists, _LISTS), (NBest.from_lists, _LISTS), (NBest.from_arrays, _ARRAYS)),
    *((NBest.from_arrays, _ARRAYS), (NBest.from_records, _RECORDS), (NBest.from_records, _RECORDS)),
    _of_lists("with_features", ["new"], [[1.0], [2.0], [3.0], [4.0]]),
    _of_lists("with_references", ["a", "b"]),
    _of_lists("with_sources", ["a", "b"]),
    _of_lists("with_extras", mqm=[1, 2, 3, 4]),
    _of_lists("with_sentence_extras", doc=["a", "b"]),
    _of_lists("without", "LM0"),
    _of_lists("without", "references"),
    _of_lists("select", [0, 1]),
    _of_lists("__getitem__", 1),
    _of_lists("truncate", 1),
    _of_lists("scores", {"LM0": 1.0, "W": 0.5}),
    _of_lists("scores", [1.0, 2.0]),
    (Weights, {"values": {"LM0": 1.0, "W": 2.0}}),
    (
        lambda weights, defaults: match(weights, sample_lists(), defaults=defaults),
        {"weights": {"LM0": 1.0, "W": 2.0}, "defaults": {"LM0": 1.0}},
    ),
    (Prior.isotropic, {"weights": {"LM0": 1.0}, "variance": [0.1]}),
    (Prior.gaussian, {"weights": {"LM0": 1.0, "W": 0.0}, "covariance": [[1.0, 0.0], [0.0, 1.0]]}),
    (corpus_score, {"hypotheses": ["a cat"], "references": [("the cat",)], "metric": "ter"}),
    (lambda **given: gains(sample_lists(), **given), {"metric": "ter", "jobs": 1}),
    (lambda **given: oracles(sample_lists(), **given), {"metric": "bleu", "ties": "canonical"}),
    (lambda sources: add_features(sample_lists(), sources), {"sources": ["length", "consensus"]}),
    (lambda oracle: tabulate(sample_lists(), oracle), {"oracle": [0, 1]}),
    (lambda **given: point_weights(sample_draws(), **given), {"point": "mean", "draw": 0}),
    (
        lambda **given: rerank(sample_lists(), sample_draws(), unchecked=True, **given),
        {"rule": "mean", "derivations": "separate", "temperature": 1.0, "draws": 3}
        | {"confidence": True, "defaults": {"W": 1.0}, "moved_files": {}},
    ),
    _setting(SAMPLERS, "imh", draws=100, chains=2),
    _setting(SAMPLERS, "rwm", draws=100, warmup=10),
    _setting(METRICS, "bleu", order=4),
    _setting(RULES, "mbr"),
    _setting(LIKELIHOODS, "margin", gamma=1.0),
    _setting(PRIORS, "isotropic", variance=0.1),
    _setting(TUNERS, "mira", epochs=3),
    _setting(FEATURES, "length", words=True),
]


@area("arguments", 10_382)
def arguments(rng: random.Random, folder: Path) -> str:
    """Public functions and constructors with arguments of other types, shapes and values."""
    function, valid = rng.choice(_CALLS)
    given = dict(valid)
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(list(given))
        odd = rng.choice((odd_value, odd_value, odd_array))
        if name == "args":  # as many as the function has
            given[name] = [changed(value, rng, odd) for value in given[name]]
        elif name in ("named", "settings"):
            given[name] = {key: changed(value, rng, odd) for key, value in given[name].items()}
        else:
            given[name] = changed(given[name], rng, odd)
    return verdict(lambda: function(**given))


# --- command lines -------------------------------------------------------------------------------

_COMMANDS = [
    "weights good.nc -o out.json",
    "weights good.nc --point mode -o out.json",
    "check good.nc",
    "rerank nbest -p good.nc -o out.txt --unchecked",
    "rerank nbest -p good.nc --rule mbr --details out.tsv --unchecked -o out.txt",
    "oracle nbest -r ref -o best.txt",
    "features nbest --add length -o out.jsonl",
    "adapt nbest -r ref -w canonical -o out.nc --sampler map",
    "update good.nc nbest -r ref --unchecked -o out.nc --sampler map",
    "learn-prior good.nc other.nc --unchecked -o prior.json",
    "next good.nc nbest --unchecked -o next.tsv",
    "lm ref -o out.arpa",
    "report good.nc -o out.html",
    "phrases extract ref ref aligned -o table.gz",
    "phrases mix counts counts --value 0.5 -o out.parquet",
    "tune nbest -r ref -w canonical -o out.json --tuner mert",
]
#: Options whose values start processes or take hours as they should.
_LEFT_OUT = {"--jobs", "--scheduler", "--backend", "--decoder", "--help", "--version"}
_WORDS = [
    *("nbest", "ref", "canonical", "good.nc", "other.nc", "none", ".", "/dev/null", "-", "", "out"),
    *("0", "1", "-1", "2", "1.5", "nan", "inf", "1e400", "9" * 30, "1e-300", "x=1", "draws=0", "="),
    *(
        "ter",
        "bleu",
        "imh",
        "map",
        "oracle",
        "risk",
        "length",
        "lm:ref",
        "column",
        "LM0",
        "auto",
        "json",
    ),
    *(
        "{}",
        "[1",
        "%s",
        "a,b",
        "é",
        "--",
        "-q",
        "--seed",
        "prior.json",
        "learned",
        "none.ini",
        "\udce9",
    ),
]


@cache
def _options() -> tuple[str, ...]:
    """Return the options of all commands."""
    from bpa_ppl.cli.app import app

    def inside(group: App) -> Iterator[App]:
        for name in group:
            if not name.startswith("-"):
                yield group[name]
                yield from inside(group[name])

    commands = [one for one in inside(app) if one.default_command is not None]
    shown = [one for command in commands for one in command.assemble_argument_collection()]
    names = {name for one in shown if one.parse for name in one.names}
    return tuple(sorted(n for n in names if n.startswith("-") and n not in _LEFT_OUT))


@area("command lines", 300)
def command_lines(rng: random.Random, folder: Path) -> str:
    """Commands with options and values of other commands, missing, repeated or out of order."""
    from command_line import run

    _write_inputs(folder)
    words = rng.choice(_COMMANDS).split()
    for _ in range(rng.choice((1, 1, 2, 3))):
        place = rng.randrange(1, len(words) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            words[place - 1 :] = words[place:]
        elif kind == 1:
            words[place:place] = [rng.choice(_options())]
        elif kind == 2:
            words[place:place] = [rng.choice(_options()), rng.choice(_WORDS)]
        elif kind == 3 and place < len(words):
            words[place] = rng.choice(_WORDS)
        elif kind == 4:
            words.insert(place, rng.choice([*_WORDS, *(t for t in TEXTS if "\0" not in t)]))
        else:
            words.append(rng.choice(words))
        words = words or ["rerank"]
    with chdir(folder):  # an output may have any name
        ended = outcome(lambda: (run(*words),))
    done = ended[0]
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    if done.code not in (0, 2, 3) or "Traceback" in done.err:
        raise Failure(f"{words}: exit code {done.code}: {done.err[-300:]}")
    if done.code == 2 and len(errors) != 1:
        raise Failure(f"{words}: {len(errors)} errors: {done.err[-300:]}")
    return REFUSED if done.code else ACCEPTED


_REFERENCES, _CANONICAL = ["the cat", "un café noir"], {"LM0": 1.0, "W": 0.5}


def _write_inputs(folder: Path) -> None:
    write_nbest(sample_lists(), folder / "nbest", format="moses")
    (folder / "ref").write_text("".join(f"{line}\n" for line in _REFERENCES), "utf-8")
    (folder / "aligned").write_text("0-0 1-1\n0-0 1-1 2-2\n")
    (folder / "counts").write_text("un ||| a ||| 3\nun ||| one ||| 1\n")
    write_weights(_CANONICAL, folder / "canonical", format="json")
    for seed, name in enumerate(("good.nc", "other.nc")):
        (folder / name).write_bytes(_posterior(seed))


@cache
def _posterior(seed: int) -> bytes:
    """Return the file of a posterior that passes its check."""
    lists = sample_lists().with_references(_REFERENCES)
    with TemporaryDirectory() as folder:
        path = Path(folder, "posterior.nc")
        write_posterior(adapt(lists, _CANONICAL, sampler="imh", seed=seed), path)
        return path.read_bytes()


# --- extreme numbers -----------------------------------------------------------------------------


@area("extreme numbers", 12)
def extreme_numbers(rng: random.Random, folder: Path) -> str:
    """Adaptation to features, weights and priors of any size."""
    numbers = np.random.default_rng(rng.randrange(1000))
    sizes = [rng.choice((1, 2, 5)) for _ in range(rng.choice((1, 4)))]
    columns = rng.choice((1, 2, 3))
    scales = [10.0 ** rng.choice((-45, -30, -8, 0, 0, 0, 8, 30, 38)) for _ in range(columns)]
    with np.errstate(over="ignore"):
        features = [np.float32(numbers.normal(size=(size, columns)) * scales) for size in sizes]
    for table in features:
        if rng.random() < 0.3:
            value = rng.choice((0.0, 3e38, -3e38, 1e-45))
            table[rng.randrange(len(table)), rng.randrange(columns)] = value
    names = [f"f{k}" for k in range(columns)]
    weights = rng.choice(
        [None, "equal", dict.fromkeys(names, rng.choice((0.0, 1.0, 1e-300, 1e30, 1e308, -1.0)))]
    )
    settings: dict[str, Any] = {}
    if rng.random() < 0.5:
        settings["prior_variance"] = rng.choice((1e-300, 1e-30, 1e-3, 1.0, 1e30, 1e300))
    sampler = rng.choice(("map", "laplace", "imh", "auto", "rwm", "heuristic", "nuts"))

    def use() -> None:
        texts = [[f"w{h} x" for h in range(size)] for size in sizes]
        lists = NBest.from_lists(texts, features, names, references=["w0 x"] * len(sizes))
        draws = as_draws(adapt(lists, weights, sampler=sampler, cache=False, **settings))
        rerank(lists, draws, unchecked=True)

    return verdict(use)


# --- processes -----------------------------------------------------------------------------------

_PREPARE = """
import asyncio, multiprocessing, os, sys, threading, warnings
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import bpa_ppl as bpa
warnings.simplefilter("ignore", RuntimeWarning)  # of JAX, about forks

def lists():
    rng = np.random.default_rng(5)
    texts = [[f"w{h} x" for h in range(6)] for _ in range(12)]
    tables = [rng.normal(size=(6, 2)) for _ in range(12)]
    return bpa.NBest.from_lists(texts, tables, ["A", "B"], references=["w0 x"] * 12)

def hierarchy(lists, prior, likelihood):
    import numpyro
    import numpyro.distributions as dist
    base = prior.distribution()
    mean = numpyro.sample("mean", base)
    scale = numpyro.sample("scale", dist.HalfNormal(base.variance**0.5).to_event(1))
    unit = numpyro.sample("unit", dist.Normal(0.0, 1.0).expand((3, 2)).to_event(2))
    domains = mean[None] + scale[None] * unit
    numpyro.deterministic("weights", domains[-1])
    with numpyro.plate("sentence", len(lists.oracle)):
        likelihood.observe(lists, domains[:-1])

def work(kind):
    try:
        if kind == "adapt":
            bpa.adapt(lists(), {"A": 0.1, "B": 0.2}, sampler="imh", draws=50)
        elif kind == "hierarchy":
            domains = lists().with_sentence_extras(domain=list("ab") * 6)
            from bpa_ppl.sampling.nuts import Nuts
            nuts = Nuts(draws=20, warmup=20)
            bpa.adapt(domains, {"A": 0.1, "B": 0.2}, model=hierarchy, sampler=nuts)
        elif kind == "mode":
            bpa.adapt(lists(), {"A": 0.1, "B": 0.2}, sampler="map")
        elif kind == "rerank":
            draws = bpa.Draws({"weights": np.ones((2, 9, 2))}, ("A", "B"))
            bpa.rerank(lists(), draws, unchecked=True)
        elif kind == "check":
            values = np.random.default_rng(0).normal(size=(4, 99, 2))
            bpa.check(bpa.Draws({"weights": values}, ("A", "B")))
        elif kind == "gains":
            bpa.gains(lists(), "ter", cache=False)
        elif kind == "files":
            path = f"{os.getpid()}-{threading.get_ident()}"
            bpa.write_posterior(bpa.Draws({"weights": np.ones((1, 9, 1))}, ("A",)), path)
        elif kind == "prior":
            bpa.Prior.isotropic({"A": 1.0}).distribution().log_prob(np.zeros(1))
        return "accepted"
    except bpa.BpaError as error:
        return "refused"
"""
_FORK = """
def child(queue, kinds):
    queue.put([work(kind) for kind in kinds])

for kind in {before}:
    work(kind)
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
processes = [context.Process(target=child, args=(queue, {after})) for _ in range(2)]
for process in processes:
    process.start()
for process in processes:
    process.join({limit})
codes = [process.exitcode for process in processes]
print(codes, [queue.get() for code in codes if code == 0])
for process in processes:
    process.kill()
"""
_THREADS = """
kinds, barrier = {after}, threading.Barrier(len({after}))

def together(kind):
    barrier.wait()
    return work(kind)

async def all_of_them():
    return await asyncio.gather(*(asyncio.to_thread(work, kind) for kind in kinds))

for kind in {before}:
    work(kind)
if {asynchronous}:
    print([0], [asyncio.run(all_of_them())])
else:
    with ThreadPoolExecutor(len(kinds)) as threads:
        print([0], [list(threads.map(together, kinds))])
"""
_KINDS = ("adapt", "hierarchy", "mode", "rerank", "check", "gains", "files", "prior")


def _process(code: str, folder: Path) -> str:
    """Run a program; return the verdict of what it did, all of which must end."""
    command = [sys.executable, "-c", _PREPARE + code]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"not finished in {TIMEOUT} s") from error
    last = done.stdout.splitlines()[-1:] or [""]
    if done.returncode or not last[0].startswith("[0"):
        raise Failure(f"exit code {done.returncode}: {last[0]} {done.stderr[-300:]}")
    return REFUSED if REFUSED in last[0] else ACCEPTED


@area("forks", 3)
def forks(rng: random.Random, folder: Path) -> str:
    """Processes forked from one that has worked: they work or refuse, and end."""
    before, after = (rng.choices(_KINDS, k=2) for _ in range(2))
    return _process(_FORK.format(before=before, after=after, limit=TIMEOUT / 2), folder)


@area("threads", 3)
def threads(rng: random.Random, folder: Path) -> str:
    """Threads and coroutines that begin at once, in a cold process or a warm one."""
    before = rng.choices(_KINDS, k=rng.choice((0, 0, 1)))
    after = rng.choices(_KINDS, k=rng.choice((2, 4, 8)))
    asynchronous = rng.random() < 0.5
    code = _THREADS.format(before=before, after=after, asynchronous=asynchronous)
    return _process(code, folder)
