"""The command `bpa tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bpa_ppl.cli import options as shared
from bpa_ppl.extras.tuning.tuner import TUNERS

#: The box of the command in `bpa --help`.
HELP_BOX = "Research"


def tune(
    nbest: shared.NBestPath,
    /,
    *,
    weights: shared.Weights,
    output: shared.OutputPath,
    reading: shared.Reading = shared.Reading(),
    columns: shared.ColumnFlags = shared.ColumnFlags(),
    tuner: Annotated[str, Parameter(help=f"{shared.format_names(TUNERS)}.")] = "mert",
    gain: Annotated[str, Parameter(allow_leading_hyphen=True)] = "bleu",
    template: Path | None = None,
    fixed: Annotated[shared.Fixed, Parameter(group=shared.PRIOR)] = None,
    defaults: Annotated[shared.Defaults, Parameter(group=shared.PRIOR)] = None,
    setting: shared.Settings = None,
    seed: int = 0,
    unchecked: shared.UncheckedReferences = False,
    quiet: shared.Quiet = False,
) -> None:
    """Re-estimate the weights by MERT, MIRA or PRO, for comparison.

    Example: `bpa tune dev.nbest -r dev.ref -w moses.ini --tuner mira -o tuned.ini`

    Args:
        output: Weight file; - for stdout.
        gain: Metric to optimise: bleu, ter, or the mean of a numeric column of the lists, such as
            comet, or -ter if lower is better.
        template: moses.ini to copy, with the new weights filled in.
        setting: Setting of the tuner, as NAME=VALUE: restarts, epochs, …
        seed: The same seed gives the same weights.
    """
    from bpa_ppl._runtime.streams import require_writable
    from bpa_ppl.extras.tuning.reestimation import reestimate
    from bpa_ppl.formats.weight_files import write_weights
    from bpa_ppl.gains.gains import resolve
    from bpa_ppl.gains.misplaced import check_references

    chosen = TUNERS.resolve(tuner, setting)  # a mistake is found before any file is read
    lists, canonical = reading.read(nbest, columns.roles(gain)), shared.parse_weights(weights)
    check_references(lists, resolve(gain, lists), unchecked=unchecked)
    require_writable(output)
    tuned = reestimate(
        lists,
        canonical,
        tuner=chosen,
        gain=gain,
        seed=seed,
        fixed=fixed,
        defaults=defaults,
        progress=not quiet,
    )
    write_weights(tuned.weights, output, template=template)
    shared.echo_status(tuned, quiet)
