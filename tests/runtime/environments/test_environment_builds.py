"""Each environment is built once; failures are told, and poison nobody."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from pilotlight_core.model.packages.package_locks import LockedPackage, PackageLock
from pilotlight_runtime.builder.build_frames import BuildEnd
from pilotlight_runtime.environments import build_turns, environment_builds
from pilotlight_runtime.environments.base_facts import BuildBase, base_facts
from pilotlight_runtime.environments.build_sandbox import BuildFailed, BuildSandbox
from pilotlight_runtime.environments.built_files import FILE_BYTES, BuiltFiles
from pilotlight_runtime.environments.environment_builds import EnvironmentBuilds
from pilotlight_runtime.environments.environment_cache import EnvironmentCache
from tests.waiting import until

BASE = BuildBase(python=Path(sys.executable), read_only=())
HASH = "1" * 64
PRINTED = f"Base_Lib==2.0 --hash=sha256:{HASH}\ntiny==1.0 --hash=sha256:{HASH}\n"


class Sandbox:
    """In the place of `BuildSandbox`: it locks PRINTED and builds one file, unless `faults` say otherwise."""

    most_bytes = 100
    at_once = 4

    def __init__(self) -> None:
        self.printed = PRINTED
        self.faults: list[Exception] = []
        self.locks: list[tuple[str, str]] = []
        self.builds: list[tuple[str, str]] = []
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def lock(self, tenant: str, _: BuildBase, __: tuple[str, ...], pins: str = "") -> BuildEnd:
        self.locks.append((tenant, pins))
        await self.may_end.wait()
        return BuildEnd(lock=self.printed, bases=("base-lib",))

    async def build(self, tenant: str, _: BuildBase, lock: str, into: Path) -> BuiltFiles:
        self.builds.append((tenant, lock))
        await self.may_end.wait()
        if self.faults:
            raise self.faults.pop()
        (into / "tiny.py").write_text("x")
        files = BuiltFiles(into, most_bytes=100)
        files.files, files.bytes = 1, 1
        return files


class World:
    def __init__(self, folder: Path, group: asyncio.TaskGroup) -> None:
        self.sandbox = Sandbox()
        self.changes = 0
        self.cache = EnvironmentCache(folder / "environments", 10 * FILE_BYTES)
        sandbox = cast("BuildSandbox", self.sandbox)
        self.builds = EnvironmentBuilds(self.cache, {"default": BASE}, sandbox, group, self._changed)
        self._folder = folder

    def _changed(self) -> None:
        self.changes += 1

    def container(self, name: str) -> Path:
        """The empty folder of a container's packages."""
        folder = self._folder / name / "packages"
        folder.mkdir(parents=True)
        return folder


@asynccontextmanager
async def world_in(folder: Path) -> AsyncIterator[World]:
    async with asyncio.TaskGroup() as group:
        yield World(folder, group)


def lock(**changes: Any) -> PackageLock:
    facts = base_facts(BASE.python)
    fields: dict[str, Any] = {
        "requirements": ("tiny",), "packages": (LockedPackage(name="tiny", version="1.0", hashes=(HASH,)),),
        "base_digest": facts.digest, "python": facts.python, "platform": facts.platform,
    }  # fmt: skip
    return PackageLock(**fields | changes)


async def test_a_lock_has_what_the_base_lacks(tmp_path: Path) -> None:
    """And says what it was resolved for."""
    async with world_in(tmp_path) as world:
        assert await world.builds.lock("acme", "default", ("tiny",)) == lock()
        assert await world.builds.is_base("default", lock().base_digest, lock().python)
        assert not await world.builds.is_base("default", "0" * 64, lock().python)


@pytest.mark.parametrize(
    ("base", "requirements", "printed", "why"),
    [
        ("default", ("-e .",), PRINTED, "options of installers"),
        ("lemon", ("tiny",), PRINTED, "no base environment 'lemon'; it has default"),
        ("default", ("tiny",), "-e .", "cannot be read"),
        ("default", ("tiny",), "tiny==1.0\n", "the index names none"),
    ],
)
async def test_what_cannot_be_locked_is_said(
    tmp_path: Path, base: str, requirements: tuple[str, ...], printed: str, why: str
) -> None:
    """An index without digests among it: a node would install whatever it has by then."""
    async with world_in(tmp_path) as world:
        world.sandbox.printed = printed
        with pytest.raises(BuildFailed, match=why):
            await world.builds.lock("acme", base, requirements)


async def test_containers_that_start_together_have_one_build(tmp_path: Path) -> None:
    """Each gets its links; another tenant's has a build of its own."""
    async with world_in(tmp_path) as world:
        folders = [world.container(name) for name in "abc"]
        async with asyncio.TaskGroup() as group:
            for folder in folders[:2]:
                group.create_task(world.builds.stage("acme", "default", lock(), folder))
            group.create_task(world.builds.stage("rival", "default", lock(), folders[2]))

        assert sorted(tenant for tenant, _ in world.sandbox.builds) == ["acme", "rival"]
        assert [(folder / "tiny.py").read_text() for folder in folders] == ["x"] * 3
        assert len(world.cache.ids()) == 2
        assert world.changes == 2
        await world.builds.stage("acme", "default", lock(), world.container("d"))
        assert len(world.sandbox.builds) == 2


async def test_a_build_outlives_who_waits_for_it(tmp_path: Path) -> None:
    """Its next container finds it."""
    async with world_in(tmp_path) as world:
        world.sandbox.may_end.clear()
        waiting = asyncio.ensure_future(world.builds.ensure("acme", "default", lock()))
        await until(lambda: bool(world.sandbox.builds))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        world.sandbox.may_end.set()
        await world.builds.ensure("acme", "default", lock())

        assert len(world.sandbox.builds) == 1


async def test_what_failed_is_tried_again(tmp_path: Path) -> None:
    """With the words for who waited; nothing of it stays, and others are built meanwhile."""
    async with world_in(tmp_path) as world:
        world.sandbox.faults = [BuildFailed("no space"), OSError("disk full")]
        for why, is_tenants in (("disk full", False), ("no space", True)):
            with pytest.raises(BuildFailed, match=why) as failed:
                await world.builds.ensure("acme", "default", lock())
            assert failed.value.is_tenants is is_tenants
        assert [path.name for path in (tmp_path / "environments" / "acme").iterdir()] == []
        await world.builds.ensure("acme", "default", lock())

        assert len(world.cache.ids()) == 1


async def test_another_base_environment_is_tried_before_it_is_built_over(tmp_path: Path) -> None:
    """With the versions of the lock: what would lack packages there is refused, and told how to be mended."""
    elsewhere = lock(base_digest="0" * 64)
    async with world_in(tmp_path) as world:
        await world.builds.ensure("acme", "default", elsewhere)
        assert world.sandbox.locks == [("acme", "tiny==1.0\n")]
        await world.builds.ensure("acme", "default", lock())
        assert len(world.sandbox.builds) == 2

        world.sandbox.printed += f"further==1.0 --hash=sha256:{HASH}\n"
        with pytest.raises(BuildFailed, match="deploy again"):
            await world.builds.ensure("rival", "default", elsewhere)


async def test_what_was_deleted_is_built_anew(tmp_path: Path) -> None:
    """By whoever tidied up, while the agent ran; the start that finds it so fails."""
    async with world_in(tmp_path) as world:
        await world.builds.ensure("acme", "default", lock())
        shutil.rmtree(tmp_path / "environments" / "acme")
        with pytest.raises(FileNotFoundError):
            await world.builds.stage("acme", "default", lock(), world.container("a"))
        await world.builds.stage("acme", "default", lock(), into := world.container("b"))

        assert (into / "tiny.py").read_text() == "x"


async def test_another_platform_is_another_base(tmp_path: Path) -> None:
    """Markers may ask for packages there that the lock has not."""
    async with world_in(tmp_path) as world:
        await world.builds.ensure("acme", "default", lock(platform="linux_sparc"))

    assert world.sandbox.locks == [("acme", "tiny==1.0\n")]


async def test_what_nobody_uses_makes_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the limit too: else a node whose disk is full of it could build nothing any more."""
    async with world_in(tmp_path) as world:
        await world.builds.ensure("acme", "default", lock())
        monkeypatch.setattr(environment_builds, "disk_left", lambda _: 99)
        await world.builds.ensure("rival", "default", lock())

        assert world.cache.tenants() == ["rival"]
        assert not list((tmp_path / "environments" / "acme").iterdir())


async def test_a_lock_that_cannot_be_is_not_built(tmp_path: Path) -> None:
    """Whoever has signed it: what stands there goes into a file that an installer reads."""
    evil = LockedPackage(name="tiny", version="1.0 --index-url=http://other", hashes=(HASH,))
    async with world_in(tmp_path) as world:
        with pytest.raises(BuildFailed, match="is no package"):
            await world.builds.ensure("acme", "default", lock(packages=(evil,)))

        assert world.sandbox.builds == []


async def test_requirements_that_the_base_has_need_no_build(tmp_path: Path) -> None:
    """The container's folder stays empty."""
    async with world_in(tmp_path) as world:
        into = world.container("a")
        await world.builds.stage("acme", "default", lock(packages=()), into)
        await world.builds.ensure("acme", "default", lock(packages=()))

        assert list(into.iterdir()) == []
        assert world.sandbox.builds == []


async def test_a_node_without_an_index_builds_nothing(tmp_path: Path) -> None:
    """That is not the tenant's fault: placement should have sent nothing there."""
    async with asyncio.TaskGroup() as group:
        builds = EnvironmentBuilds(EnvironmentCache(tmp_path, 0), {"default": BASE}, None, group, lambda: None)
        assert not builds.can_build
        with pytest.raises(BuildFailed, match="--package-index") as failed:
            await builds.ensure("acme", "default", lock())

        assert not failed.value.is_tenants


async def test_a_full_line_is_no_fault_of_the_tenants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of locks and of builds: it is said, and another node is tried."""
    monkeypatch.setattr(build_turns, "MOST_OF_TENANT", 0)
    async with world_in(tmp_path) as world:
        for asked in (world.builds.lock("acme", "default", ("tiny",)), world.builds.ensure("acme", "default", lock())):
            with pytest.raises(BuildFailed, match="wait for their turn already, which is the most") as failed:
                await asked
            assert not failed.value.is_tenants
