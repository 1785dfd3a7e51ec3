"""Running one cell of a study."""

from __future__ import annotations

from bpa_ppl.experiments.deciding import Job, Record, decide
from bpa_ppl.experiments.grid import Task, draw_sentences, seed_of
from bpa_ppl.experiments.material import material
from bpa_ppl.experiments.results import Outcome, result_row
from bpa_ppl.experiments.study import Study


def run_cell(study: Study, task: Task) -> Outcome:
    """Draw A, adapt or tune, rerank the test text and count.

    Raises:
        DataError: if the lists, references and weights do not fit together.
    """
    cell, method = task
    domain = next(domain for domain in study.domains if domain.name == cell.domain)
    lists = material(study, domain, method.nbest_size)
    adaptation = lists.pool.select(draw_sentences(study, cell, len(lists.pool)))
    record = Record()
    job = Job(method, study, domain, lists, adaptation, seed_of(study, cell))
    counts = lists.counts_of(decide(job, record))
    return Outcome(result_row(cell, counts, record.verdict, record.failed), record.seconds)
