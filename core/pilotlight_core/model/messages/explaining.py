"""What a gateway asks the controller that leads: why containers are where they are."""

from __future__ import annotations

from pilotlight_core.model.messages.agent_messages import Message


class ExplainPlacement(Message, frozen=True, kw_only=True):
    """Why a container is where it is, or what was decided last of a function; of neither: of the last decision at all.

    With `node` also why that node was not chosen.
    """

    container: str = ""
    function: str = ""
    """`tenant:app.function`."""
    node: str = ""


class PlacementTold(Message, frozen=True, kw_only=True):
    """The answer, in sentences and as data. Not `found`: nothing is remembered of it, and `lines` says so."""

    found: bool
    lines: tuple[str, ...] = ()
    decisions: bytes = b"[]"
    """JSON of a list of `api_placement.DecisionInfo`, the latest last."""
