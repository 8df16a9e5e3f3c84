"""What functions print, over HTTP."""

from __future__ import annotations

from contextlib import ExitStack

import msgspec
import pytest

from pilotlight_core.bus import DecodedMessage
from pilotlight_core.model.messages.logs import LogBatch, LogLine
from tests.gateway.world import World, events_of, function


def logged(seq: int, subject: str, *texts: str) -> DecodedMessage:
    lines = tuple(LogLine(float(seq), "stdout", text, "c1") for text in texts)
    return DecodedMessage(seq=seq, subject=subject, message=LogBatch(lines=lines), at=float(seq))


async def test_logs_are_lines_of_json_or_events(world: World) -> None:
    """All of the app, one function's, the last few, or those since; each line names its function."""
    world.deploy(function(), function("bye"))
    world.logs.kept = [
        logged(1, "logs.local.n1.acme.shop.hello", "one", "two"),
        logged(2, "logs.local.n1.acme.shop.bye", "three"),
        logged(3, "logs.local.n1.rival.shop.hello", "foreign"),
        logged(4, "logs.local.n1.acme.shop.hello", "four"),
    ]

    async with world.client() as client:

        async def texts(query: str) -> list[tuple[str, str]]:
            answer = await client.get(f"/v1/apps/shop/logs{query}")
            assert answer.headers["content-type"] == "application/x-ndjson"
            lines = [msgspec.json.decode(line) for line in answer.content.splitlines()]
            return [(line["function"], line["text"]) for line in lines]

        everything = [("hello", "one"), ("hello", "two"), ("bye", "three"), ("hello", "four")]
        assert await texts("") == everything
        assert await texts("?function=bye") == [("bye", "three")]
        assert await texts("?tail=2") == everything[2:]
        assert await texts("?tail=0&follow=true") == []
        assert await texts("?tail=1&follow=1") == everything[3:]
        assert await texts("?since=1h") == []
        answer = await client.get("/v1/apps/shop/logs", headers={"accept": "text/event-stream"})
        assert [data["text"] for _, data in events_of(answer.text)] == ["one", "two", "three", "four"]


async def test_the_lines_of_one_call_are_found_by_its_id(world: World) -> None:
    """Its tail is of its own lines; what no call has printed is not among them."""
    world.deploy(function())
    lines = [LogLine(1.0, "stderr", text, "c1", call) for text, call in (("a", "x"), ("b", "y"), ("c", "x"), ("d", ""))]
    subject = "logs.local.acme.shop.hello"
    world.logs.kept = [DecodedMessage(seq=1, subject=subject, message=LogBatch(lines=tuple(lines)), at=1.0)]
    async with world.client() as client:
        found = [await client.get(f"/v1/apps/shop/logs?call={call}") for call in ("x", "x&tail=1", "z")]

    texts = [[msgspec.json.decode(line)["text"] for line in answer.content.splitlines()] for answer in found]
    assert texts == [["a", "c"], ["c"], []]


async def test_logs_of_a_function_that_never_was_are_refused(world: World) -> None:
    """Rather than empty; with the one that was meant."""
    world.deploy(function())
    async with world.client() as client:
        answer = await client.get("/v1/apps/shop/logs?function=helo")
        assert (answer.status_code, answer.json()["suggestion"]) == (404, "shop.hello")
        assert (await client.get("/v1/apps/shpo/logs")).json()["suggestion"] == "shop"


@pytest.mark.parametrize("query", ["follow=maybe", "tail=-1", "tail=many", "since=yesterday", "function=a.*"])
async def test_a_wrong_log_query_names_its_field(world: World, query: str) -> None:
    """422, before anything is read."""
    world.deploy(function())
    async with world.client() as client:
        answer = await client.get(f"/v1/apps/shop/logs?{query}")

    assert (answer.status_code, answer.json()["field"]) == (422, query.partition("=")[0])


async def test_log_readers_are_bounded(world: World) -> None:
    """So many at a time of each tenant."""
    world.deploy(function())
    with ExitStack() as held:
        for _ in range(64):
            held.enter_context(world.services.followers.slot("acme"))
        async with world.client() as client:
            assert (await client.get("/v1/apps/shop/logs")).status_code == 429
        async with world.client(world.add_key("rival", "admin")) as client:
            assert (await client.get("/v1/apps/shop/logs")).status_code == 404
