"""Calls of an API under way: batches, capacity, and what is repeated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

from pilotlight.upstream.capacity_limit import CapacityLimit
from pilotlight.upstream.upstream_calls import MOST_TRIES, BatchFields, UpstreamCall, UpstreamCalls
from pilotlight.upstream.upstream_port import NotRun, Overloaded, UpstreamError
from pilotlight.upstream.waiting_items import WaitingItems
from tests.waiting import until

LISTS = BatchFields("inputs", "outputs")
SINGLE = BatchFields()


@pytest.fixture
def anyio_backend() -> str:
    """Functions run on asyncio."""
    return "asyncio"


class FakeTransport:
    """Answers with what it was sent, unless it is to do something else first."""

    def __init__(self, *first: Any) -> None:
        self.first = list(first)
        self.seen: list[Any] = []
        self.running = self.most_running = 0
        self.hold: asyncio.Event | None = None
        self.closed = False

    async def post(self, text: str, timeout_s: float) -> Any:
        body = json.loads(text)
        assert timeout_s > 0
        self.seen.append(body)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            if self.hold is not None:
                await self.hold.wait()
            await asyncio.sleep(0)
            if self.first and (told := self.first.pop(0)) is not None:
                if isinstance(told, Exception):
                    raise told
                return told
            return {"outputs": body["inputs"]} if isinstance(body, dict) and "inputs" in body else body
        finally:
            self.running -= 1

    async def close(self) -> None:
        self.closed = True


def calls(
    transport: FakeTransport,
    *,
    size: int = 1,
    fields: BatchFields = SINGLE,
    most: int = 64,
    told: list[int] | None = None,
    timeout_s: float = 30.0,
) -> UpstreamCalls:
    waiting: WaitingItems[UpstreamCall] = WaitingItems(size, 0.0)
    tell = told.append if told is not None else lambda _: None
    limit = CapacityLimit(most)
    return UpstreamCalls(transport, limit, waiting, fields, timeout_s=timeout_s, report_full=tell)


async def all_of(one: UpstreamCalls, inputs: Iterable[Any]) -> list[Any]:
    return await asyncio.gather(*(one.call(each) for each in inputs), return_exceptions=True)


async def test_a_call_is_a_request(anyio_backend: str) -> None:
    """And its answer is the API's."""
    transport = FakeTransport({"label": "cat"})
    assert await calls(transport).call({"text": "a"}) == {"label": "cat"}
    assert transport.seen == [{"text": "a"}]


async def test_calls_go_together_and_each_gets_its_own(anyio_backend: str) -> None:
    """In the lists that the API has for them."""
    transport = FakeTransport()
    transport.hold = asyncio.Event()
    one = calls(transport, size=4, fields=LISTS, most=1)
    asking = asyncio.ensure_future(all_of(one, range(9)))
    await until(lambda: bool(transport.seen))
    transport.hold.set()
    assert await asking == list(range(9))
    assert [len(body["inputs"]) for body in transport.seen] == [1, 4, 4]


@pytest.mark.parametrize("answer", [{"outputs": [1]}, {"outputs": 5}, [1, 2], {"other": [1, 2]}])
async def test_outputs_are_as_many_as_inputs(anyio_backend: str, answer: Any) -> None:
    """Else nobody knows whose they are."""
    transport = FakeTransport({"outputs": [0]}, answer)
    one = calls(transport, size=2, fields=LISTS, most=1)
    found = await all_of(one, range(3))
    assert found[0] == 0
    assert all("was asked for 2 outputs" in str(error) for error in found[1:])


async def test_an_input_that_is_no_json_fails_alone(anyio_backend: str) -> None:
    """The others of its request are of other callers."""
    one = calls(FakeTransport(), size=2, fields=LISTS)
    first, odd, none, last = await all_of(one, ["a", {1, 2}, float("nan"), "b"])
    assert (first, last) == ("a", "b")
    for each in (odd, none):
        assert isinstance(each, UpstreamError)
        assert "The input is not JSON" in str(each)


async def test_what_has_not_run_is_sent_again(anyio_backend: str) -> None:
    """A refusal and a connection that was not made; what may have run is not."""
    transport = FakeTransport(NotRun("429", is_refusal=True, retry_after_s=0.01), NotRun("refused"), None)
    assert await calls(transport).call({"n": 1}) == {"n": 1}
    assert len(transport.seen) == 3
    for error in (Overloaded("it answered 503"), UpstreamError("It broke."), ZeroDivisionError()):
        transport = FakeTransport(error)
        with pytest.raises((UpstreamError, ZeroDivisionError)):
            await calls(transport).call({"n": 1})
        assert len(transport.seen) == 1


async def test_tries_are_bounded(anyio_backend: str) -> None:
    """By number, and by the time of the call."""
    refusal = NotRun("full", is_refusal=True, retry_after_s=0.0)
    transport = FakeTransport(*[refusal] * 20)
    with pytest.raises(UpstreamError, match=f"after {MOST_TRIES} tries: full"):
        await calls(transport).call({})
    transport = FakeTransport(NotRun("full", is_refusal=True, retry_after_s=50.0))
    with pytest.raises(UpstreamError, match="after 1 tries"):
        await calls(transport, timeout_s=5.0).call({})


async def test_no_more_run_than_the_api_takes(anyio_backend: str) -> None:
    """What waits for it is told once, and once that nothing does."""
    transport, told = FakeTransport(), list[int]()
    one = calls(transport, most=3, told=told)
    await all_of(one, range(50))
    assert transport.most_running == 3
    assert len(told) >= 2
    assert (bool(told[0]), told[-1]) == (True, 0)


async def test_who_leaves_is_not_sent(anyio_backend: str) -> None:
    """A cancelled call that waits; one that was sent is answered to nobody."""
    transport = FakeTransport()
    transport.hold = asyncio.Event()
    one = calls(transport, most=1)
    first, second, third = (asyncio.ensure_future(one.call(n)) for n in range(3))
    await until(lambda: bool(transport.seen))
    first.cancel()
    second.cancel()
    await asyncio.sleep(0)
    transport.hold.set()
    assert await third == 2
    assert transport.seen == [0, 2]


async def test_what_nobody_waits_for_is_given_up(anyio_backend: str) -> None:
    """Once all callers of a request have left: its room is the next one's, and it says nothing of capacity."""
    transport = FakeTransport()
    transport.hold = asyncio.Event()
    one = calls(transport, size=2, fields=LISTS, most=1)
    first = asyncio.ensure_future(one.call(0))
    await until(lambda: transport.running == 1)
    others = [asyncio.ensure_future(one.call(number)) for number in (1, 2)]
    await asyncio.sleep(0)
    first.cancel()
    await until(lambda: transport.seen[-1:] == [{"inputs": [1, 2]}])
    assert (transport.running, one.limit.running, one.limit.limit) == (1, 1, 1.0)
    others[0].cancel()
    await asyncio.sleep(0)
    transport.hold.set()
    assert await others[1] == 2  # one of its callers is there
    await until(lambda: one.limit.running == 0)


async def test_what_is_late_for_all_is_no_leaving(anyio_backend: str) -> None:
    """The API has too much to do, so it gets less."""
    transport = FakeTransport(Overloaded("no answer within 0.01 s"))
    transport.hold = asyncio.Event()
    one = calls(transport, most=4, timeout_s=0.01)
    with pytest.raises(UpstreamError, match="did not answer within"):
        await one.call(0)
    assert transport.running == 1
    transport.hold.set()
    await until(lambda: one.limit.running == 0)
    assert one.limit.limit == 2.0


async def test_the_end_of_the_container_ends_calls(anyio_backend: str) -> None:
    """And its connections."""
    transport = FakeTransport()
    transport.hold = asyncio.Event()
    one = calls(transport)
    asking = asyncio.ensure_future(all_of(one, range(2)))
    await until(lambda: len(transport.seen) == 2)
    await one.close()
    assert all(isinstance(found, UpstreamError) for found in await asking)
    assert transport.closed


async def test_what_waits_too_long_is_never_sent(anyio_backend: str) -> None:
    """The API takes no more: its calls end in their time, those that were sent and those that waited."""
    transport = FakeTransport()
    transport.hold = asyncio.Event()
    api = calls(transport, most=1, timeout_s=0.05)
    sent, waited = await all_of(api, ["sent", "waited"])

    assert isinstance(sent, UpstreamError)
    assert "may have run" in str(sent)
    assert isinstance(waited, UpstreamError)
    assert "was not sent" in str(waited)
    transport.hold.set()
    await until(lambda: not transport.running)
    assert transport.seen == ["sent"]
