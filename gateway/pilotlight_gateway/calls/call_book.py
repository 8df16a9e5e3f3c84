"""Which calls this gateway knows: the live ones, and for a while how the ended ones ended."""

from __future__ import annotations

from collections.abc import Iterator

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import Conflict
from pilotlight_gateway.calls.fair_memory import FairMemory
from pilotlight_gateway.calls.in_flight import InFlightCall

REMEMBERED = 10_000
"""Ended calls whose status is kept: of all tenants, and beyond it whoever has most loses its oldest."""


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

    def get(self, call: str) -> InFlightCall | None:
        """The live call with this id."""
        return self._live.get(call)

    def enter(self, live: InFlightCall) -> None:
        """A call begins.

        Raises:
            Conflict: if its client used the same id for another call not long ago.
        """
        call = live.call
        if call.client_id is not None:
            if (call.tenant, call.client_id) in self._clients:
                raise Conflict(f"The id {call.client_id} stands for another call.", field="id")
            self._clients[call.tenant, call.client_id] = call.id
        self._live[call.id] = live

    def leave(self, live: InFlightCall, at: float) -> None:
        """A call has ended; its status is kept for a while."""
        call = live.call
        self._live.pop(call.id, None)
        for tenant, status in self._ended.keep(call.tenant, call.id, live.status(at)):
            if status.client_id is not None:
                self._clients.pop((tenant, status.client_id), None)

    def find(self, tenant: str, name: str, at: float) -> tuple[InFlightCall | None, CallStatus | None]:
        """A call of a tenant by its id or its client's id, with its status; (None, None) if it is not here."""
        call = self._clients.get((tenant, name), name)
        live = self._live.get(call)
        if live is not None and live.call.tenant == tenant:
            return live, live.status(at)
        return None, self._ended.get(tenant, call)
