"""Gateways that count calls, and tell each other over a bus in memory."""

from __future__ import annotations

import asyncio
from typing import Any

from pilotlight_core.bus import BusTimeout
from pilotlight_core.model.messages import wire
from pilotlight_gateway.home.home_report import HomeVersionLoad
from pilotlight_gateway.tally.gateway_tallies import GatewayTallies
from pilotlight_gateway.tally.home_tallies import HomeTallies
from pilotlight_gateway.tally.job_tallies import job_tallies
from pilotlight_gateway.tally.tallies import Tallies
from pilotlight_gateway.tally.tally_answers import TallyAnswers, TallySources
from pilotlight_gateway.tally.tally_desk import TallyDesk
from pilotlight_gateway.tally.tally_exchange import BusPeers
from tests.gateway.tally.tallied_calls import WallClock

FN = "acme:app.fn"


class Subscribed:
    """A subscription that a test forgets."""

    async def unsubscribe(self) -> None:
        """It is heard no more."""


class TallyBus:
    """Carries questions between gateways as bytes; those in `silent` answer nothing."""

    def __init__(self) -> None:
        self.handlers: dict[str, Any] = {}
        self.replies: dict[str, asyncio.Future[Any]] = {}
        self.silent: set[str] = set()
        self.asked = 0

    async def subscribe(self, subject: str, handler: Any) -> Any:
        self.handlers[subject] = handler
        return Subscribed()

    async def request(self, subject: str, message: Any, timeout: float) -> Any:
        self.asked += 1
        if subject in self.silent:
            raise BusTimeout("nobody answers")
        reply, answer = f"reply{self.asked}", asyncio.get_running_loop().create_future()
        self.replies[reply] = answer
        self.handlers[subject](subject, wire.decode(wire.encode(message)), reply)
        return await answer

    async def publish(self, subject: str, message: Any) -> None:
        self.replies[subject].set_result(wire.decode(wire.encode(message)))

    def spawn(self, job: Any) -> Any:
        return asyncio.ensure_future(job)


class TalliedGateway:
    """One of several gateways."""

    def __init__(self, name: str, bus: TallyBus, clock: WallClock, names: list[str]) -> None:
        self.calls, self.jobs, self.homes = Tallies(clock), job_tallies(clock), HomeTallies()
        own = GatewayTallies(name, wall=clock, worked=lambda: 0.0)
        sources = TallySources(calls=self.calls, jobs=self.jobs, homes=self.homes, own=own, wall=clock)
        answers = TallyAnswers(sources)
        others = [each for each in names if each != name]
        self.peers = BusPeers(bus, answers, lambda: others, region="local", gateway=name)
        self.at = 0.0
        self.desk = TallyDesk(answers, self.peers, clock=lambda: self.at, wall=clock)


class SeveralGateways:
    """Two, over one bus."""

    def __init__(self) -> None:
        self.bus, self.clock = TallyBus(), WallClock()
        names = ["one", "two"]
        self.one, self.two = (TalliedGateway(name, self.bus, self.clock, names) for name in names)

    async def __aenter__(self) -> SeveralGateways:
        for each in (self.one, self.two):
            await each.peers.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in (self.one, self.two):
            await each.peers.__aexit__()


def load(**more: Any) -> HomeVersionLoad:
    fields: dict[str, Any] = {
        "function": FN, "version": "ver_acme_fn_1", "queued": 0, "running": 0, "ready": 0, "starting": 0, "busy": 0,
        "slots": 0, "is_short": False, "has_room": False, "oldest_ms": 0.0,
    }  # fmt: skip
    return HomeVersionLoad(**fields | more)
