"""Blanks that are kept ready, on a launcher without processes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pilotlight_runtime.containers.blanks.blank_pool import BlankPool
from pilotlight_runtime.containers.blanks.resource_limits import BASE
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_spec import SandboxSpec
from tests.runtime.containers.fake_guests import greeting_guest, silent_guest, starter_of
from tests.waiting import until


class World:
    """A pool, its launcher, and what the node is doing."""

    def __init__(self, folder: Path, group: asyncio.TaskGroup) -> None:
        self.cpu_slots = 4
        self.needs_processors = False
        self.silent = False
        self.changed = asyncio.Event()
        self.launcher = FakeLauncher(self.guest)
        self.pool = BlankPool(
            starter_of(self.launcher, folder, group), size=2, changed=self.changed.set, pauses_s=(0.01,)
        )

    async def guest(self, spec: SandboxSpec, sock: socket.socket) -> int:
        return await (silent_guest if self.silent else greeting_guest)(spec, sock)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[World]:
    """A world whose pool fills itself."""
    async with asyncio.TaskGroup() as group:
        world = World(folder, group)
        filling = group.create_task(world.pool.run(world))
        yield world
        filling.cancel()
        await asyncio.wait([filling])
        await world.pool.close()


async def test_the_pool_fills_and_a_blank_is_used_once(tmp_path: Path, anyio_backend: str) -> None:
    """A taken blank is replaced; its folder is its own, and empty."""
    async with running(tmp_path) as world:
        await until(lambda: world.pool.ready == 2)

        blank = await world.pool.take(BASE)
        world.pool.wake()

        assert blank.is_ready
        assert list(blank.code.iterdir()) == []
        await until(lambda: world.pool.ready == 2)
        assert len(world.launcher.started) == 3
        weights = [spec.limits.promised_cpu_millis for spec in world.launcher.started]
        assert weights == [1000, 1000, BASE.promised_cpu_millis]  # nothing else could run before the first ones
        await blank.destroy()
        assert not blank.code.exists()
    assert world.launcher.running == []
    assert not any(tmp_path.iterdir())  # noqa: ASYNC240


async def test_it_makes_no_more_than_the_node_has_room_for(tmp_path: Path, anyio_backend: str) -> None:
    """A blank that no container could ever use would only cost memory."""
    async with running(tmp_path) as world:
        world.cpu_slots = 1
        await until(lambda: world.pool.ready == 1)
        world.pool.wake()
        await asyncio.sleep(0.02)  # what must not come rings no bell

        assert len(world.launcher.started) == 1


async def test_it_waits_for_containers_that_start(tmp_path: Path, anyio_backend: str) -> None:
    """They need the processors more."""
    async with asyncio.TaskGroup() as group:
        world = World(tmp_path, group)
        world.needs_processors = True
        filling = group.create_task(world.pool.run(world))
        await asyncio.sleep(0.02)  # what must not come rings no bell
        assert world.launcher.started == []
        world.needs_processors = False
        world.pool.wake()
        await until(lambda: world.pool.ready == 2)
        filling.cancel()
        await asyncio.wait([filling])
        await world.pool.close()


async def test_nobody_waits_for_a_blank_that_still_imports(tmp_path: Path, anyio_backend: str) -> None:
    """Whoever comes while one is being made gets a sandbox that imports only what its function wants."""
    async with asyncio.TaskGroup() as group:
        world = World(tmp_path, group)
        world.silent = True
        filling = group.create_task(world.pool.run(world))
        await until(lambda: len(world.launcher.started) == 1)

        blank = await world.pool.take(BASE)

        assert not blank.is_ready
        ahead, bare = world.launcher.started
        assert ahead.env.get("PL_PREIMPORT") != ""
        assert bare.env["PL_PREIMPORT"] == ""
        filling.cancel()
        await asyncio.wait([filling])
        await blank.destroy()
        await world.pool.close()


async def test_without_blanks_a_sandbox_is_started(tmp_path: Path, anyio_backend: str) -> None:
    """And is ready when its guest has said Hello."""
    async with asyncio.TaskGroup() as group:
        world = World(tmp_path, group)

        blank = await world.pool.take(BASE)
        await blank.wait_ready()

        assert blank.is_ready
        await blank.destroy()


async def test_a_blank_that_dies_is_replaced(tmp_path: Path, anyio_backend: str) -> None:
    """Before anybody has taken it."""
    async with running(tmp_path) as world:
        await until(lambda: world.pool.ready == 2)
        world.launcher.running[0].kill()

        await until(lambda: len(world.launcher.started) == 3 and world.pool.ready == 2)


async def test_blanks_that_cannot_be_made_are_tried_again(tmp_path: Path, anyio_backend: str) -> None:
    """After a pause that grows."""
    async with running(tmp_path) as world:
        world.launcher.fail_next = SandboxNotStarted("no")

        await until(lambda: world.pool.ready == 2)
