"""Public names; `__init__.py` imports each from its module on first use."""

from .checks import (
    Report as Report,
    Thresholds as Thresholds,
    check as check,
    refuse_unconverged as refuse_unconverged,
)
from .choices import (
    explain_choices as explain_choices,
    system_shares as system_shares,
)
from .pages.page import (
    write_page as write_page,
)
from .predictive_checks import (
    with_predictions as with_predictions,
)
from .provenance import (
    signature as signature,
)
from .raters import (
    raters_of as raters_of,
)
from .report_page import (
    posterior_page as posterior_page,
)
