"""Phrase tables: extract phrase pairs from aligned text, and mix tables for a domain.

The commands `bpa phrases` and `bpa subdomains`, which also induces latent subdomains.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from bpa_ppl._runtime.messages import format_table
from bpa_ppl.cli import options as shared
from bpa_ppl.errors import wrong_value

#: The box of the commands in `bpa --help`.
HELP_BOX = "Phrases and language models"
#: A box of the help of a command.
_MODEL = Group("Model of the counts", sort_key=1)
_TableOutput = Annotated[
    shared.Output,
    Parameter(help="NAME.parquet, or text as of Moses; .gz, .xz and .zst are compressed."),
]
_Inner = Annotated[str, Parameter(name="IN")]
_Outer = Annotated[str, Parameter(name="OUT")]


def extract(
    source: str,
    target: str,
    alignment: str,
    /,
    *,
    output: _TableOutput,
    max_length: int = 5,
    like: str | None = None,
    keep: float | None = None,
    quiet: shared.Quiet = False,
) -> None:
    """Count the phrase pairs that are consistent with the alignment of a corpus.

    Example: `bpa phrases extract corpus.fr corpus.en corpus.align --output counts.parquet`

    Args:
        source: One sentence per line, words separated by spaces.
        target: Its translations, line by line.
        alignment: Word alignment, one line per sentence pair: 0-0 1-2.
        max_length: Maximum number of words of a phrase.
        like: Text or language model of the domain: keep the lines most like it.
        keep: With --like: the share of the lines to keep.
    """
    from bpa_ppl._runtime.streams import require_writable
    from bpa_ppl.extras.phrases.extraction import extract_phrases, select_lines
    from bpa_ppl.extras.phrases.table_files import write_counts
    from bpa_ppl.text.model_files import read_or_train

    shared.require_with("--like", like, keep=keep)
    shared.require_with("--keep", keep is not None, like=like)
    require_writable(output)
    selected = None
    if like is not None and keep is not None:
        selected = select_lines(read_or_train([like]), target, keep)
    table = extract_phrases(
        source, target, alignment, max_length=max_length, keep=selected, progress=not quiet
    )
    write_counts(table, output)
    shared.echo_status(f"{len(table):,} phrase pairs, {table.total:,.0f} occurrences", quiet)


def mix(
    inner: _Inner,
    outer: _Outer,
    /,
    *,
    output: _TableOutput,
    dev: str | None = None,
    method: str = "map",
    value: float | None = None,
    best: int | None = None,
    quiet: shared.Quiet = False,
) -> None:
    """Mix a phrase table of the domain with a general one: p(t|s) and p(s|t).

    Example: `bpa phrases mix in.parquet out.parquet --dev dev.parquet --output table.parquet`

    Args:
        inner: Phrase table of the domain. Counts: Parquet, `source ||| target ||| count`, or an
            extract file or phrase table of Moses.
        outer: General phrase table.
        dev: Counts of other text of the domain, to fit the parameter to.
        method: concatenate, linear, map or log-linear; linear-known and map-known take a phrase
            that only one table has from that table alone.
        value: Value of the parameter (alpha or beta), instead of fitting it.
        best: Keep this number of translations of each source phrase, those with the highest p(t|s).
    """
    from bpa_ppl._runtime.streams import require_writable
    from bpa_ppl.extras.phrases import mixtures
    from bpa_ppl.extras.phrases.table_files import read_counts, write_table

    require_writable(output)
    general = read_counts(outer)
    held_out = None if dev is None else read_counts(dev)
    table, fits = mixtures.mix(read_counts(inner), general, held_out, method, value)
    table = table if best is None else table.best(best)
    write_table(table, output)
    for fit in fits:
        shared.echo_status(fit, quiet)
    shared.echo_status(f"{len(table):,} phrase pairs, with {', '.join(table.columns)}", quiet)


def weigh(
    inner: _Inner,
    outer: _Outer,
    /,
    *,
    output: _TableOutput,
    dev: str,
    in_corpus: tuple[str, str],
    out_corpus: tuple[str, str],
    form: Annotated[str, Parameter(group=_MODEL)] = "weighted",
    mixture: Annotated[str, Parameter(group=_MODEL)] = "map",
    scale: Annotated[Literal["plain", "log"] | None, Parameter(group=_MODEL)] = None,
    negatives: Annotated[Literal["no-common", "source"] | None, Parameter(group=_MODEL)] = None,
    prior_deviation: Annotated[float | None, Parameter(group=_MODEL)] = None,
    published: Annotated[bool, Parameter(group=_MODEL)] = False,
    best: int | None = None,
    seed: int = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Mix a table of the domain with a general one whose counts are weighted by features.

    Example: `bpa phrases weigh in.parquet out.parquet --dev dev.parquet --in-corpus in.fr in.en
    --out-corpus out.fr out.en --output weighted.parquet`

    Args:
        inner: Counts of the domain.
        outer: Counts of the general table.
        dev: Counts of other text of the domain, to fit to.
        in_corpus: SOURCE TARGET: the corpus of IN; two parallel files, tokenised as the phrases
            are.
        out_corpus: SOURCE TARGET: the corpus of OUT; two parallel files, tokenised as the phrases
            are.
        form: weighted, gamma-0, flat, exponential, general, similarity or svm.
        mixture: linear or map.
        scale: Scale of counts and perplexities: log, or plain as published (default: log).
        negatives: With --form svm: the negative examples; no-common (definition 2 of the paper) or
            source (definition 1) (default: no-common).
        prior_deviation: Standard deviation of the prior of each weight, with mean 0; 0 is maximum
            likelihood, as published (default: 1).
        published: As in the paper: by default --scale plain and --prior-deviation 0, and for a
            phrase that only one table has, the share of the other is lost (Foster, Goutte &
            Kuhn 2010, Eq. 4 as printed).
        best: Keep this number of translations of each source phrase, those with the highest p(t|s).
        seed: Seed of the examples of the SVM.
    """
    from dataclasses import replace

    from bpa_ppl._runtime.streams import require_writable
    from bpa_ppl.extras.phrases.instance_weights import FORMS, variant_named, weigh_tables
    from bpa_ppl.extras.phrases.mixtures import check_tables
    from bpa_ppl.extras.phrases.pair_features import SVM, pair_features, read_corpus, svm_feature
    from bpa_ppl.extras.phrases.table_files import read_counts, write_table

    shared.require_with("--form svm", form == SVM, negatives=negatives)
    variant = replace(variant_named(form, mixture), complete=not published)
    deviation = (0.0 if published else 1.0) if prior_deviation is None else prior_deviation
    if not 0 <= deviation < float("inf"):
        raise wrong_value(
            "a standard deviation is a finite number ≥ 0", deviation, "prior_deviation"
        )
    require_writable(output)
    general = read_counts(outer)
    domain, judge = read_counts(inner), read_counts(dev)
    check_tables(domain, general, judge)
    columns, features = pair_features(
        general,
        read_corpus(*out_corpus),
        read_corpus(*in_corpus),
        scale=scale or ("plain" if published else "log"),
        progress=not quiet,
    )
    if SVM in FORMS[form].get("features", ()):
        features = svm_feature(
            general, domain, features, seed=seed, **shared.given_options(negatives=negatives)
        )
        columns = (SVM,)
    table, fits = weigh_tables(
        domain,
        general,
        judge,
        features,
        columns,
        variant,
        prior_deviation=deviation or None,
    )
    for name, fitted in fits.items():
        shared.echo_status(fitted.describe("p(t|s)" if name == "direct" else "p(s|t)"), quiet)
    weights = [fitted.phi.weights for fitted in fits.values()]
    rows = [
        [feature, *(f"{value:.2f}" for value in values)]
        for feature, *values in zip(fits["direct"].names, *weights, strict=True)
    ]
    shared.echo_status(format_table(rows, ("weight", *fits), align="lrr"), quiet)
    table = table if best is None else table.best(best)
    write_table(table, output)
    shared.echo_status(f"{len(table):,} phrase pairs", quiet)


def subdomains(
    source: str,
    target: str,
    /,
    *,
    output: shared.Output,
    k: Annotated[int, Parameter(name="-k")] = 12,
    soft: bool = False,
    induction: str = "em",
    side: str | None = None,
    iterations: int | None = None,
    setting: shared.Settings = None,
    jobs: int = 1,
    seed: int = 0,
    quiet: shared.Quiet = False,
) -> None:
    """Induce latent subdomains of a parallel corpus, for domain-invariance features.

    Example: `bpa subdomains corpus.fr corpus.en --output subdomains.parquet`

    Args:
        source: One sentence per line, words separated by spaces; plain, gzip, xz or zstd.
        target: Its translations, line by line.
        output: Parquet file.
        k: Number of subdomains.
        soft: Soft EM: a pair belongs to subdomains with probabilities.
        induction: em, or lda (topics of the sentences).
        side: With --induction lda: source, target, or both (default: target).
        iterations: Iterations of the full model, after one of language models alone (default: 3).
        setting: Setting, as NAME=VALUE: order, prior, folds, smoothing, start of em; alpha, beta,
            passes of lda.
        jobs: Number of threads; -1 uses every core.
        seed: Seed of the start.
    """
    from bpa_ppl._runtime.streams import STANDARD, require_writable
    from bpa_ppl.extras.phrases.induction import induce, parse_settings

    shared.require_with("--induction lda", induction == "lda", side=side)
    settings: dict[str, Any] = dict(setting or {})
    settings |= {"k": k, "seed": seed}
    if soft:
        settings["em"] = "soft"
    if iterations is not None:
        settings["iterations"] = iterations
    parse_settings(induction, settings)
    if output == STANDARD:
        raise wrong_value("subdomains are written to a file with a name", str(output), "output")
    require_writable(output)
    subdomains = induce(
        source,
        target,
        induction=induction,  # type: ignore[arg-type]
        jobs=jobs,
        progress=not quiet,
        **shared.given_options(side=side),
        **settings,
    )
    subdomains.save(output)
    shares = ", ".join(f"{100 * share:.0f} %" for share in sorted(subdomains.weights, reverse=True))
    shared.echo_status(
        f"{len(subdomains):,} sentence pairs in {subdomains.k} subdomains: {shares}", quiet
    )
    typical = zip(
        subdomains.typical_words("source"), subdomains.typical_words("target"), strict=True
    )
    rows = [(str(z), *map(" ".join, words)) for z, words in enumerate(typical)]
    shared.echo_status(format_table(rows, ("z", "typical source words", "target words")), quiet)
