"""What an agent asks the gateway of a call for the calls that it makes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import msgspec
import pytest

from pilotlight_core.bus import BusDown, BusTimeout, MessageTooLarge, NoResponders
from pilotlight_core.model.messages.agent_questions import (
    INLINE_REQUEST,
    MOST_AT_ONCE,
    AskNested,
    LeaveNested,
    NestedAnswer,
)
from pilotlight_core.model.messages.call_messages import BodyRef
from pilotlight_core.model.messages.message import Message
from pilotlight_runtime.calls import nested_asks
from pilotlight_runtime.calls.answer_room import MOST_UNREAD
from pilotlight_runtime.calls.nested_asks import NestedAsks
from pilotlight_runtime.calls.remote_bodies import BodyTransfers
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest import frames as guest
from tests.builders.calls import a_room, run
from tests.waiting import until

PLACE = BodyRef(url="http://gw/answers/x", token="x", size=10**7)
OK = NestedAnswer(body=b"answer")


class Gateway:
    """Answers by a script: values are returned, errors raised; without one it never answers."""

    def __init__(self) -> None:
        self.script: list[Any] = []
        self.asked: list[tuple[str, AskNested]] = []
        self.left: list[LeaveNested] = []
        self.taken = True
        self.is_slow = False
        self.transfers: list[Callable[[bool], None]] = []
        self.bodies: list[bytes] = []
        self.at = 0.0

    async def request(self, subject: str, message: Message, timeout: float) -> object:
        del timeout
        assert isinstance(message, AskNested)
        self.asked.append((subject, message))
        if not self.script:
            await asyncio.Event().wait()
        answer = self.script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def publish_nowait(self, subject: str, message: Message, *, reply: str = "") -> None:
        del subject, reply
        assert isinstance(message, LeaveNested)
        self.left.append(message)

    def upload(self, ref: BodyRef, data: bytes, done: Callable[[bool], None]) -> None:
        del ref
        self.bodies.append(data)
        self.transfers.append(done)
        if not self.is_slow:
            done(self.taken)

    def fetch(self, ref: BodyRef, done: Callable[[bytes | None], None]) -> None:
        done(b"large" if ref.size else None)


class Asks:
    """An agent's, with one parent."""

    def __init__(self, gateway: Gateway, group: asyncio.TaskGroup) -> None:
        self.gateway = gateway
        self.results: list[guest.NestedResult] = []
        self.parent = AcceptedCall(run(), 0.0, 0.0)
        self.room = a_room()
        self.asks = NestedAsks(
            gateway, cast("BodyTransfers", gateway), group, region="local", node="n1", clock=lambda: gateway.at
        )

    def begin(self, number: int = 1, request: bytes = b"r") -> str:
        """The guest asks."""
        frame = guest.NestedCall(call_id="a", number=number, function="shop.hello", request=request)
        return self.asks.begin(self.parent, frame, self.results.append, self.room)

    async def result(self, *script: Any, request: bytes = b"r") -> tuple[bytes, str]:
        """The body, or the code of the problem, of a nested call to which the gateway answers so."""
        self.gateway.script += script
        assert self.begin(request=request) == ""
        await until(lambda: bool(self.results))
        found = self.results.pop()
        return found.body, msgspec.json.decode(found.problem)["code"] if found.problem else ""


@pytest.fixture
async def asks(anyio_backend: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asks]:
    """What asks, without pauses."""
    del anyio_backend
    monkeypatch.setattr(nested_asks, "PAUSE_S", 0.0)
    monkeypatch.setattr(nested_asks, "REFUSAL_S", 0.0)
    async with asyncio.TaskGroup() as group:
        asks = Asks(Gateway(), group)
        yield asks
        asks.asks.end(asks.parent)
    assert len(asks.asks) == 0
    assert not asks.asks._held
    assert not asks.asks._counts


async def test_the_gateway_that_sent_the_parent_is_asked(asks: Asks) -> None:
    """For the parent, its grant and its container, as the agent knows them."""
    assert await asks.result(OK) == (b"answer", "")

    ((subject, ask),) = asks.gateway.asked
    assert subject == "pl.local.gw.gw1.nested.n1"
    assert (ask.parent, ask.grant_number, ask.container, ask.number) == ("a", 1, "c1", 1)
    assert (ask.function, ask.request) == ("shop.hello", b"r")


async def test_it_is_asked_until_there_is_an_answer(asks: Asks) -> None:
    """The second time without the request, unless that never came; the bus may be away meanwhile."""
    unknown = NestedAnswer(is_unknown=True)
    assert await asks.result(BusTimeout("-"), BusDown("-"), unknown, NoResponders("-"), OK) == (b"answer", "")

    assert [(ask.again, ask.request) for _, ask in asks.gateway.asked] == [
        (False, b"r"), (True, b""), (True, b""), (False, b"r"), (False, b"r"),
    ]  # fmt: skip


async def test_a_gateway_that_is_gone_is_waited_for_no_longer(asks: Asks) -> None:
    """The guest hears that its call is lost."""

    original = asks.gateway.request

    async def request(subject: str, message: Message, timeout: float) -> object:
        asks.gateway.at += 2.0
        return await original(subject, message, timeout)

    asks.gateway.request = request  # type: ignore[method-assign]
    assert await asks.result(*(NoResponders("-") for _ in range(4))) == (b"", "call_lost")


async def test_nothing_is_asked_after_the_parents_deadline(asks: Asks) -> None:
    """The gateway's own error comes before, if it can."""
    asks.gateway.at = asks.parent.deadline_at + nested_asks.GRACE_S

    assert await asks.result() == (b"", "deadline_exceeded")
    assert asks.gateway.asked == []


async def test_large_bodies_go_past_the_bus(asks: Asks) -> None:
    """The request is uploaded before it is asked again; the answer is fetched, and then left."""
    request = b"x" * (INLINE_REQUEST + 1)
    large = NestedAnswer(large=BodyRef(url="u", token="t", size=5))

    assert await asks.result(NestedAnswer(place=PLACE), large, request=request) == (b"large", "")
    assert [(ask.request, ask.request_size) for _, ask in asks.gateway.asked] == [(b"", len(request))] * 2
    assert asks.gateway.bodies == [request]
    assert [left.number for left in asks.gateway.left] == [1]


async def test_bodies_that_cannot_be_moved_are_told(asks: Asks) -> None:
    """No place for the request, or the answer is there no more."""
    asks.gateway.taken = False
    assert await asks.result(NestedAnswer(place=PLACE), request=b"x" * (INLINE_REQUEST + 1)) == (b"", "overloaded")
    gone = NestedAnswer(large=BodyRef(url="u", token="t", size=0))
    assert await asks.result(gone) == (b"", "call_lost")


async def test_an_answer_that_has_no_room_stays_at_its_gateway(asks: Asks, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for again meanwhile, so that it is kept; then it is fetched."""
    monkeypatch.setattr(nested_asks, "REPEAT_S", 0.001)
    large = NestedAnswer(large=BodyRef(url="u", token="t", size=5))
    await asks.room.take(MOST_UNREAD)
    asks.gateway.script += [large] * 10_000
    asks.begin()
    await until(lambda: len(asks.gateway.asked) >= 3)
    assert (asks.results, [ask.again for _, ask in asks.gateway.asked[:3]]) == ([], [False, True, True])

    asks.room.give_back(MOST_UNREAD)
    await until(lambda: bool(asks.results))
    assert (asks.results[0].body, asks.room.held) == (b"large", 0)


async def test_a_small_answer_that_has_no_room_waits(asks: Asks) -> None:
    """With what asked for it; and who has not read what came asks for nothing more."""
    await asks.room.take(MOST_UNREAD)
    asks.gateway.script.append(OK)
    asks.begin(1)
    await until(lambda: not asks.gateway.script)
    await asks.room.take(0)
    asks.room.give_back(-1)
    asks.begin(2)
    for _ in range(10):
        await asyncio.sleep(0)
    assert (asks.results, len(asks.gateway.asked)) == ([], 1)

    asks.gateway.script.append(OK)
    asks.room.give_back(MOST_UNREAD + 1)
    await until(lambda: len(asks.results) == 2)
    assert asks.room.held == 0


@pytest.mark.parametrize("answer", [None, MessageTooLarge("-")])
async def test_what_cannot_be_is_the_platforms_mistake(asks: Asks, answer: Any) -> None:
    """The guest is told, and goes on."""
    assert await asks.result(answer) == (b"", "internal")


async def test_the_end_of_the_parent_ends_them(asks: Asks) -> None:
    """The gateway is told, and so is the guest, which may be waiting."""
    asks.begin(1)
    asks.begin(2)
    await until(lambda: len(asks.gateway.asked) == 2)
    asks.asks.end(asks.parent)
    await until(lambda: len(asks.results) == 2)

    assert {msgspec.json.decode(result.problem)["code"] for result in asks.results} == {"cancelled"}
    assert {left.number for left in asks.gateway.left} == {1, 2}


async def test_the_guest_may_leave_one(asks: Asks) -> None:
    """Also before it was asked for; the others go on."""
    asks.begin(1)
    asks.begin(2)
    parent = asks.asks.parent_of("c1", 2)
    assert parent is asks.parent
    assert asks.asks.parent_of("c2", 2) is None
    asks.asks.leave(asks.parent, 2)
    asks.asks.leave(asks.parent, 9)
    await until(lambda: bool(asks.results))

    assert [result.number for result in asks.results] == [2]
    assert len(asks.asks) == 1


async def test_a_guest_that_breaks_a_rule_is_named(asks: Asks) -> None:
    """More than it may wait for, and one number for two."""
    assert asks.begin(1) == ""
    assert asks.begin(1) == "it gave two nested calls one number"
    for number in range(2, MOST_AT_ONCE + 1):
        assert asks.begin(number) == ""
    assert asks.begin(MOST_AT_ONCE + 1) == f"one of its calls waits for more than {MOST_AT_ONCE} others"


async def test_requests_are_held_within_a_bound(asks: Asks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one container; what is too much is refused, and the guest goes on."""
    monkeypatch.setattr(nested_asks, "HELD_BYTES", 3)
    asks.begin(1, b"xx")

    assert asks.begin(2, b"yy") == ""
    assert [msgspec.json.decode(result.problem)["code"] for result in asks.results] == ["overloaded"]


async def test_a_container_has_so_many_in_all(asks: Asks, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many calls it works on."""
    monkeypatch.setattr(nested_asks, "MOST_OF_CONTAINER", 2)

    assert [asks.begin(number) for number in range(3)] == ["", "", ""]
    assert [msgspec.json.decode(result.problem)["code"] for result in asks.results] == ["nested_refused"]


async def test_what_a_transfer_holds_is_given_back_when_it_ends(asks: Asks) -> None:
    """Not when the guest leaves: else it could have any number of requests under way."""
    asks.gateway.is_slow, asks.gateway.script = True, [NestedAnswer(place=PLACE)]
    large = b"x" * 10_000_000
    asks.begin(1, large)
    await until(lambda: bool(asks.gateway.bodies))
    asks.asks.leave(asks.parent, 1)
    await until(lambda: bool(asks.results))
    for number in range(2, 2 + nested_asks.HELD_BYTES // len(large)):
        asks.begin(number, large)
    assert [msgspec.json.decode(each.problem)["code"] for each in asks.results] == ["cancelled", "overloaded"]

    asks.gateway.transfers[0](asks.gateway.taken)
    asks.begin(9, large)
    assert len(asks.results) == 2


async def test_a_refusal_takes_a_while(asks: Asks, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the calls that may be open bound how fast a guest asks for what is refused; what a function raises is none."""
    monkeypatch.setattr(nested_asks, "REFUSAL_S", 3600.0)
    problem = b'{"code": "%s", "detail": ""}'
    assert (await asks.result(NestedAnswer(problem=problem % b"function_raised")))[1] == "function_raised"
    asks.gateway.script.append(NestedAnswer(problem=problem % b"nested_refused"))
    asks.begin(2)
    await until(lambda: not asks.gateway.script)
    for _ in range(10):
        await asyncio.sleep(0)

    assert (asks.results, len(asks.asks)) == ([], 1)
