"""Fence docstring examples, because Markdown reads `>>>` as a quotation."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_EXAMPLES = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_FLAGS = re.compile(r" +# doctest: .*$", re.MULTILINE)


class Examples(Extension):
    """Fence the examples of every docstring."""

    def on_object(self, *, obj: Any, **others: Any) -> None:
        """Fence the examples in the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLES.sub(fenced, obj.docstring.value)


def fenced(found: re.Match[str]) -> str:
    """Return an example as a code block, without doctest flags."""
    return f"```pycon\n{_FLAGS.sub('', found[0])}\n```"
