"""`bpa_ppl.sample` on the usual models of NumPyro's examples, tests and notebooks.

    python benchmarks/bench_numpyro_models.py [--programs "AR(2)" …]

For each program of `numpyro_programs.py`: the sampler that `bpa_ppl.sample` chose; whether its
draws pass their check, or the program is refused; the CPU seconds of the first call of a process,
and those of NumPyro's NUTS with four chains of 1,000 draws after 1,000 of warm-up, each with the
conversion to ArviZ data; whether NumPyro's draws pass the same check; and if both pass, the largest
difference of a mean, in posterior standard deviations. The reasons of what is refused, fails, or
ends in another exception are below the table; for the latter the exit status is 1.
"""

from __future__ import annotations

import sys
from typing import Any

from bench_gallery import describe_errors, run_apart, run_numpyro, run_ours
from measuring import Table, run_tables


def print_models(options: Any) -> None:
    """Print the table, and the reasons."""
    from numpyro_programs import PROGRAMS

    columns = "chosen", "check", "CPU seconds", "NumPyro's", "NumPyro's check", "difference"
    table, reasons, is_raised = Table("program", *columns), [], False
    for name in options.programs or PROGRAMS:
        arguments = ("numpyro_programs", name, 1)
        ours, theirs = run_apart(run_ours, *arguments), run_apart(run_numpyro, *arguments)
        verdicts = [
            ("passes" if one["passes"] else "fails") if "passes" in one else next(iter(one))
            for one in (ours, theirs)
        ]
        both = verdicts == ["passes", "passes"]
        difference = describe_errors(ours["moments"], theirs["moments"])[0] if both else "–"
        seconds = [one["cpu"][0] for one in (ours, theirs)]
        table.row(name, ours.get("chosen", "–"), verdicts[0], *seconds, verdicts[1], difference)
        if verdicts[0] != "passes":
            reason = ours.get("refused") or ours.get("raised") or ours["problems"]
            reasons.append(f"{name} {verdicts[0]}: {reason}")
        is_raised |= verdicts[0] == "raised"
    print(*reasons, sep="\n")
    if is_raised:
        sys.exit(1)


if __name__ == "__main__":
    run_tables(__doc__, (print_models,), programs=(), needs_data=False)
