"""Kept calls over the bus: to the duties, which export them, and to other gateways, which ask for those of a tenant."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from itertools import islice

import structlog
from msgspec import structs

from pilotlight_core.bus import Bus, BusError, MessageTooLarge
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.scheduling import MOST_OF_BATCH, AskKept, KeptTold, TraceBatch
from pilotlight_core.model.tracing.kept_call import KeptCall
from pilotlight_gateway.traces.trace_keeper import TraceKeeper

SEND_EVERY_S = 2.0
BATCHES_AT_ONCE = 16
"""Messages of one turn, between which calls go on: what is beyond waits for the next, and drops the oldest when there
is too much."""
ANSWER_S = 0.5
"""For the other gateways to say what they keep."""
MOST_ASKED = 200
"""Calls that one gateway tells of at a time, so that they fit one message."""

log = structlog.get_logger(__name__)


class TraceExchange:
    """Sends what this gateway keeps, and finds what all gateways keep, while `running` is open."""

    def __init__(
        self, bus: Bus, keeper: TraceKeeper, others: Callable[[], Iterable[str]], *, region: str, gateway: str
    ) -> None:
        """`others`: the other gateways there are."""
        self._bus = bus
        self._keeper = keeper
        self._others = others
        self._region = region
        self._gateway = gateway

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send and answer until the block ends; then send what is left."""
        async with (
            self._bus.listening({subjects.kept(self._region, self._gateway): self._on_ask}),
            asyncio.TaskGroup() as group,
        ):
            sending = group.create_task(self._send_on())
            try:
                yield
            finally:
                sending.cancel()
                for _ in range(BATCHES_AT_ONCE):
                    if not self._send():
                        break

    async def find(self, asked: AskKept) -> tuple[list[KeptCall], list[str]]:
        """The kept calls of a tenant at all gateways, the newest first; and the gateways that did not answer."""
        others = sorted(self._others())
        own = kept_of(self._keeper, asked)
        if asked.call_id and own:
            return own, []  # ids are unique
        replies = await asyncio.gather(*(self._ask(gateway, asked) for gateway in others))
        found = [*own, *(call for reply in replies if reply is not None for call in reply.calls)]
        silent = [gateway for gateway, reply in zip(others, replies, strict=True) if reply is None]
        # What another gateway says is of the tenant that was asked for, or is not shown.
        mine = [call for call in found if call.tenant == asked.tenant]
        return sorted(mine, key=lambda call: -call.arrived_ns)[: asked.limit], silent

    async def _ask(self, gateway: str, asked: AskKept) -> KeptTold | None:
        try:
            answer = await self._bus.request(subjects.kept(self._region, gateway), asked, timeout=ANSWER_S)
        except BusError:
            return None
        return answer if isinstance(answer, KeptTold) else None

    def _on_ask(self, _: str, message: object, reply: str) -> None:
        if isinstance(message, AskKept) and reply:
            calls, name = tuple(kept_of(self._keeper, message)), self._gateway
            with contextlib.suppress(BusError):
                while not self._fits(reply, KeptTold(gateway=name, calls=calls)) and calls:
                    calls = calls[: len(calls) // 2]  # the newest of them

    async def _send_on(self) -> None:
        while True:
            await asyncio.sleep(SEND_EVERY_S)
            try:
                for _ in range(BATCHES_AT_ONCE):
                    if not self._send():
                        break
                    await asyncio.sleep(0)
            except Exception:  # what is kept is worth less than the calls that go on
                log.exception("kept calls were not sent")

    def _send(self) -> bool:
        """Send the oldest; whether there may be more."""
        batch = self._keeper.take_unsent(MOST_OF_BATCH)
        if batch is None:
            return False
        try:
            self._send_batch(batch)
        except BusError as error:  # they are told of here all the same
            log.debug("kept calls were not sent", calls=len(batch.calls), sheets=len(batch.sheets), error=str(error))
            return False
        return True

    def _send_batch(self, batch: TraceBatch) -> None:
        """In as many messages as it takes: what functions and nodes name of a call may be long."""
        if not self._fits(subjects.traces(self._region), batch):
            for part in halves(batch):
                self._send_batch(part)

    def _fits(self, subject: str, message: Message) -> bool:
        """Whether a message was sent, since it is not too large for the bus. Raises BusError."""
        try:
            self._bus.publish_nowait(subject, message)
        except MessageTooLarge:
            return False
        return True


def halves(batch: TraceBatch) -> list[TraceBatch]:
    """The parts of a message that is too large; none: of one call, or of one sheet, there are none."""
    middle, among = len(batch.calls) // 2, len(batch.sheets) // 2
    if batch.calls and batch.sheets:
        return [structs.replace(batch, sheets=()), structs.replace(batch, calls=())]
    if middle:
        return [structs.replace(batch, calls=batch.calls[:middle]), structs.replace(batch, calls=batch.calls[middle:])]
    if among:
        return [
            structs.replace(batch, sheets=batch.sheets[:among]), structs.replace(batch, sheets=batch.sheets[among:]),
        ]  # fmt: skip
    return []


def kept_of(keeper: TraceKeeper, asked: AskKept) -> list[KeptCall]:
    """What a gateway keeps of what is asked for, the newest first."""
    if asked.call_id:
        known = keeper.calls.find(asked.tenant, asked.call_id)
        return [] if known is None else [known]
    found = keeper.calls.of_tenant(asked.tenant, asked.function, asked.kept)
    return list(islice(found, min(asked.limit, MOST_ASKED)))
