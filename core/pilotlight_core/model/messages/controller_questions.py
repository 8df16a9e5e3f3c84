"""What gateways ask the leading controller: why something is placed as it is, and to stop a single container."""

from __future__ import annotations

from pilotlight_core.model.messages.message import Message


class ExplainPlacement(Message, frozen=True, kw_only=True):
    """Explain the place of a container, or the last decision about a function; without either the last decision at all.

    With `node`, explain also why that node was not chosen; with `scaling`, how many containers the function has.
    """

    container: str = ""
    function: str = ""
    """`tenant:app.function`."""
    node: str = ""
    scaling: bool = False
    at: float = 0.0
    """With `scaling`: what was decided at this unix second; 0: now."""


class PlacementReply(Message, frozen=True, kw_only=True, tag="PlacementTold"):
    """The answer, in sentences and as data. If not `found`, no decision is remembered, and `lines` says so."""

    found: bool
    lines: tuple[str, ...] = ()
    decisions: bytes = b"[]"
    """JSON of a list of `placement_api.DecisionInfo`, the latest last."""
    scaling: bytes = b""
    """JSON of a `scaling_api.ScalingExplanation`, if it was asked for; a controller of release 0.1 says nothing."""


class StopContainer(Message, frozen=True, kw_only=True):
    """End a container: its calls have `within_ms` (None: the platform's grace), then it is killed."""

    container: str
    tenant: str = ""
    """Whose it has to be; "": anybody's, for operators."""
    within_ms: float | None = None
    reason: str = ""
    replace_first: bool = False
    """Not before another container of its version is ready; it is asked for again and again until then."""


class ContainerStopReply(Message, frozen=True, kw_only=True):
    """The answer: the node that ends it, or none, and why."""

    node: str = ""
    within_ms: float = 0.0
    reason: str = ""
    """"gone": there is no such container of that tenant; "silent": its node did not answer; "replacing": another one of
    its version is wanted in its place, and not ready."""
    failing: bool = False
    """With "replacing": the last start of its version failed."""
