"""What the tests of models share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def several_buckets() -> Iterator[None]:
    """Few lists of several lengths are in several buckets, as many lists are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bpa_ppl.models.likelihoods.lists.ROWS_OF_BUCKET", 0)
        yield
