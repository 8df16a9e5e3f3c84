"""The internal listener: tokens work once, budgets hold."""

from __future__ import annotations

import httpx
import pytest
from starlette.types import Message

from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.large_bodies import ANSWER_BYTES, LargeBodies
from tests.gateway.http.asgi import Wire, ask


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def make_bodies(limit: int = 10**8) -> LargeBodies:
    return LargeBodies(url="http://origin", budget=ByteBudget(limit=limit))


def client(bodies: LargeBodies) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=bodies), base_url="http://origin")


async def test_an_offered_body_is_read_once() -> None:
    """The second reader finds nothing."""
    bodies = make_bodies()
    ref = bodies.offer(b"x" * 300_000)

    async with client(bodies) as http:
        first, second = await http.get(ref.url), await http.get(ref.url)

    assert (first.status_code, len(first.content)) == (200, 300_000)
    assert second.status_code == 404


async def test_an_answer_is_taken_only_where_it_is_expected_and_counted_until_it_is_withdrawn() -> None:
    """A token nobody made is refused; a repeated answer counts once."""
    bodies = make_bodies()
    ref = bodies.expect("acme")

    async with client(bodies) as http:
        assert (await http.put(ref.url, content=b"first")).status_code == 204
        assert (await http.put(ref.url, content=b"answer")).status_code == 204
        assert (await http.put("http://origin/answers/guessed", content=b"x")).status_code == 404

    assert (bodies.answer(ref), bodies.budget.used) == (b"answer", 6)
    bodies.withdraw(ref)
    bodies.withdraw(ref)
    assert (bodies.answer(ref), bodies.budget.used) == (None, 0)


async def test_an_answer_beyond_the_limit_is_refused_while_it_arrives() -> None:
    """The listener never holds more than one answer's limit for a token."""
    bodies = make_bodies()
    ref = bodies.expect("acme")

    async with client(bodies) as http:
        assert (await http.put(ref.url, content=b"x" * (ANSWER_BYTES + 1))).status_code == 413

    assert (bodies.answer(ref), bodies.budget.used) == (None, 0)


async def test_a_withdrawn_body_is_gone() -> None:
    """When a call ends, whatever was offered for it is closed."""
    bodies = make_bodies()
    ref, place = bodies.offer(b"x"), bodies.expect("acme")
    bodies.withdraw(ref)
    bodies.withdraw(place)

    async with client(bodies) as http:
        assert (await http.get(ref.url)).status_code == 404
        assert (await http.put(place.url, content=b"x")).status_code == 404


async def test_an_answer_that_the_budget_has_no_room_for_is_refused() -> None:
    """503 while it arrives, and what had arrived is free again."""
    bodies = make_bodies(limit=20)
    ref = bodies.expect("acme")

    wire = await ask(bodies, Wire(pieces=[b"x" * 6, b"x" * 6]), "PUT", f"/answers/{ref.token}")

    assert (wire.status, bodies.answer(ref), bodies.budget.used) == (503, None, 0)


@pytest.mark.parametrize(("gone", "status"), [(True, 400), (False, 410)])
async def test_an_answer_that_nobody_waits_for_any_more_is_not_kept(gone: bool, status: int) -> None:
    """Its sender hung up, or its call ended, while it was on its way."""
    bodies = make_bodies()
    ref = bodies.expect("acme")
    wire = Wire(pieces=[b"half"], stall=True)

    async def receive() -> Message:
        if not bodies.budget.used:
            return await wire.receive()
        bodies.withdraw(None if gone else ref)
        return {"type": "http.disconnect" if gone else "http.request"}

    await bodies({"type": "http", "method": "PUT", "path": f"/answers/{ref.token}"}, receive, wire.send)

    assert (wire.status, bodies.budget.used) == (status, 0)
