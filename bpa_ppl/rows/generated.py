"""Lists from the objects that Hugging Face Transformers and vLLM return, without importing them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bpa_ppl import columns as cols
from bpa_ppl.arrays import Float64, Int64
from bpa_ppl.errors import DataError, UsageError, one_of, quoted
from bpa_ppl.nbest import NBest
from bpa_ppl.rows.base import TOO_LARGE
from bpa_ppl.rows.readers import lists_of
from bpa_ppl.rows.samples import (
    STATISTICS,
    Samples,
    Statistics,
    extractor,
    token_statistics,
    unfinished,
)

_SCORE = "score"  # of a beam search: the log-probability, divided by a power of the length
_ROUNDING = 1e-3  # by which log-probabilities of half precision may exceed 0
_FINISHED = ("stop", None)
_ABSENT = (np.nan,) * len(STATISTICS)


def generated_lists(
    texts: Any,
    outputs: Any,
    n: Any,
    transition_scores: Any,
    eos_token_id: Any,
    references: cols.AnyReferences | None,
    sources: Iterable[str] | None,
) -> NBest:
    """Return the lists of `NBest.from_generate`, whose arguments these are.

    >>> from types import SimpleNamespace
    >>> beam = SimpleNamespace(sequences=[[0, 5]], beam_indices=[[0, -1]], sequences_scores=[-1])
    >>> generated_lists(["a"], beam, 1, [[-1.0, 0.0]], None, None, None).feature_names
    ('logprob.sum', 'logprob.mean', 'logprob.min', 'length', 'score', 'count')
    """
    answers = cols.texts(texts, "texts", "generated sequence")
    is_integer = isinstance(n, int | np.integer) and not isinstance(n, bool)
    if not is_integer or n < 1 or not answers or len(answers) % n:
        problem = f"n must be the number of texts of each prompt, not {quoted(n)}"
        raise UsageError(f"{problem}: there are {len(answers)} texts", parameter="n")
    scores = _array(transition_scores, "transition_scores", len(answers), 0)
    lengths = _lengths(outputs, eos_token_id, scores)
    inside = np.arange(scores.shape[1]) < lengths[:, np.newaxis]
    if not (np.isfinite(scores[inside]) & (scores[inside] <= _ROUNDING)).all():
        problem = "transition_scores are not log-probabilities: compute them with normalize_logits"
        raise DataError(problem, parameter="transition_scores", code="bad-number")
    of_beams = _attribute(outputs, "sequences_scores")
    of_beams = None if of_beams is None else _array(of_beams, "outputs", len(answers))
    samples = Samples(NBest.origin, "error")
    for row, text in enumerate(answers):
        prompt = row // n if row % n else samples.add_prompt(row // int(n) + 1)
        statistics = token_statistics(scores[row, : lengths[row]].tolist()) or _ABSENT
        more = () if of_beams is None else (float(of_beams[row]),)
        samples.add(prompt, text.strip(), (*statistics, *more))
    names = STATISTICS if of_beams is None else (*STATISTICS, _SCORE)
    columns = samples.columns(range(len(samples.lines)), names)
    return lists_of(lambda options: columns, references, sources)


def _lengths(outputs: Any, eos_token_id: Any, scores: Float64) -> Int64:
    """Return (texts,) the number of tokens of each text, the end of the text included."""
    count, steps = scores.shape
    beams = _attribute(outputs, "beam_indices")
    if beams is not None:
        of_beams: Int64 = (_array(beams, "outputs", count, 0)[:, :steps] >= 0).sum(axis=1)
        return of_beams
    sequences = _attribute(outputs, "sequences")
    if sequences is None:
        rule = "outputs must be those of generate with return_dict_in_generate=True"
        raise UsageError(rule, parameter="outputs", code="wrong-type")
    tokens = _array(sequences, "outputs", count, steps)
    if eos_token_id is None:
        problem = "sampled texts do not say where they end: give model.generation_config."
        problem += "eos_token_id"
        raise UsageError(problem, parameter="eos_token_id", code="missing-setting")
    # Prompts come first, as far as they are repeated.
    ends = np.isin(tokens[:, tokens.shape[1] - steps :], _floats(eos_token_id, "eos_token_id"))
    lengths: Int64 = np.where(ends.any(axis=1), ends.argmax(axis=1) + 1, steps)
    return lengths


def _attribute(outputs: Any, name: str) -> Any:
    """Return a field of outputs, which are an object or a dictionary; None if it has none."""
    return outputs.get(name) if isinstance(outputs, dict) else getattr(outputs, name, None)


def _array(values: Any, parameter: str, texts: int, steps: int | None = None) -> Float64:
    """Return an array of NumPy from one of any library.

    Args:
        values: the array.
        parameter: that it was given as, or as a part of.
        texts: the number of its rows.
        steps: the least number of its columns; None if it has a single number for each text.

    Raises:
        DataError: if it has another shape.
        UsageError: if there are no numbers in it.
    """
    array = _floats(values, parameter)
    shape = (texts,) if steps is None else (texts, max(steps, *array.shape[1:], 0))
    if array.shape != shape:
        problem = f"{parameter} must have a row for each of {texts} texts and all of their steps"
        raise DataError(f"{problem}, not {array.shape}", parameter=parameter, code="wrong-length")
    return array


def _floats(values: Any, parameter: str) -> Float64:
    if hasattr(values, "detach"):  # a tensor, perhaps on a device, or of half precision
        values = values.detach().cpu().double().numpy()
    return cols.to_floats(values, parameter)


def request_lists(
    requests: Any,
    extract: str,
    references: cols.AnyReferences | None,
    sources: Iterable[str] | None,
    bad: str,
) -> NBest:
    """Return the lists of `NBest.from_requests`, whose arguments these are.

    >>> from types import SimpleNamespace as Stub
    >>> outputs = [Stub(text=text, token_ids=[5]) for text in ("a", "a", "b")]
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     lists = request_lists([Stub(prompt=None, outputs=outputs)], "", None, None, "error")
    >>> lists.feature_names, lists.features.tolist()
    (('length', 'count'), [[1.0, 2.0], [1.0, 1.0]])
    """
    one_of(bad, ("error", "drop"), "policy", "bad")
    part_of, samples = extractor(extract), Samples(NBest.origin, bad)
    for number, request in enumerate(cols.members(requests, "requests"), 1):
        outputs = getattr(request, "outputs", None)
        if not isinstance(outputs, Sequence) or isinstance(outputs, str):
            problem = "requests must be the RequestOutput objects of vLLM, which have outputs"
            raise UsageError(
                f"{problem}, not {quoted(request)}", parameter="requests", code="wrong-type"
            )
        name, source = getattr(request, "request_id", None), getattr(request, "prompt", None)
        source = source if isinstance(source, str) else None
        prompt = samples.add_prompt(number, None if name is None else str(name), source)
        if not outputs:
            samples.leave_out("requests without outputs", prompt, number)
        for output in outputs:
            reason, text = getattr(output, "finish_reason", None), getattr(output, "text", None)
            if not isinstance(text, str):
                problem = f"outputs of vLLM have a text, not {quoted(text)}"
                raise UsageError(problem, parameter="requests", code="wrong-type")
            part, statistics = part_of(text), _statistics(output)
            finite = all(not abs(value) >= TOO_LARGE for value in statistics)
            if reason not in _FINISHED:
                samples.leave_out(unfinished(reason), prompt, number)
            elif part is None:
                samples.leave_out("texts without the pattern", prompt, number)
            elif not finite:
                samples.leave_out("log-probabilities that are not finite", prompt, number)
            else:
                samples.add(prompt, part, statistics)
    columns = samples.columns(range(len(samples.lines)))
    return lists_of(lambda options: columns, references, sources)


def _statistics(output: Any) -> Statistics:
    """Return the statistics of the tokens of an output of vLLM; NaN where one is missing."""
    tokens = getattr(output, "token_ids", None) or ()
    logged = getattr(output, "logprobs", None)
    if logged is not None and len(logged) == len(tokens) > 0:
        values = [at.get(token) for at, token in zip(logged, tokens, strict=True)]
        if all(value is not None for value in values):
            numbers = [float(value.logprob) for value in values]
            # NaN would be a missing value.
            numbers = [-np.inf if np.isnan(number) else number for number in numbers]
            return token_statistics(numbers) or _ABSENT
    total, length = getattr(output, "cumulative_logprob", None), len(tokens)
    total = np.nan if total is None else float(total)
    return total, total / length if length else np.nan, np.nan, length or np.nan
