"""A study: which methods are compared, on which texts, with how many adaptation sentences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bpa_ppl.experiments.methods import Method, Value


@dataclass(frozen=True)
class Text:
    """N-best lists of a text, and its references; `first_id` is the id of its first sentence."""

    nbest: Path
    references: tuple[Path, ...]
    first_id: int = 0


@dataclass(frozen=True)
class Domain:
    """A domain to adapt to.

    Attributes:
        name: what the results are filed under.
        weights: the canonical weights λ_T.
        adapt: the pool from which A is drawn.
        test: what is translated; None takes sentences from `adapt`.
        held_out: how many of them; a shuffle that depends on the study's seed picks them.
    """

    name: str
    weights: Path
    adapt: Text
    test: Text | None = None
    held_out: int = 0


@dataclass(frozen=True)
class Sweep:
    """One setting of some methods, varied at some sizes of A."""

    setting: str
    values: tuple[Value, ...]
    methods: tuple[str, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Study:
    """Everything that the results depend on.

    Attributes:
        domains: the texts.
        methods: what is compared, at all sizes.
        sizes: of A, in sentences.
        draws: of A, at each size.
        seed: of the draws of A, of samplers and of tuners.
        replacement: whether a sentence may be drawn more than once, as published.
        development: the out-of-domain text that λ_T was tuned on, for methods that need it.
        sweeps: what else is run.
    """

    domains: tuple[Domain, ...]
    methods: tuple[Method, ...]
    sizes: tuple[int, ...]
    draws: int = 10
    seed: int = 0
    replacement: bool = True
    development: Text | None = None
    sweeps: tuple[Sweep, ...] = ()

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file that the study reads, in order."""
        texts = [text for d in self.domains for text in (d.adapt, d.test)] + [self.development]
        named = [path for text in texts if text for path in (text.nbest, *text.references)]
        return (*named, *(domain.weights for domain in self.domains))
