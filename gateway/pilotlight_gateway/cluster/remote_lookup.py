"""Finds calls at other gateways: a call id carries the epoch of its gateway."""

from __future__ import annotations

import asyncio

from pilotlight_core.bus import Bus, BusError
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import Unavailable, UnknownCall
from pilotlight_core.model.ids import CLIENT_CALL_ID, parse_call_id
from pilotlight_core.model.messages.scheduling import AskCall, CallReply
from pilotlight_gateway.cluster.shard_table import ShardTable

ANSWER_S = 2.0


class RemoteLookup:
    """Asks other gateways for calls."""

    def __init__(self, bus: Bus, shards: ShardTable, *, region: str) -> None:
        self._bus = bus
        self._shards = shards
        self._region = region

    async def ask(self, tenant: str, name: str, *, cancel: bool = False) -> CallReply:
        """The answer of the gateway that has the call `name`: its id, or its client's id, for which all are asked.

        Raises:
            UnknownCall: there is none, or it is another tenant's; `call_lost` if its gateway is gone.
            Unavailable: its gateway does not answer.
        """
        asked = AskCall(tenant=tenant, call_id=name, cancel=cancel)
        if CLIENT_CALL_ID.fullmatch(name):
            replies = await asyncio.gather(*(self._ask(gateway, asked) for gateway in self._shards.others()))
            found = next((one for one in replies if one is not None and one.status is not None), None)
            if found is None and None in replies:
                raise Unavailable("A gateway that may have the call does not answer.", retry_after=1.0)
            if found is None:
                raise UnknownCall(f"There is no call {name}.")
            return found
        epoch = parse_call_id(name).epoch
        owner = self._shards.process_of(epoch)
        if owner is None and epoch > self._shards.newest:
            raise UnknownCall(f"There is no call {name}.")
        if owner is None:
            raise UnknownCall(f"The gateway that had call {name} is gone, and the call with it.", code="call_lost")
        if owner not in self._shards.others():
            raise UnknownCall(f"There is no call {name}.")
        answer = await self._ask(owner, asked)
        if answer is None:
            raise Unavailable(f"The gateway that has call {name} does not answer.", retry_after=1.0)
        if answer.status is None:
            raise UnknownCall(f"There is no call {name}.")
        return answer

    async def _ask(self, gateway: str, asked: AskCall) -> CallReply | None:
        try:
            answer = await self._bus.request(subjects.ask(self._region, gateway), asked, timeout=ANSWER_S)
        except BusError:
            return None
        return answer if isinstance(answer, CallReply) else None
