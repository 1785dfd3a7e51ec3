"""NumPyro programs that a text names, and their data in JSON files."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from bpa_ppl._runtime.streams import origin_name, read_text
from bpa_ppl._runtime.values import abbreviate, parse_json
from bpa_ppl.errors import DataError, UsageError, unknown_name, wrong_value


def read_program(
    model: str, data: str | Path | None = None
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return a program, and its keyword arguments; errors are those of the two readers."""
    program = read_model(model)
    return program, {} if data is None else read_arguments(data, program)


def read_model(text: str) -> Callable[..., Any]:
    """Return the function that `module:function` or `FILE.py:function` names.

    While a module is imported, and only then, modules of the working folder come first; those of
    the folder of a file where a file is named.

    Raises:
        UsageError: if there is no such file, module or function, or it cannot be imported.

    >>> read_model("json:dumps").__name__
    'dumps'
    >>> read_model("json")
    Traceback (most recent call last):
    bpa_ppl.errors.UsageError: a model is named module:function or FILE.py:function, not 'json'
    """
    module, colon, name = text.rpartition(":")
    if not (module and colon and name):
        rule = "a model is named module:function or FILE.py:function"
        raise wrong_value(rule, text, "model", code="bad-name")
    is_file = module.endswith(".py") or os.path.basename(module) != module
    path = Path(os.path.expanduser(module)).resolve() if is_file else None
    if path is not None and not path.is_file():
        problem = f"there is no file {module}: give FILE.py:function, or module:function"
        raise UsageError(problem, parameter="model", code="missing-file")
    folder = str(Path.cwd() if path is None else path.parent)
    sys.path.insert(0, folder)
    try:
        loaded = import_module(module) if path is None else _import_file(path)
    except (Exception, SystemExit) as error:  # any error of a module of the user, and sys.exit
        problem = f"the module {module} cannot be imported: {type(error).__name__}: {error}"
        raise UsageError(problem, parameter="model", code="damaged") from error
    finally:  # a file there must not replace what is imported later
        sys.path.remove(folder)
    model: Callable[..., Any] | None = getattr(loaded, name, None)
    if not callable(model):
        functions = [n for n, of in inspect.getmembers(loaded, inspect.isfunction)]
        owner = f"the module {module}"
        raise unknown_name("function", name, functions, "model", owner=owner)
    return model


def _import_file(path: Path) -> ModuleType:
    """Return the module in a file, which is imported under its path and replaces no other module.

    Afterwards it is not listed: other processes receive its functions themselves, not their names.
    """
    # The recipe of the documentation of importlib.
    spec = spec_from_file_location(str(path), path, loader=SourceFileLoader(str(path), str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop(spec.name, None)
    return module


def read_arguments(path: str | Path, model: Callable[..., Any]) -> dict[str, Any]:
    """Read the keyword arguments of a program from a JSON object: lists of numbers become arrays.

    Args:
        path: the file.
        model: the program, which has a parameter for each entry.

    Raises:
        DataError: if the file is not a JSON object, an object has a key twice, an array has rows
            of different lengths, or the program has no parameter of that name, or needs others.
    """
    expected = 'the arguments of the model are one object of JSON, such as {"x": [1, 2], "n": 2}'
    try:
        data = parse_json(read_text(path), origin_name(path), parameter="data")
    except DataError as error:
        if error.code in ("bad-line", "bad-encoding"):
            problem = f"{error.problem.partition(':')[0]}: {expected}"
            details = {"parameter": "data", "code": error.code}
            raise DataError(problem, path, error.line, **details) from error
        raise
    if not isinstance(data, dict):
        problem = f"{abbreviate(data)} is no object: {expected}"
        raise DataError(problem, path, code="wrong-type")
    arguments = {name: _to_array(value, name, path) for name, value in data.items()}
    try:
        inspect.signature(model).bind(**arguments)
    except TypeError as error:
        title = getattr(model, "__name__", "the model")
        problem = f"does not fit {title}{inspect.signature(model)}: {error}"
        raise DataError(problem, path, code="mismatch") from error
    return arguments


def _to_array(value: Any, name: str, path: str | Path) -> Any:
    """Return a list of numbers as an array; other values as they are."""
    if not isinstance(value, list):
        return value
    try:
        array = np.array(value)
    except ValueError as error:
        problem = f"{name} has rows of different lengths: write equal ones"
        raise DataError(problem, path, code="wrong-length") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name} is not made of numbers: give numbers", path, code="bad-number")
    return array
