"""A cause that may be the bottleneck: what it explains, what to do, and what will be different if it is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

from pilotlight_core.model.api.seeing.diagnosis_api import keeps_promise
from pilotlight_gateway.diagnosis.call_samples import StageChange


class CallTrouble(StrEnum):
    """What is wrong with the calls of a window. Each is diagnosed alone."""

    SLOW = "slow"  # more than 5 % take longer than the level
    FAILING = "failing"  # containers die, or do not start
    FULL = "full"  # there was no room for calls, or not in time
    LIMITED = "limited"  # a limit of their tenant refused them
    RATE = "rate"  # the rate that is wanted is not reached
    TOKENS = "tokens"  # first or further tokens come too late


class CureCost(IntEnum):
    """What an action asks of people; the cheapest goes first."""

    CALLER = 0  # the caller's code
    SETTING = 1
    GPU_TIME = 2  # a setting that costs time of devices
    VERSION = 3  # a new version of the function
    MOVES = 4  # containers move
    HARDWARE = 5


@dataclass(frozen=True, kw_only=True)
class Cure:
    """One thing to do about a cause."""

    cost: CureCost
    what: str
    """A clause: "raise max_containers to 6"."""
    command: str = ""
    """That does it; "": no single command does."""
    changes: Mapping[str, float] = field(default_factory=dict)
    """The same for programs: setting -> its new value."""
    gain: float | None = None
    """The part of the trouble that it should remove, 0 to 1; None: that of the cause."""


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a metric of the function will be after the first action, if the diagnosis is right."""

    metric: str
    value: float
    tolerance: float
    """Relative."""
    at_most: bool = False
    """Whether less keeps it, too."""

    def is_kept(self, now: float) -> bool:
        """Whether what is measured afterwards is what was promised."""
        return keeps_promise(self, now)


@dataclass(frozen=True, kw_only=True)
class Suspect:
    """A cause whose constraint binds."""

    name: str
    gains: Mapping[CallTrouble, float]
    """The part of each trouble that its first action removes, 0 to 1."""
    says: str
    """One sentence, with the numbers that show it."""
    evidence: tuple[str, ...]
    cures: tuple[Cure, ...]
    """The one to begin with first."""
    promises: tuple[Promise, ...] = ()
    change: StageChange | None = None
    """What the first action makes of calls; None: nothing that their stages show."""
    for_operator: str = ""
    """What only who operates the platform may read, such as a neighbour's name."""

    @property
    def first_cost(self) -> CureCost:
        return self.cures[0].cost if self.cures else CureCost.HARDWARE
