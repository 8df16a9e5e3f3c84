"""Whose lines a container writes: the function that the controller bound it for, on which node."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from cachetools import LRUCache

from pilotlight_core.host.binding_book import Bindings
from pilotlight_gateway.ledger.ledger_reader import LedgerReader

REMEMBERED = 10_000
"""Ended containers that need not be looked up again."""


class LineOwner(NamedTuple):
    node: str
    function: str
    """`tenant:app.function`"""


class LineOwners(Protocol):
    async def find(self, containers: Collection[str]) -> Mapping[str, LineOwner]:
        """The owners of those containers that were ever bound, as far as the ledger remembers."""
        ...


@dataclass(kw_only=True)
class MemoryLineOwners:
    """The fake for tests: what is in `known`."""

    known: dict[str, LineOwner] = field(default_factory=dict)

    async def find(self, containers: Collection[str]) -> Mapping[str, LineOwner]:
        return {name: self.known[name] for name in containers if name in self.known}


class BoundLineOwners:
    """Those of live containers from the bindings, those of ended ones from the ledger."""

    def __init__(self, bindings: Bindings, ledger: LedgerReader) -> None:
        self._bindings = bindings
        self._ledger = ledger
        self._ended: LRUCache[str, LineOwner] = LRUCache(REMEMBERED)

    async def find(self, containers: Collection[str]) -> Mapping[str, LineOwner]:
        found, missing = {}, []
        for name in containers:
            if (binding := self._bindings.lately(name)) is not None:
                found[name] = LineOwner(binding.node, binding.function)
            elif (owner := self._ended.get(name)) is not None:
                found[name] = owner
            else:
                missing.append(name)
        if missing:
            for name, bound in (await asyncio.to_thread(self._ledger.bound_containers, missing)).items():
                owner = LineOwner(bound.node, f"{bound.tenant}:{bound.app}.{bound.function}")
                found[name] = self._ended[name] = owner
        return found
