"""The experiments of the papers on Bayesian predictive adaptation, as studies on our lists.

    python benchmarks/bench_published.py [--tables NAME ...] [--draws 5] [--domains NAME ...]
        [--sizes N ...] [--methods NAME ...] [--sweeps NAME ...] [--jobs 1] [--results FOLDER]

`texts`: sentences and average lengths. `methods`: the presets of the three papers, Viterbi
decisions, and n-gram precisions with brevity. `curves`: learning curves of adaptation and of
tuners, with the same precisions; MERT+ (A and the 400 lists that λ_T was tuned on) has lists of 100
candidates. `lengths`: choices among candidates with as many words as without adaptation, or as with
it. `seconds`: CPU time of adaptation and of tuners. `sweeps`: δ, the size n of the lists, the
number of samples |S|, the variances σ_T of the prior and σ_o of the proposals, and the burn-in.
`crossed`: n and δ together. `by-size`: δ = 8, and δ that grows with |A|. `scales`: the heuristic
sample around λ_T with Σ|λ| = 1 and 5, whose copies have Σ|λ| = 1, or 5 as well. `variances`:
acceptance, smallest effective sample size and TER by σ_T and σ_o. `examples`: translations of our
own texts. `both`: methods that learn from A and from the 400 lists that λ_T was tuned on; all lists
have 100 candidates. `decoder`: tuners in a loop with a stand-in decoder, whose search space is the
500-best lists and which returns the 100 best candidates; the other methods use lists cut to 100.
With `--results`, the folders of the studies are
kept, an interrupted run resumes, and `bpa figures` can draw them.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from measuring import (
    DATA,
    Table,
    Task,
    authored_lists,
    best_time,
    canonical,
    domain_task,
    draw,
    few,
    read_lists,
    run_tables,
    scratch_folder,
)

from bpa_ppl import (
    Isotropic,
    adapt,
    as_weight_draws,
    concatenate,
    corpus_score,
    point_weights,
    rerank,
)
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.densities.target import Sampled, Target
from bpa_ppl.diagnostics.samplers.efficiency import smallest_ess
from bpa_ppl.extras.studies.results import (
    LENGTH,
    Row,
    aggregate,
    average_details,
    average_seconds,
    read_results,
)
from bpa_ppl.extras.studies.running import run_study
from bpa_ppl.extras.studies.study import read_study
from bpa_ppl.extras.studies.tuning.reestimation import reestimate
from bpa_ppl.gains.ter import TER
from bpa_ppl.lists.nbest import NBest
from bpa_ppl.samplers.published import Heuristic, perturb, weight_vectors

METHODS = (
    *("canonical", "published", "mcmc-vit", "published-2010", "vit-2010", "published-sspr"),
    *("heuristic", "map-oracle", "map"),
)
VARIANTS = {
    "vit-2010": {"like": "published-2010", "rule": "viterbi"},
    "map-oracle": {"like": "map", "likelihood": "oracle"},
}
#: Name -> method, setting and its values.
SWEEPS = {
    "delta": ("published-2010", "delta", [1, 2, 4, 8, 16, 32, 64]),
    "lists": ("map-oracle", "nbest_size", [10, 50, 100, 200, 500]),
    "heuristic": ("published-2010", "draws", [10, 30, 100, 300, 1000, 2000]),
    "walk": ("published", "draws", [10, 100, 1000, 5000]),
    "proposals": ("published", "proposal_variance", [0.0001, 0.001, 0.01, 0.1]),
    "burn-in": ("published", "warmup", [0, 100, 500, 2000]),
    "prior": ("published-2010", "variance", [0.01, 0.1, 1, 10]),
    "walk-prior": ("published", "variance", [0.01, 0.1, 1]),
}
#: Sentences of `examples`.
EXAMPLES = 6
#: n and δ.
CROSSED = (few((10, 50, 100, 200, 500)), few((1, 8, 64)))
#: Methods of lists of 100 candidates, with and without the lists that λ_T was tuned on.
BOTH = {
    "mert-bleu": {"like": "mert"},
    "mert-plus-bleu": {"like": "mert+"},
    "mert-ter": {"like": "mert", "gain": "ter"},
    "mert-plus-ter": {"like": "mert+", "gain": "ter"},
    "oracle": {"like": "map", "likelihood": "oracle"},
    "oracle-both": {"like": "map", "likelihood": "oracle", "development": True},
    "default": {"like": "map"},
    "default-both": {"like": "map", "development": True},
}
#: Methods of the learning curves, and their names in the table.
CURVES = {
    "canonical": "unadapted",
    "published": "published",
    "published-2010": "published-2010",
    "auto": "default",
    "mert": "mert (BLEU)",
    "mert-plus-100": "mert+ (BLEU, 100-best)",
    "mira": "mira (BLEU)",
    "mira-ter": "mira (TER)",
    "pro": "pro (BLEU)",
}
CURVE_VARIANTS = {
    "mert-plus-100": {"like": "mert+", "nbest_size": 100},
    "mira-ter": {"like": "mira", "gain": "ter"},
}
#: The number of unigrams among the counts of BLEU.
BLEU_LENGTH = 4
#: Σ|λ| of λ_T without the feature that is constant within each list, whose weight is fixed.
SCALES = (1, 5)
CONSTANT = "UnknownWordPenalty0"
#: σ_T and σ_o.
VARIANCES = (few((0.01, 0.1, 1.0)), few((0.0001, 0.001, 0.01, 0.1, 1.0)))
LOOPS = {
    f"{tuner}-{metric}-loop": {
        "like": tuner,
        "gain": metric,
        "redecode": True,
        "decode_test": True,
    }
    for tuner in ("mert", "mira", "pro")
    for metric in ("bleu", "ter")
}


def toml(value: Any) -> str:
    """Return a value as TOML, whose strings, numbers and lists are those of JSON."""
    return json.dumps(value, ensure_ascii=False)


def results_folder(options: argparse.Namespace) -> Path:
    """Return the folder that all studies are written to."""
    folder = Path(options.results).resolve() if options.results else scratch_folder()
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def study(options: argparse.Namespace, name: str, domains: Sequence[str], **parts: Any) -> Path:
    """Write the file of a study, run it, and return the folder of its results.

    Args:
        options: of the command line.
        name: of the study.
        domains: their names.
        parts: `methods`, and the tables `variants`, `sweeps` and `decoder`.
    """
    folder = results_folder(options)
    lines = [f"{key} = {toml(getattr(options, key))}" for key in ("sizes", "draws")]
    lines += [f"methods = {toml(parts.pop('methods'))}"]
    development = DATA / "out-of-domain/dev"
    tables: dict[str, dict[str, Any]] = {
        "development": {"nbest": f"{development}.nbest.gz", "references": [f"{development}.ref"]}
    }
    for domain in domains:
        tables[f"domains.{domain}"] = {"weights": str(DATA / "moses.ini")} | {
            key: value
            for part in ("adapt", "test")
            for key, value in {
                part: str(DATA / domain / f"{part}.nbest.gz"),
                f"{part}_references": [str(DATA / domain / f"{part}.ref")],
                f"{part}_sources": str(DATA / domain / f"{part}.src"),
            }.items()
        }
    for kind, members in parts.items():
        is_table = kind == "decoder"
        tables |= {kind: members} if is_table else {f"{kind}.{k}": v for k, v in members.items()}
    for title, values in tables.items():
        lines += [f"[{title}]", *(f"{key} = {toml(value)}" for key, value in values.items())]
    path = folder / f"{name}.toml"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    run_study(read_study(path), folder / name, jobs=options.jobs, progress=True)
    return folder / name


def print_scores(folder: Path, domains: Sequence[str]) -> list[Row]:
    """Print TER ± 2σ / BLEU ± 2σ / length of each method; return the points."""
    results, seconds = read_results(folder)
    points = aggregate(results, samples=99)[0]
    times = average_seconds(seconds)
    details = average_details(results, "bleu")
    lengths = {(r["domain"], r["size"], r["method"]): r[LENGTH] for r in details}
    for domain in domains:
        plain = [p for p in points if p["domain"] == domain and not p["setting"]]
        sizes = sorted({p["size"] for p in plain})
        table = Table(domain, *(f"|A| = {size}" for size in sizes), "seconds, largest", width=37)
        for method in dict.fromkeys(p["method"] for p in plain):
            cells = []
            for size in sizes:
                own = [p for p in plain if (p["method"], p["size"]) == (method, size)]
                scores = {p["metric"]: p for p in own}
                ter, bleu = scores["ter"], scores["bleu"]
                length = lengths[domain, size, method]
                cells.append(
                    f"{ter['mean']:.2f} ± {ter['interval']:.2f} / {bleu['mean']:.1f} ± "
                    f"{bleu['interval']:.1f} "
                    f"/ {length:.3f}"
                )
            place = {"domain": domain, "size": sizes[-1], "method": method}
            spent = [t["learning"] for t in times if t.items() >= place.items()]
            table.row(method, *cells, f"{spent[0]:.2f}")
    return points


def print_components(folder: Path, domains: Sequence[str]) -> None:
    """Print n-gram precisions, brevity and length of each method."""
    rows = average_details(read_results(folder)[0], "bleu")
    names = [name for name in rows[0] if name not in ("domain", "size", "method")]
    for domain in domains:
        table = Table(f"{domain}, n-grams", "|A|", *names, width=12)
        for row in rows:
            if row["domain"] == domain:
                table.row(row["method"], str(row["size"]), *(f"{row[n]:.3g}" for n in names))


def methods(options: argparse.Namespace) -> None:
    """Print the methods of the papers, and the components of BLEU."""
    variants = {name: VARIANTS[name] for name in options.methods if name in VARIANTS}
    folder = study(options, "methods", options.domains, methods=options.methods, variants=variants)
    print_scores(folder, options.domains)
    print_components(folder, options.domains)


def curves(options: argparse.Namespace) -> None:
    """Print learning curves, differences from two of the methods, and the components of BLEU."""
    folder = study(options, "curves", options.domains, methods=[*CURVES], variants=CURVE_VARIANTS)
    points, differences = aggregate(read_results(folder)[0])
    for domain, metric in product(options.domains, ("ter", "bleu")):
        place = {"domain": domain, "metric": metric}
        title = f"{domain}, learning curves, {metric.upper()} ± 2σ"
        table = Table(title, *map(str, options.sizes), width=14)
        for method, name in CURVES.items():
            own = [p for p in points if p.items() >= (place | {"method": method}).items()]
            table.row(name, *(f"{p['mean']:.2f} ± {p['interval']:.2f}" for p in own))
        for base in ("canonical", "published"):
            title = f"{domain}, {metric.upper()} minus that of {CURVES[base]} (p, Holm)"
            table = Table(title, *map(str, options.sizes), width=16)
            for method, name in CURVES.items():
                cells = []
                for row in differences:
                    if row.items() >= place.items() and {row["first"], row["second"]} == {
                        base,
                        method,
                    }:
                        change = row["difference"] * (1 if row["second"] == base else -1)
                        cells.append(f"{change:+.2f} ({row['adjusted']:.3f})")
                if cells:
                    table.row(name, *cells)
    print_components(folder, options.domains)


def lengths(options: argparse.Namespace) -> None:
    """Print what adaptation changes if the choices have the same lengths as without it."""
    for domain in options.domains:
        task = domain_task(domain)
        test, words = task.test, task.bleu[:, BLEU_LENGTH]
        start = scores_of(test, canonical())
        columns = [f"|A| = {size}" for size in options.sizes]
        table = Table(f"{domain}: TER / unigrams, % / length", *columns, width=24)
        rows: dict[str, list[Any]] = {}
        for size in options.sizes:
            values: dict[str, list[Any]] = {}
            for seed in range(options.draws):
                posterior = adapt(draw(task.pool, size, seed), canonical(), preset="published")
                adapted = scores_of(test, point_weights(posterior, unchecked=True))
                values.setdefault("unadapted", []).append(choose(task, start))
                values.setdefault("published", []).append(choose(task, adapted))
                for name, scores, other in (
                    ("published, of the unadapted length", adapted, start),
                    ("unadapted, of the length of published", start, adapted),
                ):
                    chosen = words[test.offsets[:-1] + test.best(other)]
                    allowed = words == np.repeat(chosen, test.sizes)
                    kept = np.where(allowed, scores, -np.inf)
                    values.setdefault(name, []).append(choose(task, kept))
            for name, draws in values.items():
                ter, unigrams, length = np.mean(draws, axis=0)
                spread = 2 * np.std(draws, axis=0, ddof=1)[0]
                rows.setdefault(name, []).append(
                    f"{ter:.2f} ± {spread:.2f} / {unigrams:.1f} / {length:.3f}"
                )
        for name, cells in rows.items():
            table.row(name, *cells)


def seconds(options: argparse.Namespace) -> None:
    """Print the CPU seconds from lists and references to weights, the least of several runs."""
    table = Table("CPU seconds", *(f"{d}, {n}" for d in options.domains for n in options.sizes))
    samples = [
        draw(domain_task(domain).pool, size, 0)
        for domain in options.domains
        for size in options.sizes
    ]
    learners: dict[str, Callable[[NBest], Any]] = {
        "published": partial(adapt, weights=canonical(), preset="published"),
        "published-2010": partial(adapt, weights=canonical(), preset="published-2010"),
        "default": partial(adapt, weights=canonical(), gain="ter"),
        "map": partial(adapt, weights=canonical(), gain="ter", sampler="map"),
        "mert (BLEU)": partial(reestimate, weights=canonical(), tuner="mert", gain="bleu"),
        "mira (BLEU)": partial(reestimate, weights=canonical(), tuner="mira", gain="bleu"),
        "pro (BLEU)": partial(reestimate, weights=canonical(), tuner="pro", gain="bleu"),
    }
    for name, learn in learners.items():
        table.row(name, *(best_time(partial(learn, one), repeats=3).cpu for one in samples))


def scores_of(lists: NBest, weights: Mapping[str, float]) -> Float64:
    """Return the scores of candidates, (candidates,)."""
    return lists.scores(np.array([weights[name] for name in lists.feature_names]))


def choose(task: Task, scores: Float64) -> list[float]:
    """Return TER, unigram precision in percent and length of the candidates with the top scores."""
    rows = task.test.offsets[:-1] + task.test.best(scores)
    edits, counts = (table[rows].sum(axis=0) for table in (task.ter, task.bleu))
    length = counts[BLEU_LENGTH]
    return [TER().value(edits), 100 * counts[0] / length, length / counts[-1]]


def sweeps(options: argparse.Namespace) -> None:
    """Print TER and BLEU over the values of the selected settings."""
    chosen = {name: SWEEPS[name] for name in options.sweeps}
    swept = {
        name: {"setting": setting, "values": values, "methods": [method], "sizes": options.sizes}
        for name, (method, setting, values) in chosen.items()
    }
    names = [*dict.fromkeys(method for method, *_ in chosen.values())]
    variants = {name: VARIANTS[name] for name in names if name in VARIANTS}
    folder = study(
        options, "sweeps", options.domains, methods=names, variants=variants, sweeps=swept
    )
    print_sweeps(folder, options)


def crossed(options: argparse.Namespace) -> None:
    """Print TER and BLEU of the heuristic sample over n, for several δ."""
    sizes, deltas = CROSSED
    variants = {f"delta-{delta}": {"like": "published-2010", "delta": delta} for delta in deltas}
    swept = {"setting": "nbest_size", "values": sizes, "methods": [*variants]}
    folder = study(
        options,
        "crossed",
        options.domains,
        methods=[*variants],
        variants=variants,
        sweeps={"lists": swept | {"sizes": options.sizes}},
    )
    print_sweeps(folder, options)


def heuristic_cells(
    options: argparse.Namespace, domain: str, start: Mapping[str, float], **settings: Any
) -> list[str]:
    """Return TER ± 2σ of `published-2010` with some settings, by the size of A."""
    task, cells = domain_task(domain), []
    for size in options.sizes:
        values = []
        for seed in range(options.draws):
            posterior = adapt(
                draw(task.pool, size, seed), start, preset="published-2010", **settings
            )
            choices = rerank(task.test, posterior, unchecked=True)
            values.append(choose(task, choices.probabilities)[0])
        cells.append(f"{np.mean(values):.2f} ± {2 * np.std(values, ddof=len(values) > 1):.2f}")
    return cells


def by_size(options: argparse.Namespace) -> None:
    """Print TER of the heuristic sample with a fixed δ, and with one that grows with |A|."""
    for domain in options.domains:
        table = Table(f"{domain}, TER ± 2σ", *map(str, options.sizes), width=16)
        for name, delta in (("8", 8.0), ("|A|/12", "lists/12")):
            sampler = Heuristic(draws=100, delta=delta)
            cells = heuristic_cells(options, domain, canonical(), sampler=sampler)
            table.row(f"published-2010, δ = {name}", *cells)


class ScaledCopies(Heuristic, frozen=True):
    """The heuristic sample whose copies have the length of λ_T in place of 1."""

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        """Return S(λ_T) with the logarithms of its weights."""
        start = target.match.values[target.match.free]
        vectors = perturb(start, self.draws, np.random.default_rng(seed))
        vectors[1:] *= np.abs(start).sum()
        return weight_vectors(target, vectors, float(self.delta))


def scales(options: argparse.Namespace) -> None:
    """Print TER of the heuristic sample around λ_T, by the scale of λ_T and of its copies."""
    length = sum(abs(weight) for name, weight in canonical().items() if name != CONSTANT)
    for domain in options.domains:
        table = Table(f"{domain}, TER ± 2σ", *map(str, options.sizes), width=16)
        for scale in SCALES:
            start = {
                name: weight if name == CONSTANT else scale * weight / length
                for name, weight in canonical().items()
            }
            name = f"published-2010, Σ|λ| = {scale}"
            table.row(name, *heuristic_cells(options, domain, start))
            if scale != 1:
                sampler = ScaledCopies(draws=100, delta=8.0)
                cells = heuristic_cells(options, domain, start, sampler=sampler)
                table.row(f"{name}, copies, too", *cells)


def print_sweeps(folder: Path, options: argparse.Namespace) -> None:
    """Print TER and BLEU ± 2σ of the settings that a study varies."""
    points = aggregate(read_results(folder)[0], samples=99)[0]
    for domain, metric in product(options.domains, ("ter", "bleu")):
        table = Table(f"{domain}, {metric.upper()} ± 2σ", *map(str, options.sizes), width=16)
        place = {"domain": domain, "metric": metric}
        swept = [p for p in points if p["setting"] and p.items() >= place.items()]
        for key in dict.fromkeys((p["method"], p["setting"]) for p in swept):
            cells = [
                f"{p['mean']:.2f} ± {p['interval']:.2f}"
                for p in swept
                if (p["method"], p["setting"]) == key
            ]
            table.row(", ".join(key), *cells)


def both(options: argparse.Namespace) -> None:
    """Print methods that learn from A, and from A and the lists that λ_T was tuned on."""
    variants = {name: {**settings, "nbest_size": 100} for name, settings in BOTH.items()}
    names = ["canonical", *variants]
    folder = study(options, "both", options.domains, methods=names, variants=variants)
    print_scores(folder, options.domains)


def variances(options: argparse.Namespace) -> None:
    """Print acceptance, effective sample size and TER of the published walk by σ_T and σ_o."""
    columns = [f"σ_o = {value:g}" for value in VARIANCES[1]]
    for domain in options.domains:
        task = domain_task(domain)
        table = Table(f"{domain}: acceptance, ESS, TER ± 2σ", *columns, width=27)
        for size, prior_variance in product(options.sizes, VARIANCES[0]):
            cells = []
            for proposal_variance in VARIANCES[1]:
                settings = {
                    "prior": Isotropic(variance=prior_variance),
                    "sampler": f"rwm-isotropic:proposal_variance={proposal_variance}",
                }
                values = []
                for seed in range(options.draws):
                    sample = draw(task.pool, size, seed)
                    drawn = as_weight_draws(
                        adapt(sample, canonical(), preset="published", **settings)
                    )
                    rate = drawn.draws.statistics["acceptance_rate"].mean()
                    ter = task.scores(drawn.at_point("mean"))[0]
                    values.append([rate, smallest_ess(drawn.draws), ter])
                acceptance, ess, ter = np.mean(values, axis=0)
                spread = 2 * np.std(values, axis=0, ddof=1)[-1]
                cells.append(f"{acceptance:.3f}, {ess:.1f}, {ter:.2f} ± {spread:.2f}")
            table.row(f"|A| = {size}, σ_T = {prior_variance:g}", *cells)


def texts(options: argparse.Namespace) -> None:
    """Print the number of sentences and the average lengths of the texts."""
    columns = ("sentences", "words of a source", "of a reference", "of λ_T's choice")
    table = Table("text", *columns)
    parts = [(domain, part) for domain in options.domains for part in ("adapt", "test")]
    for domain, part in [*parts, ("out-of-domain", "dev")]:
        lists = read_lists(domain, part)
        chosen = lists.chosen(lists.best(scores_of(lists, canonical())))
        lengths = [
            np.mean([len(text.split()) for text in side])
            for side in (lists.sources, [one for one, *_ in lists.references], chosen)
        ]
        table.row(f"{domain}, {part}", str(len(lists)), *(f"{n:.2f}" for n in lengths))


def examples(options: argparse.Namespace) -> None:
    """Print test sentences of our own texts, without and with adaptation, and as MERT does."""
    lists = authored_lists()
    order = np.random.default_rng(0).permutation(len(lists))
    pool, test = lists.select(order[::2]), lists.select(order[1::2])
    references = [one for one, *_ in test.references]
    chosen = {"unadapted": test.chosen(test.best(scores_of(test, canonical())))}
    for size in options.sizes:
        sample = draw(pool, size, 0)
        for preset in ("published", "published-2010"):
            choices = rerank(test, adapt(sample, canonical(), preset=preset), unchecked=True)
            chosen[f"{preset}, {size}"] = choices.texts
        tuned = reestimate(sample, weights=canonical(), tuner="mert", gain="bleu").weights
        chosen[f"mert (BLEU), {size}"] = test.chosen(test.best(scores_of(test, tuned)))
    first = options.sizes[0]
    table = Table("leaflet and office", "TER", "BLEU", "changed", f"other than with {first}")
    for name, side in chosen.items():
        ter, bleu = (
            corpus_score(side, test.references, metric).value for metric in ("ter", "bleu")
        )
        with_first = chosen.get(f"{name.rpartition(', ')[0]}, {first}", side)
        changes = (
            f"{sum(a != b for a, b in zip(side, other, strict=True))} of {len(test)}"
            for other in (chosen["unadapted"], with_first)
        )
        table.row(name, ter, bleu, *changes)
    several = [n for n in range(len(test)) if len({side[n] for side in chosen.values()}) > 2]
    for n in np.random.default_rng(1).permutation(several)[:EXAMPLES]:
        table = Table(f"sentence {n}", "translation")
        for name, side in {"source": test.sources, "reference": references, **chosen}.items():
            table.row(name, side[n])


def write_search_space(folder: Path, domain: str) -> None:
    """Write the lists of a domain for `list_decoder.py`."""
    folder.mkdir(exist_ok=True)
    lists = concatenate(
        [read_lists(domain, part).without("totals") for part in ("adapt", "test")], renumber=True
    )
    np.save(folder / "features.npy", lists.features)
    table = {
        "labels": [
            f"{label}=" for label in dict.fromkeys(n.partition("[")[0] for n in lists.feature_names)
        ],
        "sources": lists.sources,
        "offsets": lists.offsets.tolist(),
        "texts": [lists.strings[index] for index in lists.string_index],
    }
    (folder / "table.json").write_text(json.dumps(table), encoding="utf-8")


def decoder(options: argparse.Namespace) -> None:
    """Print tuners in a loop with the stand-in decoder, and adaptation without and with it."""
    domain = options.domains[0]
    start = shlex.join([sys.executable, str(Path(__file__).with_name("list_decoder.py"))])
    space = results_folder(options) / "search-space"
    write_search_space(space, domain)
    command = f"{start} {shlex.quote(str(space))} {{weights}} {{sources}} {{nbest}} 100"
    variants = {
        "published-100": {"like": "published"},
        "published-decoding": {"like": "published", "decode_test": True},
        "mert-lists": {"like": "mert"},
        **LOOPS,
    }
    variants = {name: {**settings, "nbest_size": 100} for name, settings in variants.items()}
    names = ["canonical", *variants]
    folder = study(
        options, "decoder", [domain], methods=names, variants=variants, decoder={"command": command}
    )
    print_scores(folder, [domain])


if __name__ == "__main__":
    run_tables(
        __doc__,
        (
            texts,
            methods,
            curves,
            lengths,
            seconds,
            sweeps,
            crossed,
            by_size,
            scales,
            variances,
            examples,
            both,
            decoder,
        ),
        draws=5,
        sizes=(10, 100),
        domains=("captions", "medical", "conversation"),
        methods=METHODS,
        sweeps=tuple(SWEEPS),
        jobs=1,
        results="",
    )
