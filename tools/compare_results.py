"""Compare the results of two versions of the package, to the bit.

    python tools/compare_results.py store build/results.json.gz      # before a change
    python tools/compare_results.py compare build/results.json.gz    # after it

More than 120 configurations of `adapt`, `rerank`, the readers, the tuners, the estimator and the
command line run on the data of the demo and on simulated lists, and hashes of what each returns are
stored: draws, records, choices, probabilities, texts, printed output and messages. The second run
prints every part that differs, with the beginning of the texts, and ends with exit code 1 if any
does. Results are equal to the bit only on the same machine with the same packages, so the hashes
are not part of the repository. `--only TEXT` selects configurations by a part of their names.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

import bpa_ppl as bpa
from bpa_ppl._runtime.messages import capture_notes
from bpa_ppl.cli.app import run_command
from bpa_ppl.extras.judging.session import Session
from bpa_ppl.extras.tuning.reestimation import reestimate
from bpa_ppl.extras.tuning.weight_trace import WeightTrace
from bpa_ppl.features.lm import LanguageModel
from bpa_ppl.models.likelihoods.oracle import Margin
from bpa_ppl.models.priors.isotropic import Isotropic
from bpa_ppl.posterior.record import to_attributes
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.sklearn import BayesianRanker
from bpa_ppl.weight_draws import as_weight_draws
from bpa_ppl.weights import StartingWeights

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "examples" / "demo_data"
#: Records of a posterior that differ between runs or versions.
VOLATILE = {"sampling_time", "compilation_time", "versions", "machine", "created_at", "observed"}
#: Fewer draws than the default save time.
SMALL = {"draws": 200, "chains": 4}
Results = dict[str, Any]

# The lists


@cache
def leaflet() -> bpa.NBest:
    """Moses lists with references."""
    lists = bpa.read_nbest(DEMO / "leaflet.nbest100.gz", references=DEMO / "leaflet.ref")
    return lists.truncate(20)


@cache
def canonical() -> bpa.Weights:
    """The canonical weights of the leaflet."""
    return bpa.read_weights(DEMO / "moses.ini")


@cache
def recipes(part: str) -> bpa.NBest:
    """Samples of an LLM with references."""
    requests = f"requests={DEMO}/recipes.{part}.requests.jsonl"
    return bpa.read_nbest(
        DEMO / f"recipes.{part}.answers.jsonl",
        references=DEMO / f"recipes.{part}.ref",
        format=f"openai:{requests},source=Translate: (.*)",
    )


@cache
def judged(seed: int = 0) -> bpa.NBest:
    """Candidates of six systems with four metrics and a judgement, some of them without it."""
    rng = np.random.default_rng(seed)
    count, systems = 40, list("abcdef")
    skill = np.linspace(0.0, 1.0, len(systems))
    quality = skill + rng.normal(size=(count, len(systems)))
    metrics = quality[..., None] + rng.normal(size=(*quality.shape, 4)) * [0.5, 1.0, 2.0, 4.0]
    gain = np.round(quality + 0.3 * rng.normal(size=quality.shape), 1)
    texts = [[f"text {s} of {name}" for name in systems] for s in range(count)]
    return bpa.from_lists(
        texts,
        list(np.concatenate([metrics, gain[..., None]], axis=2)),
        ["kiwi", "comet", "length", "noise", "gain"],
        extras={"system": [systems] * count},
        sentence_extras={"domain": ["news" if s % 2 else "talks" for s in range(count)]},
    )


@cache
def partly_judged() -> bpa.NBest:
    """The same with a third of the judgements missing."""
    lists = judged()
    gain = lists.features[:, lists.feature_names.index("gain")]
    return lists.without("gain").with_extras(
        gain=np.where(np.arange(len(gain)) % 3 == 1, np.nan, gain)
    )


@cache
def compared(kind: str) -> bpa.NBest:
    """Lists of four with simulated answers: pairs, ties, rankings, or of several raters."""
    rng = np.random.default_rng(7)
    size = 2 if kind == "two" else 4
    features = rng.normal(size=(60, size, 3))
    utility = features @ [1.5, -1.0, 0.0] + rng.gumbel(size=(60, size))
    order = np.argsort(-utility, axis=1).tolist()
    pairs: list[Any] = [[[o[0], o[-1]]] for o in order]
    extras: dict[str, Any] = {"preferences": pairs}
    if kind == "ties":
        extras["preferences"] = [p if s % 4 else None for s, p in enumerate(pairs)]
        extras["ties"] = [None if s % 4 else p for s, p in enumerate(pairs)]
    if kind == "rankings":
        extras = {"rankings": [[o] if s % 2 else [[o[0], o[1:]]] for s, o in enumerate(order)]}
    if kind == "raters":
        names = ["ann", "bob"]
        extras["preferences"] = [
            [{"candidates": pair[0][:: -1 if rng.random() < 0.2 else 1], "rater": names[s % 2]}]
            for s, pair in enumerate(pairs)
        ]
    if kind == "weighted":
        extras["preferences"] = [
            [{"candidates": pair[0], "weight": 0.5 + s % 3}] for s, pair in enumerate(pairs)
        ]
    texts = [[f"answer {s} {k}" for k in range(size)] for s in range(60)]
    lists = bpa.from_lists(texts, list(features), ["quality", "length", "noise"])
    return lists.with_sentence_extras(**extras)


# What a configuration returns


def describe(posterior: Any) -> Results:
    """Return the parts of a posterior."""
    draws = as_weight_draws(posterior)
    recorded = to_attributes(draws.record)
    record = {name: value for name, value in recorded.items() if name not in VOLATILE}
    if record.pop("canonical_weights") != "canonical":
        record |= {"canonical_weights": draws.adaptation.start, "rule": "mean"}
    arrays = {f"draws {site}": values for site, values in draws.draws.values.items()}
    check = bpa.check(posterior)
    return {
        **arrays,
        "log density": draws.draws.log_density,
        "log-likelihood": draws.draws.log_likelihood,
        "constants": {name: np.asarray(v) for name, v in draws.draws.constants.items()},
        "record": json.dumps(record, default=str, sort_keys=True),
        "check": str(check),
    }


def adapt(
    lists: bpa.NBest,
    weights: Any = None,
    new: bpa.NBest | None = None,
    rule: str | None = None,
    **options: Any,
) -> Results:
    """Adapt, and choose from other lists."""
    if options.get("sampler") not in {"map", "laplace"} and "preset" not in options:
        options["sampler"] = with_few_draws(options.get("sampler", "auto"))
    posterior = bpa.adapt(lists, weights, **options)
    chosen = bpa.Reranker(posterior, unchecked=True, rule=rule)(new or lists)
    return {
        **describe(posterior),
        "choice": chosen.choice,
        "probability": chosen.probabilities,
        "texts": "\n".join(chosen.texts),
    }


def with_few_draws(sampler: Any) -> Sampler:
    """Return a sampler with fewer draws than its default, if it has this setting."""
    engine = SAMPLERS.resolve(sampler)
    few = {name: number for name, number in SMALL.items() if hasattr(engine, name)}
    return structs.replace(engine, **few)


def estimate(**settings: Any) -> Results:
    """Fit the estimator."""
    rng = np.random.default_rng(1)
    x, qid = rng.normal(size=(120, 3)), np.repeat(np.arange(30), 4)
    y = np.round(x @ [1.0, 0.5, 0.0] + rng.normal(size=120), 1)
    ranker = BayesianRanker(random_state=0, **settings).fit(x, y, qid=qid)
    proba, score = ranker.predict_proba(x, qid=qid), ranker.score(x, y, qid=qid)
    return {"coef": ranker.coef_, "proba": proba, "score": np.array(score)}


def tune(tuner: str, **options: Any) -> Results:
    """Re-estimate weights."""
    result = reestimate(leaflet()[:30], canonical(), tuner=tuner, **options)
    return {"weights": json.dumps(dict(result.weights)), "text": str(result)}


def read(format: str, lines: str | None = None, **options: Any) -> Results:
    """Read lists back that were written in a format, or lines of a format that is only read."""
    with empty_folder() as folder:
        path = folder / f"lists.{format}"
        if lines is None:
            lists = leaflet()[:10] if format in {"moses", "marian", "plain"} else judged()[:10]
            bpa.write_nbest(lists, path, canonical() if format == "moses" else None, format=format)
        else:
            path.write_text(lines, "utf-8")
        return describe_lists(bpa.read_nbest(path, format=format, **options))


def describe_lists(lists: bpa.NBest) -> Results:
    """Return the parts of lists."""
    return {
        "features": lists.features,
        "names": "\n".join(lists.feature_names),
        "offsets": lists.offsets,
        "ids": "\n".join(map(str, lists.ids)),
        "texts": "\n".join(text for s in range(len(lists)) for text in lists.texts(s)),
        "totals": lists.totals,
        "extras": json.dumps({n: list(v) for n, v in lists.extras.items()}, default=str),
        "sentence extras": json.dumps(
            {n: list(v) for n, v in lists.sentence_extras.items()}, default=str
        ),
        "references": json.dumps(list(lists.references or ()), default=str),
    }


@contextlib.contextmanager
def empty_folder() -> Iterator[Path]:
    """Make a folder that has the same path in each run, because messages and recipes name it."""
    folder = Path(tempfile.gettempdir()) / "compare-results"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def command(*words: str) -> Results:
    """Run commands in an empty folder, one after the other; `;` separates them."""
    printed, errors, files = io.StringIO(), list[str](), Results()
    here = Path.cwd()
    with empty_folder() as folder:
        os.chdir(folder)
        try:
            write_inputs(folder)
            inputs = {path.name for path in folder.iterdir()}
            for line in " ".join(words).split(" ; "):
                with contextlib.redirect_stdout(printed):
                    try:
                        run_command(line.split())
                    except bpa.BpaError as error:
                        errors.append(f"{line}: {type(error).__name__}: {error}")
            for path in sorted(folder.iterdir()):
                if path.name not in inputs and path.suffix in {".txt", ".jsonl", ".json", ".ini"}:
                    files[path.name] = path.read_text("utf-8")
        finally:
            os.chdir(here)
    return {"printed": printed.getvalue(), "errors": "\n".join(errors), **files}


def write_inputs(folder: Path) -> None:
    """Write the files that commands read."""
    new = bpa.concatenate([leaflet()[30:50]], renumber=True)
    for name, lists in (("adapt", leaflet()[:30]), ("new", new)):
        bpa.write_nbest(lists, folder / f"{name}.nbest", canonical())
        references = "\n".join(r[0] for r in lists.references or ())
        (folder / f"{name}.ref").write_text(f"{references}\n", "utf-8")
    bpa.write_nbest(judged(), folder / "judged.jsonl")
    bpa.write_nbest(judged(1), folder / "new.jsonl")
    bpa.write_nbest(compared("pairs"), folder / "compared.jsonl")
    bpa.write_weights(canonical(), folder / "weights.json")
    (folder / "domain.txt").write_bytes((DEMO / "leaflet.domain.txt").read_bytes())
    (folder / "broken.nbest").write_text("0 ||| a ||| LM0= 1 ||| 1\n1 ||| b ||| LM0= x ||| 2\n")


# The configurations


def by_domain(lists: Any, prior: Any, likelihood: Any) -> None:
    """Weights of two domains around shared ones."""
    import jax.numpy as jnp
    import numpyro
    import numpyro.distributions as dist

    shared = numpyro.sample("shared", prior.distribution())
    own = numpyro.sample("own", dist.Normal(jnp.stack([shared, shared]), 0.4).to_event(2))
    numpyro.deterministic("weights", own[0])
    with numpyro.plate("sentence", len(lists.oracle)):
        likelihood.observe(lists, own)


FAIRSEQ = """S-0\tein haus
H-0\t-0.5\ta house
D-0\t-0.5\ta house
P-0\t-0.4 -0.6
H-0\t-0.9\tthe house
D-0\t-0.9\tthe house
P-0\t-0.8 -1.0
"""
KALDI = "utt1-1 3.5 the cat\nutt1-2 4 a cat\nutt2-1 2 dogs\nutt2-2 2.5 the dogs\n"
RESPONSE = {
    "choices": [
        {"index": i, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for i, text in enumerate(["the cat", "a cat"])
    ]
}


def of_moses() -> Iterator[tuple[str, Callable[[], Results]]]:
    """Lists of a decoder, with canonical weights."""
    run = partial(adapt, leaflet()[:30], canonical(), leaflet()[30:50])
    for likelihood in ("oracle", "margin", "risk", "pairs"):
        for ties in ("canonical", "shared"):
            chosen = f"{likelihood}:ties={ties}"
            yield f"moses {likelihood} {ties}", partial(run, likelihood=chosen)
        for gain in ("bleu", "chrf", "ter+bleu", "wer"):
            yield f"moses {likelihood} {gain}", partial(run, likelihood=likelihood, gain=gain)
    for sampler in ("imh", "nuts", "rwm", "laplace", "map", "heuristic", "rwm-isotropic"):
        for likelihood in ("oracle", "margin"):
            yield (
                f"moses {sampler} {likelihood}",
                partial(run, sampler=sampler, likelihood=likelihood),
            )
    yield "moses numpyro:HMC", partial(run, sampler="numpyro:HMC")
    for preset in ("published", "published-2010"):
        yield f"moses {preset}", partial(run, preset=preset)
    yield "moses weight-trace", partial(run, sampler=WeightTrace(leaflet()[60:80]))
    for rule in ("predictive", "viterbi", "map", "mean", "mbr"):
        yield f"moses rule {rule}", partial(run, sampler="laplace", rule=rule)
    options: Mapping[str, Mapping[str, Any]] = {
        "variance": {"prior": "isotropic:variance=0.5"},
        "variances": {"prior": Isotropic(variance={"LM0": 2.0})},
        "prior only": {"likelihood": "none"},
        "features": {"exclude": ["Distortion0"]},
        "gamma": {"likelihood": Margin(gamma=1.0)},
        "horseshoe": {"prior": "horseshoe"},
        "language model": {"add": [LanguageModel(text=str(DEMO / "leaflet.domain.txt"))]},
        "consensus": {"add": ["consensus", "length"]},
        "own model": {"model": by_domain},
        "seed": {"seed": 5},
    }
    for name, chosen in options.items():
        yield f"moses {name}", partial(run, **chosen)
    fixed = StartingWeights(canonical(), fixed=["LM0"])
    yield "moses fixed", partial(adapt, leaflet()[:30], fixed, leaflet()[30:50])
    yield "moses pretrained prior", learned_prior
    yield "moses prior of a posterior", prior_of
    yield "moses repeated options", repeated


def learned_prior() -> Results:
    """Learn a prior from two parts, and adapt with it."""
    parts = [bpa.adapt(leaflet()[s : s + 20], canonical(), sampler="laplace") for s in (60, 80)]
    return adapt(leaflet()[:20], canonical(), prior=bpa.learn_prior(parts))


def prior_of() -> Results:
    """Adapt with a posterior as the prior."""
    first = bpa.adapt(leaflet()[:20], canonical(), sampler="laplace")
    return adapt(leaflet()[20:40], canonical(), prior=bpa.Prior.of(first))


def repeated() -> Results:
    """Adapt to the same lists with the options that a posterior records."""
    first = bpa.adapt(leaflet()[:20], canonical(), likelihood="risk", sampler="laplace", seed=3)
    weights, options = bpa.recorded_options(first)
    return {**describe(bpa.adapt(leaflet()[:20], weights, **options)), "options": str(options)}


def of_judged() -> Iterator[tuple[str, Callable[[], Results]]]:
    """Lists of neural systems with judgements, and samples of an LLM with references."""
    run = partial(adapt, judged(), new=judged(1), gain="gain")
    for likelihood in ("oracle", "margin", "risk", "pairs"):
        yield f"judged {likelihood}", partial(run, likelihood=likelihood)
        yield (
            f"judged {likelihood} equal weights",
            partial(run, weights="equal", likelihood=likelihood),
        )
        yield (
            f"judged {likelihood} systems",
            partial(run, likelihood=likelihood, categorical=["system"]),
        )
        yield (
            f"partly judged {likelihood}",
            partial(adapt, partly_judged(), None, judged(1), gain="gain", likelihood=likelihood),
        )
    for sampler in ("imh", "nuts", "rwm", "laplace", "map"):
        yield f"judged {sampler}", partial(run, sampler=sampler)
        yield f"judged {sampler} systems", partial(run, sampler=sampler, categorical=["system"])
    yield "judged horseshoe", partial(run, prior="horseshoe")
    yield "judged own model", partial(run, model=by_domain)
    yield "judged lower", partial(run, StartingWeights("equal", lower_is_better=["length"]))
    yield "judged variance", partial(run, prior="isotropic:variance=0.04")
    yield "judged ten lists", partial(adapt, judged()[:10], None, judged(1), gain="gain")
    samples = partial(adapt, recipes("adapt"), new=recipes("new"))
    for gain in ("chrf", "ter", "bleu"):
        yield f"samples {gain}", partial(samples, gain=gain)
        yield (
            f"samples {gain} consensus",
            partial(samples, gain=gain, add=["consensus", "length"]),
        )
    samples = partial(samples, weights=StartingWeights(pretrained=False))
    yield "samples not pretrained", partial(samples, add=["consensus", "length"])


def of_answers() -> Iterator[tuple[str, Callable[[], Results]]]:
    """Preferences between candidates."""
    for kind in ("two", "pairs", "ties", "rankings", "raters", "weighted"):
        lists = compared(kind)
        for sampler in ("auto", "laplace", "nuts"):
            yield f"answers {kind} {sampler}", partial(adapt, lists, sampler=sampler)
    lists = compared("ties")
    for likelihood in ("preference:slip=0.1", "preference:nu=0.5"):
        yield f"answers {likelihood}", partial(adapt, lists, likelihood=likelihood)
    yield "answers equal weights", partial(adapt, compared("pairs"), "equal")
    yield "answers session", session


def session() -> Results:
    """Answer twenty questions as a rater who prefers the larger quality."""
    lists = compared("pairs").without("preferences")
    asked = Session(lists, seed=1)
    for _ in range(20):
        rows = [
            lists.offsets[question.sentence] + c
            for question in [asked.next()]
            for c in question.candidates
        ]
        better = int(np.argmax(lists.features[rows, 0]))
        asked.answer(("first", "second")[better])
    return {
        "mean": asked.weights.mean,
        "covariance": asked.weights.covariance,
        "choices": asked.choices(),
    }


def of_files() -> Iterator[tuple[str, Callable[[], Results]]]:
    """Formats of files."""
    for format in ("jsonl", "tsv", "csv", "parquet", "moses"):
        yield f"read {format}", partial(read, format)
    yield "read fairseq", partial(read, "fairseq", FAIRSEQ)
    yield "read kaldi", partial(read, "kaldi", KALDI)
    yield "read openai", partial(read, "openai", json.dumps(RESPONSE) + "\n")
    yield "read samples", partial(describe_lists, recipes("adapt"))


def of_tools() -> Iterator[tuple[str, Callable[[], Results]]]:
    """Tuners, the estimator, and the command line."""
    for tuner in ("mert", "mira", "pro"):
        for metric in ("bleu", "ter"):
            yield f"tune {tuner} {metric}", partial(tune, tuner, gain=metric, seed=1)
    yield "estimator", estimate
    yield "estimator nuts", partial(estimate, sampler="nuts")
    yield "estimator pairs", partial(estimate, likelihood="pairs")
    yield "estimator equal", partial(estimate, weights="equal")
    fit = "adapt adapt.nbest -r adapt.ref -w weights.json -o p.nc"
    yield (
        "command adapt",
        partial(
            command,
            fit,
            "; check p.nc ; rerank new.nbest -p p.nc -o out.txt -r new.ref",
            "; weights p.nc -o adapted.json",
        ),
    )
    yield (
        "command language model",
        partial(command, fit, "--add lm=domain.txt ; rerank new.nbest -p p.nc -o out.txt"),
    )
    yield (
        "command judged",
        partial(
            command,
            "adapt judged.jsonl --features kiwi comet length noise --weights none --gain gain",
            " --categorical system -o p.nc",
            "; rerank new.jsonl -p p.nc -o out.jsonl ; check p.nc --json",
        ),
    )
    yield (
        "command compared",
        partial(
            command,
            "adapt compared.jsonl --features quality length noise --weights none -o p.nc",
            "; rerank compared.jsonl -p p.nc -o x.txt",
        ),
    )
    yield "command lists", partial(command, "lists adapt.nbest ; lists judged.jsonl --gain gain")
    yield (
        "command broken file",
        partial(
            command,
            "adapt broken.nbest -w none -o p.nc ; lists broken.nbest ; lists no.file",
        ),
    )


def configurations() -> dict[str, Callable[[], Results]]:
    """Return all configurations by name."""
    groups = (of_moses, of_judged, of_answers, of_files, of_tools)
    return {name: run for group in groups for name, run in group()}


# Storing and comparing


def digest(value: Any) -> str:
    """Return a hash of arrays, texts, and mappings of them."""
    if isinstance(value, Mapping):
        value = "\n".join(f"{name} {digest(part)}" for name, part in sorted(value.items()))
    if isinstance(value, str):
        return hashlib.sha256(value.encode()).hexdigest()[:16]
    array = np.ascontiguousarray(value) if value is not None else np.zeros(0)
    if array.dtype == object:
        return digest(repr(array.tolist()))
    content = f"{array.dtype} {array.shape}".encode() + array.tobytes()
    return hashlib.sha256(content).hexdigest()[:16]


def run(selected: str) -> dict[str, dict[str, list[str]]]:
    """Run configurations; return the hash of each part, and the text of those that are texts."""
    stored = {}
    for number, (name, call) in enumerate(configurations().items(), 1):
        if selected not in name:
            continue
        start = time.perf_counter()
        with capture_notes() as notes:
            try:
                results = call()
            except bpa.BpaError as error:
                results = {"error": f"{type(error).__name__}: {error}"}
        results["messages"] = "\n".join(note.message for note in notes)
        stored[name] = {}
        for part, value in results.items():
            text = value.replace(str(ROOT), "") if isinstance(value, str) else ""
            stored[name][part] = [digest(text or value), text]
        seconds = time.perf_counter() - start
        print(f"{number:4} {name} ({seconds:.1f} s)", file=sys.stderr, flush=True)
    return stored


def differing_lines(before: str, after: str, most: int = 3) -> Iterator[str]:
    """Yield the first lines that only one of two texts has."""
    old, new = before.splitlines(), after.splitlines()
    changed = [f"- {line}" for line in old if line not in new][:most]
    yield from (line[:300] for line in changed)
    changed = [f"+ {line}" for line in new if line not in old][:most]
    yield from (line[:300] for line in changed)


def main() -> int:
    """Store or compare; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=["store", "compare"])
    parser.add_argument("file", type=Path, help="where the hashes are stored")
    parser.add_argument("--only", default="", help="a part of the names of configurations")
    arguments = parser.parse_args()
    results = run(arguments.only)
    if arguments.action == "store":
        arguments.file.parent.mkdir(parents=True, exist_ok=True)
        arguments.file.write_bytes(gzip.compress(json.dumps(results).encode()))
        print(f"stored {len(results)} configurations in {arguments.file}")
        return 0
    before, different = json.loads(gzip.decompress(arguments.file.read_bytes())), 0
    for name, parts in results.items():
        old = before.get(name, {})
        changed = [
            part
            for part in sorted({*old, *parts})
            if old.get(part, [""])[0] != parts.get(part, [""])[0]
        ]
        different += bool(changed)
        for part in changed:
            print(f"{name}: {part} differs")
            texts = (old.get(part, ["", ""])[1], parts.get(part, ["", ""])[1])
            for line in differing_lines(*texts):
                print(f"    {line}")
    print(f"{different} of {len(results)} configurations differ")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
