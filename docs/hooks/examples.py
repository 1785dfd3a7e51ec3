"""Examples of docstrings as code on the site: `>>>` alone would be a quotation in Markdown."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

_EXAMPLES = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_FLAGS = re.compile(r" +# doctest: .*$", re.MULTILINE)


class Examples(Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: Any, **others: Any) -> None:
        """Change the docstring of an object once, though it may be loaded twice (`clone.py`)."""
        if obj.docstring is not None and "```pycon" not in obj.docstring.value:
            obj.docstring.value = _EXAMPLES.sub(fenced, obj.docstring.value)


def fenced(found: re.Match[str]) -> str:
    """Return an example as a block of code, without the flags that are for its test."""
    return f"```pycon\n{_FLAGS.sub('', found[0])}\n```"
