"""The provenance of a posterior: settings, versions, seed, signature, and how to repeat it."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import Record, to_attributes

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

#: Attributes that other sections show, or that only programs need.
_ELSEWHERE = ("baselines", "options", "feature_scales", "check", "comments")
#: The packages that draws depend on.
_PACKAGES = ("numpyro", "jax", "jaxlib", "numpy", "python")
_DIGITS = 12  # of a hash in a signature


def read_attributes(record: Record) -> dict[str, str]:
    """Return the recorded attributes of draws in words; of values for each chain the distinct ones.

    >>> from bpa_ppl.posterior.record import Record
    >>> read_attributes(Record(seed=7, others={"engine": ["nuts", "nuts"], "comments": ["# a"]}))
    {'engine': 'nuts', 'seed': '7'}
    """
    lists = {name: one for name, one in record.others.items() if isinstance(one, list)}
    chains = {name: [*{str(one): one for one in of}.values()] for name, of in lists.items()}
    recorded = to_attributes(structs.replace(record, others={**record.others, **chains}))
    shown = {k: in_words(value) for k, value in recorded.items() if k not in _ELSEWHERE}
    return {k.replace("_", " "): text for k, text in shown.items() if text}


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

    >>> from bpa_ppl.posterior.record import GainColumn, RecipeRecord, Record, SamplerRecord
    >>> sampler = SamplerRecord(name="imh", settings={"draws": 10})
    >>> record = Record(sampler=sampler, seed=7, versions={"jax": "0.9"})
    >>> signature(Draws({"mu": np.zeros((2, 10))}, record=record))
    'sampler:imh|chains:2|draws:10|seed:7|jax:0.9'
    >>> record = Record(recipe=RecipeRecord(gain=GainColumn("mqm", negative=True)))
    >>> signature(Draws({"mu": np.zeros((2, 10))}, record=record))
    'gain_column:-mqm|chains:2|draws:10'
    """
    draws = as_draws(posterior, finite=False)
    record, (chains, count) = draws.record, draws.shape
    observed, recipe, prior = record.observed, record.recipe, record.prior
    sources = to_attributes(record).get("feature_sources", [])
    scale = None
    if prior is not None and prior.scale is not None:
        scale = f"{prior.scale}{' learned' if prior.scale_learned else ''}"
    sampler = {"name": record.sampler.name, **(record.sampler.settings or {})}
    parts = {
        "lists": observed.sentences,
        "data": _hash(record.data),
        "options": _hash(record.options),
        "metric": observed.gain,
        "gain_column": recipe.gain and f"{'-' * recipe.gain.negative}{recipe.gain.column}",
        "ties": observed.ties,
        "model": record.model,
        "likelihood": record.likelihood and _abbreviate(record.likelihood.plain),
        "prior": prior and _abbreviate(prior.plain, without=("scale", "scale_learned", "spread")),
        "scale": scale,
        "added": f"{len(sources)},{_hash(sources)}" if sources else None,
        "sampler": _abbreviate(sampler, without=("chains", "draws")),
        "chains": chains,
        "draws": count,
        "seed": record.seed,
        **{name: record.versions.get(name) for name in _PACKAGES},
        "version": record.versions.get("bpa_ppl"),
        "machine": record.machine,
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items() if value not in (None, ""))


def suggest_command(record: Record) -> str | None:
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


def _abbreviate(component: Mapping[str, Any], without: tuple[str, ...] = ()) -> str | None:
    """Return a component and its settings in a signature: `margin,gamma=2.0`."""
    settings = {key: one for key, one in component.items() if one not in (None, {}, [], ())}
    name = settings.pop("name", None)
    shown = [f"{k}={one}".replace("|", "/") for k, one in settings.items() if k not in without]
    return ",".join(map(str, (name or "unknown", *shown))) if name or shown else None


def in_words(value: Any) -> str:
    """Return plain data in words, without empty values.

    >>> in_words({"name": "margin", "gamma": 2.0, "ties": None})
    'margin, gamma 2'
    >>> in_words([{"name": "lm", "carry": True, "feature_names": ["lm", "lm.oov"]}])
    '(lm, carry yes, feature_names (lm, lm.oov))'
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if not isinstance(value, Mapping | list | tuple):
        return str(value)
    items = value.items() if isinstance(value, Mapping) else [("", one) for one in value]
    parts: list[str] = []
    for key, one in items:
        text = in_words(one)
        if isinstance(one, Mapping | list | tuple):
            text = f"({text})"
        if one not in (None, "", {}, [], ()):
            parts.append(text if key == "" or (key == "name" and not parts) else f"{key} {text}")
    return ", ".join(parts)
