"""What several tenants wait for, to be dealt out in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from pilotlight_placement.fleet.tenant_holdings import HeldResources

AskT = TypeVar("AskT")
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class MissingStarts(Generic[AskT]):
    """Containers of one kind that a tenant should have more, and what each of them would take."""

    ask: AskT
    tenant: str
    need: HeldResources
    count: int


def in_turn(items: Iterable[T], tenant_of: Callable[[T], str]) -> Iterator[T]:
    """The items in their order, of each tenant one in turn, so that whoever has a thousand delays nobody else."""
    by_tenant: dict[str, list[T]] = {}
    for item in items:
        by_tenant.setdefault(tenant_of(item), []).append(item)
    place, queues = 0, list(by_tenant.values())
    while queues:
        for queue in queues:
            yield queue[place]
        place += 1
        queues = [queue for queue in queues if len(queue) > place]
