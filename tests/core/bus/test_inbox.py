"""Requests over one standing subscription get their own replies, or fail at once or in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from pilotlight_core.bus.bus_errors import BusDown, BusTimeout, MessageTooLarge, NoResponders
from pilotlight_core.bus.client import NatsClient, header_block
from pilotlight_core.bus.inbox import Inbox, Reply
from pilotlight_core.model.ids import token
from tests.waiting import until


@pytest.fixture
async def client(server_url: str) -> AsyncIterator[NatsClient]:
    """A connection of its own."""
    client = NatsClient()
    await client.connect(server_url)
    yield client
    await client.close()


@pytest.fixture
async def inbox(client: NatsClient) -> Inbox:
    inbox = Inbox(client, "_INBOX")
    await inbox.start()
    return inbox


@pytest.fixture
async def subject(client: NatsClient) -> str:
    """A subject of this test alone."""
    return f"t.{token()}"


async def answering(client: NatsClient, subject: str, answer: Callable[[str, bytes], None]) -> None:
    """Let `answer` (the reply subject, the question) see every question."""
    await client.subscribe_raw(subject, lambda _, reply, data, __: answer(reply, data))


async def test_many_questions_at_once_each_get_their_own_answer(client: NatsClient, inbox: Inbox, subject: str) -> None:
    """In whatever order the answers come; nothing is left open."""
    waiting: list[tuple[str, bytes]] = []

    def backwards(reply: str, data: bytes) -> None:
        waiting.append((reply, data))
        if len(waiting) == 20:
            for to, asked in reversed(waiting):
                client.publish_nowait(to, b"re " + asked)

    await answering(client, subject, backwards)

    replies = await asyncio.gather(*(inbox.ask(subject, b"%d" % n, timeout=30) for n in range(20)))

    assert [reply.data for reply in replies] == [b"re %d" % n for n in range(20)]
    assert len({reply for reply, _ in waiting}) == 20
    assert len(inbox) == 0


async def test_headers_travel_both_ways_and_a_status_is_the_servers(
    client: NatsClient, inbox: Inbox, subject: str
) -> None:
    """A subscriber's reply has no status."""
    heard: list[dict[str, str] | None] = []

    def answer(_: str, reply: str, data: bytes, headers: dict[str, str] | None) -> None:
        heard.append(headers)
        client.publish_nowait(reply, data, headers=header_block({"B": "2"}))

    await client.subscribe_raw(subject, answer)

    reply = await inbox.ask(subject, b"x", timeout=30, headers=header_block({"A": "1"}))

    assert heard == [{"A": "1"}]
    assert (reply.headers, reply.status) == ({"B": "2"}, "")


async def test_where_nobody_listens_the_asker_hears_so_at_once(inbox: Inbox, subject: str) -> None:
    """Long before its time is over."""
    async with asyncio.timeout(30):
        with pytest.raises(NoResponders, match=subject):
            await inbox.ask(subject, b"", timeout=3600)
    assert len(inbox) == 0


async def test_who_is_not_answered_waits_no_longer_than_it_said(client: NatsClient, inbox: Inbox, subject: str) -> None:
    """A reply after the timeout is dropped."""
    asked: list[str] = []
    await answering(client, subject, lambda reply, _: asked.append(reply))

    with pytest.raises(BusTimeout, match=r"within 0\.05 s"):
        await inbox.ask(subject, b"", timeout=0.05)

    assert len(inbox) == 0
    await until(lambda: asked)
    client.publish_nowait(asked[0], b"late")
    await inbox.flush(30)


async def test_several_answers_are_taken_up_to_the_last(client: NatsClient, inbox: Inbox, subject: str) -> None:
    """As for a page of records: `is_last` recognises the last reply."""

    def answer(reply: str, _: bytes) -> None:
        for n in (3, 2, 1, 0):
            client.publish_nowait(reply, b"%d" % n)

    await answering(client, subject, answer)

    def is_last(reply: Reply) -> bool:
        return reply.data == b"1"

    replies = await inbox.ask_many(subject, b"", timeout=30, is_last=is_last)

    assert [reply.data for reply in replies][:3] == [b"3", b"2", b"1"]


async def test_a_lost_connection_fails_every_open_question(client: NatsClient, inbox: Inbox, subject: str) -> None:
    """Their replies cannot arrive any more; later requests work again."""
    asked: list[str] = []
    await answering(client, subject, lambda reply, _: asked.append(reply))
    questions = [asyncio.ensure_future(inbox.ask(subject, b"", timeout=3600)) for _ in range(3)]
    await until(lambda: len(asked) == 3)

    inbox.fail_all()

    async with asyncio.timeout(30):
        failed = await asyncio.gather(*questions, return_exceptions=True)
    assert [type(error) for error in failed] == [BusDown] * 3
    assert len(inbox) == 0


async def test_a_question_of_which_nobody_wants_to_know_any_more_is_closed(
    client: NatsClient, inbox: Inbox, subject: str
) -> None:
    """After a cancellation neither a reply nor a lost connection reaches the request."""
    asked: list[str] = []
    await answering(client, subject, lambda reply, _: asked.append(reply))
    question = asyncio.ensure_future(inbox.ask(subject, b"", timeout=3600))
    await until(lambda: asked)

    question.cancel()
    await asyncio.wait([question])

    assert len(inbox) == 0
    client.publish_nowait(asked[0], b"late")
    inbox.fail_all()
    await inbox.flush(30)


async def test_after_a_flush_all_that_was_posted_has_arrived(client: NatsClient, inbox: Inbox, subject: str) -> None:
    """The server echoes a message behind all of them."""
    heard: list[bytes] = []
    await client.subscribe_raw(subject, lambda _, __, data, ___: heard.append(data))
    for n in range(100):
        inbox.post(subject, b"%d" % n, b"")

    await inbox.flush(30)

    assert heard == [b"%d" % n for n in range(100)]


async def test_what_cannot_be_sent_is_not_waited_for(client: NatsClient, inbox: Inbox, subject: str) -> None:
    """Too large for the bus, or no bus."""
    with pytest.raises(MessageTooLarge):
        await inbox.ask(subject, b"x" * 2**24, timeout=3600)
    await client.close()
    with pytest.raises(BusDown):
        await inbox.ask(subject, b"", timeout=3600)
    with pytest.raises(BusDown):
        await inbox.flush(3600)
    assert len(inbox) == 0
