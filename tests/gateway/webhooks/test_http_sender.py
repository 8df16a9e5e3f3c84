"""One sending over real sockets: to whom it connects, what it refuses, and how long and how much it bears."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_core.host.outbound.name_resolver import Resolve
from pilotlight_gateway.webhooks.delivery_attempts import DeliveryOutcome
from pilotlight_gateway.webhooks.http_sender import ANSWER_BYTES, VettedHttpSender
from tests.gateway.webhooks.receivers import certificate, receiving, status

HEADERS = {"webhook-id": "msg_x", "content-type": "application/json"}
LOOPBACK = read_networks("127.0.0.1")


def resolves(*answers: Sequence[str]) -> tuple[Resolve, list[str]]:
    """A name server that gives one answer after the other, and the names that it was asked for."""
    asked: list[str] = []

    async def resolve(_tenant: str, host: str, _port: int) -> Sequence[str]:
        asked.append(host)
        return answers[min(len(asked), len(answers)) - 1]

    return resolve, asked


async def post(url: str, *, total: float = 15.0, ca_file: str = "", resolve: Resolve | None = None) -> DeliveryOutcome:
    """What a poster makes of it that may reach 127.0.0.1 and nothing else that is private."""
    async with VettedHttpSender(allowed=LOOPBACK, total_seconds=total, ca_file=ca_file, resolve=resolve) as poster:
        return await poster.post("acme", url, HEADERS, b'{"a":1}')


async def test_a_delivery_arrives_whole() -> None:
    """Method, path, query, headers and body; the connection is not kept."""
    async with receiving() as receiver:
        outcome = await post(f"http://127.0.0.1:{receiver.port}/hooks?from=pilotlight")

    (got,) = receiver.got
    assert outcome.delivered
    assert outcome.attempt.status == 200
    assert (got.path, got.body) == ("/hooks?from=pilotlight", b'{"a":1}')
    assert got.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert got.headers["webhook-id"] == "msg_x"
    assert got.headers["connection"] == "close"


async def test_tls_is_with_the_name_and_the_connection_with_the_vetted_address(tmp_path: Path) -> None:
    """SNI, certificate and Host are the name's; nobody asks for the name a second time."""
    context, ca_file = certificate(tmp_path, "hooks.example.com")
    resolve, asked = resolves(["127.0.0.1"], ["10.0.0.1"])
    async with receiving(context=context) as receiver:
        outcome = await post(f"https://hooks.example.com:{receiver.port}/", ca_file=ca_file, resolve=resolve)

    assert outcome.delivered, outcome
    assert asked == ["hooks.example.com"]
    assert receiver.got[0].server_name == "hooks.example.com"
    assert receiver.got[0].headers["host"] == f"hooks.example.com:{receiver.port}"


async def test_a_certificate_of_another_name_or_of_nobody_is_refused(tmp_path: Path) -> None:
    """As anywhere else in the web."""
    context, ca_file = certificate(tmp_path, "other.example.com")
    resolve, _ = resolves(["127.0.0.1"])
    async with receiving(context=context) as receiver:
        url = f"https://hooks.example.com:{receiver.port}/"
        wrong_name = await post(url, ca_file=ca_file, resolve=resolve)
        unknown = await post(url, resolve=resolve)

    assert not receiver.got
    assert "certificate" in wrong_name.attempt.error.lower()
    assert "certificate" in unknown.attempt.error.lower()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("127.0.0.2", "loopback"),
        ("10.0.0.1", "private"),
        ("169.254.169.254", "link-local (cloud metadata)"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "IPv4-mapped"),
        ("64:ff9b::7f00:1", "NAT64"),
        ("224.0.0.1", "multicast"),
    ],
)
async def test_a_name_that_resolves_to_what_is_private_is_not_connected_to(address: str, why: str) -> None:
    """Whatever the name says it is; also where a public address stands beside it, or the URL has the address itself."""
    resolve, _ = resolves([address])
    both, _ = resolves(["127.0.0.1", address])
    host = f"[{address}]" if ":" in address else address

    for outcome in (
        await post("https://hooks.example.com/", resolve=resolve),
        await post("https://hooks.example.com/", resolve=both),
        await post(f"https://{host}/"),
    ):
        assert outcome.attempt.status == 0
        assert outcome.attempt.error.startswith(f"an address of the name is refused: {why}")
        assert address not in outcome.attempt.error  # what the platform's own names mean is not told


async def test_a_name_that_changes_its_mind_is_looked_at_each_time() -> None:
    """Rebinding: the attempt that gets a private address connects to nothing."""
    resolve, _ = resolves(["127.0.0.1"], ["127.0.0.2"])
    async with (
        receiving() as receiver,
        receiving("127.0.0.2") as hidden,
        VettedHttpSender(allowed=LOOPBACK, resolve=resolve) as poster,
    ):
        first = await poster.post("acme", f"http://hooks.example.com:{receiver.port}/", HEADERS, b"{}")
        second = await poster.post("acme", f"http://hooks.example.com:{hidden.port}/", HEADERS, b"{}")

    assert first.delivered
    assert second.attempt.error == "an address of the name is refused: loopback"
    assert hidden.connections == 0


async def test_no_redirect_is_followed() -> None:
    """It is a failure like any other, wherever it leads."""
    async with receiving() as hidden, receiving() as receiver:
        receiver.answer = status(307, f"location: http://127.0.0.1:{hidden.port}/")
        outcome = await post(f"http://127.0.0.1:{receiver.port}/")

    assert not outcome.delivered
    assert (outcome.attempt.status, outcome.attempt.error) == (307, "redirects are not followed")
    assert hidden.connections == 0


async def never(writer: asyncio.StreamWriter) -> None:
    """A receiver that says nothing."""
    await asyncio.Event().wait()


async def trickle(writer: asyncio.StreamWriter) -> None:
    """A receiver that says its status at once and its headers for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"x: y\r\n")
        await writer.drain()
        await asyncio.sleep(0.01)


async def slow_name(tenant: str, host: str, port: int) -> Sequence[str]:
    """A name server that says nothing."""
    await asyncio.Event().wait()
    return ()


@pytest.mark.parametrize(
    ("answer", "resolve"), [(never, None), (trickle, None), (never, slow_name)], ids=["silent", "trickling", "nameless"]
)
async def test_who_is_slow_is_given_up(
    answer: Callable[[asyncio.StreamWriter], Awaitable[None]], resolve: Resolve | None
) -> None:
    """One time limit for all of it, name and headers included."""
    async with receiving(answer=answer) as receiver:
        host = "127.0.0.1" if resolve is None else "hooks.example.com"
        outcome = await post(f"http://{host}:{receiver.port}/", total=0.3, resolve=resolve)

    assert outcome.attempt.status == 0
    assert outcome.attempt.error == "no answer within 0.3 s"


async def test_of_a_long_answer_no_more_is_read_than_tells_the_status() -> None:
    """It may go on for ever; the delivery has arrived."""
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()
            sent += 65_536

    async with receiving(answer=endless) as receiver:
        outcome = await post(f"http://127.0.0.1:{receiver.port}/")

    assert outcome.delivered
    assert sent < 2**26  # what the sockets hold, not for ever
    assert ANSWER_BYTES < 2**20


async def test_a_head_without_an_end_is_given_up() -> None:
    """The parser bounds it."""

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nx: ")
        while True:
            writer.write(b"x" * 65_536)
            await writer.drain()

    async with receiving(answer=endless) as receiver:
        outcome = await post(f"http://127.0.0.1:{receiver.port}/")

    assert outcome.attempt.status == 0
    assert outcome.attempt.error


async def test_what_the_receiver_asks_for_is_understood() -> None:
    """Retry-After in seconds; a date is not read."""
    async with receiving(answer=status(429, "retry-after: 40")) as receiver:
        assert (await post(f"http://127.0.0.1:{receiver.port}/")).retry_after == 40.0
        receiver.answer = status(503, "retry-after: Sat, 21 Nov 2026 00:00:00 GMT")
        assert (await post(f"http://127.0.0.1:{receiver.port}/")).retry_after is None


async def test_what_nobody_answers_is_a_failure_with_a_reason() -> None:
    """A closed port, a name that there is not, nonsense instead of HTTP."""
    async with receiving(answer=b"SSH-2.0-OpenSSH\r\n") as receiver:
        nonsense = await post(f"http://127.0.0.1:{receiver.port}/")
    closed = await post(f"http://127.0.0.1:{receiver.port}/")
    nameless = await post("https://nothing.invalid/")

    for outcome in (nonsense, closed, nameless):
        assert outcome.attempt.status == 0
        assert outcome.attempt.error
        assert not outcome.delivered
        assert outcome.attempt.at <= time.time()
