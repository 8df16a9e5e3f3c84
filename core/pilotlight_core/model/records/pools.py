"""Pools of nodes: what operators say of each, and the nodes that the controller has launched in them.

    LAUNCHING ──it reports──▶ UP ──it is too many──▶ DRAINING ──it is empty──▶ ENDING ──it is listed no more──▶ gone
        └──────── it never reports, or is lost ──────────────────────────────────▶ ENDING

The record of a launch is written before its machine is asked for, and its id is the token by which the provider knows
that two questions are one. Whatever is done to a machine follows from its record, so that whoever leads next goes on.
"""

from __future__ import annotations

import hashlib
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.ids import NAME_PATTERN
from pilotlight_core.model.placing import Purchase

POOL_KEYS = "pool."
LAUNCH_KEYS = "launch."
MOST_POOLS = 100
MOST_TYPES = 32
MOST_ZONES = 16
MOST_NODES = 1_000
"""Of one pool."""
CONSOLIDATE_AFTER_S = 300.0
GIVE_UP_AFTER_S = 900.0

PoolName = Annotated[str, Meta(pattern=NAME_PATTERN)]
MachineName = Annotated[str, Meta(min_length=1, max_length=63)]
Dollars = Annotated[float, Meta(ge=0, le=1e6)]
Text = Annotated[str, Meta(max_length=255)]


class PoolProvider(StrEnum):
    LOCAL = "local"  # agents on the machine of `pilotlight up`
    EC2 = "ec2"
    KUBERNETES = "kubernetes"


class PoolState(StrEnum):
    OPEN = "open"
    DRAINING = "draining"


class DisruptionReason(StrEnum):
    EMPTY = "empty"  # no container is on it
    DRIFTED = "drifted"  # its pool was changed since it was launched
    UNDERUTILIZED = "underutilized"  # what is on it has a place elsewhere


class DisruptionBudget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of a pool's nodes may be on their way out at a time. The strictest that holds counts."""

    nodes: Annotated[str, Meta(pattern=r"^(?:\d{1,4}|(?:100|\d{1,2})%)$")] = "10%"
    """A number, or a part of the pool's nodes, which is rounded up."""
    reasons: Annotated[tuple[DisruptionReason, ...], Meta(max_length=3)] = ()
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

    image: Text
    subnets: Annotated[dict[MachineName, Text], Meta(min_length=1, max_length=MOST_ZONES)]
    """By zone."""
    security_groups: Annotated[tuple[Text, ...], Meta(max_length=16)] = ()
    instance_profile: Text = ""
    """The name of a role's profile that machines have; "": none."""
    join_url: Text
    """The address of gateways, as machines reach it."""
    ca_pem: Annotated[str, Meta(max_length=4096)] = ""
    """PEM: the authority of its certificate, if not one that machines know."""
    trusted_pem: Annotated[str, Meta(max_length=4096)] = ""
    """PEM: whose manifests agents run; the operator's public key."""
    blob_url: Text = ""
    region: Text = ""
    queue_url: Text = ""
    """Of SQS: where EventBridge leaves what EC2 says of its machines; "": nothing is heard."""
    disk_gib: Annotated[int, Meta(ge=8, le=16_384)] = 100
    lifecycle_group: Text = ""
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
        """Names what machines are made of: those with another one have drifted."""
        made_of = (self.provider, self.types, self.purchase, self.bases, self.ec2, self.kubernetes)
        return hashlib.sha256(msgspec.msgpack.encode(made_of)).hexdigest()[:16]


class PoolRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Key: `pool.{name}`."""

    name: str
    terms: PoolTerms
    state: PoolState = PoolState.OPEN

    @property
    def is_open(self) -> bool:
        return self.state is PoolState.OPEN


class LaunchState(StrEnum):
    LAUNCHING = "launching"
    UP = "up"
    DRAINING = "draining"
    ENDING = "ending"


class LaunchRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that was asked for, until it is gone. Key: `launch.{pool}.{slot}`.

    Since a pool has as many slots as it may have nodes, and a record is created only where there is none, no two
    controllers that both believe that they lead launch more than that, nor twice for one slot.
    """

    id: str
    """Of this launch alone; also the token by which the provider knows it."""
    pool: str
    slot: int
    node: str
    type: str
    zone: str
    spot: bool = False
    state: LaunchState = LaunchState.LAUNCHING
    epoch: int = 0
    """Of the leader that wrote it last."""
    made_at: float = 0.0
    """Unix seconds, as all that follow."""
    changed_at: float = 0.0
    """When it came into its state."""
    provider_id: str = ""
    """The machine's, as the provider lists it; "": not known yet."""
    reason: str = ""
    """Why it goes."""
    gpus: int = 0
    usd_per_hour: float = 0.0
    digest: str = ""
    """Of the pool's terms, when it was made."""
    join_token: str = ""
    """The id of the token by which it joins."""

    @property
    def key(self) -> str:
        return f"{LAUNCH_KEYS}{self.pool}.{self.slot}"

    @property
    def is_going(self) -> bool:
        return self.state in (LaunchState.DRAINING, LaunchState.ENDING)
