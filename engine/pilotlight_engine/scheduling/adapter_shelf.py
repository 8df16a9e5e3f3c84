"""Adapters by name: which are known, which are resident, and which go first when there is no room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pilotlight_engine.engine_port import AdapterSource

Loaded = TypeVar("Loaded")


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownAdapter:
    """An adapter that requests can name."""

    source: AdapterSource
    digest: str
    bytes: int
    """What it takes when it is resident."""


class AdapterShelf(Generic[Loaded]):
    """Room of `capacity` bytes. Adapters are loaded when a sequence of theirs begins."""

    def __init__(self, capacity: int, load: Callable[[KnownAdapter], Loaded]) -> None:
        self.capacity = capacity
        self._load = load
        self._known: dict[str, KnownAdapter] = {}
        self._resident: OrderedDict[str, tuple[KnownAdapter, Loaded]] = OrderedDict()
        """The longest unused first. What was forgotten or replaced while it ran has its old entry."""

    def names(self) -> tuple[str, ...]:
        """The known ones."""
        return tuple(self._known)

    def resident(self) -> tuple[str, ...]:
        """Those that are in memory, the longest unused first."""
        return tuple(self._resident)

    def find(self, name: str) -> KnownAdapter | None:
        """A known adapter."""
        return self._known.get(name)

    def add(self, adapter: KnownAdapter) -> None:
        """Requests can name this adapter from now on. With other content than before it is loaded anew."""
        before = self._known.get(adapter.source.name)
        self._known[adapter.source.name] = adapter
        if before is not None and before.digest != adapter.digest:
            self._resident.pop(adapter.source.name, None)

    def forget(self, name: str) -> None:
        """Requests cannot name this adapter any more. What runs on it keeps it until `release_unused`."""
        self._known.pop(name, None)

    def can_hold(self, name: str, used: Iterable[str]) -> bool:
        """Whether an adapter has room beside those that are in use. One alone has room always."""
        beside = {each for each in used if each and each != name}
        return not beside or self._bytes_of({name, *beside}) <= self.capacity

    def get(self, name: str, used: Iterable[str]) -> Loaded:
        """An adapter, loaded if it is not yet; others go for it, none that is in use."""
        if name not in self._resident:
            adapter = self._known[name]
            self._make_room(adapter.bytes, {*used})
            self._resident[name] = (adapter, self._load(adapter))
        self._resident.move_to_end(name)
        return self._resident[name][1]

    def release_unused(self, used: Iterable[str]) -> None:
        """Drop what was forgotten and is not in use any more."""
        keep = {*used}
        for name in [each for each in self._resident if each not in self._known and each not in keep]:
            del self._resident[name]

    def drop_all(self) -> None:
        """Nothing is resident; all stays known."""
        self._resident.clear()

    def _make_room(self, missing: int, used: set[str]) -> None:
        for name in list(self._resident):
            if self._bytes_of(self._resident) + missing <= self.capacity:
                return
            if name not in used:
                del self._resident[name]

    def _bytes_of(self, names: Iterable[str]) -> int:
        entries = (self._resident[name][0] if name in self._resident else self._known.get(name) for name in names)
        return sum(entry.bytes for entry in entries if entry is not None)
