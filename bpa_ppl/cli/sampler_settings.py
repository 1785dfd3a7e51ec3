"""What the commands that run several samplers have in common."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from typing import Any

from bpa_ppl.cli.options import assignments
from bpa_ppl.errors import UsageError

#: Packages whose versions the numbers depend on.
VERSIONS = ("bpa_ppl", "numpyro", "jax", "arviz", "sacrebleu")


def names_of(samplers: str) -> list[str]:
    """Read names that are separated by commas.

    >>> names_of("imh, nuts")
    ['imh', 'nuts']

    Raises:
        UsageError: if there is none.
    """
    names = [name.strip() for name in samplers.split(",") if name.strip()]
    if not names:
        raise UsageError("--samplers names no sampler: give one or more, separated by commas")
    return names


def settings_of(samplers: Iterable[str], pairs: Iterable[str] | None) -> dict[str, dict[str, Any]]:
    """Read `SAMPLER.NAME=VALUE` options into the settings of each sampler.

    >>> settings_of(["imh", "rwm"], ["rwm.draws=500"])
    {'imh': {}, 'rwm': {'draws': 500}}

    Raises:
        UsageError: if an option is not of this form, or its sampler is not among those that run.
    """
    settings: dict[str, dict[str, Any]] = {name: {} for name in samplers}
    for key, value in assignments(pairs, "--set").items():
        sampler, dot, name = key.partition(".")
        if not dot or sampler not in settings:
            raise UsageError(
                f"--set takes SAMPLER.NAME=VALUE, with SAMPLER one of {', '.join(settings)}, "
                f"not {key!r}"
            )
        settings[sampler][name] = value
    return settings


def command_line() -> str:
    """Return the command that is running, as one would type it again."""
    return shlex.join(["bpa", *sys.argv[1:]])
