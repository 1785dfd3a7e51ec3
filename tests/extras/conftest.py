"""What the tests of all extras share."""

from __future__ import annotations

from support.small_demo import cache as cache
