"""Draw the pictures of pages that show no measurement, from the code or from the included data.

    python tools/draw_pages.py [PICTURE ...]

`docs/assets/pages/PICTURE.svg` shows the structure of the code, or a run on the data of the demos;
all take two minutes. Pictures of measurements are drawn by `draw_results.py`.
"""

from __future__ import annotations

import inspect
import logging
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from draw_results import DOCS, read_table, save
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import bpa_ppl as bpa
from bpa_ppl import NBest, Weights
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.decoding.rules import RULES
from bpa_ppl.diagnostics.check.diagnostic import DIAGNOSTICS
from bpa_ppl.extras.convert import trec
from bpa_ppl.extras.phrases.ibm1 import IBM1
from bpa_ppl.extras.phrases.mixtures import mix
from bpa_ppl.extras.phrases.tables import PhraseCounts, PhraseTable
from bpa_ppl.extras.tuning.tuner import TUNERS
from bpa_ppl.features.source import FEATURES
from bpa_ppl.formats.format import NBEST_FORMATS
from bpa_ppl.gains.metric import GAINS
from bpa_ppl.models.likelihoods.likelihood import LIKELIHOODS
from bpa_ppl.models.priors.prior import PRIORS
from bpa_ppl.samplers.sampler import SAMPLERS

DATA = DOCS.parent / "examples" / "demo_data"
FOLDER = DOCS / "assets" / "pages"
#: Points; on a phone the pictures are five sixths of this size.
WIDTH = 324
INDIGO, GREEN, AMBER, GREY = "#3949ab", "#1b6e3c", "#b26a00", "#5b6278"


# The parts of a picture


def open_canvas(height: float) -> tuple[Figure, Axes]:
    """Return a picture whose coordinates are points, from the upper left corner."""
    figure = Figure((WIDTH / 72, height / 72))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(height, 0))
    axes.set_axis_off()
    return figure, axes


def write(axes: Axes, x: float, y: float, text: str, **style: Any) -> None:
    """Write a text, from its left end unless `ha` says otherwise."""
    axes.text(x, y, text, **{"fontsize": 9, "va": "center", **style})


def box(axes: Axes, x: float, y: float, width: float, lines: str, color: str = INDIGO) -> None:
    """Draw a box around lines of text, of which the first one is bold; `y` is its top."""
    height = 14 * len(lines.splitlines()) + 6
    style = {"facecolor": f"{color}18", "edgecolor": color, "linewidth": 1}
    axes.add_patch(mpl.patches.FancyBboxPatch((x, y), width, height, "round,pad=0", **style))
    for number, line in enumerate(lines.splitlines()):
        weight, tint = ("normal", "black") if number else ("bold", color)
        at = y + 10 + 14 * number
        write(axes, x + width / 2, at, line, ha="center", color=tint, fontweight=weight)


def arrow(axes: Axes, *ends: float, color: str = GREY) -> None:
    """Draw an arrow from x, y to x, y."""
    style = {"arrowstyle": "->", "color": color, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", ends[2:], ends[:2], arrowprops=style)


def open_chart(height: float, xlabel: str, rows: Sequence[str] = ()) -> tuple[Figure, Axes]:
    """Return a chart, with the names of its rows."""
    figure = Figure((WIDTH / 72, height / 72), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(xlabel)
    if rows:
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(alpha=0.3)
    return figure, axes


def put_intervals(axes: Axes, at: Any, means: Any, ends: Any, color: str, label: str = "") -> None:
    """Draw means and the ends of intervals in rows."""
    axes.hlines(at, *ends, color=color, linewidth=3)
    axes.plot(means, at, "o", color=color, label=label or None, markersize=5)


def put_legend(figure: Figure, columns: int = 2) -> None:
    """Put the legend below the chart."""
    figure.legend(loc="outside lower center", ncols=columns, fontsize=9, frameon=False)


# The data


def read_leaflet() -> tuple[NBest, Weights]:
    """Return the lists of the leaflet and the weights of their decoder."""
    files = {"references": DATA / "leaflet.ref", "sources": DATA / "leaflet.src"}
    return bpa.read_nbest(DATA / "leaflet.nbest100.gz", **files), bpa.read_weights(
        DATA / "moses.ini"
    )


def read_recipes(name: str) -> NBest:
    """Return translations of recipes by an LLM."""
    form = f"openai:requests={DATA}/recipes.{name}.requests.jsonl,source=Translate: (.*)"
    answers = DATA / f"recipes.{name}.answers.jsonl"
    return bpa.read_nbest(answers, references=DATA / f"recipes.{name}.ref", format=form)


def rows_of(lists: NBest, name: str) -> Float64:
    """Return a column of the features."""
    return np.asarray(lists.features[:, lists.feature_names.index(name)], float)


def run_page(page: str, scope: dict[str, Any], *blocks: int) -> dict[str, Any]:
    """Run blocks of Python of a page among variables, and return these."""
    code = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    for block in blocks:
        exec(compile(code[block], page, "exec", dont_inherit=True), scope)
    return scope


# Pictures of the structure


def draw_additions() -> Figure:
    """Draw where each kind of component acts, what it needs, and which ones there are."""
    needs = read_table("how-to/additions.md", "kind")
    kinds = {
        "format": (NBEST_FORMATS, "lists"),
        "feature": (FEATURES, "+ columns"),
        "metric": (GAINS, "gains"),
        "prior": (PRIORS, ""),
        "likelihood": (LIKELIHOODS, "density"),
        "sampler": (SAMPLERS, "posterior"),
        "diagnostic": (DIAGNOSTICS, "verdict"),
        "rule": (RULES, ""),
        "tuner": (TUNERS, ""),
    }
    step = 52
    figure, axes = open_canvas(step * len(kinds) - 2)
    for number, (kind, (registry, result)) in enumerate(kinds.items()):
        y = 2 + step * number
        box(axes, 2, y, 78, kind, GREY if kind == "tuner" else INDIGO)
        method = needs[kind]["you write"].partition(";")[0].replace("`", "")
        write(axes, 90, y + 10, f"write {method}", fontweight="bold")
        lines = wrap(", ".join(name for name in registry if ":" not in name), 44)
        lines[1:] = [lines[1] + " …"] if len(lines) > 2 else lines[1:]
        for at, line in enumerate(lines):
            write(axes, 90, y + 23 + 12 * at, line, color=GREY)
        if number < len(kinds) - 2:
            arrow(axes, 22, y + 21, 22, y + step - 1)
        write(axes, 27, y + 35, result, color=INDIGO, fontsize=8)
    write(axes, 2, y - 9, "instead of adapting:", color=GREY, fontsize=8)
    return figure


def draw_architecture() -> Figure:
    """Draw which packages import which: all marks are below the diagonal."""
    code = runpy.run_path(str(DOCS.parent / "tests" / "test_architecture.py"))
    layers = [layer for layer in code["LAYERS"] if layer not in (("__main__",), ("bpa_ppl",))]
    tints = dict.fromkeys(code["REFEREE"], GREEN) | dict.fromkeys(code["OF_LISTS"], INDIGO)
    tints[("extras",)] = AMBER
    height = {package: number for number, layer in enumerate(layers) for package in layer}
    used = {
        (height[code["package_of"](module)], height[package])
        for module, of in code["facts"]().items()
        for package in {code["package_of"](n) for n in of.imports if n.startswith("bpa_ppl.")}
        if code["package_of"](module) in height and package in height
    }
    left, step = 178, 14.0
    width = (WIDTH - left) / len(layers)
    figure, axes = open_canvas(step * len(layers) + 18)
    for row, layer in enumerate(layers):
        y = 18 + step * row
        tint = tints.get(layer, "black")
        write(axes, 4, y + 7, ", ".join(layer), color=tint, fontsize=8.5)
        if row % 2 == 0:
            axes.add_patch(mpl.patches.Rectangle((0, y), WIDTH, step, color="#eef0f8", zorder=0))
        for column in range(row + 1):
            x = left + width * column
            color = "#c5cbe0" if row == column else INDIGO
            if row == column or (row, column) in used:
                square = mpl.patches.Rectangle((x + 1, y + 4), width - 2, step - 8, color=color)
                axes.add_patch(square)
    write(axes, 4, 9, "package", fontweight="bold")
    write(axes, left, 9, "imports, from top to bottom", fontweight="bold")
    return figure


def draw_interface() -> Figure:
    """Draw what the most used functions take and return, as their signatures say."""
    names = ("read_nbest", "read_weights", "adapt", "check", "log_density")
    returns = {
        name: str(inspect.signature(getattr(bpa, name)).return_annotation).strip("'")
        for name in names
    }
    figure, axes = open_canvas(344)
    box(axes, 2, 2, 154, f"read_nbest\n→ {returns['read_nbest']}: the lists")
    box(axes, 168, 2, 154, f"read_weights\n→ {returns['read_weights']}: λ_T")
    arrow(axes, 90, 36, 130, 64)
    arrow(axes, 234, 36, 194, 64)
    box(axes, 62, 66, 200, f"adapt\n→ posterior ({returns['adapt']})", GREEN)
    arrow(axes, 162, 100, 162, 126)
    box(axes, 62, 128, 200, f"check\n→ {returns['check']}: converged or not")
    arrow(axes, 110, 162, 80, 190)
    arrow(axes, 214, 162, 244, 190)
    box(axes, 2, 192, 154, "Reranker, rerank\n→ Choices from new lists", GREEN)
    box(axes, 168, 192, 154, "report, compare\n→ pages and tables")
    write(axes, 2, 246, "Or in other ways to the same posterior:", color=GREY)
    box(axes, 2, 258, 154, f"log_density\n→ {returns['log_density']}: log p(z, data)", AMBER)
    arrow(axes, 156, 275, 167, 275)
    box(axes, 168, 258, 154, "to_posterior\n← draws of your sampler", AMBER)
    box(axes, 2, 306, 320, "BayesianRanker().fit(X, y, qid=…)\nfor scikit-learn", AMBER)
    return figure


def draw_vocabulary() -> Figure:
    """Draw how the words belong together."""
    figure, axes = open_canvas(430)
    box(axes, 2, 2, 320, "n-best list\nthe candidates e of one sentence f")
    box(axes, 2, 62, 142, "features h\nnumbers of a candidate")
    box(axes, 180, 62, 142, "gain\nrating or metric: judged", GREEN)
    box(axes, 2, 122, 142, "score λ·h\nλ: the weights")
    box(axes, 180, 122, 142, "oracle\nthe highest gain", GREEN)
    box(axes, 2, 182, 142, "baseline\nthe highest score λ_T·h")
    box(axes, 180, 182, 142, "likelihood\np(oracles | λ)", GREEN)
    for y in (36, 96, 156):
        arrow(axes, 73, y, 73, y + 24)
        arrow(axes, 251, y, 251, y + 24)
    arrow(axes, 145, 142, 179, 194)
    box(axes, 2, 242, 142, "prior\naround canonical λ_T")
    arrow(axes, 73, 276, 118, 300)
    arrow(axes, 251, 216, 206, 300)
    box(axes, 42, 302, 240, "posterior of λ\ndraws, in chains after a warm-up", AMBER)
    arrow(axes, 162, 336, 162, 358)
    box(
        axes,
        2,
        360,
        320,
        "predictive distribution p(e | f)\nof new lists, over the posterior",
        AMBER,
    )
    arrow(axes, 162, 394, 162, 408)
    write(axes, 162, 418, "a decision rule makes the choice", ha="center", fontweight="bold")
    return figure


def draw_promises() -> Figure:
    """Draw what stays the same, how exactly, with the tolerances of the page."""
    tolerances = read_table("promises.md", "quantity")
    parts = {
        ("In every 1.x", GREEN): {
            "public names and their arguments": "stay",
            "commands, options, exit codes": "stay",
            "codes of errors": "stay",
            "posteriors and other files of 1.0": "readable",
        },
        ("In a minor version", AMBER): {
            "defaults": "may change, listed",
            "texts of messages, pages": "may change",
        },
        ("Same seed, same machine", GREEN): {
            "draws, and files": "same bits",
            "choices, with any threads": "same bits",
        },
        ("Another machine, or a GPU", AMBER): {"draws": "Monte Carlo error"},
        ("Accuracy", INDIGO): {
            name: f"{tolerances[name]['compared with']}: {tolerances[name]['tolerance']}"
            for name in ("log density, real lists", "mode", "TER edits")
        }
        | {"means of samplers": "quadrature: 5 SE"},
    }
    rows = sum(len(part) + 1 for part in parts.values())
    figure, axes = open_canvas(17 * rows + 4)
    y = 10.0
    for (title, color), part in parts.items():
        write(axes, 4, y, title, fontweight="bold", color=color)
        for name, promise in part.items():
            y += 17
            axes.add_patch(mpl.patches.Rectangle((0, y - 8), WIDTH, 16, color=f"{color}18"))
            write(axes, 10, y, name)
            write(axes, WIDTH - 6, y, promise, ha="right", color=color)
        y += 17
    return figure


def draw_lists() -> Figure:
    """Draw what the columns of a list are."""
    lists = read_recipes("new")[9:10]
    rows = len(lists.texts(0))
    figure, axes = open_canvas(118 + 17 * rows)
    write(axes, 2, 10, "sentence", fontweight="bold", color=INDIGO)
    sentence = {
        "id": lists.sentence_ids[0],
        "source": lists.sources[0],
        "reference": lists.references[0][0],
    }
    for number, (name, value) in enumerate(sentence.items()):
        write(axes, 60, 10 + 15 * number, name, color=GREY)
        write(axes, 118, 10 + 15 * number, str(value))
    shown = {"logprob.sum": "log p", "length": "length", "count": "count"}
    ends = (202, 237, 271)
    axes.add_patch(mpl.patches.Rectangle((170, 54), 105, 64 + 17 * rows, color=f"{INDIGO}18"))
    axes.add_patch(mpl.patches.Rectangle((278, 54), 46, 64 + 17 * rows, color=f"{GREY}18"))
    write(axes, 2, 64, "candidates", fontweight="bold", color=INDIGO)
    write(axes, 222, 64, "features", fontweight="bold", color=INDIGO, ha="center")
    write(axes, 301, 64, "extra", fontweight="bold", color=GREY, ha="center")
    write(axes, 2, 82, "text", color=GREY)
    for end, name in zip(ends, shown.values(), strict=True):
        write(axes, end, 82, name, ha="right", color=GREY)
    write(axes, 321, 82, "model", ha="right", color=GREY)
    for row, text in enumerate(lists.texts(0)):
        y = 99 + 17 * row
        write(axes, 2, y, text)
        for end, name in zip(ends, shown, strict=True):
            write(axes, end, y, f"{round(rows_of(lists, name)[row], 1):g}", ha="right")
        write(axes, 321, y, str(lists.extras["model"][row]), ha="right")
    write(axes, 222, 104 + 17 * rows, "get weights", ha="center", color=INDIGO)
    write(axes, 301, 104 + 17 * rows, "none", ha="center", color=GREY)
    return figure


# Pictures of runs


def draw_conversion() -> Figure:
    """Draw two lines of a TREC run with their judgements, and the list that they become."""
    run = ["q1 Q0 paris 1 9.25 bm25", "q1 Q0 lyon 2 7.5 bm25"]
    qrels = ["q1 0 paris 2", "q1 0 lyon 0"]
    (record,) = trec(run, qrels=qrels)
    figure, axes = open_canvas(212)
    box(axes, 6, 6, 186, "\n".join(["run.txt", *run]), AMBER)
    box(axes, 204, 6, 114, "\n".join(["qrels.txt", *qrels]), AMBER)
    arrow(axes, 99, 58, 99, 84)
    arrow(axes, 261, 58, 261, 84)
    write(
        axes, WIDTH / 2, 95, "bpa convert trec run.txt --qrels qrels.txt -o run.jsonl", ha="center"
    )
    arrow(axes, WIDTH / 2, 104, WIDTH / 2, 124)
    candidates = [
        f"{of['text']}: feature score {of['features']['score']:g}, relevance {of['relevance']:g}"
        for of in record["candidates"]
    ]
    box(axes, 6, 126, 312, "\n".join([f"list {record['id']}", *candidates]))
    write(axes, WIDTH / 2, 196, "bpa adapt run.jsonl --gain relevance …", ha="center")
    return figure


def draw_samples() -> Figure:
    """Draw the samples of one prompt, with their probabilities and gains."""
    posterior = bpa.adapt(read_recipes("adapt"), None, gain="chrf", seed=1)
    lists = read_recipes("new")[7:8]
    chosen = bpa.rerank(lists, posterior)
    probabilities = chosen.probabilities[: len(lists.texts(0))]
    figure, axes = open_canvas(34 + 36 * len(probabilities) + 16)
    count = rows_of(lists, "count")
    write(axes, 2, 10, lists.sources[0], fontweight="bold")
    write(axes, 322, 10, f"{count.sum():.0f} samples", ha="right", color=GREY)
    write(axes, 322, 26, "chrF", ha="right", color=GREY)
    write(axes, 2, 26, "probability under the adapted weights", color=GREY)
    for row, (text, probability) in enumerate(zip(lists.texts(0), probabilities, strict=True)):
        y = 42 + 36 * row
        color = GREEN if row == chosen.choice[0] else GREY
        gain = bpa.corpus_score([text], lists.references, "chrf").value
        weight = "bold" if row == chosen.choice[0] else "normal"
        write(axes, 2, y, f"{count[row]:.0f} × {text}", color=color, fontweight=weight)
        write(axes, 322, y, f"{gain:.0f}", ha="right", color=color, fontweight=weight)
        axes.add_patch(mpl.patches.Rectangle((2, y + 9), 270 * probability, 7, color=color))
        write(axes, 6 + 270 * probability, y + 13, f"{probability:.2f}", color=color, fontsize=8)
    y = 42 + 36 * len(probabilities)
    write(axes, 2, y, f"reference: {lists.references[0][0]}", color=GREY)
    return figure


def draw_weights() -> Figure:
    """Draw how TER on new lists differs from that of weights tuned by hand."""
    lists, canonical = read_leaflet()
    adaptation, new = lists[:50], lists[50:]
    scale = 1 / np.where(new.spread > 0, new.spread, np.inf)
    ways = {
        "equal, not adapted": new.best(np.asarray(new.features, float) @ scale),
        "from none, 10 lists": bpa.rerank(new, bpa.adapt(lists[:10], None, gain="ter")).choice,
        "from none, 50 lists": bpa.rerank(new, bpa.adapt(adaptation, None, gain="ter")).choice,
        "from equal, 50 lists": bpa.rerank(new, bpa.adapt(adaptation, "equal", gain="ter")).choice,
        "from tuned, 50 lists": bpa.rerank(new, bpa.adapt(adaptation, canonical)).choice,
    }
    metric = GAINS.resolve("ter")
    draws = np.random.default_rng(0).integers(len(new), size=(1000, len(new)))

    def values(choice: npt.NDArray[np.int64]) -> tuple[Float64, Float64]:
        texts = [[new.text(int(at))] for at in new.offsets[:-1] + choice]
        counts = metric.counts(texts, new.references)
        return metric.value(counts.sum(axis=0)), metric.value(counts[draws].sum(axis=1))

    tuned, others = values(new.best(new.scores(canonical)))
    figure, axes = open_chart(180, "TER minus that of the tuned weights", [*ways])
    for row, (name, choice) in enumerate(ways.items()):
        value, resampled = values(choice)
        ends = np.percentile(resampled - others, (2.5, 97.5))
        put_intervals(axes, row, value - tuned, ends, GREEN if "lists" in name else GREY)
    axes.axvline(0, color=GREY, linestyle="--")
    return figure


def draw_updates() -> Figure:
    """Draw the interval of a weight as lists arrive, with all lists and by updates."""
    lists, canonical = read_leaflet()
    figure, axes = open_chart(210, "adaptation lists")
    sizes = range(10, 60, 10)
    updated = bpa.adapt(lists[:10], canonical)
    for size in sizes:
        joint = bpa.adapt(lists[:size], canonical)
        if size > 10:
            prior = bpa.Prior.of(updated)
            updated = bpa.adapt(lists[size - 10 : size], canonical, prior=prior)
        for shift, color, posterior in ((-0.7, INDIGO, joint), (0.7, AMBER, updated)):
            draws = bpa.as_weight_draws(posterior)
            place = draws.features.index("LM0")
            axes.vlines(size + shift, *draws.interval(0.95)[:, place], color=color, linewidth=3)
            axes.plot(size + shift, draws.mean[place], "o", color=color)
    axes.axhline(canonical["LM0"], color=GREY, linestyle="--", label="tuned")
    axes.plot([], [], "o-", color=INDIGO, label="all lists")
    axes.plot([], [], "o-", color=AMBER, label="ten at a time")
    axes.set(xticks=sizes, ylabel="weight of LM0, 95% interval")
    put_legend(figure, 3)
    return figure


def draw_domains() -> Figure:
    """Draw the weights of the model of the page: prior, shared, and of each domain."""
    scope = run_page("how-to/own-model.md", {}, 0, 1, 2)
    draws = bpa.as_weight_draws(scope["posterior"])
    names = ("LM0", "WordPenalty0", "PhrasePenalty0", "Distortion0")
    places = [draws.features.index(name) for name in names]
    figure, axes = open_chart(240, "weight, 95% interval", names)
    shown = {
        "prior": (draws.draws.prior["weights"], GREY),
        "shared": (draws.draws.values["shared"], INDIGO),
        "domain a": (draws.draws.values["own"][..., 0, :], GREEN),
        "domain b": (draws.draws.values["own"][..., 1, :], AMBER),
    }
    for number, (label, (values, color)) in enumerate(shown.items()):
        flat = np.asarray(values).reshape(-1, len(draws.features))
        flat = flat[:, places]
        at = np.arange(len(names)) + 0.18 * (number - 1.5)
        ends = np.percentile(flat, (2.5, 97.5), axis=0)
        put_intervals(axes, at, flat.mean(axis=0), ends, color, label)
    put_legend(figure, 4)
    return figure


def draw_density() -> Figure:
    """Draw the intervals of the weights by `adapt` and by the sampler of the page."""
    scope = run_page("api/density.md", {}, 0, 1, 3, 4)  # without BlackJAX
    adapted = bpa.adapt(scope["lists"], scope["canonical"])
    features = bpa.as_weight_draws(adapted).features
    figure, axes = open_chart(310, "weight, 95% interval", features)
    rows = np.arange(len(features))
    posteriors = {"adapt": (adapted, INDIGO), "MALA, below": (scope["posterior"], GREEN)}
    for number, (label, (posterior, color)) in enumerate(posteriors.items()):
        draws, at = bpa.as_weight_draws(posterior), rows + 0.3 * (number - 0.5)
        put_intervals(axes, at, draws.mean, draws.interval(0.95), color, label)
    axes.plot(scope["mode"], rows, "|", color="black", label="SciPy's mode", markersize=8)
    put_legend(figure, 3)
    return figure


def draw_phrases() -> Figure:
    """Draw p(t|s) of some words before and after mixing tables of the leaflet and the decoder."""
    lists, canonical = read_leaflet()
    first = lists.offsets[:-1] + lists.best(lists.scores(canonical))
    sources = [text.split() for text in lists.sources]
    target = [texts[0].split() for texts in lists.references]
    decoded = [lists.text(int(row)).split() for row in first]

    def count(part: slice, targets: list[list[str]]) -> PhraseCounts:
        texts = sources[part], targets[part]
        direct, inverse = IBM1.estimate(*texts), IBM1.estimate(*reversed(texts))
        links = Counter()
        for left, right in zip(*texts, strict=True):
            for word in set(left):
                scores = [direct.probability(word, x) * inverse.probability(x, word) for x in right]
                links[word, right[int(np.argmax(scores))]] += 1
        return PhraseCounts.of(*zip(*links, strict=True), list(links.values()))

    outer, inner = count(slice(None), decoded), count(slice(120), target)
    general, _ = mix(inner, outer, method="linear", value=0)
    mixed, _ = mix(inner, outer, count(slice(120, None), target))
    pairs = {
        "medicament": ("drug", "medicine"),
        "medecin": ("physician", "doctor"),
        "comprimes": ("compressed", "tablets"),
    }
    names = [f"{word} → {other}" for word, others in pairs.items() for other in others]
    figure, axes = open_chart(220, "p(t|s)", names)

    def find(table: PhraseTable) -> dict[str, float]:
        sides = (table.texts(side).to_pylist() for side in ("source", "target"))
        return dict(
            zip(map(" → ".join, zip(*sides, strict=True)), table.columns["direct"], strict=True)
        )

    before, after = find(general), find(mixed)
    for row, name in enumerate(names):
        color = GREEN if after[name] > before[name] else GREY
        arrow(axes, before[name], row, after[name], row, color=color)
        axes.plot(before[name], row, "o", color=color, fillstyle="none")
        axes.plot(after[name], row, "o", color=color)
    axes.set_xlim(-0.03, 1.03)
    axes.plot([], [], "o", color=GREY, fillstyle="none", label="general table")
    axes.plot([], [], "o", color=GREY, label="mixed with the domain")
    put_legend(figure)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "additions": draw_additions,
    "architecture": draw_architecture,
    "interface": draw_interface,
    "vocabulary": draw_vocabulary,
    "promises": draw_promises,
    "lists": draw_lists,
    "other-tools": draw_conversion,
    "llm-samples": draw_samples,
    "no-weights": draw_weights,
    "update": draw_updates,
    "own-model": draw_domains,
    "density": draw_density,
    "phrases": draw_phrases,
}


def main() -> None:
    """Draw the named pictures, or all."""
    logging.getLogger("bpa_ppl").setLevel("ERROR")
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or PICTURES:
        save(PICTURES[name](), FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main()
