"""`bpa experiment`, `bpa figures` and `bpa demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bpa_ppl.cli import options as shared


def experiment(
    study: Annotated[Path, typer.Argument(help="Study file (TOML).")],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Folder of the results; an unfinished run resumes."),
    ],
    jobs: Annotated[int, typer.Option(help="Number of processes; -1 uses every core.")] = 1,
    backend: shared.Backend = "local",
    scheduler: shared.Scheduler = None,
    quiet: shared.Quiet = False,
) -> None:
    """Compare methods over numbers of adaptation sentences (learning curves)."""
    from bpa_ppl.experiments import read_study, run_study

    written = run_study(
        read_study(study),
        output,
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        progress=not quiet,
    )
    shared.echo_status(f"wrote {written}: run `bpa figures {output}` to plot it", quiet)


def figures(
    results: Annotated[Path, typer.Argument(help="Folder of results of `bpa experiment`.")],
    kind: Annotated[str, typer.Option(help="Figure files: png, pdf or none.")] = "png",
    quiet: shared.Quiet = False,
) -> None:
    """Plot learning curves: figures, tables, and a self-contained HTML page."""
    from bpa_ppl.experiments import write_figures

    written = write_figures(results, kind=kind)
    shared.echo_status(f"wrote {written[0]} and {len(written) - 1} more files", quiet)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the results.")] = Path(
        "demo-output"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the split and of the sampler.")] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Adapt to 50 sentences of a package leaflet, check, and rerank the other sentences."""
    from bpa_ppl.demo import run_demo

    print(run_demo(output, seed=seed, progress=not quiet))
