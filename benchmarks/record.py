"""Run a benchmark, and write what it prints as a page of the documentation.

    python benchmarks/record.py PAGE [OPTIONS OF THE SCRIPT]

The pages are `docs/results/PAGE.md`; each has the tables of one script, its description, the date,
the command and the versions. The section "Notes" of the page is kept. Nothing is written if the
script fails.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from textwrap import fill
from time import perf_counter

FOLDER = Path(__file__).parent
RESULTS = FOLDER.parent / "docs/results"
SCRIPTS = {
    "asking": "bench_asking.py",
    "confidence": "bench_confidence.py",
    "constants": "bench_held_out.py",
    "control": "bench_control.py",
    "drift": "bench_drift.py",
    "features": "bench_features.py",
    "instance-weighting": "bench_instance_weighting.py",
    "invariance": "bench_invariance.py",
    "judged-lists": "bench_judged.py",
    "judging": "bench_judging.py",
    "juries": "bench_juries.py",
    "learned-priors": "bench_learned_priors.py",
    "likelihoods": "bench_likelihoods.py",
    "minimum-risk": "bench_mbr.py",
    "published-study": "bench_published.py",
    "samplers": "bench_domains.py",
    "scale": "bench_scale.py",
    "speech": "bench_speech.py",
    "subdomains": "bench_subdomains.py",
    "tuners": "bench_opponents.py",
}
PACKAGES = ("bpa_ppl", "jax", "numpyro", "numpy", "sacrebleu")


def printed(command: list[str]) -> str:
    """Run a command and return its output, which is shown as it comes."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return "".join(lines)


def in_markdown(output: str) -> str:
    """Return output with its tables as they are, and other lines between fences.

    A table that other lines interrupt has its header again after them.
    """
    parts, header = [], ""
    for is_table, lines in groupby(output.splitlines(), lambda line: line.startswith("|")):
        text = "\n".join(lines).strip("\n")
        if is_table and "\n|---" in text:
            header = text[: text.index("\n", text.index("\n|---") + 1)]
        elif is_table:
            text = f"{header}\n{text}"
        if text:
            parts.append(text if is_table else f"```text\n{text}\n```")
    return "\n\n".join(parts)


def described(description: str) -> str:
    """Return the description of a script in Markdown, with lists such as "Tables:" as lists."""
    paragraphs = []
    for paragraph in description.split("\n\n"):
        heading, _, entries = paragraph.partition(":\n    ")
        if entries and "\n" not in heading:
            items = map(list_item, re.split(r"\n    (?=\S)", entries))
            paragraph = f"{heading}:\n\n" + "\n".join(items)
        paragraphs.append(paragraph)
    return "\n\n".join(paragraphs)


def list_item(entry: str) -> str:
    """Return a name and its meaning, two spaces or more apart, as an item of a list."""
    name, meaning = re.split(r"\s{2,}", entry, maxsplit=1)
    item = f"* **{name}**: {' '.join(meaning.split())}"
    return fill(item, 100, subsequent_indent="  ", break_on_hyphens=False)


def main() -> None:
    """Read the command line, run the script, and write its page."""
    page, *options = sys.argv[1:] or [""]
    if page not in SCRIPTS:
        sys.exit(f"no page {page!r}: choose from {', '.join(SCRIPTS)}")
    script = FOLDER / SCRIPTS[page]
    title, _, description = (ast.get_docstring(ast.parse(script.read_text())) or "").partition("\n")
    start = perf_counter()
    output = printed([sys.executable, str(script), *options])
    minutes = (perf_counter() - start) / 60
    command = " ".join(["python", f"benchmarks/{script.name}", *options])
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    path = RESULTS / f"{page}.md"
    page_before = path.read_text("utf-8") if path.exists() else ""
    _, heading, notes = page_before.partition("\n## Notes\n")
    took = f"on {date.today()}, in {minutes:.1f} minutes"
    printed_by = f"Printed by `{command}` {took}, with {versions}"
    content = (
        f"# {title.rstrip('.')}\n\n{described(description.strip(chr(10)))}\n\n"
        f"{fill(printed_by, 99, break_on_hyphens=False)}.\n"
        f"[How to read the tables](../results.md#how-to-read-the-tables).\n\n"
        f"{in_markdown(output)}\n{heading}{notes}"
    )
    path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
