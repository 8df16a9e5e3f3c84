"""What the platform says of a call to the engine that runs it, and never the call's own body."""

from __future__ import annotations

from contextvars import ContextVar

import msgspec


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a call is, and what it counts for."""

    tenant: str = ""
    """Who called; "": the platform does not say it."""
    salt: str = ""
    """Only calls of one salt share stored prefixes."""
    weight: float = 1.0
    """Of its tenant, against other tenants."""
    priority: int = 0
    """Higher goes first."""


CALL_FACTS: ContextVar[CallFacts] = ContextVar("pilotlight_call_facts", default=CallFacts())  # noqa: B039 - frozen
"""Of the call that runs here."""
