"""Worker processes of joblib."""

from __future__ import annotations


def start_afresh() -> None:
    """End the idle worker processes of earlier work, so that the next work starts its own.

    Workers leave by themselves after five idle minutes, and one that leaves while it is given
    work can keep the others waiting for ever.

    >>> start_afresh()
    """
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True, kill_workers=True)
