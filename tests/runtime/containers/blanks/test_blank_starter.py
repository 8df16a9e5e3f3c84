"""How sandboxes for blanks are started."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilotlight_runtime.containers.blanks.blank_starter import BlankStarter
from pilotlight_runtime.containers.blanks.resource_limits import BASE
from pilotlight_runtime.devices.device_port import DeviceAccess
from pilotlight_runtime.sandbox.fake_launcher import FakeLauncher
from pilotlight_runtime.sandbox.sandbox_errors import SandboxNotStarted
from pilotlight_runtime.sandbox.sandbox_port import Guarantees
from pilotlight_runtime.sandbox.sandbox_spec import APP, Mount
from tests.runtime.containers.fake_guests import greeting_guest, starter_of


class RlimitLauncher(FakeLauncher):
    """A launcher that can bound memory at the start alone."""

    def guarantees(self) -> Guarantees:
        return dataclasses.replace(super().guarantees(), memory="rlimit")


class PidsRlimitLauncher(FakeLauncher):
    """A launcher that can bound processes at the start alone."""

    def guarantees(self) -> Guarantees:
        return dataclasses.replace(super().guarantees(), pids="rlimit")


@pytest.fixture
def launcher() -> FakeLauncher:
    return FakeLauncher(greeting_guest)


@pytest.fixture
async def starter(launcher: FakeLauncher, tmp_path: Path, anyio_backend: str) -> AsyncIterator[BlankStarter]:
    async with asyncio.TaskGroup() as group:
        yield starter_of(launcher, tmp_path, group)
        for sandbox in launcher.running:
            sandbox.kill()


async def test_a_sandbox_that_cannot_be_started_is_an_error(launcher: FakeLauncher, starter: BlankStarter) -> None:
    """The launcher's own."""
    launcher.fail_next = SandboxNotStarted("no room")

    with pytest.raises(SandboxNotStarted, match="no room"):
        await starter.start(BASE)

    assert launcher.running == []


async def test_limits_can_be_changed_later_unless_they_are_rlimits(tmp_path: Path, anyio_backend: str) -> None:
    """Then no blank that was started ahead fits a container."""
    async with asyncio.TaskGroup() as group:
        fewer, more_memory = dataclasses.replace(BASE, pids=64), dataclasses.replace(BASE, memory_bytes=2**33)

        def later(launcher: FakeLauncher) -> list[bool]:
            starter = starter_of(launcher, tmp_path, group)
            return [starter.can_limit_later(limits) for limits in (more_memory, fewer)]

        assert later(FakeLauncher(greeting_guest)) == [True, True]
        assert later(PidsRlimitLauncher(greeting_guest)) == [True, False]
        assert later(RlimitLauncher(greeting_guest)) == [False, False]


async def test_each_has_an_empty_folder_of_its_own(starter: BlankStarter, tmp_path: Path) -> None:
    """Which the guest sees at one place, whatever its name."""
    first, second = await starter.start(BASE), await starter.start(BASE)

    assert first.code != second.code
    assert list(first.code.iterdir()) == []
    assert first.code.is_relative_to(tmp_path)
    assert first.root == second.root == APP


async def test_only_one_that_is_started_ahead_makes_the_costly_imports(
    launcher: FakeLauncher, starter: BlankStarter
) -> None:
    """A container that waits needs only what its own function imports."""
    await starter.start(BASE, ahead=True)
    await starter.start(BASE)

    assert [spec.env["PL_PREIMPORT"] for spec in launcher.started] == ["torch", ""]


async def test_it_sees_the_devices_that_it_was_given(launcher: FakeLauncher, starter: BlankStarter) -> None:
    """Nodes, files and variables, besides those of the base environment."""
    library = Mount(source=Path("/usr/lib/libcuda.so.1"), target=Path("/usr/lib/libcuda.so.1"))
    access = DeviceAccess(nodes=(Path("/dev/nvidia0"),), read_only=(library,), env={"CUDA_VISIBLE_DEVICES": "GPU-1"})

    await starter.start(BASE, access)
    await starter.start(BASE)

    given, bare = launcher.started
    assert (given.device_nodes, given.read_only) == ((Path("/dev/nvidia0"),), (library,))
    assert given.env["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert given.env["THREADS"] == bare.env["THREADS"] == "1"
    assert (bare.device_nodes, bare.read_only) == ((), ())
    assert "CUDA_VISIBLE_DEVICES" not in bare.env
