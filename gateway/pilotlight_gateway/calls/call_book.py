"""Which calls this gateway knows: the live ones, and for a while how the ended ones ended."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import Conflict, PilotlightError
from pilotlight_core.model.integrity import require
from pilotlight_core.model.messages.agent_messages import BodyRef
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.calls.redaction import redact_for_caller

T = TypeVar("T")
REMEMBERED = 10_000
"""Ended calls whose status is kept: of all tenants, and beyond it whoever has most loses its oldest."""
UNSENT = math.inf
STATES = {
    OriginState.QUEUED: "queued",
    OriginState.WAITING: "queued",
    OriginState.SENT: "running",
    OriginState.RUNNING: "running",
    OriginState.DONE: "succeeded",
}


@dataclass(kw_only=True, eq=False)
class InFlightCall(ABC):
    """A call, from its begin to its answer. Who waits for it is told by the four abstract verbs."""

    call: PreparedCall
    shard: int
    """Of its function."""
    origin: Origin
    heard_at: float = UNSENT
    """When it was sent, or its agent last said something of it; UNSENT: its agent knows nothing of its grant yet."""
    body: BodyRef | None = None
    place: BodyRef | None = None
    """Where an answer too large for the bus is left."""
    error: PilotlightError | None = None
    """What it has failed with."""

    @abstractmethod
    def report_stage(self, name: str, ms: float, /, **detail: object) -> None:
        """The call has entered a stage."""

    @abstractmethod
    def relay_chunk(self, seq: int, data: bytes) -> None:
        """The next piece of its stream.

        Raises:
            Unavailable: if the gateway holds too many bytes already, of all or of this tenant.
        """

    @abstractmethod
    def finish(self, result: CallResult) -> None:
        """The call has succeeded."""

    @abstractmethod
    def fail(self, error: PilotlightError) -> None:
        """The call has failed."""

    def status(self, at: float) -> CallStatus:
        """The call as the API shows it."""
        state, error = STATES[self.origin.state], None
        if self.error is not None:
            failure = redact_for_caller(self.error, self.call)
            state = "cancelled" if failure.wire_code == "cancelled" else "failed"
            error = {"code": failure.wire_code, "detail": failure.detail}
        grant = self.origin.grant
        return CallStatus(
            id=self.call.call_id,
            state=state,
            version=self.call.version.ref,
            age_ms=(at - self.call.arrived_at) * 1000.0,
            client_id=self.call.client_id,
            container=grant.container if grant else None,
            error=error,
        )


class FairMemory(Generic[T]):
    """A bounded memory that tenants share: when it is full, whoever has most in it loses its oldest.

    So a tenant with few things keeps them however much others bring, and one that is alone has all of the room. All is
    O(1): tenants stand in rows by how much they have, and the last row that is not empty is known.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._size = 0
        # Ordered ones, since a plain dict walks over all that was removed at its head to find its first.
        self._things: dict[str, OrderedDict[str, T]] = {}
        """By tenant, each in the order in which they came; no tenant with none."""
        self._rows: dict[int, OrderedDict[str, None]] = {}
        """How many things -> the tenants that have so many; no empty row."""
        self._most = 0

    def __len__(self) -> int:
        return self._size

    def get(self, tenant: str, name: str) -> T | None:
        """What is kept of a tenant under `name`; None if nothing is."""
        things = self._things.get(tenant)
        return things.get(name) if things is not None else None

    def keep(self, tenant: str, name: str, thing: T) -> list[tuple[str, T]]:
        """Keep something under a new name; what had to go for it, with whose it was."""
        things = self._things.get(tenant)
        if things is None:
            things = self._things[tenant] = OrderedDict()
        things[name] = thing
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
    """Calls by id and by the id that their client made; a tenant finds only its own."""

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._live: dict[str, InFlightCall] = {}
        self._ended: FairMemory[CallStatus] = FairMemory(remembered)
        self._clients: dict[tuple[str, str], str] = {}

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[InFlightCall]:
        return iter(list(self._live.values()))

    def get(self, call_id: str) -> InFlightCall | None:
        """The live call with this id."""
        return self._live.get(call_id)

    def enter(self, live: InFlightCall) -> None:
        """A call begins.

        Raises:
            Conflict: if its client used the same id for another call not long ago.
        """
        call = live.call
        if call.client_id is not None:
            if (call.tenant, call.client_id) in self._clients:
                raise Conflict(f"The id {call.client_id} stands for another call.", field="id")
            self._clients[call.tenant, call.client_id] = call.call_id
        self._live[call.call_id] = live

    def leave(self, live: InFlightCall, at: float) -> None:
        """A call has ended; its status is kept for a while."""
        call = live.call
        self._live.pop(call.call_id, None)
        for tenant, status in self._ended.keep(call.tenant, call.call_id, live.status(at)):
            if status.client_id is not None:
                self._clients.pop((tenant, status.client_id), None)

    def find(self, tenant: str, name: str, at: float) -> tuple[InFlightCall | None, CallStatus | None]:
        """A call of a tenant by its id or its client's id, with its status; (None, None) if it is not here."""
        call_id = self._clients.get((tenant, name), name)
        live = self._live.get(call_id)
        if live is not None and live.call.tenant == tenant:
            return live, live.status(at)
        return None, self._ended.get(tenant, call_id)
