"""A node that does what a test says, and a world that counts a controller's passes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from pilotlight_autoscaler.observations.world import World
from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import key_of
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from pilotlight_core.model.messages.node_messages import Bind, CommandReply, Drain, NodeReport, Stop
from tests.builders.nodes import binding
from tests.waiting import until

REPEAT_EVERY_S = 0.25
"""The period of homes' demands; nodes report each second, or sooner."""


@dataclass(kw_only=True)
class CountingWorld(World):
    """A world that counts the controller's passes."""

    passes: int = 0

    def forget(self, at: float) -> None:
        super().forget(at)
        self.passes += 1

    async def wait_passes(self, bus: Bus, count: int = 3) -> None:
        """Wait until `count` more passes were made, and all that they sent has arrived."""
        enough = self.passes + count + 1  # the last one may still be under way
        await until(lambda: self.passes >= enough)
        await bus.flush()


class ScriptedNode:
    """Answers commands, and keeps them in `commands`."""

    def __init__(self, bus: Bus, region: str) -> None:
        self.commands: list[Bind | Drain | Stop | Cut | SwitchMig] = []
        self.reply = CommandReply(ok=True)
        self.answers = True
        self._bus, self._region, self._seq = bus, region, 0
        self._received = asyncio.Event()
        self._last: NodeReport | None = None

    async def listen(self) -> None:
        await self._bus.subscribe(subjects.command(self._region, "n1"), self._on_command)

    def _on_command(self, _: str, message: Bind | Drain | Stop | Cut | SwitchMig, reply: str) -> None:
        self.commands.append(message)
        self._received.set()
        if self.answers:
            self._bus.publish_nowait(reply, self.reply)

    async def own(self, reported: NodeReport) -> None:
        """Report containers that a former leader has bound there."""
        for one in reported.containers:
            bound = binding(
                one.id, one.version, tenant=one.tenant, function=f"{one.tenant}:{one.app}.{one.function}",
                slice=one.slice, slots=one.slots,
            )  # fmt: skip
            bucket = self._bus.kv(subjects.BINDING_BUCKET)
            await bucket.put(key_of(self._region, bound), msgspec.msgpack.encode(bound))
        self.report(reported)

    def repeat(self) -> None:
        """Repeat the last report, since a controller drops nodes without fresh ones."""
        if self._last is not None:
            self.report(self._last)

    def report(self, reported: NodeReport) -> None:
        self._seq += 1
        self._last = reported
        reported = msgspec.structs.replace(reported, seq=self._seq, region=self._region)
        self._bus.publish_nowait(subjects.beat(self._region, "n1"), reported)

    async def command(self, number: int) -> Bind | Drain | Stop | Cut | SwitchMig:
        """The command with that number, from 1, when it has been received."""
        async with asyncio.timeout(30):
            while len(self.commands) < number:
                self._received.clear()
                await self._received.wait()
        return self.commands[number - 1]


@asynccontextmanager
async def repeated(send: Callable[[], None]) -> AsyncIterator[None]:
    """Send at once and each quarter of a second until the block ends, as nodes and homes do."""

    async def repeat() -> None:
        while True:
            send()
            await asyncio.sleep(REPEAT_EVERY_S)

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
