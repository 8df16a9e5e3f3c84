"""The calls that this gateway knows: the live ones, and how others ended a while ago."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import Conflict
from pilotlight_core.model.integrity import require
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.origin import OriginState
from pilotlight_gateway.calls.redaction import redact_for_caller

T = TypeVar("T")
REMEMBERED = 10_000
"""Ended calls whose status is kept, of all tenants."""
STATES = {
    OriginState.QUEUED: "queued",
    OriginState.WAITING: "queued",
    OriginState.SENT: "running",
    OriginState.RUNNING: "running",
    OriginState.DONE: "succeeded",
}


class FairMemory(Generic[T]):
    """A bounded memory that tenants share: when it is full, the tenant with most things loses its oldest.

    A tenant with few things keeps them however many others bring. Every operation is O(1): tenants are kept in rows by
    their number of things, and the last row that is not empty is known.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._size = 0
        # Ordered ones, since a plain dict walks over all that was removed at its head to find its first.
        self._things: dict[str, OrderedDict[str, T]] = {}
        """By tenant, the oldest first; no tenant without things."""
        self._rows: dict[int, OrderedDict[str, None]] = {}
        """Number of things -> the tenants that have so many; no empty row."""
        self._most = 0

    def __len__(self) -> int:
        return self._size

    def get(self, tenant: str, name: str) -> T | None:
        """A tenant's thing of this name."""
        things = self._things.get(tenant)
        return things.get(name) if things is not None else None

    def keep(self, tenant: str, name: str, thing: T) -> list[tuple[str, T]]:
        """Keep a thing, instead of the one of that name. Returns the things that were evicted, with their tenants."""
        things = self._things.get(tenant)
        if things is None:
            things = self._things[tenant] = OrderedDict()
        is_known = name in things
        things[name] = thing
        if is_known:
            return []
        if self._size == self._room and len(things) > self._most:
            return [(tenant, things.popitem(last=False)[1])]  # it alone has most now: as before, but for the oldest
        self._size += 1
        self._moved(tenant, len(things) - 1, len(things))
        return [self._lose_one() for _ in range(self._size - self._room)]

    def _lose_one(self) -> tuple[str, T]:
        tenant = next(iter(self._rows[self._most]))
        things = self._things[tenant]
        _, thing = things.popitem(last=False)
        self._size -= 1
        if not things:
            del self._things[tenant]
        self._moved(tenant, len(things) + 1, len(things))
        return tenant, thing

    def _moved(self, tenant: str, was: int, now: int) -> None:
        if was:
            row = self._rows[was]
            del row[tenant]
            if not row:
                del self._rows[was]
        if now:
            row_now = self._rows.get(now)
            if row_now is None:
                row_now = self._rows[now] = OrderedDict()
            row_now[tenant] = None
        if now > self._most or self._most not in self._rows:
            self._most = now

    def check_integrity(self) -> None:
        """Raise AssertionError if parts of the state contradict each other."""
        sizes = {tenant: len(things) for tenant, things in self._things.items()}
        require(sum(sizes.values()) == self._size <= self._room, "the size is not the size")
        rows = {tenant: size for size, row in self._rows.items() for tenant in row}
        require(rows == sizes, "a tenant stands in the wrong row")
        require(self._most == max(sizes.values(), default=0), "the last row is not the last")
        require(all(self._rows.values()), "a row is empty")


class CallBook:
    """Finds a tenant's calls by their ids and their client's ids."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._live: dict[str, InFlightCall] = {}
        self._ended: FairMemory[CallStatus] = FairMemory(remembered)
        self._clients: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[InFlightCall]:
        return iter(list(self._live.values()))

    def get(self, call_id: str) -> InFlightCall | None:
        return self._live.get(call_id)

    def enter(self, live: InFlightCall) -> None:
        """Enter a call that begins, or that goes to another function after it has left.

        Raises:
            Conflict: its client used the same id for another known call.
        """
        call = live.call
        if call.client_id is not None:
            if self._clients.get((call.tenant, call.client_id), call.call_id) != call.call_id:
                raise Conflict(f"The id {call.client_id} stands for another call.", field="id")
            self._clients[call.tenant, call.client_id] = call.call_id
        self._live[call.call_id] = live

    def leave(self, live: InFlightCall, at: float) -> None:
        """Remove a call that has ended, and keep its status."""
        call = live.call
        self._live.pop(call.call_id, None)
        for tenant, status in self._ended.keep(call.tenant, call.call_id, status_of(live, at)):
            if status.client_id is not None and status.id not in self._live:
                self._clients.pop((tenant, status.client_id), None)

    def find(self, tenant: str, name: str, at: float) -> tuple[InFlightCall | None, CallStatus | None]:
        """A call of a tenant by its id or its client's id, with its status; (None, None) if it is not known."""
        call_id = self._clients.get((tenant, name), name)
        live = self._live.get(call_id)
        if live is not None and live.call.tenant == tenant:
            return live, status_of(live, at)
        return None, self._ended.get(tenant, call_id)


def status_of(live: InFlightCall, at: float) -> CallStatus:
    """A call as the API shows it."""
    state, error = STATES[live.origin.state], None
    if live.error is not None:
        failure = redact_for_caller(live.error, live.call)
        state = "cancelled" if failure.wire_code == "cancelled" else "failed"
        error = {"code": failure.wire_code, "detail": failure.detail}
    grant = live.origin.grant
    return CallStatus(
        id=live.call.call_id,
        state=state,
        version=live.call.version.ref,
        age_ms=(at - live.call.arrived_at) * 1000.0,
        client_id=live.call.client_id,
        container=grant.container if grant else None,
        error=error,
    )
