"""The port to whoever takes a node away: it is asked again and again what it says of the node's end."""

from __future__ import annotations

from typing import Protocol

from pilotlight_core.model.messages.node_messages import NodeNotice


class NoticesUnread(Exception):
    """The provider cannot be asked now, or answers what cannot be read: what it said before still holds."""


class NoticeSource(Protocol):
    pause_s: float
    """Between two questions."""
    revokes: bool
    """Whether a notice that is not repeated has been withdrawn."""

    async def poll(self) -> NodeNotice | None:
        """What the provider says now; None: nothing. It may wait for news, for a minute or two at most.

        Raises:
            NoticesUnread
        """

    async def aclose(self) -> None: ...
