"""The versions with a schedule, read from the registry: most have none, of which only the ids are kept."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import structlog

from pilotlight_core.bus import Kv
from pilotlight_core.model.spec import VersionRecord

PREFIX = "version."

log = structlog.get_logger(__name__)


class _Spec(msgspec.Struct, frozen=True):
    schedules: Any = ()


class _Glance(msgspec.Struct, frozen=True):
    """What tells whether a version has to be read whole."""

    spec: _Spec = _Spec()


_glances = msgspec.msgpack.Decoder(_Glance)
_versions = msgspec.msgpack.Decoder(VersionRecord)


class ScheduledVersions:
    """Versions are immutable: while an app has one, it is read once."""

    def __init__(self, registry: Kv) -> None:
        self._registry = registry
        self._of_app: dict[str, dict[str, VersionRecord | None]] = {}
        """By the key of the app. None: it has no schedule."""
        self._read: dict[str, VersionRecord | None] = {}
        """Those of the whole registry, until each app has taken its own."""

    @asynccontextmanager
    async def all_at_once(self) -> AsyncIterator[None]:
        """Within the block no version is read by itself, unless it is newer. Raises BusError."""
        entries = await self._registry.entries(PREFIX)
        self._read = {key.removeprefix(PREFIX): _decoded(key, entry.value) for key, entry in entries.items()}
        try:
            yield
        finally:
            self._read = {}

    async def of_app(self, key: str, version_ids: Iterable[str]) -> Mapping[str, VersionRecord | None]:
        """The deployed versions of an app, by id; what it had before is forgotten. Raises BusError."""
        known = ChainMap(self._of_app.pop(key, {}), self._read)
        found = {one: known[one] if one in known else await self._fetch(one) for one in version_ids}
        if found:
            self._of_app[key] = found
        return found

    async def _fetch(self, version_id: str) -> VersionRecord | None:
        entry = await self._registry.get(f"{PREFIX}{version_id}")
        return None if entry is None else _decoded(version_id, entry.value)


def _decoded(name: str, data: bytes) -> VersionRecord | None:
    try:
        return _versions.decode(data) if _glances.decode(data).spec.schedules else None
    except msgspec.DecodeError as error:
        log.warning("a version's record cannot be read", version=name, error=str(error))
        return None
