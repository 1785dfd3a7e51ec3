"""Names that a module imports from others when they are first used, as its stub file lists them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def attach_stub(
    module: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a module, from its stub file.

    Type checkers and editors read the stub file, `NAME.pyi`, so that public names are written once.
    Its lines are `from MODULE import NAME as NAME`. `import bpa_ppl` loads neither JAX nor ArviZ.

    Args:
        module: the name of the module.
        file: its file.

    >>> from bpa_ppl import extending
    >>> get, list_names, names = attach_stub("bpa_ppl.extending", extending.__file__)
    >>> get("Metric").__module__, "Metric" in names, list_names() == names
    ('bpa_ppl.gains.metric', True, True)
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text("utf-8"))
    imports = [statement for statement in stub.body if isinstance(statement, ast.ImportFrom)]
    origins = {name.name: one.module or "" for one in imports for name in one.names}

    def import_name(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(origins[name]), name)
        except ModuleNotFoundError as error:
            from bpa_ppl.errors import describe_missing_package

            problem = describe_missing_package(name, error)
            raise ModuleNotFoundError(problem, name=error.name) from error
        setattr(sys.modules[module], name, value)
        return value

    return import_name, lambda: sorted(origins), sorted(origins)
