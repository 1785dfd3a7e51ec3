"""The provenance of a posterior: what it records of its run, and a signature."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import structs

from bpa_ppl.posterior.arviz_data import as_draws
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import Record, to_attributes

if TYPE_CHECKING:
    from bpa_ppl.posterior.arviz_data import Posterior

#: Attributes that other sections show, or that only programs need.
_ELSEWHERE = ("check", "comments")
#: The packages that draws depend on.
_PACKAGES = ("numpyro", "jax", "jaxlib", "numpy", "python")


def read_attributes(record: Record, without: Collection[str] = ()) -> dict[str, str]:
    """Return the recorded attributes of draws in words; of values for each chain the distinct ones.

    Args:
        record: of the draws.
        without: the names of attributes to leave out.

    >>> from bpa_ppl.posterior.record import Record
    >>> read_attributes(Record(seed=7, others={"engine": ["nuts", "nuts"], "comments": ["# a"]}))
    {'seed': '7', 'engine': 'nuts'}
    """
    lists = {name: one for name, one in record.others.items() if isinstance(one, list)}
    chains = {name: [*{str(one): one for one in of}.values()] for name, of in lists.items()}
    recorded = to_attributes(structs.replace(record, others={**record.others, **chains}))
    hidden = {*_ELSEWHERE, *without}
    shown = {k: in_words(value) for k, value in recorded.items() if k not in hidden}
    return {k.replace("_", " "): text for k, text in shown.items() if text}


def signature(posterior: Posterior) -> str:
    """Return a line that identifies the run of a sampler, similar to the signatures of sacreBLEU.

    It has the model, the sampler, the seed, and the versions, but nothing of the data. The
    signature of a posterior of lists has that, too: `bpa_ppl.evaluation.provenance.signature`.

    Args:
        posterior: draws of any program.

    >>> import numpy as np
    >>> from bpa_ppl.posterior.record import SamplerRecord
    >>> sampler = SamplerRecord(name="imh", settings={"draws": 10})
    >>> record = Record(sampler=sampler, seed=7, versions={"jax": "0.9"})
    >>> signature(Draws({"mu": np.zeros((2, 10))}, record=record))
    'sampler:imh|chains:2|draws:10|seed:7|jax:0.9'
    """
    return join_parts(describe_run(as_draws(posterior, finite=False)))


def describe_run(draws: Draws) -> dict[str, Any]:
    """Return the parts of the signature of a run by name; None is unknown."""
    record, (chains, count) = draws.record, draws.shape
    sampler = {"name": record.sampler.name, **(record.sampler.settings or {})}
    return {
        "model": record.model,
        "sampler": abbreviate(sampler, without=("chains", "draws")),
        "chains": chains,
        "draws": count,
        "seed": record.seed,
        **{name: record.versions.get(name) for name in _PACKAGES},
        "version": record.versions.get("bpa_ppl"),
        "machine": record.machine,
    }


def join_parts(parts: Mapping[str, Any]) -> str:
    """Return the signature that has some parts, without those that are unknown.

    >>> join_parts({"model": None, "seed": 7, "chains": 4})
    'seed:7|chains:4'
    """
    return "|".join(f"{key}:{value}" for key, value in parts.items() if value not in (None, ""))


def abbreviate(component: Mapping[str, Any], without: Collection[str] = ()) -> str | None:
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
