"""What we rely on in nats-py: the overridden methods are called, and the server's errors do not close us for good."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.bus.bus_errors import BusDown, MessageTooLarge
from pilotlight_core.bus.client import TURN_S, NatsClient, checked_subject, header_block, headers_of
from pilotlight_core.model.ids import token
from tests.waiting import until

Heard = list[tuple[str, str, bytes, dict[str, str] | None]]


async def opened(url: str) -> NatsClient:
    client = NatsClient()
    await client.connect(url, pending_size=0, reconnect_time_wait=0.05, max_reconnect_attempts=-1)  # type: ignore[arg-type]
    return client


async def test_the_short_ways_carry_messages_with_headers_and_replies(server_url: str) -> None:
    """What goes in by `publish_nowait` comes out at a raw handler, byte for byte."""
    client, subject = await opened(server_url), f"t.{token()}"
    heard: Heard = []
    await client.subscribe_raw(subject, lambda *message: heard.append(message))

    client.publish_nowait(subject, b"plain")
    client.publish_nowait(subject, b"\r\nwith\r\n", "back.to", header_block({"A": "1", "B": "zwei: ü"}))
    await until(lambda: len(heard) == 2)

    assert heard == [
        (subject, "", b"plain", None), (subject, "back.to", b"\r\nwith\r\n", {"A": "1", "B": "zwei: ü"}),
    ]  # fmt: skip
    assert client.backlog == 0
    await client.close()
    with pytest.raises(BusDown):
        client.publish_nowait(subject, b"late")


async def test_a_burst_leaves_turns_for_others(server_url: str) -> None:
    """Its messages are heard in order all the same."""
    client, subject = await opened(server_url), f"t.{token()}"
    heard: list[bytes] = []
    turns = 0

    def hear(_subject: str, _reply: str, data: bytes, _headers: object) -> None:
        heard.append(data)
        time.sleep(2 * TURN_S)

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 0 < len(heard) < len(expected)

    await client.subscribe_raw(subject, hear)
    expected = [str(number).encode() for number in range(50)]
    for data in expected:
        client.publish_nowait(subject, data)
    other = asyncio.create_task(take_turns())
    await until(lambda: len(heard) == len(expected))
    other.cancel()

    assert heard == expected
    assert turns >= len(expected) // 3
    await client.close()


async def test_a_burst_larger_than_the_sockets_buffer_arrives_whole(server_url: str) -> None:
    """What the socket does not take at once waits in order; the backlog is counted and goes down again."""
    client, subject = await opened(server_url), f"t.{token()}"
    sizes: list[int] = []
    await client.subscribe_raw(subject, lambda _s, _r, data, _h: sizes.append(len(data)))
    expected = [(n * 7919) % 200_000 for n in range(200)]

    for size in expected:
        client.publish_nowait(subject, b"x" * size)
        if size % 3 == 0:
            await asyncio.sleep(0)
    await until(lambda: len(sizes) == len(expected))

    assert sizes == expected
    assert client.backlog == 0
    await client.close()


async def test_an_error_of_the_server_means_a_reconnect_not_the_end(server_url: str) -> None:
    """After a protocol violation, on which nats-py would close for good, it reconnects and is still subscribed."""
    client, subject = await opened(server_url), f"t.{token()}"
    heard: Heard = []
    await client.subscribe_raw(subject, lambda *message: heard.append(message))

    await client._send_command(b"PUB x 99999999\r\n")
    await client._flush_pending()
    await until(lambda: client.stats["reconnects"] == 1 and client.is_connected)
    client.publish_nowait(subject, b"again")

    await until(lambda: heard)
    await client.close()


async def test_what_would_cost_the_connection_is_not_sent(server_url: str) -> None:
    """A payload that fits alone but not with its headers is refused."""
    client = await opened(server_url)

    with pytest.raises(MessageTooLarge):
        client.publish_nowait("t.x", b"x" * (client.max_payload - 4096), "", header_block({"A": "1"}))
    client.publish_nowait("t.x", b"x" * (client.max_payload - 4096))
    await until(lambda: client.backlog == 0)

    assert client.is_connected
    await client.close()


@pytest.mark.parametrize("headers", [{"A": "1\r\nB: 2"}, {"A\n": "1"}, {"A": "\r"}])
def test_a_header_cannot_start_a_line(headers: dict[str, str]) -> None:
    """Line breaks in names and values are refused."""
    with pytest.raises(ValueError, match="line break"):
        header_block(headers)


names = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=":"), min_size=1)
values = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])).map(str.strip)


@given(st.dictionaries(names, values))
def test_headers_come_out_of_their_block(headers: dict[str, str]) -> None:
    """What `header_block` writes, `headers_of` reads."""
    assert headers_of(header_block(headers)) == headers


@pytest.mark.parametrize(
    ("block", "headers"),
    [
        (b"NATS/1.0 503\r\n\r\n", {"Status": "503"}),
        (b"NATS/1.0 404 No Messages\r\n\r\n", {"Status": "404", "Description": "No Messages"}),
        (b"NATS/1.0 204 EOB\r\nA:1\r\n\r\n", {"Status": "204", "Description": "EOB", "A": "1"}),
        (b"NATS/1.0\r\nA:\t1 \r\nno colon\r\nB: a:b\r\n\r\n", {"A": "1", "B": "a:b"}),
    ],
)
def test_a_servers_status_is_read_from_the_first_line(block: bytes, headers: dict[str, str]) -> None:
    """With a description and headers behind it, or without."""
    assert headers_of(block) == headers


@given(st.binary())
def test_a_malformed_block_does_not_stop_the_read_loop(block: bytes) -> None:
    """Whatever a process on the bus sends as headers, reading it raises nothing."""
    assert isinstance(headers_of(block), dict)


def test_a_subject_is_one_word() -> None:
    """What the rest of the code relies on when it builds a line."""
    assert checked_subject("pl.local.node.n1.run") == "pl.local.node.n1.run"
    for bad in ("", " a", "a ", "a b", "a\tb", "a\nb", "x" * 513):
        with pytest.raises(ValueError, match="is not a subject"):
            checked_subject(bad)


async def test_who_stops_reading_connects_anew(server_url: str) -> None:
    """Whatever the error was that nats-py does not know: here that of a transport which closed while nobody looked."""
    client, subject = await opened(server_url), f"t.{token()}"
    heard: Heard = []
    await client.subscribe_raw(subject, lambda *message: heard.append(message))
    errors = [RuntimeError("the handler is closed")]
    plain = client._process_msg

    async def break_once(*message: Any) -> None:
        if errors:
            raise errors.pop()
        await plain(*message)

    client._process_msg = break_once  # type: ignore[method-assign,assignment]
    client.publish_nowait(subject, b"lost")
    await until(lambda: client.stats["reconnects"] == 1 and client.is_connected)
    client.publish_nowait(subject, b"heard")
    await until(lambda: [message[2] for message in heard] == [b"heard"])
    await client.close()


async def test_nothing_is_written_to_a_transport_that_has_closed(server_url: str) -> None:
    """Whoever ends a subscription just then is told nothing, or its own end would be lost."""
    client, subject = await opened(server_url), f"t.{token()}"
    number = await client.subscribe_raw(subject, lambda *_: None)
    writer = client._transport._io_writer  # type: ignore[union-attr]
    assert writer is not None
    writer.transport.abort()
    client.publish_nowait(subject, b"x")
    await client.unsubscribe_raw(number)
    await until(lambda: client.stats["reconnects"] == 1 and client.is_connected)
    await client.close()
