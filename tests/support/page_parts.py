"""Parts of pages of draws and of lists, for tests of either."""

from __future__ import annotations

from bpa_ppl.diagnostics.page import Headline as Headline
from bpa_ppl.diagnostics.page import Section as Section
from bpa_ppl.diagnostics.page import Table as Table
from bpa_ppl.evaluation.compare_ways import BaselineComparison as BaselineComparison
from bpa_ppl.evaluation.side_by_side import differences as differences
from bpa_ppl.evaluation.side_by_side import side_by_side as side_by_side
from bpa_ppl.evaluation.simple_ways import BaselineRow as BaselineRow
