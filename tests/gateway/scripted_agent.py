"""An agent that does what a test says, on a real bus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.host.binding_book import key_of
from pilotlight_core.model import subjects, values
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.call_messages import Cancel, Ended, Outcome, Run, Spent, Window
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import ContainerState
from tests.builders.calls import credit
from tests.builders.nodes import binding, node_report

Script = Callable[[Run], list[Message]]


def echo(run: Run) -> list[Message]:
    """Answer with the arguments, at once."""
    spent = Spent(ns=1_000_000, ppm=1_000_000, price="cpu")
    output = values.encode(values.decode(run.input) if run.input else None)
    return [
        Ended(
            call_id=run.call_id,
            grant_number=run.grant_number,
            container=run.container,
            outcome=Outcome.OK,
            output=output,
            spent=spent,
        )
    ]


class ScriptedAgent:
    """One node with one container of a version. What it received is in `runs`, `cancels`, `windows`."""

    def __init__(
        self, bus: Bus, *, version: str, node: str = "n1", container: str = "", slots: int = 1, script: Script = echo
    ) -> None:
        self.runs: list[Run] = []
        self.cancels: list[Cancel] = []
        self.windows: list[Window] = []
        self.changed = asyncio.Event()
        self.script = script
        self.node, self.instance, self.container = node, "i1", container or f"c-{token(8)}"
        self._bus, self._version, self._slots, self._seq = bus, version, slots, 0

    async def bind(self, slots: int = 1) -> None:
        """Have the container bound, as the controller does it."""
        self._slots = slots
        bound = binding(self.container, self._version, node=self.node, function="acme:a.f", slots=self._slots)
        await self._bus.kv(subjects.BINDING_BUCKET).put(key_of("local", bound), msgspec.msgpack.encode(bound))

    async def listen(self) -> None:
        """Be bound, and hear what is said to the node."""
        await self.bind(self._slots)
        await self._bus.subscribe(subjects.run("local", self.node, "*"), self._on_run)
        await self._bus.subscribe(subjects.control("local", self.node), self._on_control)
        await self._bus.flush()

    def credit(self, state: ContainerState = ContainerState.READY, *, held: tuple[str, ...] = (), **more: Any) -> None:
        self._seq += 1
        message = credit(
            self.container, self._seq, *held, slots=self._slots, version=self._version, node=self.node,
            instance=self.instance, state=state, function="acme:a.f", **more,
        )  # fmt: skip
        self._bus.publish_nowait(subjects.credit("local", self.node, self._version), message)

    def report(self) -> None:
        self._seq += 1
        self._bus.publish_nowait(
            subjects.beat("local", self.node),
            node_report(self.node, self._seq, instance=self.instance),
        )

    def say(self, run: Run, *messages: Message) -> None:
        for message in messages:
            self._bus.publish_nowait(subjects.reply("local", run.gateway, self.node), message)

    async def credit_until(self, condition: Callable[[], object]) -> None:
        """Say its credit again and again, as agents do: one that comes before its binding is known does not count."""
        async with asyncio.timeout(30):
            while not condition():
                self.credit()
                await asyncio.sleep(0.05)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for something received."""
        async with asyncio.timeout(30):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    def _on_run(self, _: str, message: Run, __: str) -> None:
        self.runs.append(message)
        self.changed.set()
        self.say(message, *self.script(message))

    def _on_control(self, _: str, message: Cancel | Window, __: str) -> None:
        if isinstance(message, Cancel):
            self.cancels.append(message)
        else:
            self.windows.append(message)
        self.changed.set()
