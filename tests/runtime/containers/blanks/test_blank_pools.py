"""The blanks of several base environments."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pilotlight_runtime.containers.blanks.blank_pool import BlankPool
from pilotlight_runtime.containers.blanks.blank_pools import BlankPools
from pilotlight_runtime.containers.blanks.resource_limits import BASE
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from tests.runtime.containers.fake_guests import greeting_guest, starter_of
from tests.waiting import until


class Slots:
    """The demand of a node with four CPU slots, where nothing starts."""

    cpu_slots = 4
    needs_processors = False


async def test_a_blank_serves_its_own_base_environment_only(tmp_path: Path, anyio_backend: str) -> None:
    """Each has as many as are wanted; what is taken of one is made anew there."""
    launcher = FakeLauncher(greeting_guest)
    async with asyncio.TaskGroup() as group:
        starters = [starter_of(launcher, tmp_path / name, group, name=name) for name in ("default", "torch")]
        pools = BlankPools(BlankPool(starter, size=2, changed=lambda: None) for starter in starters)
        filling = group.create_task(pools.run(Slots()))
        await until(lambda: pools.ready == {"default": 2, "torch": 2})

        taken = await pools.of("torch").take(BASE)

        assert taken.sandbox.name in {spec.name for spec in launcher.started if spec.env["BASE"] == "torch"}
        assert pools.ready == {"default": 2, "torch": 1}
        pools.wake()
        await until(lambda: pools.ready == {"default": 2, "torch": 2})
        assert pools.bases == ("default", "torch")
        with pytest.raises(KeyError):
            pools.of("jax")

        filling.cancel()
        await asyncio.wait([filling])
        await pools.close()
        await taken.destroy()
    assert launcher.running == []
