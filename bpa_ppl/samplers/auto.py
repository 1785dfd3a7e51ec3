"""Automatic choice of the sampler: independence proposals if they fit, else NUTS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import jax
import numpy as np
from msgspec import structs

from bpa_ppl._runtime.progress import Reporter
from bpa_ppl.components import Count
from bpa_ppl.densities.mode import has_several_modes, is_too_large, mode_of, modes_of
from bpa_ppl.densities.own_models import find_parents
from bpa_ppl.densities.target import Sampled, Target, constrain, constrain_draws, inspect_model
from bpa_ppl.diagnostics.check.advice import BEST_STEP
from bpa_ppl.diagnostics.check.of_samplers import BFMI, Divergences
from bpa_ppl.diagnostics.check.report import Report, check_draws, find_shortage
from bpa_ppl.errors import list_names
from bpa_ppl.posterior.draws import Draws
from bpa_ppl.posterior.record import Finding, Record, SamplerRecord
from bpa_ppl.posterior.statistics import POOR_PARETO_K
from bpa_ppl.samplers.imh import IndependenceMetropolis
from bpa_ppl.samplers.memory import fits_into_memory
from bpa_ppl.samplers.nuts import Nuts, struggles
from bpa_ppl.samplers.proposals import GOOD_PARETO_K, can_be_fitted, fit_moments
from bpa_ppl.samplers.rwm import RandomWalkMetropolis
from bpa_ppl.samplers.sampler import SAMPLERS, Sampler
from bpa_ppl.samplers.scale_mixture import ScaleMixture
from bpa_ppl.samplers.starting import assess_proposals, compare_k_hat, make_pilot_proposal

#: With fewer draws per chain the result is not checked: such runs are trials.
_MIN_CHECKED_DRAWS = 100
#: Steps for each kept draw of fitted proposals, so many that one proposal is effective, at most.
_MAX_THINNING = 8
#: Draws that fail their check are repeated with this many times as many.
_MORE = 4
#: Of later attempts: NUTS with a longer warm-up and shorter steps.
_WARMUP, _TARGET_ACCEPT = 1000, 0.99
#: Where the density jumps: the scales of walks, and by how much more steps they take for a kept
#: draw than the least number; and the target acceptance of NUTS.
_WALKS, _WALK_STEPS, _LOW_ACCEPT = ((BEST_STEP, 1), (0.6, 2)), 50, 0.6


#: A way to draw: the sampler; why it is chosen, which may be empty, without the failures of earlier
#: attempts; the function that draws; and the largest shortage of the draws before it that this
#: attempt may make up for.
Attempt = tuple[Sampler, str, Callable[[Target, int, Reporter], Sampled], float]
#: Where NUTS fails in both, neither shorter steps nor more draws help: a part of the posterior is
#: much narrower than the rest, as the neck of a funnel.
_NARROW = {Divergences.title, BFMI.title}
#: Of a density that is not log-concave, shorter steps and more draws do not help either if so large
#: a share of the transitions diverges, and take too long if a trajectory has so many steps.
_TOO_MANY_STEPS, _TOO_MANY_DIVERGENT = 500, 0.005


class Auto(Sampler, frozen=True):
    """`imh` if a pilot sample shows that its proposals fit the posterior, else `nuts`.

    If proposals around the mode do not fit, or their draws fail their check, they are fitted to the
    mean and the covariance of the posterior (see `fit_moments`), and assessed again. If these draws
    fail, `imh` draws four times as many. If these fail too, or if the fitted proposals do not fit
    either, NUTS draws, then with shorter steps and four times as many draws. If these are too few,
    but four times as many may be enough, it draws so many; else it ends. It ends at once where more
    draws do not help: with several modes, with divergences and a low BFMI, and, where the density
    is not known to be log-concave, with many divergences or long trajectories. Where the density
    jumps, a random walk draws next, then NUTS with longer steps.

    A program with several sites of more than one value, and one whose distribution depends on
    another one, is a hierarchy, whose shape independent proposals do not fit: NUTS draws at once.
    It does so, too, where the posterior says so (`Hints.hierarchy`); and, with chains that start at
    all modes, if searches from draws of the prior find several.

    >>> Auto(draws=500)
    Auto(draws=500, chains=4)
    """

    title = "imh where its proposals fit the posterior, else nuts"
    any_coordinates = True
    draws: Count = 1000
    chains: Count = 4

    def sample(self, target: Target, seed: int, progress: Reporter) -> Sampled:
        stage, shortage = "", 1.0
        earlier, tried = list[str](), dict[str, None]()
        again: str | None = None
        findings: tuple[Finding, ...] | None = None

        def report(done: int, total: int, note: str) -> None:
            progress(done, total, ": ".join(filter(None, (stage, note))))

        for engine, why, draw, limit in self._attempts(target, seed, report):
            if shortage > limit or (earlier and not fits_into_memory(target, engine)):
                break
            stage = name = SAMPLERS.name_of(engine)
            tried[name] = None
            sampled = draw(target, seed, report)
            failures = f"earlier draws failed: {', '.join(earlier)}" if earlier else ""
            reason = "; ".join(filter(None, (failures, why)))
            chosen = {
                "chosen": name,
                "chosen_settings": engine.settings(),
                "chosen_because": reason,
                "tried": tuple(tried),
                "modes": len(modes_of(target)) if has_several_modes(target) else None,
            }
            if self.draws < _MIN_CHECKED_DRAWS:
                break
            figures = structs.replace(sampled.figures, **chosen)
            checked = self._check(target, replace(sampled, figures=figures))
            findings = checked.rows
            failed, shortage = [one.name for one in checked.failures], find_shortage(checked)
            hopeless = chosen["modes"] or {*failed} >= _NARROW
            if checked.passed or (hopeless and not sampled.figures.jumps):
                break
            stage = ""
            earlier.append(f"{name} ({' and '.join(failed)})")
            again = ", ".join(failed)
        figures = structs.replace(sampled.figures, **chosen, drawn_again_because=again)
        return replace(sampled, figures=figures, findings=findings)

    def _attempts(self, target: Target, seed: int, progress: Reporter) -> Iterator[Attempt]:
        """Yield ways to draw, in the order in which they are tried."""
        vectors = [name for name, value in target.start.items() if np.size(value) > 1]
        may_depend = not target.hints.log_concave and len(vectors) > 1
        reason = (_describe_hierarchy(target) if may_depend else "") or target.hints.hierarchy
        if not reason:
            fit = assess_proposals(target, seed, progress)
            limit = POOR_PARETO_K if isinstance(fit.proposal, ScaleMixture) else GOOD_PARETO_K
            fits, found = fit.pareto_k <= limit, fit.describe(limit)
            simple = can_be_fitted(target) and fit.proposal is not None
            few, many = (
                IndependenceMetropolis(draws=draws, chains=self.chains)
                for draws in (self.draws, _MORE * self.draws)
            )
            if fits:
                degrees = few.degrees_of_freedom
                proposal = make_pilot_proposal(target, degrees, seed, progress)
                # Where these draws fail, fitted proposals need less time than more draws.
                for imh in (few,) if simple else (few, many):
                    yield imh, found, partial(imh.sample_by, proposal=proposal), np.inf
            if simple and fit.proposal is not None:
                mode = fit.proposal.mode
                proposal, pareto_k, effective = fit_moments(target, mode, seed, progress)
                fits = pareto_k <= POOR_PARETO_K
                found += f", {compare_k_hat(pareto_k, POOR_PARETO_K)} of those with fitted moments"
                # Fewer kept draws cost less in the check, and in everything that uses them.
                thinning = int(1 / max(effective, 1 / _MAX_THINNING))
                for imh in (few, many) if fits else ():
                    draw = partial(imh.sample_by, proposal=proposal, thinning=thinning)
                    yield imh, found, draw, np.inf
            reason = "" if fits else found
        nuts = Nuts(draws=self.draws, chains=self.chains)
        drawn = list[Sampled]()

        def draw_first(target: Target, seed: int, progress: Reporter) -> Sampled:
            drawn.append(nuts.sample(target, seed, progress))
            return drawn[0]

        yield nuts, reason, draw_first, np.inf
        if drawn[0].figures.jumps:
            for engine in self._list_samplers_of_jumps(target):
                yield engine, "the density jumps", engine.sample, np.inf
            return
        limits = _TOO_MANY_STEPS, _TOO_MANY_DIVERGENT
        if not target.hints.log_concave and struggles(drawn[0], *limits):
            return
        for times, most in ((_MORE, np.inf), (_MORE**2, _MORE)):
            more = Nuts(
                draws=times * self.draws,
                chains=self.chains,
                warmup=_WARMUP,
                target_accept=_TARGET_ACCEPT,
            )
            yield more, reason, more.sample, most

    def _list_samplers_of_jumps(self, target: Target) -> list[Sampler]:
        """Return samplers that do not follow a gradient, or take long steps."""
        samplers = list[Sampler]()
        if not is_too_large(target) and mode_of(target).converged:
            thinning = max(_WALK_STEPS, 2 * target.dimension)
            samplers += [
                RandomWalkMetropolis(
                    scale=scale, draws=self.draws, chains=self.chains, thinning=factor * thinning
                )
                for scale, factor in _WALKS
            ]
        return [
            *samplers,
            Nuts(draws=self.draws, chains=self.chains, target_accept=_LOW_ACCEPT),
        ]

    def _check(self, target: Target, sampled: Sampled) -> Report:
        """Return the report on the draws of the main sites that a sampler has drawn."""
        z, coordinates = sampled.z, target.coordinates
        # Other sites that are sampled in place of those of the model are not checked.
        if coordinates is not None and {*coordinates.original.start} != {*target.start}:
            target, z = coordinates.original, coordinates.restore_sites(z)
        record = SamplerRecord(name=SAMPLERS.name_of(self), settings=self.settings())
        info = inspect_model(target)
        draws = Draws(
            jax.device_get(constrain_draws(target, z)),
            statistics=sampled.statistics,
            sampled=info.latent,
            main=target.main,
            dims={**info.dims, **target.dims},
            coords=target.coords,
            record=Record(
                sampler=record,
                figures=sampled.figures,
                reparametrisations=info.reparametrisations,
            ),
        )
        return check_draws(draws)


def _describe_hierarchy(target: Target) -> str:
    """Return which latent site has a distribution that depends on others; empty if none has."""
    values = jax.eval_shape(partial(constrain, target), target.start)
    values = {name: values[name] for name in inspect_model(target).latent if name in values}
    data = {f"argument {k}": value for k, value in enumerate(target.data)}
    with jax.numpy_rank_promotion("allow"):  # NumPyro needs it
        of_sites = find_parents(target.program, data, values)
    for site in values:
        if parents := [name for name in values if name != site and name in of_sites[site]]:
            return f"a hierarchy: {site} depends on {list_names(parents)}"
    return ""
