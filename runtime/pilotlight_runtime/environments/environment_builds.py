"""Locks and builds, each within a turn (`build_turns`), so that nobody's hold up all others'.

An environment is built once, however many containers wait for it, and a build goes on when they are gone. What failed
is tried again by who comes next: nothing is remembered of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from pilotlight_core.model.packages.package_locks import (
    LockedPackage,
    PackageLock,
    environment_id,
    lock_fault,
    lock_text,
    locked_packages,
)
from pilotlight_core.model.packages.requirement_texts import normal_name, requirements_fault
from pilotlight_core.model.supply.inventories import BaseInventory, PackageFact
from pilotlight_runtime.builder.build_frames import BuildEnd
from pilotlight_runtime.environments.base_facts import BaseFacts, BuildBase, NoFacts, base_facts
from pilotlight_runtime.environments.build_sandbox import BuildFailed, BuildSandbox
from pilotlight_runtime.environments.build_turns import AT_ONCE, BuildTurns, NoTurn
from pilotlight_runtime.environments.built_files import disk_left
from pilotlight_runtime.environments.environment_cache import (
    BuiltEnvironment,
    EnvironmentCache,
    EnvironmentRecord,
    delete_folder,
    keep_built,
    link_environment,
)
from pilotlight_runtime.environments.package_facts import base_inventory, facts_below

log = structlog.get_logger(__name__)

MARK = "environment"
"""Beside a container's folders: the link that keeps its environment in the cache."""


class EnvironmentBuilds:
    """The environments of a node. Without a `sandbox` (no index is named, or there are no walls) none can be built."""

    def __init__(
        self,
        cache: EnvironmentCache,
        bases: Mapping[str, BuildBase],
        sandbox: BuildSandbox | None,
        group: asyncio.TaskGroup,
        changed: Callable[[], None],
    ) -> None:
        self.cache = cache
        self._bases = bases
        self._sandbox = sandbox
        self._group = group
        self._changed = changed
        self._locks = BuildTurns()
        # Where there is memory for few builders, one of them is for locks, which take seconds.
        at_once = sandbox.at_once - 1 if sandbox is not None else AT_ONCE
        self._turns = BuildTurns(at_once=max(1, min(AT_ONCE, at_once)))
        self._building: dict[tuple[str, str], asyncio.Task[BuiltEnvironment | BuildFailed]] = {}

    @property
    def can_build(self) -> bool:
        return self._sandbox is not None

    def has_room(self, tenant: str) -> bool:
        """Whether a lock of a tenant can wait for its turn here; else it is to be asked for elsewhere."""
        return self._locks.has_room(tenant)

    async def lock(self, tenant: str, base: str, requirements: tuple[str, ...]) -> PackageLock:
        """What requirements come to over one of this node's base environments.

        Raises:
            BuildFailed: the resolver's words.
        """
        if why := requirements_fault(requirements):
            raise BuildFailed(why)
        sandbox, environment = self._needs(base)
        facts = await _facts(environment)
        try:
            async with self._locks.turn(tenant):
                end = await sandbox.lock(tenant, environment, requirements)
        except NoTurn as error:
            raise BuildFailed(f"{error}: try again later", is_tenants=False) from None
        lock = PackageLock(
            requirements=tuple(sorted(requirements)),
            packages=_beyond_base(end),
            base_digest=facts.digest,
            python=facts.python,
            platform=facts.platform,
        )
        if why := lock_fault(lock):
            raise BuildFailed(f"what the requirements come to cannot be locked: {why}")
        return lock

    async def is_base(self, base: str, digest: str, python: str) -> bool:
        """Whether a base environment has these packages and this interpreter. Raises BuildFailed."""
        _, environment = self._needs(base)
        facts = await _facts(environment)
        return (facts.digest, facts.python) == (digest, python)

    async def stage(self, tenant: str, base: str, lock: PackageLock, into: Path) -> None:
        """Link the environment of a lock into a container's empty folder; it is built first if it is not there.

        Raises:
            BuildFailed: the resolver's words. OSError: the disk does not do it.
        """
        if not lock.packages:
            return
        built = await self._built(tenant, base, lock)
        release = self.cache.pin(built)
        try:
            await asyncio.to_thread(link_environment, built, into, into.parent / MARK)
        except FileNotFoundError:  # somebody has deleted it: the next start builds it anew
            self.cache.forget(built)
            raise
        finally:
            release()

    async def ensure(self, tenant: str, base: str, lock: PackageLock) -> None:
        """Build the environment of a lock if it is not there, as `stage`."""
        if lock.packages:
            await self._built(tenant, base, lock)

    async def described(
        self, tenant: str, base: str, lock: PackageLock | None
    ) -> tuple[BaseInventory, tuple[PackageFact, ...]]:
        """The packages of a base environment, and those of a lock, which is built for it as for a start.

        Raises:
            BuildFailed.
        """
        environment = self._base(base)
        try:
            inventory = await asyncio.to_thread(base_inventory, environment.python)
        except NoFacts as error:
            raise BuildFailed(str(error), is_tenants=False) from None
        if lock is None or not lock.packages:
            return inventory, ()
        built = await self._built(tenant, base, lock)
        release = self.cache.pin(built)
        try:
            return inventory, await asyncio.to_thread(facts_below, built.packages)
        finally:
            release()

    async def free(self, size: int) -> bool:
        """Delete what no container has, of so many bytes if there are as many; False: nothing was there to delete."""
        return await self._shrink(size) > 0

    async def _built(self, tenant: str, base: str, lock: PackageLock) -> BuiltEnvironment:
        _, environment = self._needs(base)
        facts = await _facts(environment)
        name = _name(tenant, lock, facts)
        if (found := self.cache.find(tenant, name)) is not None:
            return found
        task = self._building.get((tenant, name))
        if task is None:
            task = self._group.create_task(self._try_build(tenant, name, base, lock, facts))
            self._building[tenant, name] = task
            task.add_done_callback(lambda _: self._building.pop((tenant, name), None))
        built = await asyncio.shield(task)
        if isinstance(built, BuildFailed):
            raise BuildFailed(str(built), is_tenants=built.is_tenants)
        return built

    async def _try_build(
        self, tenant: str, name: str, base: str, lock: PackageLock, facts: BaseFacts
    ) -> BuiltEnvironment | BuildFailed:
        """As `_build`; a failure is returned, since those who wait may have gone."""
        try:
            return await self._build(tenant, name, base, lock, facts)
        except BuildFailed as error:
            failure = error
        except NoTurn as error:
            failure = BuildFailed(f"of builds of requirements on this node {error}", is_tenants=False)
        except OSError as error:
            failure = BuildFailed(f"the packages could not be kept: {error}", is_tenants=False)
        except Exception:
            log.exception("a build went wrong; the others go on", tenant=tenant)
            failure = BuildFailed("the platform made a mistake", is_tenants=False)
        log.warning("an environment could not be built", tenant=tenant, environment=name, error=str(failure))
        return failure

    async def _build(self, tenant: str, name: str, base: str, lock: PackageLock, facts: BaseFacts) -> BuiltEnvironment:
        sandbox, environment = self._needs(base)
        if why := lock_fault(lock):  # it is signed, and goes into a file that an installer reads
            raise BuildFailed(f"the lock cannot be: {why}")
        async with self._turns.turn(tenant):
            if (facts.digest, facts.python, facts.platform) != (lock.base_digest, lock.python, lock.platform):
                await self._check_base(sandbox, tenant, environment, lock)
            await self._make_room(sandbox.most_bytes)
            fresh = await asyncio.to_thread(self.cache.fresh_folder, tenant, name)
            try:
                files = await sandbox.build(tenant, environment, lock_text(lock.packages), fresh / "packages")
                record = EnvironmentRecord(id=environment_id(tenant, lock), files=files.files, bytes=files.on_disk)
                await asyncio.to_thread(keep_built, fresh, self.cache.path(tenant, name), record)
            finally:
                await asyncio.to_thread(delete_folder, fresh)
        built = self.cache.add(tenant, name, record)
        log.info("an environment is built", tenant=tenant, environment=name, files=record.files, bytes=record.bytes)
        with_room = self.cache.pin(built)
        try:
            await self._shrink()
        finally:
            with_room()
        self._changed()
        return built

    async def _make_room(self, size: int) -> None:
        """Delete what no container has as far as the disk has no room for `size` bytes more."""
        if (lacking := size - await asyncio.to_thread(disk_left, self.cache.folder)) > 0:
            await self._shrink(lacking)

    async def _shrink(self, wanted: int = 0) -> int:
        """The number of those that were deleted."""
        gone = self.cache.shrink(wanted)
        for folder in gone:
            await asyncio.to_thread(delete_folder, folder)
        return len(gone)

    async def _check_base(self, sandbox: BuildSandbox, tenant: str, base: BuildBase, lock: PackageLock) -> None:
        """Refuse a base that is not the one of the lock, if the lock says too little or too much over it."""
        pins = "".join(f"{each.name}=={each.version}\n" for each in lock.packages)
        end = await sandbox.lock(tenant, base, lock.requirements, pins)
        if {each.name for each in _beyond_base(end)} - {each.name for each in lock.packages}:
            raise BuildFailed(
                "this node's base environment lacks packages that were there when the requirements were locked: "
                "deploy again"
            )

    def _needs(self, base: str) -> tuple[BuildSandbox, BuildBase]:
        if self._sandbox is None:
            raise BuildFailed(
                "this node builds no requirements: its agent runs without --package-index, or without walls",
                is_tenants=False,
            )
        return self._sandbox, self._base(base)

    def _base(self, base: str) -> BuildBase:
        environment = self._bases.get(base)
        if environment is None:
            raise BuildFailed(f"this node has no base environment {base!r}; it has {', '.join(self._bases)}")
        return environment


async def _facts(base: BuildBase) -> BaseFacts:
    try:
        return await asyncio.to_thread(base_facts, base.python)
    except NoFacts as error:
        raise BuildFailed(str(error), is_tenants=False) from None


def _name(tenant: str, lock: PackageLock, facts: BaseFacts) -> str:
    """Of the folder of an environment: other over another base than the one of the lock."""
    name = environment_id(tenant, lock)
    same = facts.digest == lock.base_digest and facts.python == lock.python and facts.platform == lock.platform
    return name if same else f"{name}-{facts.digest[:12]}{facts.python}"


def _beyond_base(end: BuildEnd) -> tuple[LockedPackage, ...]:
    """Of what was resolved, what the base lacks. Raises BuildFailed."""
    present = {normal_name(name) for name in end.bases}
    try:
        return tuple(each for each in locked_packages(end.lock) if normal_name(each.name) not in present)
    except ValueError as error:
        raise BuildFailed(str(error), is_tenants=False) from None
