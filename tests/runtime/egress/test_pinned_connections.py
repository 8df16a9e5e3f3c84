"""Connections to hosts by name: what the name is, is decided once.

127.0.0.2 plays the public address, as an operator's list lets it; 127.0.0.1 is what nobody may reach.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence

import pytest
from structlog.testing import capture_logs

from pilotlight_core.host.outbound.address_policy import read_networks
from pilotlight_core.host.outbound.name_resolver import ScriptedNames
from pilotlight_runtime.egress.pinned_connections import (
    KEPT_S,
    LOGGED_S,
    MOST_ADDRESSES,
    MOST_KEPT,
    NARROW_BYTES,
    NOT_PUBLIC,
    PinnedConnections,
)
from pilotlight_runtime.egress.proxy_requests import RefusedRequest

HOST = "api.example.com"
PUBLIC, PRIVATE = "127.0.0.2", "127.0.0.1"
NOT_PUBLIC_ANSWER = 403, f"{HOST} {NOT_PUBLIC}"
ALLOWED = read_networks(PUBLIC)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def port() -> Iterator[int]:
    """At which both addresses listen."""
    with socket.create_server((PUBLIC, 0), backlog=2 * MOST_KEPT) as public:
        port = public.getsockname()[1]
        with socket.create_server((PRIVATE, port)):
            yield port


def connections(names: ScriptedNames, clock: Clock | None = None) -> PinnedConnections:
    return PinnedConnections(names.addresses, ALLOWED, clock or Clock())


async def refused(pinned: PinnedConnections, port: int = 443, host: str = HOST) -> tuple[int, str]:
    with pytest.raises(RefusedRequest) as caught:
        await pinned.open("acme", host, port)
    return caught.value.status, caught.value.reason


async def test_a_name_that_changes_its_mind_gains_nothing(port: int, anyio_backend: str) -> None:
    """DNS rebinding: public when it is checked, private the next time. It is asked for once, and that is connected."""
    names, clock = ScriptedNames(answers={HOST: [[PUBLIC], [PRIVATE]]}), Clock()
    pinned = connections(names, clock)

    with await pinned.open("acme", HOST, port) as made:
        assert made.getpeername() == (PUBLIC, port)
    assert names.asked == [("acme", HOST)]

    clock.now += KEPT_S
    assert await refused(pinned, port) == NOT_PUBLIC_ANSWER


async def test_a_private_address_beside_a_public_one_is_refused(port: int, anyio_backend: str) -> None:
    """In either order: no client would know which of them it gets."""
    for answer in ([PUBLIC, PRIVATE], [PRIVATE, PUBLIC], [PUBLIC, "::1"]):
        status, _ = await refused(connections(ScriptedNames(answers={HOST: [answer]})), port)
        assert status == 403


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "fd00:ec2::254"),  # metadata
        *(
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "0.0.0.0",  # noqa: S104 - it is refused
            "255.255.255.255",
            "224.0.0.1",
            "198.18.0.1",
        ),
        *("::1", "::", "fe80::1", "fe80::1%lo", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.2", "::ffff:93.184.216.34", "::127.0.0.1", "::ffff:0:127.0.0.1"),  # with an IPv4 one inside
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:7f00:1::"),
    ],
)
async def test_addresses_that_are_not_public_are_refused(address: str, anyio_backend: str) -> None:
    """All of them are answers that a tenant's own name server may give."""
    status, reason = await refused(connections(ScriptedNames(answers={HOST: [[address]]})))
    assert (status, reason) == NOT_PUBLIC_ANSWER


async def test_names_that_cannot_be_resolved(anyio_backend: str) -> None:
    """Or have no address, or one that is none."""
    tried: list[dict[str, list[Sequence[str]]]] = [{}, {HOST: [[]]}, {HOST: [["nonsense"]]}]
    for answers in tried:
        assert await refused(connections(ScriptedNames(answers=answers))) == NOT_PUBLIC_ANSWER


async def test_a_host_that_does_not_answer(anyio_backend: str) -> None:
    """Nobody listens there."""
    with socket.create_server((PUBLIC, 0)) as taken:
        port = taken.getsockname()[1]
    assert await refused(connections(ScriptedNames(answers={HOST: [[PUBLIC]]})), port) == (
        502,
        f"{HOST}:{port} does not answer",
    )


async def test_answers_are_kept_for_a_while_and_for_one_tenant(port: int, anyio_backend: str) -> None:
    """Others do not see by the time that it takes what was asked for."""
    names, clock = ScriptedNames(answers={HOST: [[PUBLIC]]}), Clock()
    pinned = connections(names, clock)
    for tenant in ("acme", "acme", "other", "acme"):
        (await pinned.open(tenant, HOST, port)).close()
    assert names.asked == [("acme", HOST), ("other", HOST)]

    clock.now += KEPT_S
    (await pinned.open("acme", HOST, port)).close()
    assert names.asked[-1] == ("acme", HOST)
    assert len(names.asked) == 3


async def test_what_is_kept_is_bounded(port: int, anyio_backend: str) -> None:
    """The oldest gives way."""
    names = ScriptedNames(answers={f"h{n}.example.com": [[PUBLIC]] for n in range(MOST_KEPT + 1)})
    pinned = connections(names)
    for host in names.answers:
        (await pinned.open("acme", host, port)).close()
    asked = len(names.asked)
    (await pinned.open("acme", "h1.example.com", port)).close()
    assert len(names.asked) == asked
    (await pinned.open("acme", "h0.example.com", port)).close()
    assert len(names.asked) == asked + 1


async def test_a_name_with_thousands_of_addresses(port: int, anyio_backend: str) -> None:
    """Is refused before any of them is looked at, and nothing is kept of it."""
    many = [PUBLIC] * (MOST_ADDRESSES + 1)
    names = ScriptedNames(answers={HOST: [many, [PUBLIC]], "few.example.com": [[PUBLIC] * MOST_ADDRESSES]})
    pinned = connections(names)
    assert await refused(pinned, port) == NOT_PUBLIC_ANSWER
    (await pinned.open("acme", HOST, port)).close()
    (await pinned.open("acme", "few.example.com", port)).close()


async def test_the_reason_is_the_operators_alone(anyio_backend: str) -> None:
    """A tenant does not find out which names there are inside; it fills no log either."""
    names, clock = ScriptedNames(answers={"inside.example.com": [["10.0.0.1"]], "empty.example.com": [[]]}), Clock()
    pinned = connections(names, clock)
    with capture_logs() as logs:
        told = [await refused(pinned, 443, host) for host in ("inside.example.com", "empty.example.com", "no.example")]
        assert {(status, text.partition(" ")[2]) for status, text in told} == {(403, NOT_PUBLIC)}
        assert [(each["tenant"], each["host"]) for each in logs] == [("acme", "inside.example.com")]
        assert logs[0]["why"] == "an address of the name is refused: private"
        clock.now += LOGGED_S
        await refused(pinned, 443, "no.example")
        assert [each["why"] for each in logs[1:]] == ["its name cannot be resolved"]


async def test_a_narrow_connection_is_sent_little_ahead(anyio_backend: str) -> None:
    """What its server may send before anybody reads is bounded; a wide one grows with what is read."""
    sent: list[int] = []
    for is_wide in (False, True):
        with socket.create_server((PUBLIC, 0)) as listener:
            pinned = connections(ScriptedNames(answers={HOST: [[PUBLIC]]}))
            with await pinned.open("acme", HOST, listener.getsockname()[1], is_wide=is_wide) as made:
                sent.append(made.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))

    assert sent[0] <= 2 * NARROW_BYTES  # the kernel doubles it, for what it needs itself
    assert sent[0] != sent[1]
