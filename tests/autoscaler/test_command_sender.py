"""Commands on their way to a node: what is remembered of them, on a real bus."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
import pytest

from pilotlight_autoscaler import command_sender
from pilotlight_autoscaler.command_sender import MAX_COMMANDS, CommandSender
from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decision import AddressedCommand
from pilotlight_core.bus import Bus, Lease, connect
from pilotlight_core.host.binding_book import BindingBook
from pilotlight_core.host.registry import Registry
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.node_messages import Bind, CommandReply, Drain
from pilotlight_core.model.tenancy import TenantRecord
from tests.autoscaler.builders import record, report
from tests.builders.nodes import bind, container
from tests.waiting import until


class Site:
    """A leader's sender, and what its node heard."""

    def __init__(self, bus: Bus, registry: Registry, lease: Lease, bindings: BindingBook, region: str) -> None:
        self.world, self.counted = World(), list[object]()
        self.heard: list[Bind | Drain] = []
        self.replies: list[CommandReply] = []
        self.bus, self.registry = bus, registry
        self.sender = CommandSender(
            bus, registry, lease, self.world, bindings, region=region, count=self.counted.append
        )

    def allowed(self, tenant: str) -> tuple[str, ...]:
        """What the sender knows of it."""
        known = self.registry.tenant_nowait(tenant)
        return () if known is None else known.network

    def on_command(self, _: str, message: Bind | Drain, to: str) -> None:
        self.heard.append(message)
        if self.replies:
            self.bus.publish_nowait(to, self.replies.pop(0))

    async def send(self, command: Bind | Drain) -> None:
        """Send it, and wait until it is answered or given up."""
        async with asyncio.TaskGroup() as tasks:
            self.sender.tasks = tasks
            self.sender.start_sending(AddressedCommand(node="n1", command=command), time.monotonic())
            assert self.sender.room == MAX_COMMANDS - 1
        assert self.sender.room == MAX_COMMANDS


@pytest.fixture
async def site(server_url: str) -> AsyncIterator[Site]:
    region = f"r{token(8)}"
    async with connect(server_url, name="sender-test") as bus, Registry(bus) as registry:
        lease = bus.lease("controller", region)
        await lease.acquire()
        async with BindingBook(bus, region=region) as bindings:
            site = Site(bus, registry, lease, bindings, region)
            site.world.on_report(report(container("c1")), time.monotonic())
            async with bus.listening({subjects.command(region, "n1"): site.on_command}):
                await bus.flush()
                yield site
        await lease.release()


DRAIN = Drain(epoch=1, container="c1", within_ms=1.0, reason="idle")


@pytest.mark.parametrize("answers", [True, False])
async def test_a_drain_counts_until_it_is_known_to_be_lost(
    site: Site, answers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that is silent has perhaps not heard it: it is decided again."""
    monkeypatch.setattr(command_sender, "COMMAND_TIMEOUT_S", 30.0 if answers else 0.05)
    site.replies = [CommandReply(ok=True)] if answers else []

    await site.send(DRAIN)

    assert (site.heard, site.counted) == ([DRAIN], [DRAIN])
    assert ("c1" in site.world.draining) is answers


async def test_a_bind_is_on_its_way_until_its_node_refuses(site: Site) -> None:
    """A refusal that does not pass by itself delays the next start."""
    registry = Registry(site.bus)
    async with registry:
        version = record(f"ver_{token()}")
        await registry.put_version(version)
        asked = bind("c2", version.id, slice="cpu-0")
        site.replies = [CommandReply(ok=True), CommandReply(ok=False, reason="no_bundle")]
        await site.send(asked)
        assert "c2" in site.world.pending
        await site.send(asked)

    assert "c2" not in site.world.pending
    assert site.world.backoff.is_failing(version.id)
    (first, second) = site.heard
    assert first == second
    assert isinstance(first, Bind)
    assert first.core_ppm or first.gib_ppm  # what it pays for, as it was written


async def test_a_bind_of_a_version_that_nobody_knows_is_not_sent(site: Site) -> None:
    """It counts as refused."""
    await site.send(msgspec.structs.replace(bind("c3", "ver_gone"), slice="cpu-0"))
    assert (site.heard, dict(site.world.pending)) == ([], {})


async def test_what_was_taken_meanwhile_is_not_in_a_bind(site: Site) -> None:
    """A plan's command may wait for minutes, and one that was lost is sent again."""
    async with Registry(site.bus) as registry:
        version = record(f"ver_{token()}")
        await registry.put_version(version)
        tenant = f"t-{token()}".lower()
        asked = bind("c4", version.id, slice="cpu-0", tenant=tenant, network=("a.example.com:443", "b.example.com:443"))
        for allowed in (("*.example.com:443",), ("b.example.com:443",), ()):
            await registry.put_tenant(TenantRecord(name=tenant, created_at=1.0, network=allowed))
            await until(lambda: site.allowed(tenant) == allowed)  # noqa: B023 - it is waited for here
            site.replies = [CommandReply(ok=True)]
            await site.send(asked)
    assert [each.network for each in site.heard if isinstance(each, Bind)] == [
        ("a.example.com:443", "b.example.com:443"),
        ("b.example.com:443",),
        (),
    ]
