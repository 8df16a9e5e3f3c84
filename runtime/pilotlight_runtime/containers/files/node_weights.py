"""The weights of a node: which of those that were pushed lie on its disk, and what of them stays in its memory.

A version's weights are files in the cache, hard-linked into each container that has them, so that all containers of a
tenant share one copy on the disk and one in the page cache. Which files make up which weights stands in the cache too,
as a small file, so that the next agent of the node knows it.

What was used last is read into memory and locked there, as far as the node's budget for it goes (`MemoryBudget`). Where
the kernel locks nothing, the page cache keeps what it keeps; how much that is, the node's reports tell.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from pilotlight_core.model.messages.node_messages import MOST_WEIGHTS_TOLD, WeightsReport
from pilotlight_core.model.spec import ArtifactEntry, FileEntry
from pilotlight_runtime.containers.files.artifact_files import artifact_files
from pilotlight_runtime.containers.files.file_cache import JOINED, CacheKey, FileCache, flush_joined
from pilotlight_runtime.containers.files.page_cache import MappedFile, resident_bytes

INDEX = "weights-"
"""Begins the names of files in the cache that say which others make up weights."""
LOOK_S = 10.0
"""Between two looks at what is in memory."""
DISK_BYTES_PER_S = 200 * 2**20
"""How fast weights come back that were dropped: an ordinary cloud disk."""

log = structlog.get_logger(__name__)
WeightsKey = tuple[str, str]
"""A tenant and a digest."""


class MemoryBudget(Protocol):
    """The host memory of the node for what may be needed again soon."""

    def take(self, name: str, size: int, load_s: float, evict: Callable[[], None]) -> bool:
        """Have `size` bytes for weights, in the place of what is worth less; False: they are not kept.

        `evict` is called when they have to go for something else.
        """
        ...

    def touch(self, name: str) -> None:
        """They are needed now."""
        ...

    def release(self, name: str) -> None:
        """They are not there any more."""
        ...


class NoBudget:
    """Nothing is kept in memory, but for what the kernel keeps by itself."""

    def take(self, name: str, size: int, load_s: float, evict: Callable[[], None]) -> bool:  # noqa: ARG002
        return False

    def touch(self, name: str) -> None:
        """Nothing is kept."""

    def release(self, name: str) -> None:
        """Nothing is kept."""


@dataclass(kw_only=True)
class _Weights:
    files: tuple[tuple[str, int], ...]
    """Their names in the cache, and their bytes."""
    resident: int = 0
    held: list[MappedFile] = field(default_factory=list)
    has_room: bool = False
    """Whether the budget has given room for it, which it may take back while the files are read."""

    @property
    def size(self) -> int:
        return sum(size for _, size in self.files)


class NodeWeights:
    """Belongs to the loop's thread; what uses the disk runs in others. `changed` is called when a report is due."""

    def __init__(
        self, cache: FileCache, budget: MemoryBudget | None = None, changed: Callable[[], None] = lambda: None
    ) -> None:
        self._cache = cache
        self._budget = budget or NoBudget()
        self._changed = changed
        self._known: OrderedDict[WeightsKey, _Weights] = OrderedDict()
        """The last used last."""
        self._wanted: OrderedDict[WeightsKey, None] = OrderedDict()
        """Those that are to be held in memory."""
        self._dropped: list[MappedFile] = []
        """Those that are not held any more, and are to be unmapped in a thread: it takes milliseconds for each GiB."""
        self._flushed: set[CacheKey] = set()
        """Joined files that are on the disk, whenever the machine stops."""
        self._due = asyncio.Event()
        self._has_warned = False
        for tenant, name in cache.named(INDEX):
            if (files := _read_index(cache, tenant, name)) is not None:
                self._known[tenant, name.removeprefix(INDEX)] = _Weights(files=files)

    async def note_used(self, tenant: str, artifacts: Iterable[ArtifactEntry]) -> None:
        """A container of the tenant has these, whose files are in the cache."""
        for artifact in artifacts:
            if not artifact.digest:
                continue
            key = (tenant, artifact.digest)
            if (known := self._known.get(key)) is None:
                files = tuple((one.entry.sha256, one.entry.size) for one in artifact_files((artifact,)))
                known = self._known[key] = _Weights(files=files)
                if await asyncio.to_thread(_write_index, self._cache, tenant, artifact.digest, files):
                    self._cache.add(tenant, _index_entry(artifact.digest, files))
                if key not in self._known:  # it was erased meanwhile
                    continue
            self._known.move_to_end(key)
            if known.held:
                self._budget.touch(_name(key))
            else:
                self._wanted[key] = None
            self._due.set()

    async def run(self) -> None:
        """Hold what is used, and look at what is in memory, again and again until cancelled."""
        try:
            while True:
                try:
                    await self.settle()
                except Exception:
                    log.exception("the weights of this node could not be looked at")
                self._due.clear()
                try:
                    async with asyncio.timeout(LOOK_S):
                        await self._due.wait()
                except TimeoutError:
                    pass
        finally:
            self.close()

    async def settle(self) -> None:
        """Forget what is not on the disk any more, hold what is wanted, and see what is in memory."""
        for key in [key for key, known in self._known.items() if not self._is_there(key[0], known)]:
            self._drop(key)
            del self._known[key]
            self._changed()
        if self._dropped:
            dropped, self._dropped = self._dropped, []
            await asyncio.to_thread(_close, dropped)
        while self._wanted:
            key, _ = self._wanted.popitem(last=False)
            if (known := self._known.get(key)) is not None and not known.held:
                await self._hold(key, known)
        for key, known in list(self._known.items()):
            paths = [self._cache.path(key[0], name) for name, _ in known.files]
            resident = await asyncio.to_thread(_resident, paths)
            if resident != known.resident:
                known.resident = resident
                self._changed()
        await self._flush()

    async def _flush(self) -> None:
        """Have what was fetched on the disk; containers do not wait for that."""
        joined = set(self._cache.named(JOINED))
        self._flushed &= joined
        for key in joined - self._flushed:
            try:
                await asyncio.to_thread(flush_joined, self._cache.path(*key))
            except FileNotFoundError:
                continue  # the cache has dropped it meanwhile
            except OSError as error:
                log.warning("a file of weights could not be flushed", tenant=key[0], file=key[1], error=str(error))
                continue
            self._flushed.add(key)

    def reports(self) -> tuple[WeightsReport, ...]:
        """What lies here, the last used first."""
        found = [
            WeightsReport(
                tenant=tenant, digest=digest, size=known.size, resident=known.resident,
                locked=bool(known.held) and all(one.is_locked or not one.size for one in known.held),
            )
            for (tenant, digest), known in reversed(self._known.items())
        ]  # fmt: skip
        return tuple(found[:MOST_WEIGHTS_TOLD])

    def forget(self, tenant: str) -> None:
        """A tenant was erased: nothing of it is held any more."""
        for key in [key for key in self._known if key[0] == tenant]:
            self._drop(key)
            del self._known[key]

    def close(self) -> None:
        """Hold nothing any more."""
        for key in self._known:
            self._drop(key)
        dropped, self._dropped = self._dropped, []
        _close(dropped)

    def _is_there(self, tenant: str, known: _Weights) -> bool:
        return all(self._cache.holds(tenant, FileEntry(name, name, size)) for name, size in known.files)

    async def _hold(self, key: WeightsKey, known: _Weights) -> None:
        load_s = known.size / DISK_BYTES_PER_S
        known.has_room = self._budget.take(_name(key), known.size, load_s, lambda: self._drop(key))
        if not known.has_room:
            return
        paths = [self._cache.path(key[0], name) for name, _ in known.files]
        try:
            held = await asyncio.to_thread(_locked, paths)
        except OSError as error:
            self._drop(key)
            log.warning("weights could not be read into memory", tenant=key[0], digest=key[1], error=str(error))
            return
        if not known.has_room or self._known.get(key) is not known:  # something else has it by now, or it is erased
            self._dropped += held
            self._due.set()
            return
        known.held = held
        if not all(one.is_locked or not one.size for one in known.held) and not self._has_warned:
            self._has_warned = True
            log.warning(
                "weights are read into memory, but the kernel locks none of it for this process: it may drop them. "
                "Raise RLIMIT_MEMLOCK (LimitMEMLOCK=, ulimit -l) or give it CAP_IPC_LOCK"
            )
        self._changed()

    def _drop(self, key: WeightsKey) -> None:
        """Hold them no more; the kernel may keep them for a while."""
        if (known := self._known.get(key)) is not None:
            known.has_room = False
            if known.held:
                self._dropped += known.held
                known.held = []
                self._due.set()
        self._budget.release(_name(key))


def _close(mapped: list[MappedFile]) -> None:
    for one in mapped:
        one.close()


def _resident(paths: list[Path]) -> int:
    return sum(map(resident_bytes, paths))


def _name(key: WeightsKey) -> str:
    return f"{key[0]}:{key[1]}"


def _locked(paths: list[Path]) -> list[MappedFile]:
    """The files mapped, and locked as far as the kernel does it. Raises OSError."""
    held: list[MappedFile] = []
    try:
        for path in paths:
            held.append(MappedFile(path))
            held[-1].lock()
    except OSError:
        for one in held:
            one.close()
        raise
    return held


def _index_entry(digest: str, files: tuple[tuple[str, int], ...]) -> FileEntry:
    return FileEntry("", f"{INDEX}{digest}", len(msgspec.json.encode(files)))


def _write_index(cache: FileCache, tenant: str, digest: str, files: tuple[tuple[str, int], ...]) -> bool:
    """False: the disk is full, so the next agent will not know of them; no container fails by that."""
    path = cache.path(tenant, f"{INDEX}{digest}")
    fresh = path.with_suffix(".new")
    try:
        fresh.write_bytes(msgspec.json.encode(files))
        fresh.replace(path)
    except OSError as error:
        log.warning("which weights lie here could not be written down", digest=digest, error=str(error))
        return False
    return True


def _read_index(cache: FileCache, tenant: str, name: str) -> tuple[tuple[str, int], ...] | None:
    try:
        return msgspec.json.decode(cache.path(tenant, name).read_bytes(), type=tuple[tuple[str, int], ...])
    except (OSError, msgspec.DecodeError):
        return None
