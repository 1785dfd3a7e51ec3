"""Public names; `__init__.py` imports each from its module on first use."""

from .baselines.comparing import (
    compare_baselines as compare_baselines,
)
from .baselines.table import (
    BaselineComparison as BaselineComparison,
)
from .calibration import (
    Calibration as Calibration,
    Replication as Replication,
    calibrate as calibrate,
)
from .checks import (
    Finding as Finding,
    Report as Report,
    Thresholds as Thresholds,
    check as check,
    refuse_unconverged as refuse_unconverged,
)
from .choices import (
    ChoiceExplanation as ChoiceExplanation,
    FeatureTerm as FeatureTerm,
    SystemShare as SystemShare,
    explain_choices as explain_choices,
    system_shares as system_shares,
)
from .comparison.comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .leave_one_out import (
    Loo as Loo,
    Ranked as Ranked,
    Sensitivity as Sensitivity,
    compare_loo as compare_loo,
    loo as loo,
    power_sensitivity as power_sensitivity,
)
from .pages.page import (
    write_page as write_page,
)
from .predictive_checks import (
    PredictiveCheck as PredictiveCheck,
    Reliability as Reliability,
    predictive_check as predictive_check,
    reliability as reliability,
    with_predictions as with_predictions,
)
from .raters import (
    Raters as Raters,
    raters_of as raters_of,
)
from .report_page import (
    posterior_page as posterior_page,
)
from .subdomains import (
    subdomains_page as subdomains_page,
)
from .targets import (
    TARGETS as TARGETS,
    KnownTarget as KnownTarget,
    target as target,
)
