"""The calls that are queued at a home, by id, and how they leave without a grant.

A call leaves with its caller, or with its gateway. It is *dropped*, with an error for its caller, if

    its time is over (`VersionQueue.why_out_of_time`), or too short for what its version takes (`why_too_late`),
    no container is there, and no place for one is expected in its time (`why_without_room`),
    the capacity that is left cannot serve it (`shed`: the lowest tier first),
    its version cannot start or fits nowhere (`start_failure`, `note_shortage`),
    too many containers of its version or tenant were lost in a row (`LossAttribution.lost`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from pilotlight_core.model.messages.call_messages import CallDescriptor, RemoteError
from pilotlight_core.model.messages.scheduling import Dropped
from pilotlight_core.model.timers import Timers
from pilotlight_gateway.home.split_revisions import stale
from pilotlight_gateway.home.tier_queue import QueueEntry
from pilotlight_gateway.home.version_queue import VersionQueue


class QueuedCalls:
    """Where each call waits and until when; its home enters calls, and takes out those that it grants."""

    def __init__(self, queues: Mapping[str, VersionQueue], awake: dict[str, VersionQueue]) -> None:
        self._queues = queues
        self._awake = awake
        """Entered here: queues that calls have left, of which another may be granted, or a demand is due."""
        self.versions: dict[str, str] = {}
        """Call id -> version."""
        self.deadlines = Timers[str]()
        """Of the calls that have not been granted in the turn in which they came."""
        self.dropped: list[Dropped] = []
        """Since the home's driver has last taken them."""
        self.shed: Counter[int] = Counter()
        """Rank of a tier -> its calls that were shed so far."""

    def remove(self, call_id: str, at: float | None = None) -> QueueEntry | None:
        """Remove a call from its queue; None if it did not wait."""
        version = self.versions.get(call_id)
        if version is None:
            return None
        queue = self._queues[version]
        self._awake[version] = queue
        if (entry := queue.calls.remove(call_id)) is not None:
            self._forget(entry, queue, at)
        return entry

    def remove_of_gateway(self, gateway: str) -> list[str]:
        """Remove the calls of an origin that is gone with its callers; returns their ids."""
        gone = [e.call_id for queue in self._queues.values() for e in queue.calls if e.call.gateway == gateway]
        for call in gone:
            self.remove(call)
        return gone

    def drop_late(self, call_id: str, at: float) -> None:
        """Drop a call whose time is over."""
        queue = self._queues[self.versions[call_id]]
        if (entry := self.remove(call_id, at)) is not None:
            queue.late += 1
            self._drop(entry, *queue.why_out_of_time(entry, at))

    def drop_too_late(self, queue: VersionQueue, entry: QueueEntry, at: float) -> bool:
        """Whether a picked call can no longer be done in time; it is dropped, as other calls wait for its slot."""
        leaves = entry.leaves_at
        if entry.call.grant_number or (leaves - at) * 1000.0 >= queue.service_time.least_ms:
            return False
        queue.calls.refund(entry)
        self._forget(entry, queue, at)
        queue.late += 1
        self._drop(entry, *queue.why_too_late(entry, leaves, at))
        return True

    def drop_excess(self, queue: VersionQueue, at: float) -> None:
        """Shed the calls that the remaining capacity cannot serve in time."""
        for entry, wait in queue.excess(at):
            self.remove(entry.call_id, at)
            self.shed[entry.call.tier_rank] += 1
            queue.late += 1
            detail = f"Capacity has shrunk: its turn would come in {wait / 1000.0:.1f} s."
            self._drop(entry, "no_capacity", detail, retry_after=wait / 1000.0)
        self._awake[queue.version] = queue

    def drop_without_room(self, queue: VersionQueue, at: float) -> None:
        """Drop the calls whose time ends before there is a place for a container; they want one nevertheless."""
        for entry, refusal in queue.without_room(at):
            self.remove(entry.call_id, at)
            queue.refused_at, queue.refused_calls = at, queue.refused_calls + 1
            queue.expect_back(at)
            self._drop(entry, refusal.wire_code, refusal.detail, retry_after=refusal.retry_after)

    def drop_broken(self, queue: VersionQueue, whose: str, at: float) -> None:
        """Drop the calls of a tenant, or of all (""), whose breaker has opened."""
        refusal = queue.losses.breaker_of(whose).refusal(at)
        self.drop_all(queue, refusal.wire_code, refusal.detail, retry_after=refusal.retry_after, tenant=whose)

    def drop_all(
        self,
        queue: VersionQueue,
        code: str,
        detail: str,
        retry_after: float | None = None,
        error: RemoteError | None = None,
        tenant: str = "",
    ) -> None:
        """Drop what waits for a version, of one tenant or of all."""
        for call in [entry.call_id for entry in queue.calls if tenant in ("", entry.call.tenant)]:
            if (entry := self.remove(call)) is not None:
                self._drop(entry, code, detail, retry_after, error)

    def send_back(self, queue: VersionQueue) -> None:
        """Drop what waits for a version that a split has chosen, so that its origin chooses anew."""
        again = stale()
        for call in [entry.call_id for entry in queue.calls if entry.call.split >= 0]:
            if (entry := self.remove(call)) is not None:
                self._drop(entry, again.wire_code, again.detail, None, None)

    def take_dropped(self) -> list[Dropped]:
        """What was dropped since it was last taken."""
        dropped, self.dropped = self.dropped, []
        return dropped

    def descriptors(self, at: float) -> tuple[CallDescriptor, ...]:
        """The calls in the order of their arrival, as of now, for another home."""
        waiting = sorted((entry for queue in self._queues.values() for entry in queue.calls), key=lambda e: e.order)
        return tuple(self._as_of(entry, at) for entry in waiting)

    def _as_of(self, entry: QueueEntry, at: float) -> CallDescriptor:
        remaining, age = (entry.leaves_at - at) * 1000.0, (at - entry.since) * 1000.0
        return msgspec.structs.replace(entry.call, age_ms=age, remaining_ms=remaining, admitted=True)

    def _forget(self, entry: QueueEntry, queue: VersionQueue, at: float | None) -> None:
        del self.versions[entry.call_id]
        self.deadlines.clear(entry.call_id)
        queue.losses.withdrawn(entry.call_id, entry.call.tenant, at)

    def _drop(
        self,
        entry: QueueEntry,
        code: str,
        detail: str,
        retry_after: float | None = None,
        error: RemoteError | None = None,
    ) -> None:
        call = entry.call
        self.dropped.append(
            Dropped(
                call_id=call.call_id,
                gateway=call.gateway,
                code=code,
                detail=detail,
                error=error,
                retry_after=retry_after,
                version=call.version,
            )
        )
