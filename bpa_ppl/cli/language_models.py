"""`bpa lm`: language models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from bpa_ppl.cli import options as shared
from bpa_ppl.errors import UsageError, wrong_value


def estimate(
    *texts: Annotated[str, Parameter(name="TEXT", required=True)],
    order: int | None = None,
    output: shared.Output | None = None,
    test: list[str] | None = None,
    quiet: shared.Quiet = False,
) -> None:
    """Estimate a language model (modified Kneser–Ney), and print its size and perplexity.

    Example: `bpa lm domain.txt --order 4 --output domain.arpa --test dev.txt`

    Args:
        texts: Text with one sentence per line, words separated by spaces; several files are one
            text; - for stdin. Or one language model, an ARPA file.
        order: Length of the longest n-grams, 1 to 5 (default: 3).
        output: ARPA file; .gz, .xz and .zst are compressed.
        test: Text to compute the perplexity of.
    """
    from bpa_ppl._runtime.streams import origin_name, require_writable
    from bpa_ppl.text.model_files import evaluate_text, is_model, read_or_train, write_arpa

    if output is not None:
        if any(map(is_model, texts)):
            rule = "a language model is built from a text"
            raise wrong_value(rule, str(texts[0]), "output", remedy="give one", code="conflict")
        require_writable(output)
    model = read_or_train(texts, _choose_order(order, texts), progress=not quiet)
    sizes = ", ".join(f"{count:,} {n}-grams" for n, count in enumerate(model.counts, 1))
    if model.fallback:
        orders = ", ".join(map(str, model.fallback))
        sizes += f"; too few n-grams of order {orders} to estimate discounts: 0.5, 1, 1.5 are used"
    lines = [] if quiet else [sizes]
    lines += [f"{origin_name(path)}: {evaluate_text(model, [path])}" for path in test or ()]
    if output is not None:
        write_arpa(model, output)
    for line in lines:
        shared.print_result(line, output)


def mix(
    *texts: Annotated[str, Parameter(name="TEXT", required=True)],
    dev: str,
    order: int | None = None,
    test: list[str] | None = None,
    quiet: shared.Quiet = False,
) -> None:
    """Fit a linear mixture of language models to other text, and print weights and perplexities.

    `bpa adapt --add lm=IN,OUT,dev=DEV` computes features of lists with the same mixture.

    Example: `bpa lm mix domain.txt general.arpa --dev dev.txt`

    Args:
        texts: Two or more texts or language models (ARPA files), such as one of the domain and a
            general one.
        dev: Text of the domain; the weights maximise its likelihood.
        order: Length of the longest n-grams of the models of texts, 1 to 5 (default: 3).
        test: Other text to compute the perplexity of.
    """
    from bpa_ppl.text.language_model import MixtureModel
    from bpa_ppl.text.model_files import evaluate_text, read_or_train

    if len(texts) < 2:
        raise UsageError("a mixture needs at least two texts or models", parameter="texts")
    if dev in texts:
        problem = f"{dev} is one of the texts of the mixture: give other text of the domain"
        raise UsageError(problem, parameter="dev", code="conflict")
    chosen = _choose_order(order, texts)
    models = [read_or_train([text], chosen, progress=not quiet) for text in texts]
    mixture = MixtureModel.fit_files(models, [dev])
    for path in [dev, *(test or ())]:
        for name, weight, model in zip(texts, mixture.weights, models, strict=True):
            print(f"{path}: {name}, alpha = {weight:.4f}, {evaluate_text(model, [path])}")
        print(f"{path}: mixture, {evaluate_text(mixture, [path])}")


def _choose_order(order: int | None, texts: Sequence[str]) -> int:
    """Return the order of models that are estimated; refuse one where nothing is estimated."""
    from bpa_ppl.text.model_files import is_model

    if order is not None and all(map(is_model, texts)):
        message = "a language model has its order already: leave out the order, or give a text"
        raise UsageError(message, parameter="order", code="conflict")
    return 3 if order is None else order
