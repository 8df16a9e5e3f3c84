"""What operators say of a pool of nodes: what it may have, what that may cost, and when it may go."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.ids import NAME_PATTERN
from pilotlight_core.model.placing import Purchase

MOST_TYPES = 32
MOST_ZONES = 16
MOST_NODES = 1_000
"""Of one pool."""
CONSOLIDATE_AFTER_S = 300.0
GIVE_UP_AFTER_S = 900.0

PoolName = Annotated[str, Meta(pattern=NAME_PATTERN)]
MachineName = Annotated[str, Meta(min_length=1, max_length=63)]
Dollars = Annotated[float, Meta(ge=0, le=1e6)]
TermText = Annotated[str, Meta(max_length=255)]


class PoolProvider(StrEnum):
    LOCAL = "local"  # agents on the machine of `pilotlight up`
    EC2 = "ec2"
    KUBERNETES = "kubernetes"


class DisruptionReason(StrEnum):
    EMPTY = "empty"  # no container is on it
    DRIFTED = "drifted"  # its pool was changed since it was launched


class DisruptionBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of a pool's nodes may be on their way out at a time. The strictest that holds counts."""

    nodes: Annotated[str, Meta(pattern=r"^(?:\d{1,4}|(?:100|\d{1,2})%)$")] = "10%"
    """A number, or a part of the pool's nodes, which is rounded up."""
    reasons: Annotated[tuple[DisruptionReason, ...], Meta(max_length=2)] = ()
    """For which it holds; empty: for all."""
    schedule: Annotated[str, Meta(max_length=200)] = ""
    """A cron expression (UTC) of when it begins to hold; "": always."""
    duration_s: Annotated[float, Meta(ge=0, le=31 * 86_400)] = 0.0
    """For how long, each time."""


class MachineType(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of machine that a pool may have."""

    name: MachineName
    """By the provider: `g6.xlarge`."""
    gpus: Annotated[str, Meta(max_length=100)] = ""
    """`1xL4`, `8xH100:mig`, `2xT4:share`; several with commas."""
    cores: Annotated[float, Meta(gt=0, le=4096)] = 1.0
    memory_gib: Annotated[float, Meta(ge=0, le=65_536)] = 0.0
    """0: not said, so that nothing is refused for it."""
    usd_per_hour: Dollars = 0.0
    """0: what its GPUs cost in the price book, or its cores if it has none."""


class Ec2Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a pool's machines are made at EC2."""

    image: TermText
    subnets: Annotated[dict[MachineName, TermText], Meta(min_length=1, max_length=MOST_ZONES)]
    """By zone."""
    security_groups: Annotated[tuple[TermText, ...], Meta(max_length=16)] = ()
    instance_profile: TermText = ""
    """The name of a role's profile that machines have; "": none."""
    join_url: TermText
    """The address of gateways, as machines reach it."""
    ca_pem: Annotated[str, Meta(max_length=4096)] = ""
    """PEM: the authority of its certificate, if not one that machines know."""
    trusted_pem: Annotated[str, Meta(max_length=4096)] = ""
    """PEM: whose manifests agents run; the operator's public key."""
    blob_url: TermText = ""
    region: TermText = ""
    queue_url: TermText = ""
    """Of SQS: where EventBridge leaves what EC2 says of its machines; "": nothing is heard."""
    disk_gib: Annotated[int, Meta(ge=8, le=16_384)] = 100
    lifecycle_group: TermText = ""
    """The Auto Scaling group that machines are attached to, whose hooks are answered; "": none."""


class KubernetesTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a pool's agents are made on a cluster: one pod each, from a template that is there."""

    namespace: MachineName = "pilotlight-nodes"
    template: MachineName = "pilotlight-agent"
    """The name of a `PodTemplate`."""


class PoolTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an operator says of a pool."""

    provider: PoolProvider = PoolProvider.LOCAL
    types: Annotated[tuple[MachineType, ...], Meta(min_length=1, max_length=MOST_TYPES)]
    zones: Annotated[tuple[PoolName, ...], Meta(max_length=MOST_ZONES)] = ()
    """Empty: that of the controller."""
    purchase: Purchase = Purchase.ON_DEMAND
    weight: Annotated[int, Meta(ge=0, le=100)] = 0
    """The pool with the highest is asked first; among equals the cheapest machine."""
    least_nodes: Annotated[int, Meta(ge=0, le=MOST_NODES)] = 0
    most_nodes: Annotated[int, Meta(ge=0, le=MOST_NODES)] = 1
    most_gpus: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    most_usd_per_hour: Dollars | None = None
    budgets: Annotated[tuple[DisruptionBudget, ...], Meta(max_length=20)] = (DisruptionBudget(),)
    consolidate_after_s: Annotated[float, Meta(ge=0, le=31 * 86_400)] = CONSOLIDATE_AFTER_S
    """A node without containers goes after so long."""
    give_up_after_s: Annotated[float, Meta(ge=10, le=86_400)] = GIVE_UP_AFTER_S
    """A machine whose agent has not reported by then is ended."""
    fallback: Annotated[str, Meta(max_length=63)] = ""
    """The pool that is asked when the provider has no capacity for this one; it is asked for nothing else."""
    bases: Annotated[tuple[MachineName, ...], Meta(max_length=16)] = ("default",)
    """Base environments of its agents."""
    ec2: Ec2Terms | None = None
    kubernetes: KubernetesTerms | None = None

    @property
    def is_spot(self) -> bool:
        return self.purchase is Purchase.SPOT

    @property
    def digest(self) -> str:
        """Names all of it that says what machines are made of."""
        return _digest(self.provider, self.types, self.purchase, self.bases, self.ec2, self.kubernetes)

    def digest_of(self, type_: str) -> str:
        """Names what a machine of one type is made of: those with another one have drifted. What it costs, and who
        hears of it, makes no other machine."""
        found = next((each for each in self.types if each.name == type_), None)
        hardware = (found.gpus, found.cores, found.memory_gib) if found is not None else None
        ec2 = msgspec.structs.replace(self.ec2, queue_url="", lifecycle_group="") if self.ec2 is not None else None
        return _digest(self.provider, hardware, self.purchase, self.bases, ec2, self.kubernetes)


def _digest(*made_of: object) -> str:
    return hashlib.sha256(msgspec.msgpack.encode(made_of)).hexdigest()[:16]
