"""So many at a time, and no more."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.http.protocol.slot_limit import SlotLimit


def test_beyond_the_limit_is_refused_until_one_is_free() -> None:
    """The refusal says of what there are too many, and when to come again."""
    limit = SlotLimit(1, "uploads are under way", retry_after=2.0)
    with limit.slot():
        with pytest.raises(TooMuch, match="1 uploads are under way already") as refused, limit.slot():
            pass
        assert limit.taken == 1
    with limit.slot():
        pass

    assert refused.value.retry_after == 2.0
    assert limit.taken == 0


def test_what_fails_gives_its_slot_back() -> None:
    """Whatever it raises."""
    limit = SlotLimit(1, "uploads", retry_after=1.0)
    for _ in range(2):
        with pytest.raises(KeyError), limit.slot():
            raise KeyError
    assert limit.taken == 0
