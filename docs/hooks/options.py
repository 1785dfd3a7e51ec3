"""Show functions of an options class with its fields, as they are called."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Parameter, ParameterKind

_DECORATOR = re.compile(r"with_options\w*\((\w+)\)")
_ENTRY = re.compile(r"^    options: .*\n(?: {8,}.*\n)*", re.MULTILINE)
_FIELDS = re.compile(r"^Args:\n((?: {4}.*\n)+)", re.MULTILINE)


class Options(Extension):
    """Put the fields of an options class in the place of the parameter `options`."""

    def on_package(self, *, pkg: Any, **others: Any) -> None:
        """Change every function that `with_options` decorates."""
        if pkg.name == "bpa_ppl":
            change_functions(pkg, pkg)


def change_functions(pkg: Any, parent: Any) -> None:
    """Change the decorated functions of a module and of the modules in it."""
    for member in parent.members.values():
        if member.is_alias:
            continue
        if member.is_module:
            change_functions(pkg, member)
        elif member.is_function:
            for decorator in member.decorators:
                if match := _DECORATOR.search(str(decorator.value)):
                    path = parent.resolve(match[1])
                    add_fields(member, pkg[path.removeprefix(f"{pkg.name}.")])


def add_fields(function: Any, options: Any) -> None:
    """Replace the last parameter of a function, and its description, by the fields of a class."""
    del function.parameters["options"]
    for field in options.attributes.values():
        settings = field.name == "settings"
        kind = ParameterKind.var_keyword if settings else ParameterKind.keyword_only
        annotation, default = ("Any", "{}") if settings else (field.annotation, field.value)
        function.parameters.add(
            Parameter(field.name, annotation=annotation, kind=kind, default=default)
        )
    fields = _FIELDS.search(options.docstring.value)
    function.docstring.value = _ENTRY.sub(lambda _: fields[1], function.docstring.value + "\n")
