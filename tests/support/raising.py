"""Errors as tests expect them: by class, code, parameter and line, so that messages may change.

And the notes of `bpa_ppl._runtime.messages`, which warnings are made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bpa_ppl._runtime.messages import Note, capture_notes  # noqa: F401
from bpa_ppl.errors import BpaError


@contextmanager
def raises(
    kind: type[BpaError],
    code: str | None = None,
    *,
    parameter: str | None = None,
    line: int | None = None,
    match: str | None = None,
) -> Iterator[pytest.ExceptionInfo[BpaError]]:
    """Check that an error is raised.

    Args:
        kind: its class, exactly.
        code: its code; None is the code of the class.
        parameter: its parameter, or None if it has none.
        line: the line of the file that it names, or None if it names none.
        match: a pattern for values of the user that the message must repeat; not for its prose.
    """
    with pytest.raises(kind, match=match) as caught:
        yield caught
    error = caught.value
    expected = (kind, code or kind.code, parameter, line)
    assert (type(error), error.code, error.parameter, getattr(error, "line", None)) == expected
