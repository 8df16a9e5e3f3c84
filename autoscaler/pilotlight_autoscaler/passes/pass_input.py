"""What a pass is given, beside the world."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from pilotlight_autoscaler.passes.settled_versions import SettledVersions
from pilotlight_autoscaler.plans.plan_commands import NetworkOf, no_network
from pilotlight_autoscaler.policy.shares import ShareTerms
from pilotlight_autoscaler.policy.tenant_rooms import LimitsOf, unlimited
from pilotlight_core.model.messages.node_messages import STOP_GRACE_S
from pilotlight_core.model.rollouts.capacity import ArmCapacity
from pilotlight_core.model.scaling.scale_bounds import ScaleBounds
from pilotlight_core.model.spec import VersionRecord
from pilotlight_placement.asks.curves import Curves
from pilotlight_placement.plan.draft import PlanLimits


@dataclass(frozen=True, kw_only=True)
class PassOptions:
    """What a pass may do beyond starting and stopping: `force` makes room by moving, `repack` empties devices."""

    limits: PlanLimits = field(default_factory=PlanLimits)
    force: bool = True
    repack: bool = False

    @property
    def plain(self) -> PlanLimits:
        return replace(self.limits, moves=0, blocked=0, empties=0)

    @property
    def forceful(self) -> PlanLimits:
        forced = self.limits if self.force else replace(self.limits, blocked=0)
        return forced if self.repack else replace(forced, empties=0)


@dataclass(frozen=True, kw_only=True)
class PassInput:
    """The input of a pass, beside the world. `at` is in seconds, on the world's clock."""

    versions: Mapping[str, VersionRecord]
    """By id, of all that are called, run, or are to run."""
    deployed: Collection[str]
    epoch: int
    """Of the leader's lease."""
    new_id: Callable[[VersionRecord], str]
    at: float
    wall: float = 0.0
    """The same instant in unix seconds, without the steps of the wall clock since this leader began."""
    curves: Mapping[str, Curves] = field(default_factory=dict)
    """By version."""
    shut_down: Mapping[str, str] = field(default_factory=dict)
    """The versions of which nothing should run, and why."""
    limits_of: LimitsOf = unlimited
    """By tenant."""
    network_of: NetworkOf = no_network
    weight_of: Callable[[str], float] = lambda _: 1.0
    """By tenant: its share where several wait."""
    terms_of: Callable[[str], ShareTerms] | None = None
    """By tenant, what follows for its share from its weight and limits; None: it is worked out."""
    bounds: Mapping[str, ScaleBounds] = field(default_factory=dict)
    """By version, where people's word or a warm window may say otherwise than the spec."""
    arms: Mapping[str, ArmCapacity] = field(default_factory=dict)
    """By version, what the sides of rollouts that run keep."""
    unfunded: Callable[[VersionRecord], str] = lambda _: ""
    """The budget of its owner that is used up, in words; "": there is money."""
    floors: Mapping[str, int] = field(default_factory=dict)
    """By version: what its tenant's limit allows of the floor."""
    versions_of: Mapping[str, Collection[str]] | None = None
    """By function (`tenant:app.function`); None: they are looked for."""
    decided: Collection[str] | None = None
    """The versions that a pass over all decides on now; the others have their turn within a second. None: all."""
    renewed: Collection[str] | None = None
    """The versions whose records have come, gone or changed since the last pass; None: those of all may have."""
    settled: SettledVersions = field(default_factory=SettledVersions)
    """What passes before this one know of versions of which nothing is to change."""
    networked: Collection[str] | None = None
    """The versions that are let out to somewhere; None: they are looked for."""
    stop_grace_s: float = STOP_GRACE_S
    """How long calls of versions that are shut down may go on."""
    options: PassOptions = field(default_factory=PassOptions)
