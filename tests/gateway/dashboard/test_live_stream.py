"""A browser's stream: a snapshot first, then what has changed, for as long as its session is good."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from pilotlight_gateway.dashboard import live_stream
from pilotlight_gateway.dashboard.live_stream import (
    STREAMS_PER_SESSION,
    TOPICS_AT_MOST,
    LaggingClient,
    LiveStream,
    StreamSlots,
    Topic,
    topics_of,
)
from pilotlight_gateway.dashboard.page_parts.viewers import Viewer, Viewers
from tests.gateway.dashboard.page_parts.test_viewers import viewer
from tests.gateway.dashboard.site import Site
from tests.gateway.world import World

NODES = "/ui/nodes"


class Listener:
    """The browser's end."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.heard: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self.heard.put_nowait(message)

    async def event(self) -> Any:
        """The next event's data."""
        while True:
            message = await self.heard.get()
            body = message.get("body", b"")
            if body.startswith(b"event: page\ndata: "):
                return msgspec.json.decode(body.partition(b"data: ")[2])


async def session(world: World) -> Viewer:
    async with world.client(world.operator) as client:
        made = (await client.post("/v1/sessions")).json()
    return replace(viewer(*made["scopes"], token=made["token"]), tenant=made["tenant"], key=made["key"])


@asynccontextmanager
async def streaming(site: Site, who: Viewer, *topics: str) -> AsyncIterator[Listener]:
    """A stream that runs until the block ends."""
    listener = Listener()
    stream = LiveStream(
        who, topics_of(list(topics), site.drawings), site.drawings, Viewers(site.api, site.world.clock),
        every_s=0.001,
    )  # fmt: skip
    running = asyncio.ensure_future(stream.run(listener.receive, listener.send))
    try:
        yield listener
    finally:
        listener.gone.set()
        await asyncio.wait((running,))
        listener.heard.put_nowait({"ended": running.exception()})


def container(state: str) -> dict[str, Any]:
    return {
        "id": "ctr_1", "tenant": "acme", "app": "shop", "function": "hello", "state": state, "node": "fake",
        "timeline": {"load": 5.0}, "slice": "s", "running": 0, "slots": 1, "age_s": 1.0, "version": "v",
    }  # fmt: skip


async def test_a_start_arrives_while_one_looks(site: Site) -> None:
    """As a row of the table that was not there."""
    async with streaming(site, await session(site.world), "/ui/starts") as listener:
        first = await listener.event()
        assert first["topic"] == "/ui/starts"
        assert first["changes"]["rows"] == {"starts": []}
        site.world.calls.listed = [container("loading")]
        site.forget()
        second = await listener.event()
    assert second["changes"]["redraw"] == ["drawing"]
    (row,) = second["changes"]["rows"]["starts"]
    assert row[0] == "acme:shop.hello"


async def test_a_stream_ends_with_its_session(site: Site) -> None:
    """Within the two seconds for which it is believed."""
    async with streaming(site, await session(site.world), NODES) as listener:
        await listener.event()
        site.world.registry.session_records.clear()
        site.world.services.authenticator._changed("session.x", None)  # type: ignore[attr-defined]
        site.forget()
        while (await listener.heard.get()).get("more_body") is not False:
            pass


async def test_a_stream_ends_when_its_viewer_may_less(site: Site) -> None:
    """What it shows is drawn for all who may the same, of whom it is none any more."""
    who = await session(site.world)
    async with streaming(site, who, NODES) as listener:
        await listener.event()
        await site.world.registry.change_key(
            who.key, lambda one: one and msgspec.structs.replace(one, scopes=("read",))
        )
        site.forget()
        while (await listener.heard.get()).get("more_body") is not False:
            pass


async def test_while_no_gateway_answers_the_stream_waits(site: Site) -> None:
    """The page says so, and goes on."""
    async with streaming(site, await session(site.world), NODES) as listener:
        await listener.event()
        site.api.down = True
        site.forget()
        assert (await listener.event())["changes"] == {"whole": True}
        site.api.down = False
        site.forget()
        assert (await listener.event())["changes"] == {"whole": True}


async def test_who_does_not_read_is_let_go(site: Site) -> None:
    """The server breaks the connection off, and the browser comes again."""
    listener = Listener()
    stream = LiveStream(
        await session(site.world), topics_of([NODES], site.drawings), site.drawings,
        Viewers(site.api, site.world.clock), lags_s=0.01,
    )  # fmt: skip

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    with pytest.raises(LaggingClient):
        await stream.run(listener.receive, send)


def test_topics_are_pages_that_there_are(site: Site) -> None:
    """Each once, and not too many; pages that do not change have no stream."""
    found = topics_of([NODES, NODES, "/ui/none", "/ui/money", "/ui/nodes/n1", "/ui/fleet?type=T4"], site.drawings)
    assert [(topic.address, topic.words, topic.query) for topic in found] == [
        (NODES, {}, {}), ("/ui/nodes/n1", {"node": "n1"}, {}), ("/ui/fleet?type=T4", {}, {"type": "T4"}),
    ]  # fmt: skip
    many: list[Topic] = topics_of([f"/ui/nodes/n{n}" for n in range(40)], site.drawings)
    assert len(many) == TOPICS_AT_MOST


def test_a_browser_has_few_streams() -> None:
    """Others of the same key have theirs."""
    slots, mine, other = StreamSlots(), viewer("read"), viewer("read", token=f"pl_session_{43 * 'y'}")
    held = [slots.holding(mine) for _ in range(STREAMS_PER_SESSION)]
    assert [one.__enter__() for one in held] == [True] * STREAMS_PER_SESSION
    with slots.holding(mine) as has_room:
        assert not has_room
    with slots.holding(other) as has_room:
        assert has_room
    held[0].__exit__(None, None, None)
    with slots.holding(mine) as has_room:
        assert has_room


def test_a_tenant_leaves_streams_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many keys and sessions it makes."""
    monkeypatch.setattr(live_stream, "STREAMS_PER_TENANT", 3)
    slots = StreamSlots()
    mine = [replace(viewer("read"), key=f"k{number}", token=f"t{number}") for number in range(4)]
    with ExitStack() as held:
        assert [held.enter_context(slots.holding(each)) for each in mine] == [True, True, True, False]
        assert held.enter_context(slots.holding(replace(viewer("read"), tenant="other", key="o", token="o")))
        assert slots.held == 4
    assert slots.held == 0
