"""`bpa phrases` and `bpa subdomains`: phrase tables, and latent subdomains of a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bpa_ppl.cli import options as shared
from bpa_ppl.cli.command import Command
from bpa_ppl.errors import NotConverged, UsageError

app = typer.Typer(
    help="Phrase tables: extract phrase pairs from aligned text, and mix tables for a domain.",
    no_args_is_help=True,
)

_TABLE = (
    "Counts: Parquet, `source ||| target ||| count`, or an extract file or phrase table of Moses."
)
_CORPUS = "two parallel files, tokenised as the phrases are"
Output = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        help="NAME.parquet, or text as of Moses; .gz, .xz and .zst are compressed.",
    ),
]
OutSourceCounts = Annotated[
    str | None,
    typer.Option(help="`phrase ||| count` in all of OUT, if the table is only a part of it."),
]
OutTargetCounts = Annotated[str | None, typer.Option(help="The same for target phrases.")]
_DRAWS = 1000


@app.command(cls=Command)
def extract(
    source: Annotated[
        str, typer.Argument(help="One sentence per line, words separated by spaces.")
    ],
    target: Annotated[str, typer.Argument(help="Its translations, line by line.")],
    alignment: Annotated[
        str, typer.Argument(help="Word alignment, one line per sentence pair: 0-0 1-2.")
    ],
    output: Output,
    max_length: Annotated[int, typer.Option(help="Maximum number of words of a phrase.")] = 5,
    like: Annotated[
        str | None,
        typer.Option(help="Text or language model of the domain: keep the lines most like it."),
    ] = None,
    keep: Annotated[
        float | None, typer.Option(help="With --like: the share of the lines to keep.")
    ] = None,
    quiet: shared.Quiet = False,
) -> None:
    """Count the phrase pairs that are consistent with the alignment of a corpus."""
    from bpa_ppl.phrases.extraction import extract_phrases, select_lines
    from bpa_ppl.phrases.table_files import write_counts
    from bpa_ppl.text.model_files import model_of

    if (like is None) != (keep is None):
        raise UsageError("--like and --keep go together: give both or neither")
    selected = None
    if like is not None and keep is not None:
        if target == "-":
            raise UsageError("--like reads the target side twice: give it as a file")
        selected = select_lines(model_of([like]), target, keep)
    table = extract_phrases(
        source, target, alignment, max_length=max_length, keep=selected, progress=not quiet
    )
    write_counts(table, output)
    shared.echo_status(f"{len(table):,} phrase pairs, {table.total:,.0f} occurrences", quiet)


@app.command(cls=Command)
def mix(
    inner: Annotated[
        str, typer.Argument(metavar="IN", help=f"Phrase table of the domain. {_TABLE}")
    ],
    outer: Annotated[str, typer.Argument(metavar="OUT", help="General phrase table.")],
    output: Output,
    dev: Annotated[
        str | None,
        typer.Option(help="Counts of other text of the domain, to fit the parameter to."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="concatenate, linear, map or log-linear; linear-known and map-known take a phrase "
            "that only one table has from that table alone."
        ),
    ] = "map",
    value: Annotated[
        float | None,
        typer.Option(help="Value of the parameter (alpha or beta), instead of fitting it."),
    ] = None,
    out_source_counts: OutSourceCounts = None,
    out_target_counts: OutTargetCounts = None,
    quiet: shared.Quiet = False,
) -> None:
    """Mix a phrase table of the domain with a general one: p(t|s) and p(s|t)."""
    from bpa_ppl.phrases.mixtures import mix as mixed
    from bpa_ppl.phrases.table_files import read_counts, write_table

    general = read_counts(outer, source_counts=out_source_counts, target_counts=out_target_counts)
    held_out = None if dev is None else read_counts(dev)
    table, fits = mixed(read_counts(inner), general, held_out, method, value)
    write_table(table, output)
    for fit in fits:
        shared.echo_status(fit, quiet)
    shared.echo_status(f"{len(table):,} phrase pairs, with {', '.join(table.columns)}", quiet)


@app.command(cls=Command)
def weigh(
    inner: Annotated[str, typer.Argument(metavar="IN", help="Counts of the domain.")],
    outer: Annotated[str, typer.Argument(metavar="OUT", help="Counts of the general table.")],
    output: Output,
    dev: Annotated[str, typer.Option(help="Counts of other text of the domain, to fit to.")],
    in_corpus: Annotated[
        tuple[str, str], typer.Option(help=f"SOURCE TARGET: the corpus of IN; {_CORPUS}.")
    ],
    out_corpus: Annotated[
        tuple[str, str], typer.Option(help=f"SOURCE TARGET: the corpus of OUT; {_CORPUS}.")
    ],
    form: Annotated[
        str,
        typer.Option(
            help="weighted, gamma-0, flat, exponential, general, similarity, svm, or plain."
        ),
    ] = "weighted",
    mixture: Annotated[str, typer.Option(help="linear or map.")] = "map",
    scale: Annotated[
        str, typer.Option(help="Scale of counts and perplexities: log, or plain as published.")
    ] = "log",
    prior_deviation: Annotated[
        float,
        typer.Option(
            help="Standard deviation of the prior of each weight, with mean 0; 0 is maximum "
            "likelihood, as published."
        ),
    ] = 1.0,
    posterior: Annotated[
        str | None,
        typer.Option(
            help="NAME: write NAME.direct.nc and NAME.inverse.nc; the table is the posterior mean."
        ),
    ] = None,
    unchecked: shared.Unchecked = False,
    out_source_counts: OutSourceCounts = None,
    out_target_counts: OutTargetCounts = None,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Mix a table of the domain with a general one whose counts are weighted by features."""
    from bpa_ppl.diagnostics import check
    from bpa_ppl.models.instance_weighting import FORMS, PhiPrior, variant_named, weigh
    from bpa_ppl.phrases.pair_features import SVM, pair_features, read_corpus, svm_feature
    from bpa_ppl.phrases.table_files import read_counts, write_table
    from bpa_ppl.posterior import as_draws, write_posterior
    from bpa_ppl.tables import text_table

    variant = variant_named(form, mixture)
    if prior_deviation < 0:
        raise UsageError(f"--prior-deviation must be a number ≥ 0, not {prior_deviation:g}")
    if posterior is not None and (not prior_deviation or not variant.weighted):
        raise UsageError(
            "--posterior needs weighted features with a prior: another --form than plain, and a "
            "--prior-deviation above 0"
        )
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
    for name, fitted in made.fits.items():
        shared.echo_status(fitted.describe("p(t|s)" if name == "direct" else "p(s|t)"), quiet)
    first = next(iter(made.fits.values()))
    columns = {name: fitted.phi.weights for name, fitted in made.fits.items()}
    for name, drawn in made.posteriors.items():
        draws = as_draws(drawn)
        columns[name], columns[f"{name} sd"] = draws.mean, draws.deviation
    rows = [
        [feature, *(f"{values[n]:.2f}" for values in columns.values())]
        for n, feature in enumerate(first.names)
    ]
    if rows:
        table = text_table(rows, ("weight", *columns), align="l" + "r" * len(columns))
        shared.echo_status(table, quiet)
    for name, drawn in made.posteriors.items():
        write_posterior(drawn, f"{posterior}.{name}.nc")
    failed = [] if unchecked else [n for n, drawn in made.posteriors.items() if not check(drawn)]
    if failed:
        raise NotConverged(
            f"the draws of {' and '.join(failed)} fail their check, and no table is written: try "
            "--form gamma-0 (γ is often not identified by the data), a smaller --prior-deviation, "
            "or --unchecked"
        )
    write_table(made.table, output)
    shared.echo_status(f"{len(made.table):,} phrase pairs", quiet)


def subdomains(
    source: Annotated[
        str,
        typer.Argument(
            help="One sentence per line, words separated by spaces; plain, gzip, xz or zstd."
        ),
    ],
    target: Annotated[str, typer.Argument(help="Its translations, line by line.")],
    output: Annotated[str, typer.Option("--output", "-o", help="Parquet file.")],
    k: Annotated[int, typer.Option("-k", help="Number of subdomains.")] = 12,
    soft: Annotated[
        bool,
        typer.Option("--soft", help="Soft EM: a pair belongs to subdomains with probabilities."),
    ] = False,
    induction: Annotated[str, typer.Option(help="em, or lda (topics of one side).")] = "em",
    side: Annotated[str, typer.Option(help="With --induction lda: source or target.")] = "target",
    iterations: Annotated[
        int | None,
        typer.Option(
            help="Iterations of the full model, after one of language models alone (default: 3)."
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Setting of EM, as NAME=VALUE: order, prior, folds, smoothing, start."
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            help="Resume from OUTPUT.state, which an unfinished run of the same data and settings "
            "leaves."
        ),
    ] = True,
    jobs: Annotated[int, typer.Option(help="Number of threads; -1 uses every core.")] = 1,
    backend: shared.Backend = "local",
    scheduler: shared.Scheduler = None,
    seed: Annotated[int, typer.Option(help="Seed of the start.")] = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Induce latent subdomains of a parallel corpus, for domain-invariance features."""
    from bpa_ppl.formats.streams import STANDARD, require_writable
    from bpa_ppl.models.subdomains import Settings, induce

    settings: dict[str, Any] = dict(shared.assignments(setting, "--set"))
    for name, option in {"k": "-k", "seed": "--seed", "iterations": "--iterations"}.items():
        if name in settings:
            raise UsageError(f"--set {name} has its own option: {option}")
    settings = {"k": k, "seed": seed, **settings}
    Settings.configured("induction of subdomains", settings)
    if soft:
        settings["em"] = "soft"
    if iterations is not None:
        settings["iterations"] = iterations
    if output == STANDARD:
        raise UsageError("subdomains are written to a file: name one with --output")
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
