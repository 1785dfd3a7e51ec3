"""What `compare` says of reference draws of 45 posteriors, and of draws that are damaged.

    python benchmarks/bench_referee.py [--tables verdicts seconds pictures]
        [--splits 20] [--damaged 2] [--rows "mean + 0.1 sd"]

The reference draws are those of posteriordb (Magnusson et al. 2024), ten chains of 1000 draws of
each posterior, in `../shared/data/posteriordb`. Five chains, drawn at random, are compared with the
other five: as they are, and with one damage to one variable, drawn at random. In the last row the
reference has a mode that the five chains lack. `seconds` has those of comparisons of many
variables. `pictures` draws those of the page "Is my sampler right?" and of the README from the
examples there.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from measuring import DATA, Table, best_time, few, run_tables

from bpa_ppl import compare, compare_samplers
from bpa_ppl._runtime.arrays import Float64
from bpa_ppl.diagnostics.samplers.comparison import Comparison
from bpa_ppl.diagnostics.samplers.comparison_page import render_comparison
from bpa_ppl.diagnostics.samplers.pictures import draw_pictures
from bpa_ppl.diagnostics.samplers.programs import read_program

ROOT = Path(__file__).resolve().parents[1]

VERDICTS = ("DIFFERS", "agrees", "inconclusive", "not converged")
Draws = dict[str, Float64]
#: Of draws of all variables, in one of them.
Damage = Callable[[Draws, str, np.random.Generator], Draws]


def read_chains(path: Path) -> Draws:
    """Return the reference draws of a posterior, variable -> (chains, draws)."""
    with ZipFile(path) as archive:
        chains = json.loads(archive.read(archive.namelist()[0]))
    return {name: np.array([chain[name] for chain in chains]) for name in chains[0]}


def shifted(size: float) -> Damage:
    """Add a part of the standard deviation."""
    return lambda draws, name, rng: draws | {name: draws[name] + size * draws[name].std()}


def scaled(factor: float) -> Damage:
    """Multiply the distance from the mean."""

    def change(draws: Draws, name: str, rng: np.random.Generator) -> Draws:
        mean = draws[name].mean()
        return draws | {name: mean + factor * (draws[name] - mean)}

    return change


def shuffle(draws: Draws, name: str, rng: np.random.Generator) -> Draws:
    """Make the draws of a variable independent of all others, and of each other."""
    x = draws[name]
    return draws | {name: rng.permutation(x.reshape(-1)).reshape(x.shape)}


def cut(draws: Draws, name: str, rng: np.random.Generator) -> Draws:
    """Replace the draws that are more than two standard deviations above the mean by others."""
    x = draws[name]
    below = x <= x.mean() + 2 * x.std()
    places = np.arange(x.size).reshape(x.shape)
    places[~below] = rng.choice(places[below], size=int((~below).sum()))
    return {key: values.reshape(-1)[places] for key, values in draws.items()}


def stop(draws: Draws, name: str, rng: np.random.Generator) -> Draws:
    """Stop one chain after three quarters of its draws."""
    result = {key: values.copy() for key, values in draws.items()}
    for x in result.values():
        place = 3 * x.shape[1] // 4
        x[0, place:] = x[0, place]
    return result


def add_mode(draws: Draws, name: str, rng: np.random.Generator) -> Draws:
    """Move one draw in a hundred five standard deviations up."""
    x = draws[name]
    return draws | {name: x + 5 * x.std() * (rng.uniform(size=x.shape) < 0.01)}


EQUAL, MODE = "equal halves", "mode of 1% missing"
DAMAGES: dict[str, Damage] = {
    "mean + 0.1 sd": shifted(0.1),
    "mean + 0.05 sd": shifted(0.05),
    "sd × 0.9": scaled(0.9),
    "sd × 0.95": scaled(0.95),
    "independent of the others": shuffle,
    "one of five chains stops": stop,
    "tail cut off at 2 sd": cut,
    MODE: add_mode,
}


def verdict(chains: Draws, damage: str = "", seed: int = 0) -> tuple[str, float | None]:
    """Return the verdict on one half of the chains, given the other half, and the bound."""
    rng = np.random.default_rng([seed, len(damage)])
    order = rng.permutation(10)
    half, reference = ({name: x[part] for name, x in chains.items()} for part in np.split(order, 2))
    name = str(rng.choice(list(chains)))
    if damage == MODE:
        reference = add_mode(reference, name, rng)
    elif damage:
        half = DAMAGES[damage](half, name, rng)
    result = compare(half, reference, seed=seed)["a"]
    return result.verdict, result.bound


def print_verdicts(options: argparse.Namespace) -> None:
    """Print the shares of verdicts on halves as they are, and with each damage."""
    paths = sorted((DATA / "posteriordb").glob("*.json.zip"))
    table = Table(f"{len(paths)} posteriors", "comparisons", *VERDICTS, "median bound")
    for row in options.rows:
        damage = "" if row == EQUAL else row
        splits = range(options.damaged if damage else options.splits)
        found = [verdict(read_chains(path), damage, seed) for path in paths for seed in splits]
        counts = Counter(name for name, _ in found)
        shares = [f"{counts[name] / len(found):.1%}" for name in VERDICTS]
        bounds = [bound for _, bound in found if bound is not None]
        median = f"{np.median(bounds):.3f}" if bounds else "–"
        table.row(row, str(len(found)), *shares, median)


def print_seconds(options: argparse.Namespace) -> None:
    """Print CPU seconds, of two runs of 4 chains of 1000 draws that have many variables."""
    table = Table("variables", "CPU seconds")
    for count in few((10, 100, 500)):
        rng = np.random.default_rng(count)
        a, b = ({"x": rng.normal(size=(4, 1000, count))} for _ in range(2))
        table.row(str(count), f"{best_time(lambda a=a, b=b: compare(a, b)).cpu:.1f}")


def print_pictures(options: argparse.Namespace) -> None:
    """Run the examples of a page and of the README, and write plots of each comparison."""
    del options
    page = (ROOT / "docs/how-to/is-my-sampler-right.md").read_text("utf-8")
    scope: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:4]:
        exec(block, scope)
    save_picture(scope["result"], "is-my-sampler-right", ("mu", "log_tau"))
    demo = ROOT / "examples/demo_data"
    program, data = read_program("bpa_ppl.demo_data.schools:model", demo / "schools.json")
    compared = compare_samplers(program, kwargs=data, samplers=["rwm", "nuts"])
    save_picture(compared, "schools", ("mu", "tau"))


def save_picture(compared: Comparison, name: str, variables: tuple[str, str]) -> None:
    """Write four plots of a comparison as one SVG file of the documentation."""
    html = render_comparison(compared)
    ran = {one.sampler: one.draws for one in compared.samplers if one.draws is not None}
    worst, errors = dict.fromkeys(ran, variables), dict.fromkeys(ran, ())
    plots = "".join(map(str, draw_pictures(ran, compared.truth, worst, errors)))
    chosen = re.findall(r'<svg class="plot".*?</svg>', plots, re.DOTALL)
    style = "".join(re.findall(r"<style>(.*?)</style>", html, re.DOTALL)).split("@media")[0]
    style += "".join(re.findall(r"^\.(?:plot [.t]|line|band|tick|c\d).*$", html, re.MULTILINE))
    style = style.replace("font-size: 12px", "font-size: 18px")  # phones show it half as large
    parts = [
        one.replace(
            "<svg ",
            f'<svg x="{10 + 340 * (k % 2)}" y="{30 + 200 * (k // 2)}" width="320" height="190" ',
        )
        for k, one in enumerate(chosen)
    ]
    parts += [
        f'<line class="line c{k}" x1="{10 + 110 * k}" x2="{34 + 110 * k}" y1="15" y2="15"/>'
        f'<text x="{40 + 110 * k}" y="19">{one.sampler}</text>'
        for k, one in enumerate(compared.samplers)
    ]
    parts.append('<text x="260" y="19">grey: the reference, and the band of 95%</text>')
    path = ROOT / "docs/assets" / f"{name}.svg"
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 440">'
        f"<style>{style} svg {{ font-family: sans-serif }}</style>"
        f'<rect width="680" height="440" fill="#fff"/>{"".join(parts)}</svg>\n',
        "utf-8",
    )
    Table("picture", "plots").row(path.name, str(len(chosen)))


if __name__ == "__main__":
    run_tables(
        __doc__,
        (print_verdicts, print_seconds, print_pictures),
        splits=20,
        damaged=2,
        rows=(EQUAL, *DAMAGES),
    )
