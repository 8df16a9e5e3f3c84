"""What a tenant may store of jobs: their records, inputs, results and errors, wherever these are kept.

It is counted as the room for keys is (`idempotency.shares`): by when it will be forgotten, so nobody has to count it
off then, and nobody can do it twice. Who dies between counting and storing has counted for nothing until that time;
what is stored and not counted does not exist, but for results that came while the bus was away.

New jobs leave a part of it to the results of those that are there. A result whose code has run is never refused: it
may be more than there is room for, and then the tenant's jobs are not started until there is room again. So a tenant
is over its share by no more than what ran at that moment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import NamedTuple

import structlog

from pilotlight_core.host.bus import BusError
from pilotlight_core.model.errors import TooMuch
from pilotlight_gateway.idempotency.port import ShareRecords
from pilotlight_gateway.idempotency.room import Room

NEW_AT_MOST = 0.9
"""Of it may be taken when a job is submitted."""
ASKING_S = 1.0
ASK_AGAIN_S = 30.0
"""How long nothing is started of a tenant that has no room, before it is asked again whether it has."""

log = structlog.get_logger(__name__)


class Counted(NamedTuple):
    """What was counted: it can be given back."""

    tenant: str
    size: int
    slot: int


class JobRoom:
    """As one gateway takes it for its tenants. `until` is when what is stored is forgotten (unix seconds)."""

    def __init__(self, records: ShareRecords, *, limit: int, life: float, wall: Callable[[], float]) -> None:
        self._room = Room(records, limit=limit, life=life, wall=wall)
        self._wall = wall
        self._full: dict[str, float] = {}
        """tenant -> until when it is not asked whether there is room."""

    def spend(self, tenant: str, size: int, until: float) -> Counted | None:
        """Count what is to be stored anew, if that needs nobody; else see `take`."""
        slot = self._room.spend(tenant, size, until)
        return None if slot is None else Counted(tenant, size, slot)

    async def take(self, tenant: str, size: int, until: float) -> Counted:
        """Count what is to be stored anew.

        Raises:
            TooMuch: it has stored too much. BusError: nobody can say.
        """
        try:
            return Counted(tenant, size, await self._room.take(tenant, size, until, part=NEW_AT_MOST))
        except TooMuch as error:
            raise TooMuch("The tenant's room for jobs is used up for now.", retry_after=error.retry_after) from None

    async def fits(self, tenant: str, size: int, until: float) -> bool:
        """Whether so much may be written with a job that is there; it is counted then."""
        try:
            await self._room.take(tenant, size, until)
        except (TooMuch, BusError):
            return False
        return True

    async def count(self, tenant: str, size: int, until: float) -> tuple[Counted, bool]:
        """Count a result, which is kept whatever this says; whether there was room for it."""
        slot, fits = await self._room.count(tenant, size, until)
        if not fits:
            self._full.setdefault(tenant, self._wall())
        return Counted(tenant, size, slot), fits

    def give_back(self, counted: Counted) -> None:
        """It was not stored after all."""
        self._room.give_back(*counted)

    async def pause(self, tenant: str) -> float:
        """Seconds for which no job of the tenant is to start; 0.0: it may."""
        asked_at = self._full.get(tenant)
        if asked_at is None:
            return 0.0
        at = self._wall()
        if at < asked_at:
            return asked_at - at
        self._full[tenant] = at + ASKING_S  # for those who come while it is asked
        with contextlib.suppress(BusError):
            if not await self._room.is_full(tenant):
                self._full.pop(tenant, None)
                return 0.0
            log.warning("nothing is started of a tenant whose room for jobs is used up", tenant=tenant)
            self._full[tenant] = at + ASK_AGAIN_S
        return self._full[tenant] - at
