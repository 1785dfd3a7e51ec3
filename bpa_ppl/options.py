"""Options as the keyword arguments of functions.

The options of adapting and of reranking are declared, described and validated once, by the classes
`bpa_ppl.sampling.options.AdaptOptions` and `bpa_ppl.decoding.options.RerankOptions`: for Python,
the command line and studies. `with_options` gives a function their fields as keyword arguments, and
the groups of options of `bpa_ppl.cli` are subclasses.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from bpa_ppl.errors import UsageError, nearest

A = TypeVar("A")
B = TypeVar("B")
O = TypeVar("O")  # noqa: E741
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class TakesSettings(Protocol[P, R_co]):
    """A function with options as keyword arguments, and further settings of any name."""

    @overload
    def __call__(self, first: Any, second: Any, /, *args: P.args, **options: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, first: Any, second: Any, /, **settings: Any) -> R_co: ...


def with_options(
    options: Callable[P, O], *, without: tuple[str, ...] = ()
) -> Callable[[Callable[[A, B, O], R]], Callable[Concatenate[A, B, P], R]]:
    """Give a function of two arguments and an options object the options as keyword arguments.

    Type checkers, editors and `help` see the fields in the signature of the function.

    Args:
        options: the class of the options.
        without: fields that the function does not take.

    Raises:
        UsageError: when the function is called with an option that does not exist.

    >>> from dataclasses import dataclass
    >>> @dataclass(kw_only=True)
    ... class Options:
    ...     rule: str = "mean"
    >>> @with_options(Options)
    ... def chosen_rule(lists: str, posterior: str, options: Options) -> object:
    ...     return options.rule
    >>> chosen_rule("lists", "posterior", rule="mbr")
    'mbr'
    >>> str(inspect.signature(chosen_rule))
    "(lists: 'str', posterior: 'str', *, rule: 'str' = 'mean') -> 'object'"
    >>> chosen_rule("lists", "posterior", rules="mbr")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: there is no option rules: did you mean rule?
    """
    return functools.partial(_with_keywords, options, without=without)


def with_options_and_settings(
    options: Callable[P, O],
) -> Callable[[Callable[[A, B, O], R]], TakesSettings[P, R]]:
    """Apply `with_options`, and collect all other keywords in the field `settings`."""
    return functools.partial(_with_keywords, options)


def _with_keywords(
    options: Any, function: Callable[..., Any], without: tuple[str, ...] = ()
) -> Any:
    signature = inspect.signature(function)
    first, second, _ = signature.parameters.values()
    keywords = {
        name: parameter.replace(kind=parameter.VAR_KEYWORD, default=parameter.empty)
        if name == "settings"
        else parameter
        for name, parameter in inspect.signature(options).parameters.items()
        if name not in without
    }
    signature = signature.replace(parameters=[first, second, *keywords.values()])

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in signature.parameters and "settings" not in keywords:
                problem = f"there is no option {name}{nearest(name, keywords)}"
                raise UsageError(problem, parameter=name, code="unknown-name")
        values = signature.bind(*args, **kwargs).arguments
        return function(values.pop(first.name), values.pop(second.name), options(**values))

    call.__signature__ = signature  # type: ignore[attr-defined]
    return call
