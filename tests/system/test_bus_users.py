"""On a running platform each process has its own user of the bus, and tenants' code has none."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pilotlight_core.bus import BusError, bus_users, connect
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.call_messages import Cancel
from tests.system.support.platform import Platform
from tests.system.support.processes import descendants, is_alive
from tests.system.support.sample_apps import APPS, deployed

ROLES = {"gateway": "gateway", "controller": "controller", "duties": "duties", "agent": "agent-local"}
VARIABLE = "PILOTLIGHT_NATS_URL="


def url_of(pid: int) -> str:
    """The address that a process was given."""
    words = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return next((word.removeprefix(VARIABLE) for word in words if word.startswith(VARIABLE)), "")


def test_each_process_is_its_own_user(platform: Platform) -> None:
    """All work was done without being refused anything; no password is on a command line or in a log."""
    with deployed(platform, APPS / "crash" / "app.py"):
        assert platform.output("crash.once", name="x", seconds=0.0) == "x"
    urls = {name: urlsplit(url_of(pid)) for name, pid in platform.pids.items() if name in ROLES}
    passwords = [url.password for url in urls.values() if url.password]
    said = "".join(log.read_text(errors="replace") for log in (platform.state / "logs").iterdir())
    family = [pid for pid in descendants(platform.process.pid) if is_alive(pid)]
    commands = "".join(Path(f"/proc/{pid}/cmdline").read_text() for pid in family if Path(f"/proc/{pid}").exists())

    assert {name: url.username for name, url in urls.items()} == ROLES
    assert len(set(passwords)) == len(ROLES)
    assert "Permissions Violation" not in said
    assert not any(password in said + commands for password in passwords)


def test_tenants_code_has_no_address_of_the_bus(platform: Platform) -> None:
    """Neither a blank nor a container finds one in its environment."""
    found = []
    for pid in descendants(platform.pids["agent"]):
        with contextlib.suppress(OSError):  # it has just ended
            found.append(url_of(pid))

    assert found
    assert not any(found)


def test_an_agent_that_is_taken_over_reaches_its_node_and_no_further(platform: Platform) -> None:
    """With its address it writes no registry, runs no call elsewhere, and hears no other process."""
    asyncio.run(as_the_agent(url_of(platform.pids["agent"])))


async def as_the_agent(url: str) -> None:
    async with connect(url, name="evil", inbox=bus_users.agent("local").inbox, makes_streams=False) as bus:
        with pytest.raises(BusError):
            await bus.store("$KV.TENANCY.tenant.default", Cancel(call_id="x"), id="1", timeout=0.3)
        with pytest.raises(BusError):
            await bus.jetstream.page("KV_REGISTRY", "$KV.REGISTRY.>", 1, timeout=0.3)
        heard = asyncio.Event()
        await bus.doorbell(subjects.credit("*"), heard.set)
        await bus.doorbell(">", heard.set)
        await bus.flush()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):  # credits are sent each second
                await heard.wait()
