"""Events of the platform, as they are answered."""

from __future__ import annotations

from typing import Any

import msgspec


class ShownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened: a decision, a breaker, queued calls that gave way, a node that fell silent."""

    id: int
    """Rises; `Last-Event-ID` and `after` go on behind it."""
    at: float
    """Unix seconds."""
    kind: str
    """Such as function.scaled, breaker.opened, flow.slowed, calls.shed, node.lost, budget.spent."""
    tenant: str
    """"": the platform."""
    function: str
    """`tenant:app.function`; "": of none."""
    says: str
    facts: dict[str, Any]


class EventList(msgspec.Struct, frozen=True, kw_only=True):
    """The last events that were asked for, the oldest first."""

    events: list[ShownEvent]
