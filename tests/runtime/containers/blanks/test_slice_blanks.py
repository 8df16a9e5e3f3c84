"""Blanks on free GPUs, on a launcher without processes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pilotlight_core.model.messages.node_messages import BlankSize, SliceReport
from pilotlight_runtime.containers.blanks.blank import Blank
from pilotlight_runtime.containers.blanks.resource_limits import BASE
from pilotlight_runtime.containers.blanks.slice_blanks import SliceBlanks
from pilotlight_runtime.devices.cpu_slots import CpuDevices
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.guest.frames import FRAMES, Hello, encode
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_spec import SandboxSpec
from tests.builders.nodes import gpu_slice
from tests.runtime.containers.fake_guests import silent_guest, starter_of
from tests.waiting import until

GPUS = [gpu_slice(f"GPU-{number}", gpu_type="H100", memory=80) for number in range(3)]
FIRST, SECOND, THIRD = (part.id for part in GPUS)


def access_to(slice_id: str) -> DeviceAccess:
    """What a container on a GPU sees."""
    return DeviceAccess(nodes=(Path("/dev") / slice_id,), env={"CUDA_VISIBLE_DEVICES": slice_id})


class Gpus(CpuDevices):
    """The access to GPUs."""

    def access(self, slice_id: str) -> DeviceAccess:
        return access_to(slice_id)


class World:
    """A node with some free GPUs; `marked` are metered as a blank's."""

    def __init__(self, folder: Path, group: asyncio.TaskGroup, free: tuple[str, ...], most: int) -> None:
        self.free = list(free)
        self.kept: list[str] = []
        """Taken for a container that has not asked for the blank yet."""
        self.marked: set[str] = set()
        self.needs_processors = False
        self.opens_cuda = self.is_silent = False
        self.launcher = FakeLauncher(self.guest)
        starters = [starter_of(self.launcher, folder / name, group, name=name) for name in ("default", "vllm")]
        self.blanks = SliceBlanks(starters, Gpus(0), self, most=most, changed=lambda: None, pauses_s=(0.01,))

    async def guest(self, spec: SandboxSpec, sock: socket.socket) -> int:
        if not self.is_silent:
            sock.sendall(encode(Hello(pid=1, ms=1.0, frames=FRAMES, cuda=self.opens_cuda)))
        return await silent_guest(spec, sock)

    def free_gpus(self) -> list[SliceReport]:
        return [part for part in GPUS if part.id in self.free]

    def keeps_blank(self, slice_id: str) -> bool:
        return slice_id in (*self.free, *self.kept)

    def mark_blank(self, slice_id: str, *, is_there: bool) -> None:
        (self.marked.add if is_there else self.marked.discard)(slice_id)

    def bind(self, slice_id: str) -> None:
        """A container has the slice, and nobody knows yet what it runs."""
        self.free.remove(slice_id)
        self.kept.append(slice_id)
        self.blanks.check()

    def take(self, slice_id: str, base: str = "default", access: DeviceAccess | None = None) -> Blank | None:
        part = next(part for part in GPUS if part.id == slice_id)
        return self.blanks.take(base, part, access or access_to(slice_id), BASE)

    @property
    def seen(self) -> list[str]:
        """The GPUs that running sandboxes see."""
        names = {sandbox.name for sandbox in self.launcher.running}
        return [spec.env["CUDA_VISIBLE_DEVICES"] for spec in self.launcher.started if spec.name in names]


@asynccontextmanager
async def running(folder: Path, *free: str, most: int = 8) -> AsyncIterator[World]:
    """A world that makes its blanks."""
    async with asyncio.TaskGroup() as group:
        world = World(folder, group, free or (FIRST,), most)
        making = group.create_task(world.blanks.run(world))
        yield world
        making.cancel()
        await asyncio.wait([making])
        await world.blanks.close()
        for sandbox in world.launcher.running:
            sandbox.kill()


async def test_each_free_gpu_has_a_blank_that_sees_it_alone(tmp_path: Path, anyio_backend: str) -> None:
    """Before anybody asks; it has imported what functions need, and is metered as the operator's."""
    async with running(tmp_path, FIRST, SECOND) as world:
        await until(lambda: world.blanks.ready == {FIRST: "default", SECOND: "default"})

        assert world.marked == {FIRST, SECOND}
        assert [(spec.device_nodes, spec.env["PL_PREIMPORT"]) for spec in world.launcher.started] == [
            ((Path("/dev") / gpu,), "torch") for gpu in (FIRST, SECOND)
        ]
        assert world.seen == [FIRST, SECOND]


async def test_the_container_of_a_slice_gets_its_blank_once(tmp_path: Path, anyio_backend: str) -> None:
    """It waits there until the version is known; after the container a new one is made."""
    async with running(tmp_path) as world:
        await until(lambda: world.blanks.ready == {FIRST: "default"})
        world.bind(FIRST)

        blank = world.take(FIRST)

        assert blank is not None
        assert blank.is_ready
        assert world.take(FIRST) is None
        await blank.destroy()
        world.kept, world.free = [], [FIRST]
        world.blanks.check()
        await until(lambda: world.blanks.ready == {FIRST: "default"})
        assert len(world.launcher.started) == 2


async def test_a_blank_that_still_imports_is_taken_too(tmp_path: Path, anyio_backend: str) -> None:
    """What runs on a GPU needs what it imports, and another one would have to import it as well."""
    async with running(tmp_path) as world:
        world.is_silent = True
        world.blanks.wake()
        await until(lambda: world.marked == {FIRST})
        world.bind(FIRST)

        blank = world.take(FIRST)

        assert blank is not None
        assert not blank.is_ready
        await blank.destroy()


async def test_a_blank_gives_way(tmp_path: Path, anyio_backend: str) -> None:
    """When its slice is cut away, fails, or is taken with others; its sandbox ends before anything else happens."""
    async with running(tmp_path, FIRST, SECOND) as world:
        await until(lambda: len(world.blanks.ready) == 2)
        world.free.remove(FIRST)

        world.blanks.check()

        assert world.blanks.ready == {SECOND: "default"}
        assert world.marked == {SECOND}
        await until(lambda: world.seen == [SECOND])


async def test_a_blank_of_no_use_to_the_container_ends(tmp_path: Path, anyio_backend: str) -> None:
    """Of another base environment, or that does not see what the container has to see."""
    async with running(tmp_path, FIRST, SECOND) as world:
        await until(lambda: len(world.blanks.ready) == 2)
        world.bind(FIRST)
        world.bind(SECOND)

        assert world.take(FIRST, base="vllm") is None
        assert world.take(SECOND, access=access_to("GPU-9")) is None
        await until(lambda: not world.seen)


async def test_the_controller_says_how_many_of_which(tmp_path: Path, anyio_backend: str) -> None:
    """What it does not name ends."""
    async with running(tmp_path, FIRST, SECOND, THIRD) as world:
        await until(lambda: len(world.blanks.ready) == 3)

        sizes = [BlankSize(base=base, gpu_type="H100", memory=80, count=1) for base in ("vllm", "default", "gone")]
        world.blanks.resize(sizes)

        await until(lambda: sorted(world.blanks.ready.values()) == ["default", "vllm"])
        world.blanks.resize([])
        await until(lambda: not world.blanks.ready and not world.marked and not world.seen)


async def test_a_node_keeps_no_more_than_its_reserve_has_room_for(tmp_path: Path, anyio_backend: str) -> None:
    """Whatever is free."""
    async with running(tmp_path, FIRST, SECOND, THIRD, most=2) as world:
        await until(lambda: len(world.blanks.ready) == 2)
        world.blanks.wake()
        await asyncio.sleep(0.02)  # what must not come rings no bell

        assert len(world.launcher.started) == 2


async def test_a_base_environment_that_opens_cuda_has_no_blanks(tmp_path: Path, anyio_backend: str) -> None:
    """They would occupy GPUs before anybody pays for them; it is not tried again."""
    async with running(tmp_path) as world:
        world.opens_cuda = True
        world.blanks.wake()

        await until(lambda: len(world.launcher.started) == 1 and not world.seen)
        world.blanks.wake()
        await asyncio.sleep(0.02)  # what must not come rings no bell

        assert not world.blanks.ready
        assert not world.marked
        assert len(world.launcher.started) == 1


async def test_what_fails_or_dies_is_made_again(tmp_path: Path, anyio_backend: str) -> None:
    """After a pause."""
    async with running(tmp_path) as world:
        world.launcher.fail_next = SandboxNotStarted("no")
        world.blanks.wake()
        await until(lambda: len(world.blanks.ready) == 1)

        world.launcher.running[0].kill()

        await until(lambda: len(world.launcher.started) == 2 and len(world.blanks.ready) == 1)


async def test_it_waits_for_containers_that_start(tmp_path: Path, anyio_backend: str) -> None:
    """They need the processors more."""
    async with asyncio.TaskGroup() as group:
        world = World(tmp_path, group, (FIRST,), 8)
        world.needs_processors = True
        making = group.create_task(world.blanks.run(world))
        await asyncio.sleep(0.02)  # what must not come rings no bell
        assert world.launcher.started == []
        world.needs_processors = False
        world.blanks.wake()

        await until(lambda: len(world.blanks.ready) == 1)
        making.cancel()
        await asyncio.wait([making])
        await world.blanks.close()
