"""The bindings of the region: which containers the controller has bound, and where.

The controller writes them; gateways follow. Each is a key of the bucket BINDINGS while the container may exist, and two
messages in the stream of usage (`Bound`, `Unbound`), from which the ledger learns what it may bill. The bus lets no
agent write either.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

import msgspec

from pilotlight_core.bus import Bus, KvEntry, Mirror
from pilotlight_core.bus.streams import MARKER_TTL
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.bindings import Binding, Bound, Unbound

LATELY = 10_000
"""Ended bindings that are remembered: agents repeat for some seconds that a container is gone."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Binding)


class Bindings(Protocol):
    """Answers from memory."""

    def live(self, container: str) -> Binding | None:
        """The binding of a container; None: it is not bound, or not any more."""
        ...

    def lately(self, container: str) -> Binding | None:
        """The binding of a container that is bound or was until lately."""
        ...


@dataclass(kw_only=True)
class MemoryBindings:
    """The fake for tests: what is in `bound`."""

    bound: dict[str, Binding] = field(default_factory=dict)
    ended: dict[str, Binding] = field(default_factory=dict)

    def live(self, container: str) -> Binding | None:
        return self.bound.get(container)

    def lately(self, container: str) -> Binding | None:
        return self.bound.get(container) or self.ended.get(container)

    def bind(self, binding: Binding) -> None:
        self.bound[binding.container] = binding

    def end(self, container: str) -> None:
        if (binding := self.bound.pop(container, None)) is not None:
            self.ended[container] = binding


class BindingBook:
    """The `Bindings` of one process, over a live mirror; an async context manager, which reads them all on entry."""

    def __init__(self, bus: Bus, *, region: str) -> None:
        self._bus = bus
        self._region = region
        self._kv = bus.kv(subjects.BINDING_BUCKET)
        self._mirror: Mirror = bus.mirror(subjects.BINDING_BUCKET, f"{region}.")
        self._mirror.on_change.append(self._changed)
        self.bound: dict[str, Binding] = {}
        """By container."""
        self._ended: OrderedDict[str, Binding] = OrderedDict()
        self.on_bound: list[Callable[[Binding], None]] = []
        """Plain, fast functions, called for each new binding."""

    async def __aenter__(self) -> BindingBook:
        await self._mirror.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._mirror.__aexit__(kind, error, trace)

    def live(self, container: str) -> Binding | None:
        return self.bound.get(container)

    def lately(self, container: str) -> Binding | None:
        return self.bound.get(container) or self._ended.get(container)

    def not_on(self, nodes: Container[str]) -> list[Binding]:
        """The bindings on other nodes than these."""
        return [binding for binding in self.bound.values() if binding.node not in nodes]

    async def bind(self, binding: Binding) -> None:
        """Write a binding; the caller sends the command to bind only then.

        Raises:
            BusError: it may or may not be written.
        """
        subject = subjects.bindings(self._region, binding.node)
        await asyncio.gather(
            self._bus.store(subject, Bound(binding=binding), id=f"bound.{binding.container}"),
            self._kv.put(key_of(self._region, binding), _encoder.encode(binding)),
        )
        self._add(binding)

    async def end(self, binding: Binding) -> None:
        """Remove a binding, which no container may be bound under again.

        Raises:
            BusError: it may or may not be removed.
        """
        subject = subjects.bindings(self._region, binding.node)
        ended = Unbound(container=binding.container, node=binding.node)
        # The ledger hears of it first: else a crash in between would leave it bound there for ever.
        await self._bus.store(subject, ended, id=f"unbound.{binding.container}")
        await self._kv.delete(key_of(self._region, binding), ttl=MARKER_TTL)
        self._remove(binding.container)

    def _changed(self, key: str, entry: KvEntry | None) -> None:
        if entry is not None:
            self._add(_decoder.decode(entry.value))
        else:
            self._remove(key.rpartition(".")[2])

    def _add(self, binding: Binding) -> None:
        if binding.container in self._ended:
            return  # the mirror tells of its end later than this process, which has written it
        is_new = binding.container not in self.bound
        self.bound[binding.container] = binding
        for callback in self.on_bound if is_new else ():
            callback(binding)

    def _remove(self, container: str) -> None:
        if (binding := self.bound.pop(container, None)) is not None:
            self._ended[container] = binding
            if len(self._ended) > LATELY:
                self._ended.popitem(last=False)


def key_of(region: str, binding: Binding) -> str:
    return f"{region}.{binding.node}.{binding.container}"
