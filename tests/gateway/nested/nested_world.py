"""The nested calls of one gateway over fakes: a parent of `acme` runs on the node `n1`, in the container `c1`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import msgspec

from pilotlight_core.bus import Bus, bus_users
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.agent_questions import AskNested, NestedAnswer
from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_gateway.calls.in_flight_call import InFlightCall
from pilotlight_gateway.calls.large_bodies import LargeBodies
from pilotlight_gateway.calls.origin import Origin, OriginState
from pilotlight_gateway.http_wiring import wire_nested
from pilotlight_gateway.nested.nested_calls import NestedCalls
from pilotlight_gateway.nested.nested_exchange import NestedExchange
from pilotlight_gateway.tenancy.auth import KeyAuthenticator
from tests.builders.calls import grant, prepared_call
from tests.gateway.calls.quiet_call import QuietCall
from tests.gateway.world import World

REPLY = f"{bus_users.agent_inbox('n1')}.x"
SUBJECT = subjects.nested("local", "gw1", "n1")


def live_call(call_id: str = "a", *, number: int = 1, granted: bool = True, **more: Any) -> QuietCall:
    """A call of this gateway; granted, it runs in `c1` on `n1`."""
    at = time.monotonic()
    call = prepared_call(call_id, arrived_at=at, deadline_at=at + 60.0, **more)
    live = QuietCall(call, Origin(call, "gw1", at))
    if granted:
        live.origin.grant, live.origin.state = grant(number, call_id=call_id), OriginState.RUNNING
    return live


def asked(number: int = 1, function: str = "shop.hello", parent: str = "a", **more: Any) -> AskNested:
    """What the agent of `n1` asks."""
    request = msgspec.msgpack.encode({"input": more.pop("input", {"name": "Ada"})})
    fields: dict[str, Any] = {"grant_number": 1, "container": "c1", "request": request} | more
    return AskNested(parent=parent, number=number, function=function, **fields)


class FakeBus:
    """Keeps what is answered; nobody else listens."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, NestedAnswer]] = []

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        assert isinstance(message, NestedAnswer)
        self.sent.append((subject, message))

    async def subscribe(self, *_: Any, **__: Any) -> FakeBus:
        return self

    async def unsubscribe(self) -> None:
        pass


class NestedWorld:
    """An exchange, and the calls that are live."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.bus = FakeBus()
        self.live: dict[str, InFlightCall] = {}
        self.reports: list[NodeReport] = []
        services = world.services
        assert isinstance(services.authenticator, KeyAuthenticator)
        self.calls: NestedCalls = wire_nested(services.parts(), services.authenticator.why_ended)
        self.book = self.calls.book
        self.bodies = LargeBodies(url="http://gw1", budget=services.budget)
        self.exchange = NestedExchange(
            cast("Bus", self.bus), self, self.calls, self.bodies, lambda _: self.reports, region="local", gateway="gw1"
        )

    def find(self, call_id: str) -> InFlightCall | None:
        return self.live.get(call_id)

    def enter(self, call: QuietCall) -> QuietCall:
        """A call is live."""
        self.live[call.call.call_id] = call
        return call

    def receive(self, message: Message, subject: str = SUBJECT, reply: str = REPLY) -> None:
        """An agent asks, by default that of `n1`."""
        self.exchange.receive(subject, message, reply)

    def answers(self) -> list[NestedAnswer]:
        """All that was answered."""
        return [answer for _, answer in self.bus.sent]

    def codes(self) -> list[str]:
        """The codes of the problems that were answered; "": an answer."""
        return [msgspec.json.decode(each.problem)["code"] if each.problem else "" for each in self.answers()]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[NestedWorld]:
        """While the exchange runs; in the end nothing is left."""
        async with self.exchange.running():
            yield self
        assert len(self.book) == 0
        self.book.check_integrity()


def output_of(answer: NestedAnswer) -> Any:
    """The output in an answer."""
    return msgspec.msgpack.decode(answer.body)["output"]
