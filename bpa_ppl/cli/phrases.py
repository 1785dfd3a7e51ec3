"""`bpa phrases` and `bpa subdomains`: phrase tables, and latent subdomains of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import bpa_ppl as bpa
from bpa_ppl.cli import options as shared
from bpa_ppl.errors import NotConverged, UsageError

TableOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="NAME.parquet, or text as of Moses; .gz, .xz and .zst are compressed.",
    ),
]
SourceCounts = Annotated[
    str | None,
    typer.Option(help="`phrase ||| count` in all of OUT, if the table is only a part of it."),
]
TargetCounts = Annotated[str | None, typer.Option(help="The same for target phrases.")]
Inner = Annotated[str, typer.Argument(metavar="IN")]
Outer = Annotated[str, typer.Argument(metavar="OUT")]
_DRAWS = 1000


def extract(
    source: str,
    target: str,
    alignment: str,
    output: TableOutput,
    max_length: int = 5,
    like: str | None = None,
    keep: float | None = None,
    quiet: shared.Quiet = False,
) -> None:
    """Count the phrase pairs that are consistent with the alignment of a corpus.

    Args:
        source: One sentence per line, words separated by spaces.
        target: Its translations, line by line.
        alignment: Word alignment, one line per sentence pair: 0-0 1-2.
        max_length: Maximum number of words of a phrase.
        like: Text or language model of the domain: keep the lines most like it.
        keep: With --like: the share of the lines to keep.
    """
    from bpa_ppl.phrases.extraction import extract_phrases, select_lines
    from bpa_ppl.text.model_files import model_of

    if (like is None) != (keep is None):
        raise UsageError("give both --like and --keep", parameter="like", code="conflict")
    selected = None
    if like is not None and keep is not None:
        if target == "-":
            raise UsageError(
                "the target side is read twice: give it as a file",
                parameter="like",
                code="conflict",
            )
        selected = select_lines(model_of([like]), target, keep)
    table = extract_phrases(
        source, target, alignment, max_length=max_length, keep=selected, progress=not quiet
    )
    bpa.phrases.write_counts(table, output)
    shared.echo_status(f"{len(table):,} phrase pairs, {table.total:,.0f} occurrences", quiet)


def mix(
    inner: Inner,
    outer: Outer,
    output: TableOutput,
    dev: str | None = None,
    method: str = "map",
    value: float | None = None,
    out_source_counts: SourceCounts = None,
    out_target_counts: TargetCounts = None,
    quiet: shared.Quiet = False,
) -> None:
    """Mix a phrase table of the domain with a general one: p(t|s) and p(s|t).

    Args:
        inner: Phrase table of the domain. Counts: Parquet, `source ||| target ||| count`, or an
            extract file or phrase table of Moses.
        outer: General phrase table.
        dev: Counts of other text of the domain, to fit the parameter to.
        method: concatenate, linear, map or log-linear; linear-known and map-known take a phrase
            that only one table has from that table alone.
        value: Value of the parameter (alpha or beta), instead of fitting it.
    """
    general = bpa.phrases.read_counts(
        outer, source_counts=out_source_counts, target_counts=out_target_counts
    )
    held_out = None if dev is None else bpa.phrases.read_counts(dev)
    table, fits = bpa.phrases.mix(bpa.phrases.read_counts(inner), general, held_out, method, value)
    bpa.phrases.write_table(table, output)
    for fit in fits:
        shared.echo_status(fit, quiet)
    shared.echo_status(f"{len(table):,} phrase pairs, with {', '.join(table.columns)}", quiet)


def weigh(
    inner: Inner,
    outer: Outer,
    output: TableOutput,
    dev: Annotated[str, typer.Option()],
    in_corpus: Annotated[tuple[str, str], typer.Option()],
    out_corpus: Annotated[tuple[str, str], typer.Option()],
    form: str = "weighted",
    mixture: str = "map",
    scale: str = "log",
    prior_deviation: float = 1.0,
    posterior: str | None = None,
    unchecked: shared.Unchecked = False,
    out_source_counts: SourceCounts = None,
    out_target_counts: TargetCounts = None,
    seed: int = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Mix a table of the domain with a general one whose counts are weighted by features.

    Args:
        inner: Counts of the domain.
        outer: Counts of the general table.
        dev: Counts of other text of the domain, to fit to.
        in_corpus: SOURCE TARGET: the corpus of IN; two parallel files, tokenised as the phrases
            are.
        out_corpus: SOURCE TARGET: the corpus of OUT; two parallel files, tokenised as the phrases
            are.
        form: weighted, gamma-0, flat, exponential, general, similarity, svm, or plain.
        mixture: linear or map.
        scale: Scale of counts and perplexities: log, or plain as published.
        prior_deviation: Standard deviation of the prior of each weight, with mean 0; 0 is maximum
            likelihood, as published.
        posterior: NAME: write NAME.direct.nc and NAME.inverse.nc; the table is the posterior mean.
        seed: Seed of the draws.
    """
    from bpa_ppl.models.instance_weighting import FORMS, PhiPrior, variant_named, weigh
    from bpa_ppl.phrases.pair_features import SVM, pair_features, read_corpus, svm_feature
    from bpa_ppl.tables import text_table

    variant = variant_named(form, mixture)
    if prior_deviation < 0:
        raise UsageError(
            f"a standard deviation is a number ≥ 0, not {prior_deviation:g}",
            parameter="prior_deviation",
        )
    if posterior is not None and (not prior_deviation or not variant.weighted):
        raise UsageError(
            "draws need weighted features with a prior: another --form than plain, and a "
            "--prior-deviation above 0",
            parameter="posterior",
            code="conflict",
        )
    general = bpa.phrases.read_counts(
        outer, source_counts=out_source_counts, target_counts=out_target_counts
    )
    domain, judge = bpa.phrases.read_counts(inner), bpa.phrases.read_counts(dev)
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
    for name, fitted in made.fits.items():
        shared.echo_status(fitted.describe("p(t|s)" if name == "direct" else "p(s|t)"), quiet)
    first = next(iter(made.fits.values()))
    columns = {name: fitted.phi.weights for name, fitted in made.fits.items()}
    for name, drawn in made.posteriors.items():
        draws = bpa.as_draws(drawn)
        columns[name], columns[f"{name} sd"] = draws.mean, draws.deviation
    rows = [
        [feature, *(f"{values[n]:.2f}" for values in columns.values())]
        for n, feature in enumerate(first.names)
    ]
    if rows:
        table = text_table(rows, ("weight", *columns), align="l" + "r" * len(columns))
        shared.echo_status(table, quiet)
    for name, drawn in made.posteriors.items():
        bpa.write_posterior(drawn, f"{posterior}.{name}.nc")
    failed = (
        [] if unchecked else [n for n, drawn in made.posteriors.items() if not bpa.check(drawn)]
    )
    if failed:
        raise NotConverged(
            f"the draws of {' and '.join(failed)} fail their check, and no table is written: try "
            "--form gamma-0 (γ is often not identified by the data), a smaller --prior-deviation, "
            "or --unchecked"
        )
    bpa.phrases.write_table(made.table, output)
    shared.echo_status(f"{len(made.table):,} phrase pairs", quiet)


def subdomains(
    source: str,
    target: str,
    output: shared.Output,
    k: Annotated[int, typer.Option("-k")] = 12,
    soft: bool = False,
    induction: str = "em",
    side: str = "target",
    iterations: int | None = None,
    setting: shared.Settings = None,
    resume: bool = True,
    jobs: int = 1,
    backend: shared.Backend = "local",
    scheduler: shared.Scheduler = None,
    seed: int = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Induce latent subdomains of a parallel corpus, for domain-invariance features.

    Args:
        source: One sentence per line, words separated by spaces; plain, gzip, xz or zstd.
        target: Its translations, line by line.
        output: Parquet file.
        k: Number of subdomains.
        soft: Soft EM: a pair belongs to subdomains with probabilities.
        induction: em, or lda (topics of the sentences).
        side: With --induction lda: source, target, or both.
        iterations: Iterations of the full model, after one of language models alone (default: 3).
        setting: Setting, as NAME=VALUE: order, prior, folds, smoothing, start of em; method, alpha,
            beta, passes, anneal of lda.
        resume: Resume from OUTPUT.state, which an unfinished run of the same data and settings
            leaves.
        jobs: Number of threads; -1 uses every core.
        seed: Seed of the start.
    """
    from bpa_ppl.formats.streams import STANDARD, require_writable
    from bpa_ppl.models.subdomains import configured, induce

    settings: dict[str, Any] = dict(setting or {})
    for name in {"k", "seed", "iterations"} & set(settings):
        raise UsageError("this setting has an option of its own", parameter=name, code="conflict")
    settings |= {"k": k, "seed": seed}
    if soft:
        settings["em"] = "soft"
    if iterations is not None:
        settings["iterations"] = iterations
    configured(induction, settings)
    if output == STANDARD:
        raise UsageError("subdomains are written to a file: name one", parameter="output")
    require_writable(output)
    state = Path(f"{output}.state")
    if not resume:
        state.unlink(missing_ok=True)
    found = induce(
        source,
        target,
        induction=induction,  # type: ignore[arg-type]
        side=side,  # type: ignore[arg-type]
        jobs=jobs,
        backend=backend,
        scheduler=scheduler,
        state=state,
        progress=not quiet,
        **settings,
    )
    found.save(output)
    state.unlink(missing_ok=True)
    shares = ", ".join(f"{100 * share:.0f} %" for share in sorted(found.weights, reverse=True))
    shared.echo_status(f"{len(found):,} sentence pairs in {found.k} subdomains: {shares}", quiet)
