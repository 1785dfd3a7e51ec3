"""Public names; `__init__.py` imports each from its module on first use."""

from .journal import (
    Journal as Journal,
    Judgement as Judgement,
    read_journal as read_journal,
)
from .merging import (
    with_judgements as with_judgements,
)
from .session import (
    Session as Session,
)
