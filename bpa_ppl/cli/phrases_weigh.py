"""`bpa phrases weigh`: a general phrase table, weighted pair by pair for a domain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bpa_ppl.cli import options
from bpa_ppl.errors import NotConverged, UsageError

if TYPE_CHECKING:
    from bpa_ppl.models.instance_weighting import WeightedTable

_CORPUS = "two files, line by line translations, tokenised as the phrases are"
_DRAWS = 1000


def weigh(
    inner: Annotated[str, typer.Argument(metavar="IN", help="Counts of the domain.")],
    outer: Annotated[str, typer.Argument(metavar="OUT", help="Counts of the general table.")],
    output: Annotated[
        str,
        typer.Option("--output", "-o", help="NAME.parquet, or text as Moses has it; .gz, .xz."),
    ],
    dev: Annotated[str, typer.Option(help="Counts of other text of the domain, to fit to.")],
    in_corpus: Annotated[
        tuple[str, str], typer.Option(help=f"SOURCE TARGET: what IN is of; {_CORPUS}.")
    ],
    out_corpus: Annotated[
        tuple[str, str], typer.Option(help=f"SOURCE TARGET: what OUT is of; {_CORPUS}.")
    ],
    form: Annotated[
        str,
        typer.Option(
            help="weighted, gamma-0, flat, exponential, general, similarity, svm, or plain."
        ),
    ] = "weighted",
    mixture: Annotated[str, typer.Option(help="linear or map.")] = "map",
    scale: Annotated[
        str, typer.Option(help="Of counts and perplexities: log, or plain as published.")
    ] = "log",
    prior_deviation: Annotated[
        float,
        typer.Option(help="Of each weight, around 0; 0 is maximum likelihood, as published."),
    ] = 1.0,
    posterior: Annotated[
        str | None,
        typer.Option(help="NAME: write NAME.direct.nc and NAME.inverse.nc; the table is the mean."),
    ] = None,
    unchecked: options.Unchecked = False,
    out_source_counts: Annotated[
        str | None,
        typer.Option(help="`phrase ||| count` in all of OUT, where the table is a part of it."),
    ] = None,
    out_target_counts: Annotated[str | None, typer.Option(help="The same of targets.")] = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    quiet: options.Quiet = False,
) -> None:
    """Mix a table of the domain with a general one whose counts are weighted by features."""
    from bpa_ppl.models.instance_weighting import FORMS, PhiPrior, variant_named, weigh
    from bpa_ppl.phrases.pair_features import SVM, pair_features, read_corpus, svm_feature
    from bpa_ppl.phrases.tables import read_counts, write_table
    from bpa_ppl.posterior import write_posterior

    variant = variant_named(form, mixture)
    if prior_deviation < 0:
        raise UsageError(f"--prior-deviation is a number from 0 on, not {prior_deviation:g}")
    if posterior is not None and (not prior_deviation or not variant.weighted):
        raise UsageError("--posterior needs weights and their prior: a form but plain, and not 0")
    general = read_counts(outer, source_counts=out_source_counts, target_counts=out_target_counts)
    domain, judge = read_counts(inner), read_counts(dev)
    corpora = read_corpus(*out_corpus), read_corpus(*in_corpus)
    names, features = pair_features(general, *corpora, scale=scale, progress=not quiet)  # type: ignore[arg-type]
    if SVM in FORMS[form].get("features", ()):
        names, features = (SVM,), svm_feature(general, domain, features, seed=seed)
    made = weigh(
        domain,
        general,
        judge,
        features,
        names,
        variant,
        prior=PhiPrior(weight_deviation=prior_deviation) if prior_deviation else None,
        draws=_DRAWS if posterior is not None else 0,
        seed=seed,
    )
    _tell(made, quiet)
    for name, drawn in made.posteriors.items():
        write_posterior(drawn, f"{posterior}.{name}.nc")
    if not unchecked:
        _check(made)
    write_table(made.table, output)
    options.say(f"{len(made.table):,} phrase pairs", quiet)


def _tell(made: WeightedTable, quiet: bool) -> None:
    """Print the parameters, and how likely dev is, to standard error."""
    from bpa_ppl.posterior import as_draws
    from bpa_ppl.tables import text_table

    for name, fitted in made.fits.items():
        options.say(fitted.describe("p(t|s)" if name == "direct" else "p(s|t)"), quiet)
    first = next(iter(made.fits.values()))
    columns = {name: fitted.phi.weights for name, fitted in made.fits.items()}
    for name, posterior in made.posteriors.items():
        draws = as_draws(posterior)
        columns[name], columns[f"{name} sd"] = draws.mean, draws.deviation
    rows = [
        [feature, *(f"{values[n]:.2f}" for values in columns.values())]
        for n, feature in enumerate(first.names)
    ]
    if rows:
        options.say(text_table(rows, ("weight", *columns), align="l" + "r" * len(columns)), quiet)


def _check(made: WeightedTable) -> None:
    """Refuse a table that is the mean of draws that cannot be trusted.

    Raises:
        NotConverged: if a posterior fails its check.
    """
    from bpa_ppl.diagnostics import check

    failed = [name for name, posterior in made.posteriors.items() if not check(posterior)]
    if failed:
        raise NotConverged(
            f"the draws of {' and '.join(failed)} fail their check, and no table is written: try "
            "--form gamma-0 (γ is often what cannot be told from the data), a smaller "
            "--prior-deviation, or --unchecked"
        )
