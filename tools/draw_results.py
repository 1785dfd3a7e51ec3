"""Draw the pictures of the pages of results from the outputs that are stored next to them.

    python tools/draw_results.py [PAGE ...]

`docs/results/PAGE.txt` becomes `docs/assets/results/PAGE.svg`. Pages outside `docs/results` are
drawn from their own tables. Pictures of runs and of the code are drawn by `draw_pages.py`.
"""

from __future__ import annotations

import re
import sys
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parent.parent / "docs"
#: A number and its ±, such as "53.58 ± 1.97".
VALUE = re.compile(r"([-+−]?\.?\d[\d.,]*)(?: ± ([\d.]+))?")
#: A line such as "ridge   10: 0.507 ± 0.051   20: 0.546 ± 0.024".
ENTRY = re.compile(r"(\d+): +(\S+(?: ± \S+)?)")


class Panel(NamedTuple):
    """Rows of a table: `lines` over the columns, or `points` with a row each."""

    table: str
    rows: tuple[str, ...]
    ylabel: str
    kind: str = "lines"
    columns: tuple[str, ...] = ()
    xlabel: str = "judged lists"
    value: str = ""
    title: str = ""
    labels: tuple[str, ...] = ()
    file: str = ""


TER = "test TER"
SENTENCES = "adaptation sentences"
DOMAINS = "Moses, mean of three domains"
HEADROOM = "share of the headroom"
JURY = ("mean of the scores", "best score on the judged lists", "ridge", "logistic regression")
JURY = (*JURY, "lambdarank, small trees", "search, 100 calls", "**ours**")
SETTINGS = ("hard (default)", "hard, order=1", "hard, order=1, folds=5", "soft")
SETTINGS = (*SETTINGS, "hard, folds=5, start=random", "hard, start=random")
TUNED = ("published", "mira (TER)", "margin", "margin, learned prior")
GAINS = ("best feature on judged lists", "best system on judged lists", "ridge", "default")
LIKELIHOODS = ("oracle, as published", "margin, γ = 2, the default", "risk, κ = 4")
CURVES = ("unadapted", "published", "default", "mert (BLEU)", "mert+ (BLEU, 100-best)")
CURVES = (*CURVES, "mira (BLEU)", "pro (BLEU)")
GALLERY = ("linear", "logistic", "counts", "Gaussian process", "mixture, ordered", "mask", "factor")
GALLERY += ("simplex", "Dirichlet-multinomial", "copula", "censored", "schools", "autoregression")
GALLERY += ("Cauchy", "500 groups")
PANELS = {
    "results": [
        Panel("WMT 2023, all metrics", GAINS, HEADROOM, file="judged-lists"),
        Panel("likelihood", LIKELIHOODS, TER, xlabel=SENTENCES, title=DOMAINS, file="likelihoods"),
    ],
    "judged-lists": [
        Panel("WMT 2023, all metrics", GAINS, HEADROOM),
        Panel("WMT 2023, six features", GAINS, HEADROOM),
    ],
    "judging": [
        Panel("all metrics", ("mixed", "information", "random"), HEADROOM, xlabel="answers"),
        Panel("six features", ("from nothing", "from qe_CometKiwi"), HEADROOM, xlabel="answers"),
    ],
    "juries": [
        Panel("LLMBar: 226 pairs", JURY, "accuracy", xlabel="judged pairs"),
        Panel("WMT 2023, 19 features: headroom", JURY, HEADROOM),
    ],
    "constants": [
        Panel(
            "margin, gain ter",
            ("γ = 0", "γ = 0.5", "γ = 1", "γ = 2", "γ = 4", "γ = 8", "γ = 16"),
            "TER of held-out sentences",
            "points",
            ("10 sentences", "100 sentences"),
        )
    ],
    "llm-tutorial": [
        Panel(
            "choose",
            (
                "the first sample",
                "the most probable sample",
                "the most frequent sample",
                "the consensus by chrF",
                "the shortest sample",
                "**the adapted weights**",
            ),
            label,
            "points",
            (metric,),
            title="fifty new sentences",
            file="how-to/llm-tutorial.md",
        )
        for metric, label in (("chrF", "chrF, higher is better"), ("TER", "TER, lower is better"))
    ],
    "decode-once": [
        Panel(
            "way to translate",
            (
                "without adaptation",
                "reranking 500-best lists",
                "MERT, decoding six times",
                "**decoding once with the mean**",
            ),
            TER,
            "points",
            ("TER",),
            title="medical text, 100 sentences",
            file="how-to/decode-once.md",
        )
    ],
    "embed": [
        Panel(
            "candidates × features",
            ("10 × 20", "100 × 14", "500 × 14"),
            "milliseconds per list",
            "points",
            ("median", "99th percentile", "a NumPy loop, same run"),
            title="candidates × features",
            file="speed.md",
        )
    ],
    "own-criterion": [
        Panel(
            name,
            GAINS,
            HEADROOM,
            "points",
            ("10", "50"),
            title=name.replace("WMT 2023", "gain: MQM ratings"),
            labels=("10 judged lists", "50 judged lists"),
            file="judged-lists",
        )
        for name in ("WMT 2023, all metrics", "WMT 2023, six features")
    ],
    "speed": [
        Panel(
            "seconds | CPU seconds",
            ("nutpie", "NumPyro's NUTS at its defaults", "`imh`", "`laplace`", "`nuts`"),
            "effective draws per second",
            "points",
            ("ESS per second",),
            title="100 sentences, two cores",
            file="speed.md",
        )
    ],
    "control": [
        Panel(
            "medical and captions and conversation",
            (
                "λ_T",
                "oracle, lists of D",
                "margin, lists of D",
                "mert (TER), lists of D",
                "margin, lists of the domain",
                "margin, D and lists of the domain",
            ),
            TER,
            xlabel="lists",
            title=DOMAINS,
        )
    ],
    "features": [
        Panel(
            "captions, margin",
            (
                "the list's 14",
                "+ LM of 500 lines, per draw",
                "+ lexicon of 500 pairs",
                "+ MAP phrase mixture",
                "+ LM of all lines",
                "+ LM and MAP phrase mixture",
            ),
            TER,
            xlabel=SENTENCES,
        )
    ],
    "instance-weighting": [
        Panel(
            "held-out log-likelihood",
            (
                "concatenate",
                "linear",
                "map",
                "linear-known",
                "map-known",
                "linear-known, weighted",
                "map-known, weighted",
            ),
            "log p(t|s) of held-out pairs",
            "points",
            (r"p(t\|s)",),
        )
    ],
    "invariance": [
        Panel(
            "captions, in",
            (
                "EM: specificity, source",
                "EM: specificity, target",
                "EM: coherence",
                "EM: all three",
                "LDA, source: all three",
                "LDA, target: all three",
            ),
            "difference in TER, positive is worse",
            "points",
            (r"\|A\| = 10", r"\|A\| = 100"),
            value=r"\((.*)\)",
        )
    ],
    "learned-priors": [
        Panel(
            "14 features",
            (
                "mean, published, isotropic prior",
                "mean, published, learned prior",
                "mean, margin, isotropic prior",
                "mean, margin, learned prior",
            ),
            TER,
            columns=("10 sentences", "50 sentences"),
            xlabel=SENTENCES,
            title=DOMAINS,
        )
    ],
    "likelihoods": [Panel("likelihood", LIKELIHOODS, TER, xlabel=SENTENCES, title=DOMAINS)],
    "minimum-risk": [
        Panel(
            one,
            ("predictive", "mbr, ter", "mbr, bleu", "mbr, chrf"),
            TER,
            "points",
            (r"\|A\| = 10", r"\|A\| = 100"),
        )
        for one in ("medical", "captions", "conversation")
    ],
    "choices": [
        Panel(
            "mean regret",
            (
                "risk, prior mean 0: the previous default",
                "today's likelihood, prior mean 0",
                "**the default**",
                "ridge regression",
                "best single feature on the judged lists",
                "mean of the standardised features",
            ),
            "mean regret, higher is better",
            title="26 collections of judged lists",
            file="results/choices.md",
        )
    ],
    "pairs": [
        Panel(
            title,
            ("RewardBench", "LLMBar", "three weak judges", "arena"),
            label,
            "points",
            ("most probable τ", "integrated over τ"),
            title="after ten labels",
            file="results/pairs.md",
        )
        for title, label in (
            ("calibration error, 10 / 20 / 50 labels", "expected calibration error"),
            ("log loss", "log loss"),
        )
    ],
    "published-study": [
        Panel(
            f"{domain}, learning curves, TER",
            rows,
            label,
            xlabel=SENTENCES,
            value=value,
            title=f"{domain}, {title}",
        )
        for domain in ("captions", "medical", "conversation")
        for title, rows, label, value in (
            ("mean over draws", CURVES, TER, r"^(\S+)"),
            ("variation over draws", CURVES[1:], "2σ of test TER", r"± (\S+)"),
        )
    ],
    "samplers": [
        Panel(
            one,
            (
                "canonical",
                "heuristic, δ = 1",
                "heuristic, δ = 50",
                "rwm-isotropic",
                "rwm",
                "imh",
                "nuts",
                "map",
            ),
            TER,
            "points",
            ("TER",),
        )
        for one in ("medical", "captions", "conversation")
    ],
    "scale": [
        Panel(one, ("one process", "processes, 2 workers"), "seconds", "points", ("seconds",))
        for one in ("250,000 lists of 5", "20,000 lists of 100")
    ],
    "gallery": [
        Panel(
            "program",
            GALLERY,
            "effective draws per CPU second",
            "points",
            (f"{call} call", f"NumPyro, {call}"),
            title=f"{call} call",
            labels=("bpa_ppl.sample", "NumPyro's NUTS"),
        )
        for call in ("first", "second")
    ],
    "speech": [
        Panel(
            "adapted to (50, 500)",
            (
                "score, length",
                "score, length, lm=self",
                "score, length, consensus",
                "all: with consensus and lm=self",
            ),
            "word error rate",
            "points",
            columns,
            title=f"LibriSpeech {part}",
            labels=("50 utterances", "500 utterances"),
        )
        for part, columns in (("dev-clean", ("0", "1")), ("dev-other", ("2", "3")))
    ],
    "subdomains": [
        Panel("K = 4", SETTINGS, "adjusted Rand index", xlabel="share of own words"),
        Panel("K = 8", SETTINGS, "adjusted Rand index", xlabel="share of own words"),
    ],
    "tuners": [
        Panel(one, TUNED, TER, xlabel=SENTENCES) for one in ("medical", "captions", "conversation")
    ],
}


def read_table(file: str, title: str) -> dict[str, dict[str, str]]:
    """Return the cells of the first table with a title, by row and column.

    Raises:
        ValueError: if the file has no such table.
    """
    name = file if file.endswith(".md") else f"results/{file}.txt"
    text = (DOCS / name).read_text("utf-8")
    for block in text.split("\n\n"):
        head, *lines = block.splitlines()
        if head.lstrip("| ").startswith(title) and head.startswith("|"):
            columns = split_cells(head)[1:]
            rows = map(split_cells, lines[1:])
            return {row[0]: dict(zip(columns, row[1:], strict=False)) for row in rows}
        if head.startswith(title):  # the first line of a name counts
            return {line.split("  ")[0]: read_line(line) for line in reversed(lines)}
    message = f"{name} has no table {title!r}"
    raise ValueError(message)


def read_line(line: str) -> dict[str, str]:
    """Return the cells of a line without a table, by "10:" and so on, or numbered."""
    values = (match[0] for match in VALUE.finditer(line.partition("  ")[2]))
    return dict(ENTRY.findall(line)) or {str(column): cell for column, cell in enumerate(values)}


def split_cells(line: str) -> list[str]:
    """Return the cells of a line of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def read_cell(cell: str, pattern: str) -> tuple[float, float] | None:
    """Return the first number of a cell and its ±, 0 without one; None of an empty cell."""
    inner = re.search(pattern, cell) if pattern else None
    found = VALUE.search(inner[1] if inner else cell)
    if not found:
        return None
    number = found[1].replace("−", "-").replace(",", "")
    return float(number), float(found[2] or 0)


def draw_lines(
    axes: Axes, panel: Panel, table: dict[str, dict[str, str]], names: list[str]
) -> None:
    """Draw a line for each row over the numbers in the names of the columns."""
    ticks: set[float] = set()
    for name in panel.rows:
        number = names.index(name)
        cells: list[tuple[float, float, float]] = []
        for column, cell in table.get(name, {}).items():
            at, value = re.search(r"[\d.]+", column), read_cell(cell, panel.value)
            if value and not at:  # without judged lists
                axes.axhline(value[0], color="grey", linestyle="--", label=name)
            elif value and at and float(at[0]) and column in (panel.columns or (column,)):
                cells.append((float(at[0]), *value))
                ticks.add(float(at[0]))
        if cells:
            x, mean, error = zip(*cells, strict=True)
            x = [one * (1 + 0.02 * number) if max(ticks) > 1 else one for one in x]
            ours = name.startswith(("**", "default", "margin"))
            style = {"color": f"C{number}", "linewidth": 2.5 if ours else 1.2, "label": name}
            axes.errorbar(x, mean, error, marker="o", markersize=3, capsize=2, **style)
    if max(ticks) > 1:
        axes.set_xscale("log")
        axes.set_xticks(sorted(ticks), [f"{tick:.0f}" for tick in sorted(ticks)])
        axes.set_xticks([], minor=True)
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel)


def draw_points(axes: Axes, panel: Panel, table: dict[str, dict[str, str]]) -> None:
    """Draw a point for each row and column."""
    labels = panel.labels or [column.replace("\\", "") for column in panel.columns]
    for number, (column, label) in enumerate(zip(panel.columns, labels, strict=True)):
        values = [read_cell(table[name][column], panel.value) for name in panel.rows]
        mean, error = zip(*((value or (float("nan"), 0.0)) for value in values), strict=True)
        shift = 0.2 * number - 0.1 * (len(labels) - 1)
        rows = [row + shift for row in range(len(mean))]
        axes.errorbar(mean, rows, xerr=error, fmt="o", color=f"C{number}", label=label)
    axes.set_yticks(range(len(panel.rows)), [name.strip("*`") for name in panel.rows])
    axes.set_ylim(len(panel.rows) - 0.5, -0.5)
    axes.set_xlabel(panel.ylabel)
    if panel.ylabel == "seconds":
        axes.set_xlim(0, 1.1 * axes.dataLim.x1)
    elif " per " in panel.ylabel:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")


def draw(page: str) -> Figure:
    """Return the picture of a page, as wide as the text on a phone."""
    panels = PANELS[page]
    figure = Figure(layout="constrained")
    names = list(dict.fromkeys(row for panel in panels for row in panel.rows))
    height = 0.3
    for axes, panel in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels, strict=True):
        table = read_table(panel.file or page, panel.table)
        if panel.kind == "lines":
            draw_lines(axes, panel, table, names)
            height += 2.3
        else:
            draw_points(axes, panel, table)
            height += 0.9 + 0.24 * len(panel.rows)
        axes.set_title(panel.title or panel.table.split(": ")[0], fontsize="medium")
        axes.grid(alpha=0.3)
    handles = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label.strip("*"), handle)
    if panels[0].kind == "lines" or len(panels[0].columns) > 1:
        columns = 1 if max(map(len, handles)) > 24 else 2
        place = "outside lower center"
        figure.legend(handles.values(), handles, loc=place, ncols=columns, fontsize="small")
        height += 0.18 * len(handles) / columns
    figure.set_size_inches(4.5, height)
    return figure


def save(figure: Figure, file: Path | BytesIO) -> None:
    """Write a picture whose text stays text; the same one has the same bytes."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "results"}):
        figure.savefig(file, format="svg", metadata={"Date": None})


def main() -> None:
    """Draw the pictures of the named pages, or all."""
    folder = DOCS / "assets" / "results"
    folder.mkdir(exist_ok=True)
    for page in sys.argv[1:] or PANELS:
        save(draw(page), folder / f"{page}.svg")


if __name__ == "__main__":
    main()
