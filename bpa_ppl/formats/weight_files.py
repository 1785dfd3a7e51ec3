"""Files of weights of every format: read and written."""

from __future__ import annotations

from collections.abc import Mapping

from bpa_ppl._runtime.arguments import one_of
from bpa_ppl.errors import DataError, UsageError
from bpa_ppl.formats.format import AUTO, WEIGHT_FORMATS, WeightFormat
from bpa_ppl.formats.line_weights import MosesIni
from bpa_ppl.formats.streams import (
    AnyInput,
    AnyPath,
    atomic_writer,
    file_suffix,
    origin_name,
    read_text,
)
from bpa_ppl.names import repeated
from bpa_ppl.weights import Weights, unnamed_weights

_ANY = "dense"  # read if no other format is detected, and written without an ending


def read_weights(path: AnyInput, format: str | WeightFormat = AUTO) -> Weights:
    """Read the weights of a moses.ini, a dense-weights file, JSON or another format.

    A JSON list of numbers, without names, must be in the order of the columns of the lists.

    Args:
        path: the file, compressed or not; `-` is the standard input. Also an open file, the bytes
            of a file, or an iterable of its lines.
        format: the name of a format or the format itself; "auto" detects it from the content.

    Raises:
        DataError: if the file cannot be read; the message names the line and the remedy.
        UsageError: if the format is unknown.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"LM0= 0.5"), file.flush()
    ...     print(read_weights(file.name))
    Weights({'LM0': 0.5})
    """
    reader = _resolved(format)
    text, origin = read_text(path), origin_name(path)
    pairs = (reader or _detected(text)).parse(text, origin)
    if not pairs:
        problem = "there are no weights in it: write `Name0= value …` lines"
        raise DataError(problem, origin, code="no-data")
    names, values = zip(*pairs, strict=True)
    if not any(names):
        return unnamed_weights(values, origin)
    for name in repeated(names):
        raise DataError(f"two weights of {name}: remove one", origin, code="duplicate")
    return Weights(pairs, origin)


def write_weights(
    weights: Mapping[str, float],
    path: AnyPath,
    *,
    template: AnyPath | None = None,
    format: str | WeightFormat = AUTO,
) -> None:
    """Write weights, in full precision.

    Args:
        weights: name and value of each feature.
        path: the file; it appears when it is complete. `-` is the standard output.
        template: a moses.ini to copy with new weights; everything else in it, and the weights of
            other features, remain unchanged.
        format: the name of a format or the format itself, such as "moses.ini" (without a template
            a bare [weight] section), "dense" or "json"; "auto" is moses.ini
            with a template, else what the suffix says, and dense where there is none.

    Raises:
        DataError: if the file cannot be written, a name does not fit the format, or the template
            has no weight of that name.
        UsageError: if the format or the suffix is unknown, or the format takes no template.

    >>> write_weights({"LM0": 0.5, "TM0[0]": 1, "TM0[1]": 2}, "-")
    LM0= 0.5
    TM0= 1 2
    """
    chosen = _resolved(format) or _for_file(path, template)
    text = ""
    if template is not None:
        if not isinstance(chosen, MosesIni):
            name = WEIGHT_FORMATS.name_of(chosen)
            problem = f"a template is a moses.ini, so the format cannot be {name}"
            raise UsageError(problem, parameter="template", code="not-supported")
        text = chosen.renewed(read_text(template), weights, origin_name(template))
    with atomic_writer(path) as file:
        if template is None:
            chosen.write(weights, file)
        file.write(text)


def _resolved(format: str | WeightFormat) -> WeightFormat | None:
    """Return a format; None for "auto"."""
    if isinstance(format, str):
        one_of(format, (AUTO, *WEIGHT_FORMATS), WEIGHT_FORMATS.kind, "format")
    return None if format == AUTO else WEIGHT_FORMATS.resolve(format)


def _detected(text: str) -> WeightFormat:
    """Return the first format that detects the content of a file, or that of lines."""
    formats = (kind() for name, kind in WEIGHT_FORMATS.loaded() if name != _ANY)
    detected = next((format for format in formats if format.detect(text)), None)
    return detected or WEIGHT_FORMATS.resolve(_ANY)


def _for_file(path: AnyPath, template: AnyPath | None) -> WeightFormat:
    suffix = file_suffix(path)
    if template is not None or not suffix:
        return WEIGHT_FORMATS.resolve(_ANY if template is None else "moses.ini")
    names = {end: name for name, kind in WEIGHT_FORMATS.loaded() for end in kind.suffixes}
    if suffix not in names:
        problem = f"{path}: no format of weights has the ending {suffix}"
        advice = f"choose one of {', '.join(names)}, or name the format"
        raise UsageError(f"{problem}: {advice}", parameter="format", code="unknown-format")
    return WEIGHT_FORMATS.resolve(names[suffix])
