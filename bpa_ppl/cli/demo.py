"""The command `bpa demo`."""

from __future__ import annotations

from pathlib import Path

from bpa_ppl.cli import options as shared


def demo(
    *, output: shared.OutputPath = Path("demo-output"), seed: int = 0, quiet: shared.Quiet = False
) -> None:
    """Adapt to 50 sentences of a package leaflet, check, and rerank the other sentences.

    Args:
        output: Folder of the results.
        seed: Seed of the split and of the sampler.
    """
    from bpa_ppl.demo import run_demo

    print(run_demo(output, seed=seed, progress=not quiet))
