"""Versions with a schedule: each is read once while an app has it, and forgotten after."""

from __future__ import annotations

import msgspec

from pilotlight_core.bus import Bus
from pilotlight_core.model.ids import token
from pilotlight_core.model.subjects import REGISTRY_BUCKET
from pilotlight_gateway.duties.scheduled_versions import ScheduledVersions
from tests.builders.specs import version_record
from tests.gateway.schedules.scheduled_apps import scheduled_version


async def test_it_keeps_what_has_a_schedule(bus: Bus) -> None:
    """Of others only that they have none; what is not there counts as that."""
    kv, plain, timed, gone = bus.kv(REGISTRY_BUCKET), *(f"ver_{token(12)}" for _ in range(3))
    version = scheduled_version(name=timed)
    await kv.put(f"version.{plain}", msgspec.msgpack.encode(version_record(id=plain)))
    await kv.put(f"version.{timed}", msgspec.msgpack.encode(version))
    versions = ScheduledVersions(kv)

    wanted = {plain: None, timed: version, gone: None}
    assert await versions.of_app("app.acme.etl", wanted) == wanted
    for name in (plain, timed):
        await kv.delete(f"version.{name}")
    assert await versions.of_app("app.acme.etl", [plain, timed]) == {plain: None, timed: version}
    assert await versions.of_app("app.acme.etl", []) == {}
    assert await versions.of_app("app.acme.etl", [timed]) == {timed: None}


async def test_all_at_once(bus: Bus) -> None:
    """At the start there are many; afterwards only the apps' own are kept."""
    kv, timed = bus.kv(REGISTRY_BUCKET), f"ver_{token(12)}"
    version = scheduled_version(name=timed)
    await kv.put(f"version.{timed}", msgspec.msgpack.encode(version))
    versions = ScheduledVersions(kv)
    async with versions.all_at_once():
        await kv.delete(f"version.{timed}")
        assert await versions.of_app("app.acme.etl", [timed]) == {timed: version}
    assert await versions.of_app("app.acme.other", [timed]) == {timed: None}
    assert await versions.of_app("app.acme.etl", [timed]) == {timed: version}
