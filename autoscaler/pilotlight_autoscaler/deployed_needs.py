"""What the deployed functions need of blanks, followed by the registry's callbacks and read a few apps at a time.

They are summed up as they come and go: who asks for the sums must not wait for a walk over twenty thousand functions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pilotlight_autoscaler.policy.nodes.blank_sizes import (
    CALLED,
    DEPLOYED,
    FORETOLD,
    BlankNeed,
    StartableFunctions,
    need_of,
)
from pilotlight_autoscaler.policy.version_shutdown import why_shut_down
from pilotlight_core.bus import BusError
from pilotlight_core.host.registry import Registry
from pilotlight_core.host.steady_clock import run_time
from pilotlight_core.model.spec import VersionRecord

MOST_FUNCTIONS = 20_000
"""Of which the needs are known: those beyond would hardly change what nodes keep."""
APPS_AT_ONCE = 64
MOST_FRESH = 256
MOST_AT_ONCE = 4
"""Containers of a function that is called: as many may start together, and find blanks."""
APPS, TENANTS = "app.", "tenant."
"""How keys of records begin."""


class _NeedCount:
    """How many functions have one need. It is changed in place."""

    __slots__ = ("functions", "need")

    def __init__(self, need: BlankNeed) -> None:
        self.need = need
        self.functions = 0


class _KnownFunction(NamedTuple):
    needs: _NeedCount
    """The functions of its need."""
    at_once: int
    """Containers of it that start together."""


class DeployedNeeds:
    def __init__(self, registry: Registry, wall: Callable[[], float] = run_time) -> None:
        self.stirred = asyncio.Event()
        """Set while apps have changed that are not read yet."""
        self._registry = registry
        self._wall = wall
        self._unread: dict[str, None] = {}
        """Keys of apps."""
        self._apps: dict[str, tuple[str, ...]] = {}
        """By key, the functions (`tenant:app.function`) of those whose needs are known."""
        self._functions: dict[str, _KnownFunction] = {}
        self._counts: dict[BlankNeed, _NeedCount] = {}
        self._seen: dict[str, None] = {}
        """Versions that were read."""
        self._fresh: dict[str, VersionRecord] = {}
        """Versions that were deployed since what was deployed before is read, until they are taken."""
        for app in registry.iter_apps():
            self._unread[f"{APPS}{app.tenant}.{app.app}"] = None
        if self._unread:
            self.stirred.set()
        self._was_read = not self._unread
        registry.on_change.append(self._on_record)

    def close(self) -> None:
        """Listen to the registry no more."""
        self._registry.on_change.remove(self._on_record)

    async def read_some(self) -> bool:
        """Read some of the apps that have changed; whether there were any."""
        keys = list(self._unread)[:APPS_AT_ONCE]
        for key in keys:
            del self._unread[key]
            try:
                await self._read(key)
            except BusError:
                self._unread[key] = None
                raise
        if not self._unread:
            self.stirred.clear()
            self._was_read = True
        return bool(keys)

    def take_fresh(self) -> list[VersionRecord]:
        """The versions that were deployed since the last time."""
        fresh, self._fresh = list(self._fresh.values()), {}
        return fresh

    def counted(self, ahead: Mapping[str, int], called: Iterable[str]) -> dict[BlankNeed, StartableFunctions]:
        """The functions by their needs.

        Args:
            ahead: how many containers of some are expected to be needed soon.
            called: those that are called these days, others than deployed ones perhaps among them.
        """
        more: dict[_NeedCount, list[int]] = {}
        for function in {*called, *ahead}:
            known = self._functions.get(function)
            if known is not None:
                soon, sums = ahead.get(function, 0), more.setdefault(known.needs, [0, 0])
                sums[0] += max(soon, known.at_once) - 1
                sums[1] += (FORETOLD * soon if soon else CALLED) - DEPLOYED
        found: dict[BlankNeed, StartableFunctions] = {}
        for count in self._counts.values():
            number, weight = more.get(count, (0, 0))
            found[count.need] = StartableFunctions(count.functions + number, DEPLOYED * count.functions + weight)
        return found

    async def _read(self, key: str) -> None:
        self._forget(key)
        _, tenant, name = key.split(".", 2)
        app = self._registry.app_nowait(tenant, name)
        if app is None or why_shut_down(app, self._registry.tenant_nowait(tenant), self._wall()):
            return
        found: dict[str, VersionRecord] = {}
        for function, version in app.functions.items():
            if len(self._functions) + len(found) >= MOST_FUNCTIONS:
                break
            record = self._registry.version(version) or await self._registry.fetch_version(version)
            if record is not None:
                found[f"{tenant}:{name}.{function}"] = record
                self._note(record)
        for function, record in found.items():
            need = need_of(record)
            if (count := self._counts.get(need)) is None:
                count = self._counts[need] = _NeedCount(need)
            count.functions += 1
            self._functions[function] = _KnownFunction(count, min(MOST_AT_ONCE, record.spec.max_containers))
        self._apps[key] = tuple(found)

    def _forget(self, app: str) -> None:
        for function in self._apps.pop(app, ()):
            count = self._functions.pop(function).needs
            count.functions -= 1
            if not count.functions:
                del self._counts[count.need]

    def _note(self, record: VersionRecord) -> None:
        is_known = record.id in self._seen
        self._seen[record.id] = None
        while len(self._seen) > MOST_FUNCTIONS:
            del self._seen[next(iter(self._seen))]
        if self._was_read and not is_known and len(self._fresh) < MOST_FRESH:
            self._fresh[record.id] = record

    def _on_record(self, key: str, _: Any) -> None:
        if key.startswith(APPS):
            self._wake(key)
        elif key.startswith(TENANTS):
            prefix = f"{APPS}{key.removeprefix(TENANTS)}."
            for app in self._registry.iter_apps(key.removeprefix(TENANTS)):
                self._wake(f"{prefix}{app.app}")

    def _wake(self, key: str) -> None:
        self._unread[key] = None
        self.stirred.set()
