"""Stops of single containers: a gateway asks the leading controller, which commands the agent."""

from __future__ import annotations

from pilotlight_core.model.messages.message import Message


class StopContainer(Message, frozen=True, kw_only=True):
    """End a container: its calls have `within_ms` (None: the platform's grace), then it is killed."""

    container: str
    tenant: str = ""
    """Whose it has to be; "": anybody's, for operators."""
    within_ms: float | None = None
    reason: str = ""


class ContainerStopReply(Message, frozen=True, kw_only=True):
    """The answer: the node that ends it, or none, and why."""

    node: str = ""
    within_ms: float = 0.0
    reason: str = ""
    """"gone": there is no such container of that tenant; "silent": its node did not answer."""
