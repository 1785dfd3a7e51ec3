"""Public names; `__init__.py` imports each from its module on first use."""

from .baselines.comparing import (
    compare_baselines as compare_baselines,
)
from .baselines.table import (
    BaselineComparison as BaselineComparison,
)
from .calibration.calibration import (
    Calibration as Calibration,
    Replication as Replication,
    calibrate as calibrate,
)
from .checks.checking import (
    check as check,
)
from .checks.report import (
    Finding as Finding,
    Report as Report,
    Thresholds as Thresholds,
)
from .comparison.comparison import (
    Comparison as Comparison,
    compare as compare,
)
from .pages.page import (
    write_page as write_page,
)
from .predictive.checks import (
    PredictiveCheck as PredictiveCheck,
    Reliability as Reliability,
    predictive_check as predictive_check,
    reliability as reliability,
)
from .predictive.likelihood import (
    Loo as Loo,
    Ranked as Ranked,
    Sensitivity as Sensitivity,
    compare_loo as compare_loo,
    loo as loo,
    power_sensitivity as power_sensitivity,
)
from .predictive.predictions import (
    with_predictions as with_predictions,
)
from .predictive.selective import (
    RiskCoverage as RiskCoverage,
    risk_coverage as risk_coverage,
)
from .predictive.temperature import (
    Temperature as Temperature,
    calibrated as calibrated,
    temperature as temperature,
)
from .report_page.figures import (
    plot_trace as plot_trace,
)
from .report_page.page import (
    posterior_page as posterior_page,
)
from .subdomains.page import (
    subdomains_page as subdomains_page,
)
