"""The internal listener: tokens work once, budgets hold."""

from __future__ import annotations

import httpx
import pytest

from pilotlight_core.model.errors import Unavailable
from pilotlight_gateway.internal import ANSWER_BYTES, Bodies, Budget


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def client(bodies: Bodies) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=bodies), base_url="http://origin")


async def test_an_offered_body_is_read_once() -> None:
    """The second reader finds nothing."""
    bodies = Bodies(url="http://origin")
    ref = bodies.offer(b"x" * 300_000)

    async with client(bodies) as http:
        first, second = await http.get(ref.url), await http.get(ref.url)

    assert (first.status_code, len(first.content)) == (200, 300_000)
    assert second.status_code == 404


async def test_an_answer_is_collected_once_and_only_where_it_is_expected() -> None:
    """A token nobody made is refused."""
    bodies = Bodies(url="http://origin")
    ref = bodies.expect()

    async with client(bodies) as http:
        assert (await http.put(ref.url, content=b"answer")).status_code == 204
        assert (await http.put("http://origin/answers/guessed", content=b"x")).status_code == 404

    assert bodies.collect(ref) == b"answer"
    assert bodies.collect(ref) is None


async def test_an_answer_beyond_the_limit_is_refused_while_it_arrives() -> None:
    """The listener never holds more than one answer's limit for a token."""
    bodies = Bodies(url="http://origin")
    ref = bodies.expect()

    async with client(bodies) as http:
        assert (await http.put(ref.url, content=b"x" * (ANSWER_BYTES + 1))).status_code == 413

    assert bodies.collect(ref) is None


async def test_a_withdrawn_body_is_gone() -> None:
    """When a call ends, whatever was offered for it is closed."""
    bodies = Bodies(url="http://origin")
    ref, place = bodies.offer(b"x"), bodies.expect()
    bodies.withdraw(ref)
    bodies.withdraw(place)

    async with client(bodies) as http:
        assert (await http.get(ref.url)).status_code == 404
        assert (await http.put(place.url, content=b"x")).status_code == 404


def test_the_budget_refuses_what_does_not_fit() -> None:
    """The refusal says when to try again, and counts nothing."""
    budget = Budget(limit=10)
    budget.take(8)

    with pytest.raises(Unavailable) as refused:
        budget.take(3)

    assert (refused.value.wire_code, refused.value.retry_after, budget.used) == ("overloaded", 1.0, 8)
    budget.give_back(8)
    budget.check_integrity()
