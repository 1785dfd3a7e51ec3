"""check: whether a posterior in any form is fit for use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bpa_ppl.diagnostics.check.report import Report, check_and_record, list_diagnostics, measure
from bpa_ppl.posterior.draws import select_components
from bpa_ppl.posterior.opening import open_draws
from bpa_ppl.posterior.selection import Opened, describe_left_out


def check(
    posterior: Any,
    limits: Mapping[str, Any] | None = None,
    *,
    var_names: Sequence[str] | None = None,
    log_weights: str | None = None,
) -> Report:
    """Compare a posterior's diagnostics, the components in `DIAGNOSTICS`, with their limits.

    A pass is not a proof: modes and tails that no draw has visited, a wrong model or wrong data, or
    a sampler of another density that mixes well are not found (`bpa calibrate` finds the last).
    With the default limits, at most 1 % of good posteriors with 1,300 effective draws fail.

    Args:
        posterior: draws of any program, in any form that `read_posterior` takes. Draws that record
            a check, and have not changed since, keep its figures.
        limits: name of a diagnostic, as in `DIAGNOSTICS` -> its setting `limit`.
        var_names: variables, features, or single cells such as `theta[3]`; None checks all.
        log_weights: the variable with the importance weights of draws, as for `compare`.

    Returns:
        a `Report`, true if all diagnostics are within their limits.

    Raises:
        DataError: if there are no draws, or no variable of a name.
        UsageError: if it is not a posterior, or there is no diagnostic of a name, or it has no such
            limit.

    >>> import numpy as np
    >>> drawn = np.random.default_rng(0).normal(size=(4, 50, 2))
    >>> from bpa_ppl.posterior.draws import name_array
    >>> draws = name_array(drawn, ("LM0", "WP0"))
    >>> bool(check(draws)), bool(check(draws, {"bulk-ess": 100, "tail-ess": 100, "r-hat": 1.1}))
    (False, True)
    """
    opened = open_draws(posterior, var_names=var_names, log_weights=log_weights)
    return check_opened(opened, limits, var_names)


def check_opened(
    opened: Opened, limits: Mapping[str, Any] | None = None, var_names: Sequence[str] | None = None
) -> Report:
    """Check the draws of a posterior, as `check` does.

    >>> import numpy as np
    >>> mu = np.random.default_rng(0).normal(size=(2, 9))
    >>> check_opened(open_draws({"mu": mu, "k": np.sign(mu).astype(int)})).left_out
    ('not checked, because it is discrete: k',)
    """
    draws, left_out = opened
    if limits or var_names is not None:
        draws = draws if var_names is None else select_components(draws, var_names)
        report = measure(draws, list_diagnostics(limits or {}))
    else:
        report = check_and_record(draws)[1]
    others = describe_left_out("checked", left_out)
    return replace(report, left_out=(*report.left_out, *others))
