"""Diagnostics of draws that are wrong, or to which no other diagnostic can be applied."""

from __future__ import annotations

import numpy as np

from bpa_ppl.diagnostics.check.diagnostic import FEWEST, Diagnostic, Run
from bpa_ppl.posterior.record import Finding
from bpa_ppl.posterior.statistics import LARGEST

_AT_LEAST = 1000  # draws per chain that are advised


class DrawsPerChain(Diagnostic, frozen=True):
    """Fewer than four draws per chain; reported if they are."""

    title = "draws per chain"

    def applies(self, run: Run) -> bool:
        return run.draws.kind == "chains"

    def measure(self, run: Run) -> Finding | None:
        count = run.draws.shape[1]
        if count >= FEWEST:
            return None
        advice = f"{count} draws per chain cannot be checked: draw at least {_AT_LEAST}"
        return self.finding(float(count), f"≥ {FEWEST}", False, advice)


class NotFinite(Diagnostic, frozen=True):
    """Draws that are NaN, infinite or beyond 1e70; reported if there are any."""

    title = "not finite"

    def applies(self, run: Run) -> bool:
        return run.draws.kind == "chains" and run.draws.shape[1] >= FEWEST

    def measure(self, run: Run) -> Finding | None:
        broken = run.not_finite
        if not broken.any():
            return None
        worst = int(broken.argmax())
        count = int(np.prod(run.draws.shape))
        advice = (
            f"{broken[worst]} of {count} draws of {run.names[worst]} are NaN, infinite or beyond "
            f"{LARGEST:g}: the sampler or the model that produced them is wrong, and more draws do "
            "not help; or the variable needs a larger unit"
        )
        return self.finding(float(broken.sum()), "= 0", False, advice, run.names[worst])


class Constant(NotFinite, frozen=True):
    """Components whose draws are all equal, or within 1e-70; reported if there are any."""

    title = "constant"

    def applies(self, run: Run) -> bool:
        return super().applies(run) and not run.not_finite.any()

    def measure(self, run: Run) -> Finding | None:
        if not run.constant.size:
            return None
        name = run.names[run.constant[0]]
        advice = (
            f"all draws of {name} are equal: if its value is known, fix it instead of sampling it, "
            "otherwise the sampler does not move"
        )
        if np.ptp(run.values[..., run.constant[0]]):
            advice = f"all draws of {name} are within {1 / LARGEST:g}: it needs a smaller unit"
        return self.finding(float(run.constant.size), "= 0", False, advice, name)


class LogDensity(Diagnostic, frozen=True):
    """A recorded log density that is not finite; reported if it is not."""

    title = "log density"
    stored = False

    def applies(self, run: Run) -> bool:
        return run.draws.log_density is not None

    def measure(self, run: Run) -> Finding | None:
        count = int(np.sum(~np.isfinite(np.asarray(run.draws.log_density))))
        if not count:
            return None
        advice = f"the log density of {count} draws is not finite: the model cannot be evaluated"
        return self.finding(float(count), "all finite", False, advice)
