"""The granted calls of a home that have not ended, and what becomes of a grant that was lost on its way.

An origin enqueues its call again until it hears of the grant, and credits list the calls that a container has. So a
lost grant is sent again or, if its slot was freed meanwhile, replaced by the next one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from pilotlight_core.model.integrity import require
from pilotlight_core.model.messages.call_messages import CallDescriptor, Grant
from pilotlight_gateway.home.tier_queue import QueueEntry
from pilotlight_gateway.home.version_queue import VersionQueue

DONE_WITHIN_S = 5.0
"""How long a grant with a freed slot waits for the cost of its call."""


class GrantBook:
    """Granted calls that have not ended, by id; their home enters them, and removes those that end.

    A grant is *released* when its slot is free and its cost is not known yet.
    """

    def __init__(self) -> None:
        self.by_call: dict[str, QueueEntry] = {}
        self.released: dict[str, float] = {}
        """Call id -> instant of the release, in that order."""
        self.resend: list[Grant] = []
        """Grants to send again."""

    def remove(self, entry: QueueEntry) -> None:
        del self.by_call[entry.call_id]
        self.released.pop(entry.call_id, None)

    def release(self, calls: Iterable[str], at: float, container: str | None = None) -> None:
        """The slots of calls are free, in any container or in `container`; their cost may still be reported."""
        for call in calls:
            entry = self.by_call.get(call)
            if entry is not None and container in (None, entry.grant.container):
                self.released.setdefault(call, at)

    def supersede(self, granted: QueueEntry, queue: VersionQueue) -> None:
        """The origin of a call has seen its grant, and no longer uses it."""
        self.remove(granted)
        queue.calls.settle(granted)
        queue.pool.release(granted.grant.container, granted.call_id)

    def repeat(self, granted: QueueEntry, call: CallDescriptor, queue: VersionQueue) -> QueueEntry | None:
        """The origin of a call has not seen its grant: it is sent again, unless the agent has got the call.

        Returns the call back in its place if its slot was released: its grant was lost, and the slot may be in use.
        """
        if granted.call_id in self.released:
            self.remove(granted)
            return queue.calls.give_back(
                granted, msgspec.structs.replace(call, grant_number=granted.grant.grant_number)
            )
        if queue.pool.is_pending(granted.grant.container, call.call_id):
            self.resend.append(granted.grant)
        return None

    def take_expired(self, at: float) -> Iterator[QueueEntry]:
        """Remove the grants that have been released for too long, one after the other."""
        while self.released:
            call, since = next(iter(self.released.items()))
            if since > at - DONE_WITHIN_S:
                return
            entry = self.by_call[call]
            self.remove(entry)
            yield entry

    def expires_at(self) -> float | None:
        """When `take_expired` next has a grant to remove; None: never."""
        return next(iter(self.released.values())) + DONE_WITHIN_S if self.released else None

    def check_integrity(self) -> None:
        require(set(self.released) <= set(self.by_call), "a released grant is not known")
