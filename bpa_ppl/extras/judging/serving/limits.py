"""What a request to the service may take."""

from __future__ import annotations

from dataclasses import dataclass

from bpa_ppl.errors import wrong_value


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a request may take, which are also options of `bpa serve`.

    Args:
        max_body: Largest body of a request, in bytes.
        max_candidates: Largest number of candidates of a request.
        timeout: Seconds until a request is given up.

    Raises:
        UsageError: if a limit would refuse every request.
    """

    max_body: int = 2**24
    max_candidates: int = 100_000
    timeout: float = 30.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:  # NaN is refused, too
                raise wrong_value(f"{name} must be above 0", value, name, code="bad-number")
