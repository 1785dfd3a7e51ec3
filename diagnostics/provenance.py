"""The provenance of a posterior: settings, versions, seed, signature, and how to repeat it."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bpa_ppl.posterior.adapter import as_draws
from bpa_ppl.posterior.draws import Draws

if TYPE_CHECKING:
    from bpa_ppl.posterior.adapter import Posterior

#: Attributes that other sections show, or that are for programs alone.
_ELSEWHERE = ("baselines", "options", "feature_scales", "check")
#: Parts of a signature that are attributes, and the packages that draws depend on.
_STATED = ("oracle_metric", "gain_column", "oracle_ties", "model")
_PACKAGES = ("numpyro", "jax", "jaxlib", "numpy", "python")
_DIGITS = 12  # of a hash in a signature


def attributes(draws: Draws) -> dict[str, str]:
    """Return the recorded attributes of draws in words.

    >>> attributes(Draws({"weights": np.zeros((2, 10, 1))}, ("LM0",), attrs={"seed": 7}))
    {'seed': '7'}
    """
    shown = {k: _in_words(value) for k, value in draws.attrs.items() if k not in _ELSEWHERE}
    return {k.replace("_", " "): text for k, text in shown.items() if text}


def different_data(draws: Draws, other: Draws) -> list[str]:
    """Return the kinds of data that two posteriors have other hashes of, see `Sentences.hashes`.

    >>> zeros, data = {"weights": np.zeros((2, 10, 1))}, {"texts": "5f", "gains": "a0"}
    >>> one, other = (Draws(zeros, ("LM0",), attrs={"data": data | {"gains": g}}) for g in "ab")
    >>> different_data(one, other)
    ['gains']
    """
    ours, theirs = (_mapping(one.attrs.get("data")) for one in (draws, other))
    return [name for name, value in ours.items() if theirs.get(name, value) != value]


def difference(draws: Draws, other: Draws, name: str) -> str:
    """Return in one sentence whether a repeated adaptation has the same draws, else why not.

    Args:
        draws: of the repeated adaptation.
        other: of the first one.
        name: of its file.

    >>> draws = Draws({"weights": np.zeros((2, 10, 1))}, ("LM0",), attrs={"seed": 1})
    >>> difference(draws, draws, "old.nc")
    'the draws are those of old.nc'
    >>> difference(draws, Draws({"weights": np.ones((2, 10, 1))}, ("LM0",)), "old.nc")
    'the draws differ from those of old.nc: other seed'
    """
    if np.array_equal(draws.weights, other.weights):
        return f"the draws are those of {name}"
    parts = signature(other).split("|")
    differ = [part for part in signature(draws).split("|") if part not in parts]
    names = [part.partition(":")[0] for part in differ]
    return f"the draws differ from those of {name}{': other ' if names else ''}{', '.join(names)}"


def signature(posterior: Posterior) -> str:
    """Return a line that identifies a posterior, similar to the signatures of sacreBLEU.

    It has the number of lists, hashes of their content and of the options with the canonical
    weights, gain, likelihood, prior with its scale, a hash of the added features, sampler, seed,
    and versions. Equal signatures mean equal draws on the same machine.

    Args:
        posterior: of `adapt`, or any other one, of which less is known.

    >>> attrs = {"sampler": "imh", "seed": 7, "settings": {"draws": 10}, "versions": {"jax": "0.9"}}
    >>> signature(Draws({"weights": np.zeros((2, 10, 1))}, ("LM0",), attrs=attrs))
    'sampler:imh|chains:2|draws:10|seed:7|jax:0.9'
    """
    draws = as_draws(posterior, finite=False)
    attrs, (chains, count) = draws.attrs, draws.shape
    versions, prior = _mapping(attrs.get("versions")), _mapping(attrs.get("prior"))
    scale, learned = prior.get("scale"), " learned" if prior.get("scale_learned") else ""
    sources = attrs.get("feature_sources")
    sampler = {"name": attrs.get("sampler"), **_mapping(attrs.get("settings"))}
    parts = {
        "lists": attrs.get("adaptation_sentences"),
        "data": _hash(attrs.get("data")),
        "options": _hash(attrs.get("options")),
        **{key.removeprefix("oracle_"): attrs.get(key) for key in _STATED},
        "likelihood": _in_short(attrs.get("likelihood")),
        "prior": _in_short(prior, without=("scale", "scale_learned", "spread")),
        "scale": f"{scale}{learned}" if scale is not None else None,
        "added": f"{len(sources)},{_hash(sources)}" if isinstance(sources, list) else None,
        "sampler": _in_short(sampler, without=("chains", "draws")),
        "chains": chains,
        "draws": count,
        "seed": attrs.get("seed"),
        **{name: versions.get(name) for name in _PACKAGES},
        "version": versions.get("bpa_ppl"),
        "machine": attrs.get("machine"),
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items() if value not in (None, ""))


def how_to_repeat(draws: Draws) -> str | None:
    """Return the command, and the call, that repeat the adaptation; None if it is unknown."""
    if "options" not in draws.attrs:
        return None
    lists = str(draws.attrs.get("lists", "LISTS"))
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


def _in_short(value: Any, without: tuple[str, ...] = ()) -> str | None:
    """Return a component and its settings in a signature: `margin,gamma=2.0`."""
    settings = {key: one for key, one in _mapping(value).items() if one not in (None, {}, [])}
    name = settings.pop("name", None)
    shown = [f"{k}={one}".replace("|", "/") for k, one in settings.items() if k not in without]
    return ",".join(map(str, (name or "unknown", *shown))) if name or shown else None


def _mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping, or an empty one for any other value that another program recorded."""
    return value if isinstance(value, Mapping) else {}


def _in_words(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        items = {k: _in_words(v) if isinstance(v, Mapping) else v for k, v in value.items()}
        return ", ".join(f"{key} {item}" for key, item in items.items())
    return str(value)
