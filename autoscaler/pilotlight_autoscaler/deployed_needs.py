"""What the deployed functions need of blanks, followed by the registry's callbacks and read a few apps at a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

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
from pilotlight_core.model.spec import VersionRecord

MOST_FUNCTIONS = 20_000
"""Of which the needs are known: those beyond would hardly change what nodes keep."""
APPS_AT_ONCE = 64
MOST_FRESH = 256
MOST_AT_ONCE = 4
"""Containers of a function that is called: as many may start together, and find blanks."""
APPS, TENANTS = "app.", "tenant."
"""How keys of records begin."""


class DeployedNeeds:
    def __init__(self, registry: Registry, wall: Callable[[], float] = time.time) -> None:
        self.stirred = asyncio.Event()
        """Set while apps have changed that are not read yet."""
        self._registry = registry
        self._wall = wall
        self._unread: dict[str, None] = {}
        """Keys of apps."""
        self._apps: dict[str, dict[str, tuple[BlankNeed, int]]] = {}
        """By key, of their functions (`tenant:app.function`) the need, and how many containers start at once."""
        self._functions = 0
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

    def counted(
        self, ahead: Mapping[str, int], is_called: Callable[[str], bool]
    ) -> dict[BlankNeed, StartableFunctions]:
        """The functions by their needs. `ahead`: how many containers of some are expected to be needed soon."""
        counted: dict[BlankNeed, StartableFunctions] = {}
        for needs in self._apps.values():
            for function, (need, at_once) in needs.items():
                more = _counting(ahead.get(function, 0), at_once, is_called=is_called(function))
                there = counted.get(need)
                counted[need] = more if there is None else _sum(there, more)
        return counted

    async def _read(self, key: str) -> None:
        self._functions -= len(self._apps.pop(key, ()))
        _, tenant, name = key.split(".", 2)
        app = self._registry.app_nowait(tenant, name)
        if app is None or why_shut_down(app, self._registry.tenant_nowait(tenant), self._wall()):
            return
        found: dict[str, tuple[BlankNeed, int]] = {}
        for function, version in app.functions.items():
            if self._functions + len(found) >= MOST_FUNCTIONS:
                break
            record = self._registry.version(version) or await self._registry.fetch_version(version)
            if record is not None:
                at_once = min(MOST_AT_ONCE, record.spec.max_containers)
                found[f"{tenant}:{name}.{function}"] = (need_of(record), at_once)
                self._note(record)
        self._apps[key] = found
        self._functions += len(found)

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


def _counting(soon: int, at_once: int, *, is_called: bool) -> StartableFunctions:
    """What a function counts as of which `soon` containers are expected."""
    if soon:
        return StartableFunctions(max(soon, at_once), FORETOLD * soon)
    return StartableFunctions(at_once, CALLED) if is_called else StartableFunctions(1, DEPLOYED)


def _sum(one: StartableFunctions, other: StartableFunctions) -> StartableFunctions:
    return StartableFunctions(one.number + other.number, one.weight + other.weight)
