"""Files of weights of every format: read and written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bpa_ppl.errors import DataError, UsageError, one_of
from bpa_ppl.formats import moses_ini
from bpa_ppl.formats.registry import AUTO, WEIGHT_FORMATS, weight_format
from bpa_ppl.formats.streams import AnyPath, atomic_writer, read_text, source_name
from bpa_ppl.weights import Weights

_BY_SUFFIX = {".json": "json", ".ini": "moses.ini"}


def read_weights(path: AnyPath, format: str = AUTO) -> Weights:
    """Read the weights of a moses.ini, a dense-weights file or a JSON object.

    Args:
        path: the file, compressed or not; `-` is the standard input.
        format: "moses.ini", "dense", "json", or "auto" to tell it by the content.

    Raises:
        DataError: if the file cannot be read; the message names the line and the remedy.
        UsageError: if the format is unknown.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"LM0= 0.5"), file.flush()
    ...     print(read_weights(file.name))
    Weights({'LM0': 0.5})
    """
    text, source = read_text(path), source_name(path)
    pairs = weight_format(format, text).parse(text, source)
    if not pairs:
        raise DataError("there are no weights in it: write `Name0= value …` lines", source)
    return Weights(pairs, source)


def write_weights(
    weights: Mapping[str, float],
    path: AnyPath,
    *,
    template: AnyPath | None = None,
    format: str = AUTO,
) -> None:
    """Write weights, in full precision.

    Args:
        weights: name and value of each feature.
        path: the file; it appears when it is complete. `-` is the standard output.
        template: a moses.ini to copy with new weights in place of its own; all else in it, and the
            weights of other features, stay byte for byte.
        format: "moses.ini" (without a template a bare [weight] section), "dense", "json", or
            "auto": moses.ini with a template, else by the suffix (.ini, .json), else dense.

    Raises:
        DataError: if the file cannot be written, or the template has no weight of that name.
        UsageError: if the format is unknown, or takes no template.

    >>> write_weights({"LM0": 0.5, "TM0[0]": 1, "TM0[1]": 2}, "-")
    LM0= 0.5
    TM0= 1 2
    """
    chosen = _chosen_format(path, template, format)
    if template is None:
        with atomic_writer(path) as file:
            WEIGHT_FORMATS[chosen].write(weights, file)
        return
    text = moses_ini.renewed(read_text(template), weights, source_name(template))
    with atomic_writer(path) as file:
        file.write(text)


def _chosen_format(path: AnyPath, template: AnyPath | None, format: str) -> str:
    if one_of(format, (AUTO, *WEIGHT_FORMATS), "format of weights") == AUTO:
        by_suffix = _BY_SUFFIX.get(Path(path).suffix, "dense")
        return by_suffix if template is None else "moses.ini"
    if template is not None and format != "moses.ini":
        raise UsageError(f"a template is a moses.ini, so the format cannot be {format}")
    return format
