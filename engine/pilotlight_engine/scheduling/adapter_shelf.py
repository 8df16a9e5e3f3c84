"""Adapters by name: which are known, which are resident, and which go first when there is no room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pilotlight_engine.engine_port import AdapterSource

LoadedAdapter = TypeVar("LoadedAdapter")


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownAdapter:
    """An adapter that requests can name."""

    source: AdapterSource
    digest: str
    bytes: int
    """What it takes when it is resident."""


class AdapterShelf(Generic[LoadedAdapter]):
    """Room of `capacity` bytes. Adapters are loaded when a sequence of theirs begins."""

    def __init__(self, capacity: int, load: Callable[[KnownAdapter], LoadedAdapter]) -> None:
        self.capacity = capacity
        self._load = load
        self._known: dict[str, KnownAdapter] = {}
        self._retired: dict[str, KnownAdapter] = {}
        """Requests cannot name them, but some that did are not at their end."""
        self._resident: OrderedDict[str, tuple[KnownAdapter, LoadedAdapter]] = OrderedDict()
        """The longest unused first."""

    def names(self) -> tuple[str, ...]:
        """The known ones."""
        return tuple(self._known)

    def resident(self) -> tuple[str, ...]:
        """Those that are in memory, the longest unused first."""
        return tuple(self._resident)

    def find(self, name: str) -> KnownAdapter | None:
        """An adapter that is known, or was when it came into use."""
        return self._known.get(name) or self._retired.get(name)

    def add(self, adapter: KnownAdapter) -> None:
        """Requests can name this adapter from now on. With other content than before it is loaded anew."""
        before = self.find(adapter.source.name)
        self._retired.pop(adapter.source.name, None)
        self._known[adapter.source.name] = adapter
        if before is not None and before.digest != adapter.digest:
            self._resident.pop(adapter.source.name, None)

    def forget(self, name: str) -> None:
        """Requests cannot name this adapter any more. What uses it keeps it until `release_unused`."""
        adapter = self._known.pop(name, None)
        if adapter is not None:
            self._retired[name] = adapter

    def can_hold(self, name: str, used: Iterable[str]) -> bool:
        """Whether an adapter has room beside those that are in use. One alone has room always."""
        beside = {each for each in used if each and each != name}
        return not beside or self._bytes_of({name, *beside}) <= self.capacity

    def get(self, name: str, used: Iterable[str]) -> LoadedAdapter:
        """An adapter, loaded if it is not yet; others go for it, none that is in use."""
        if name not in self._resident:
            adapter = self._known.get(name) or self._retired[name]
            self._make_room(adapter.bytes, {*used})
            self._resident[name] = (adapter, self._load(adapter))
        self._resident.move_to_end(name)
        return self._resident[name][1]

    def release_unused(self, used: Iterable[str]) -> None:
        """Drop what was forgotten and is not in use any more."""
        if self._retired:
            for name in self._retired.keys() - {*used}:
                del self._retired[name]
                self._resident.pop(name, None)

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
        entries = (self._resident[name][0] if name in self._resident else self.find(name) for name in names)
        return sum(entry.bytes for entry in entries if entry is not None)
