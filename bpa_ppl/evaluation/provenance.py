"""The provenance of a posterior of lists: its signature, and how to repeat the adaptation."""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.adaptation_record import AdaptationRecord
from bpa_ppl.diagnostics.pages.provenance import abbreviate, describe_run, join_parts
from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.posterior.draws import Draws

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

#: Attributes that other sections of the report show, or that only programs need.
ELSEWHERE = ("baselines", "options", "feature_scales")
_DIGITS = 12  # of a hash in a signature


def describe_difference(draws: Draws, other: Draws, name: str) -> str:
    """Return one sentence: whether a repeated adaptation has the same draws, or why it has not.

    Args:
        draws: the draws of the repeated adaptation.
        other: the draws of the first adaptation.
        name: the file name of the first adaptation.

    >>> from bpa_ppl.posterior.record import Record
    >>> draws = Draws({"mu": np.zeros((2, 10))}, record=Record(seed=1))
    >>> describe_difference(draws, draws, "old.nc")
    'the draws are those of old.nc'
    >>> describe_difference(draws, Draws({"mu": np.ones((2, 10))}), "old.nc")
    'the draws differ from those of old.nc: other seed'
    """
    if np.array_equal(draws.array, other.array):
        return f"the draws are those of {name}"
    parts = signature(other).split("|")
    differ = [part for part in signature(draws).split("|") if part not in parts]
    names = [part.partition(":")[0] for part in differ]
    return f"the draws differ from those of {name}{': other ' if names else ''}{', '.join(names)}"


def signature(posterior: Posterior) -> str:
    """Return a line that identifies a posterior, similar to the signatures of sacreBLEU.

    It has the number of lists, a hash of their content, a hash of the options and canonical
    weights, the gain, the likelihood, the prior with its scale, a hash of the added features, the
    sampler, the seed, and the versions. Equal signatures mean equal draws on the same machine.

    Args:
        posterior: a posterior of `adapt`, or of another program, whose signature has fewer parts.

    >>> from bpa_ppl.adaptation_record import GainColumn, RecipeRecord
    >>> recipe = RecipeRecord(gain=GainColumn("mqm", negative=True))
    >>> record = AdaptationRecord(recipe=recipe).add_to()
    >>> signature(Draws({"mu": np.zeros((2, 10))}, record=record))
    'gain_column:-mqm|chains:2|draws:10'
    """
    draws = as_draws(posterior, finite=False)
    adaptation, of_run = AdaptationRecord.of(draws.record), describe_run(draws)
    observed, recipe, prior = adaptation.observed, adaptation.recipe, adaptation.prior
    sources = adaptation.to_attributes().get("feature_sources", [])
    scale = None
    if prior is not None and prior.scale is not None:
        scale = f"{prior.scale}{' learned' if prior.scale_learned else ''}"
    parts = {
        "lists": observed.sentences,
        "data": _hash(adaptation.data),
        "options": _hash(adaptation.options),
        "metric": observed.gain,
        "gain_column": recipe.gain and f"{'-' * recipe.gain.negative}{recipe.gain.column}",
        "ties": observed.ties,
        "model": of_run.pop("model"),
        "likelihood": adaptation.likelihood and abbreviate(adaptation.likelihood.plain),
        "prior": prior and abbreviate(prior.plain, without=("scale", "scale_learned", "spread")),
        "scale": scale,
        "added": f"{len(sources)},{_hash(sources)}" if sources else None,
        **of_run,
    }
    return join_parts(parts)


def suggest_command(record: AdaptationRecord) -> str | None:
    """Return the command, and the Python call, that repeat the adaptation; None if unknown."""
    if record.options is None:
        return None
    lists = record.lists or "LISTS"
    lists = "LISTS" if lists.startswith("<") else shlex.quote(lists)
    return (
        f"bpa adapt {lists} --like POSTERIOR -o again.nc\n\n"
        'weights, options = bpa.recorded_options(bpa.read_posterior("POSTERIOR"))\n'
        "again = bpa.adapt(lists, weights, **options)"
    )


def _hash(value: Any) -> str | None:
    """Return a short hash of plain data; None if there is none."""
    if not value:
        return None
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGITS]
