"""`bpa demo`: an adaptation to the included data."""

from __future__ import annotations

from pathlib import Path

from bpa_ppl.cli import options as shared
from bpa_ppl.errors import UsageError

#: The box of the command in `bpa --help`.
HELP_BOX = "Everyday"


def demo(
    *,
    output: shared.OutputPath = Path("demo-output"),
    judges: bool = False,
    files: bool = False,
    quiet: shared.Quiet = False,
) -> None:
    """Adapt to 50 sentences of a package leaflet, check, and rerank the other sentences.

    Example: `bpa demo --output demo-output`

    Args:
        output: Folder of the results.
        judges: Choose between answers of LLMs instead, by the grades of five simulated judges.
        files: Write the data of both demos instead, as files to try the other commands on.
    """
    from bpa_ppl.extras.demo.demo import run_demo, run_judges_demo, write_demo_files

    if judges and files:
        message = "--files writes the data of both demos: leave out --judges"
        raise UsageError(message, parameter="files", code="conflict")
    if files:
        print("\n".join(f"wrote {path}" for path in write_demo_files(output)))
    else:
        print((run_judges_demo if judges else run_demo)(output, progress=not quiet))
