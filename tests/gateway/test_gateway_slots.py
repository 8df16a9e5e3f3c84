"""Long requests have places, of which one tenant has few."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway import gateway_slots


@pytest.mark.parametrize(("kind", "most"), [("upload", 8), ("deploy", 1), ("file", 2), ("lock", 1), ("follower", 64)])
def test_one_tenant_has_not_all_places(kind: str, most: int) -> None:
    """Who has as many as it may is told when to come again; another one is let in."""
    slots = getattr(gateway_slots, f"{kind}_slots")()
    with ExitStack() as stack:
        for _ in range(most):
            stack.enter_context(slots.slot("acme"))
        with pytest.raises(TooMuch) as refused:
            stack.enter_context(slots.slot("acme"))
        assert refused.value.retry_after
        stack.enter_context(slots.slot("umbrella"))
