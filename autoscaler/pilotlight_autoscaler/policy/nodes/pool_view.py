"""A pool as decisions see it: its record, its machines, what its provider lacked lately, and what its nodes look like.

All instants are unix seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pilotlight_core.model.api.pools.pool_terms import MachineType
from pilotlight_core.model.devices import CPU_PRICE
from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState, PoolRecord
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.hardware.gpu_text import read_gpus
from pilotlight_placement.hardware.machine_nodes import machine_node
from pilotlight_placement.hardware.node import Domain, Node


@dataclass(frozen=True, kw_only=True)
class PoolView:
    record: PoolRecord
    launches: tuple[LaunchRecord, ...] = ()
    """All of the pool that are on record."""
    region: str = "local"
    zone: str = ""
    """Of pools that name none."""
    missing_until: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By type and zone: until when its provider is not asked again, which had none."""
    digest: str = ""
    """Of its terms."""
    seen: Mapping[str, Node] = field(default_factory=dict)
    """By type: one of the pool's nodes as its agent reports it, which goes before what operators say of the type."""

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def zones(self) -> tuple[str, ...]:
        return self.record.terms.zones or (self.zone,)

    @property
    def staying(self) -> tuple[LaunchRecord, ...]:
        """Machines that are there or come, and do not go."""
        return tuple(each for each in self.launches if not each.is_going)

    @property
    def coming(self) -> tuple[LaunchRecord, ...]:
        return tuple(each for each in self.launches if each.state is LaunchState.LAUNCHING)

    def type_named(self, name: str) -> MachineType | None:
        return next((each for each in self.record.terms.types if each.name == name), None)

    def lacks(self, type_: str, zone: str, at: float) -> bool:
        """Whether the provider had none a while ago."""
        return self.missing_until.get((type_, zone), -math.inf) > at


@dataclass(frozen=True, kw_only=True)
class PoolTotals:
    """What a pool costs: machines that go are paid for until they are gone."""

    nodes: int = 0
    gpus: int = 0
    usd_per_hour: float = 0.0

    @classmethod
    def of(cls, launches: Iterable[LaunchRecord]) -> PoolTotals:
        found = list(launches)
        return cls(
            nodes=len(found),
            gpus=sum(each.gpus for each in found),
            usd_per_hour=sum(each.usd_per_hour for each in found),
        )

    def plus(self, gpus: int, usd_per_hour: float) -> PoolTotals:
        """With one machine more."""
        return replace(self, nodes=self.nodes + 1, gpus=self.gpus + gpus, usd_per_hour=self.usd_per_hour + usd_per_hour)


def limit_reached(record: PoolRecord, totals: PoolTotals) -> str:
    """Which limit of a pool does not allow so much, in words; ""."""
    terms = record.terms
    if totals.nodes > terms.most_nodes:
        return f"its limit of {terms.most_nodes} node{'s' * (terms.most_nodes != 1)}"
    if terms.most_gpus is not None and totals.gpus > terms.most_gpus:
        return f"its limit of {terms.most_gpus} GPU{'s' * (terms.most_gpus != 1)}"
    if terms.most_usd_per_hour is not None and totals.usd_per_hour > terms.most_usd_per_hour + 1e-9:
        return f"its limit of ${terms.most_usd_per_hour:g} an hour"
    return ""


def gpu_count(type_: MachineType) -> int:
    return sum(kind.count for kind in read_gpus(type_.gpus))


def hourly_price(view: PoolView, type_: MachineType, prices: Prices) -> float:
    """Dollars an hour of one machine: what its operator says, or what its parts cost in the price book."""
    if type_.usd_per_hour:
        return type_.usd_per_hour
    domain = Domain(region=view.region, spot=view.record.terms.is_spot)
    kinds = read_gpus(type_.gpus)
    if kinds:
        return sum(kind.count * prices.of(kind.device, domain) for kind in kinds)
    return type_.cores * prices.book.dollars(CPU_PRICE)


def hypothetical_node(view: PoolView, type_: MachineType, zone: str, name: str) -> Node:
    """The node that a machine of this type would be, with nothing on it."""
    node = machine_node(view.record, type_, region=view.region, zone=zone, name=name)
    known = view.seen.get(type_.name)
    if known is None:
        return node
    return replace(known, name=name, domain=replace(node.domain, abilities=known.domain.abilities), draining=False)


def as_empty(node: Node) -> Node:
    """A node as it would be without containers: its GPUs uncut, nothing kept, and open."""
    gpus = tuple(replace(gpu, instances=(), recut=(), kept="", withdrawn="") for gpu in node.gpus)
    return replace(
        node, gpus=gpus, draining=False, kept_host=HostShare(), resident=frozenset(), blanks=frozenset(), parked=()
    )
