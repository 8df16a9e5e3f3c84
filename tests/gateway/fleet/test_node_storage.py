"""What gateways store and read for agents."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pilotlight_core.bus import Bus, connect
from pilotlight_core.model.messages.agent_questions import StorageWanted
from pilotlight_gateway.fleet.node_storage import NodeStorage, may_store, stream_to_read

pytestmark = pytest.mark.usefixtures("anyio_backend")
REGION, NODE = "eu", "n1"


@pytest.mark.parametrize(
    ("subject", "allowed"),
    [
        ("usage.eu.n1.acme", True),
        ("usage.eu.n1.-", True),
        ("logs.eu.n1.acme.app.fn", True),
        ("$KV.LAYOUTS.n1", True),
        ("usage.eu.n2.acme", False),
        ("usage.us.n1.acme", False),
        ("usage.eu.-.n1", False),
        ("usage.eu.n1", False),
        ("usage.eu.n1.", False),
        ("usage.eu.n1.*", False),
        ("usage.eu.n1.>", False),
        ("usage.eu.n1.a b", False),
        ("logs.eu.n2.acme.app.fn", False),
        ("logs.eu.n1.acme.app", False),
        ("$KV.LAYOUTS.n2", False),
        ("$KV.PLATFORM.foundation.eu", False),
        ("$KV.TENANCY.key.evil", False),
        ("$JS.API.STREAM.DELETE.AUDIT", False),
        ("pl.eu.node.n2.cmd", False),
        ("", False),
    ],
)
def test_what_a_node_stores_is_its_own(subject: str, allowed: bool) -> None:
    """Its usage and log lines, and how its GPUs are cut: of that node, by its subject, and nothing else."""
    assert may_store(subject, REGION, NODE) is allowed


@pytest.mark.parametrize(
    ("subject", "stream"),
    [
        ("$KV.LAYOUTS.n1", "KV_LAYOUTS"),
        ("$KV.PLATFORM.foundation.eu", "KV_PLATFORM"),
        ("$KV.PLATFORM.trust.acme", "KV_PLATFORM"),
        ("$KV.LAYOUTS.n2", ""),
        ("$KV.PLATFORM.>", ""),
        ("$KV.PLATFORM.", ""),
        ("$KV.SECRETS.secret.acme.token", ""),
        ("usage.eu.n1.acme", ""),
    ],
)
def test_what_a_node_reads_is_its_own_or_everybodys(subject: str, stream: str) -> None:
    """No record of a tenant or of another node is."""
    assert stream_to_read(subject, NODE) == stream


@pytest.fixture
async def bus(server_url: str) -> AsyncIterator[Bus]:
    """That of a gateway."""
    async with connect(server_url, name="gateway") as bus:
        yield bus


async def test_what_is_asked_again_is_stored_once(bus: Bus) -> None:
    """By its id, which stands for that node alone."""
    storage = NodeStorage(bus, region=REGION)
    subject = "usage.eu.n1.acme"
    first = await storage.answer(NODE, StorageWanted(subject=subject, data=b"x", id="7"))
    again = await storage.answer(NODE, StorageWanted(subject=subject, data=b"x", id=f"{subject}:7"))
    other = await storage.answer("n2", StorageWanted(subject="usage.eu.n2.acme", data=b"y", id=f"{subject}:7"))

    assert first.seq == again.seq > 0
    assert other.seq > first.seq
    assert (first.reason, other.reason) == ("", "")


async def test_what_is_not_its_own_is_refused(bus: Bus) -> None:
    """And neither stored nor read."""
    storage = NodeStorage(bus, region=REGION)
    await bus.kv("LAYOUTS").put("n2", b"theirs")
    for wanted in (
        StorageWanted(subject="$KV.LAYOUTS.n2"),
        StorageWanted(subject="$KV.LAYOUTS.n2", data=b"mine"),
        StorageWanted(subject="$KV.TENANCY.key.evil", data=b"mine"),
    ):
        answer = await storage.answer(NODE, wanted)
        assert (answer.seq, answer.data, answer.reason) == (0, b"", "not_its")
    entry = await bus.kv("LAYOUTS").get("n2")
    assert entry is not None and entry.value == b"theirs"  # noqa: PT018
    assert await bus.kv("TENANCY").get("key.evil") is None


async def test_a_record_is_read_as_it_was_stored(bus: Bus) -> None:
    """None is none, and so is one that is deleted."""
    storage = NodeStorage(bus, region=REGION)
    wanted = StorageWanted(subject="$KV.LAYOUTS.n9")
    assert (await storage.answer("n9", wanted)).seq == 0
    stored = await storage.answer("n9", StorageWanted(subject=wanted.subject, data=b"cut"))
    found = await storage.answer("n9", wanted)
    assert (found.seq, found.data) == (stored.seq, b"cut")
    await bus.kv("LAYOUTS").delete("n9")
    assert (await storage.answer("n9", wanted)).seq == 0
