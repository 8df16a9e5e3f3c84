"""What stands of an app's rollouts: its aliases, and the rollout that is under way or was the last.

The record is apart from the app's own: a step of a ramp never races a deploy, and a deploy never loses a step. What is
deployed (`AppRecord.functions`) stays the **control**, the old versions, until a rollout is promoted.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

WHOLE = 10_000
"""All traffic, in basis points; also the number of buckets that units fall into."""
LAST_ROLLOUTS = 20
MOST_WITHDRAWN = 200
MOST_ALIASES = 64
"""Of one app."""
MOST_UNTOLD = 32
"""Of one app; of more the oldest are lost. They are told within a second while the bus takes them."""
SALT_BYTES = 32
Share = Annotated[int, Meta(ge=0, le=WHOLE)]
"""Basis points."""


class Arm(StrEnum):
    """Which side of a rollout a call is on."""

    OUTSIDE = ""  # pinned, or there is no rollout: never compared
    CONTROL = "control"  # the old version as it serves everybody; compared only where there is no twin
    TWIN = "twin"  # the old version in fresh containers: what the canary is compared with
    CANARY = "canary"  # the new version


class Sticky(StrEnum):
    """What stays on one side of a rollout."""

    CALL = "call"  # nothing: each call is drawn by itself; with an idempotency key, the key
    TENANT = "tenant"  # the caller's tenant
    USER = "user"  # the end user whom the caller names
    KEY = "key"  # the API key of the caller
    HEADER = "header"  # what the caller says in Pilotlight-Sticky


class RolloutState(StrEnum):
    PLANNED = "planned"
    CHECKING = "checking"  # schemas, policy, signature
    STARTING = "starting"  # the canary and its twin get containers
    PAIRS = "pairs"  # shadows of both sides run in turn; callers are answered by the control
    RAMP = "ramp"
    BAKING = "baking"  # the last step is reached; the control is kept warm
    PROMOTED = "promoted"
    ROLLING_BACK = "rolling_back"  # routing is back; what runs ends
    ROLLED_BACK = "rolled_back"
    SUPERSEDED = "superseded"  # a deploy, or a person's move, came between


WHY_HELD = {
    "no_capacity": "there is no ready capacity for its share",
    "evidence": "E is, or was within 10 minutes, 10 or more",
    "invalid_split": "calls do not come as they are split",
    "calls": "too few calls of the new version were compared at this step",
    "gate": "its gate has not said yes",
    "undecided": "nothing is proven, and it is to be held then",
    "frozen": "it is frozen",
    "policy": "a policy refuses the new version by now",
}
"""By the word in `Rollout.held`, as people read it."""
ENDED = frozenset({RolloutState.PROMOTED, RolloutState.ROLLED_BACK, RolloutState.SUPERSEDED})


class Cohort(msgspec.Struct, frozen=True, kw_only=True):
    """Which callers take part; others stay on the control. Empty: everybody."""

    tenants: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    """Lower-case name of a header, and the value that it must have."""


class GuardTerms(msgspec.Struct, frozen=True, kw_only=True):
    """A guard on a field of the function's answer, beside the platform's own."""

    name: str
    kind: str
    """`event`: the field is true or not 0; `amount`: it is a number of which less is better."""
    field: str
    """A path of names into the answer, with dots between."""
    weight: float = 1.0


ANSWER_TOLERANCE = 1e-6
"""The order of additions on a device is not fixed."""


class RolloutTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What whoever starts a rollout asks for."""

    steps: tuple[Share, ...] = (100, 500, 1_000, 2_500, 5_000, WHOLE)
    """The canary's shares, rising."""
    every_s: float = 300.0
    """The least time at a step."""
    calls: int = 100
    """The least number of compared canary calls at a step."""
    bake_s: float = 1_800.0
    hold_back: Share = 500
    """What stays on the control through baking."""
    sticky: Sticky = Sticky.CALL
    cohort: Cohort = Cohort()
    twin: bool = True
    """Whether the canary is compared with fresh containers of the old version, not with all of it."""
    pairs: int = 300
    """Pairs of shadows before the ramp, of functions that allow shadows; 0: none."""
    tolerance: float | None = None
    """By which part the canary may be slower or dearer; None: as learnt of the devices, 5 % until then."""
    answer_tolerance: float = ANSWER_TOLERANCE
    """By which part, or by how much, numbers in the answers of pairs may differ; all else has to be equal."""
    weights: dict[str, float] = {}
    """Of the platform's guards, by name; those that are not named have 1."""
    guards: tuple[GuardTerms, ...] = ()
    on_undecided: str = "promote"
    """At the end without proof: `promote | hold | rollback`."""
    surge: int | None = None
    """Containers beyond what the app may have otherwise; None: the larger of 1 and a quarter."""
    gate: str = ""
    """A URL that is asked before each step; "": nobody is."""
    allow_breaking: bool = False
    skip_judging: bool = False


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge last said."""

    word: str = "undecided"
    """`undecided | verified | regressed | invalid`."""
    evidence: float = 1.0
    """E: from 10 the ramp holds, from 100 the rollout rolls back."""
    guards: dict[str, float] = {}
    """Each guard's e."""
    verified_within: dict[str, float] = {}
    """Guard -> the part, such as 0.05, by which the canary is proven not to be worse."""
    sentences: tuple[str, ...] = ()
    calls: dict[str, int] = {}
    """Compared calls by arm."""
    at: float = 0.0
    """Unix seconds."""


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """One rollout. Instants are unix seconds."""

    id: str
    """`rol_` and 20 digits."""
    number: int
    """Counts the app's rollouts from 1."""
    control: dict[str, str]
    """function -> version id: the old versions."""
    canary: dict[str, str]
    """function -> version id, only of functions that differ; others take no part."""
    twins: dict[str, str] = {}
    """function -> version id of its twin, a version of the control's content; empty: not made yet, or none wanted."""
    terms: RolloutTerms = RolloutTerms()
    salt: bytes
    """`SALT_BYTES` random bytes: nobody can choose a unit that falls into the canary."""
    state: RolloutState = RolloutState.PLANNED
    step: int = -1
    """Place in `terms.steps`; -1: before the first."""
    share: Share = 0
    """The canary's part of the traffic."""
    twin_share: Share = 0
    """The twin's."""
    since: float
    """When this state or step began."""
    started_at: float
    by: str
    """The id of the API key that started it."""
    held: str = ""
    """Why it does not go on, as `held(reason)`; "": it does."""
    held_since: float = 0.0
    """When that reason began; 0: it is not held."""
    calls_before: int = 0
    """Compared calls of the canary when this step began."""
    paused_by: str = ""
    """Who paused it; "": nobody."""
    frozen: bool = False
    """Whether the judge may only hold, and not roll back."""
    reason: str = ""
    """Of an ended one: why."""
    verdict: Verdict = Verdict()

    @property
    def is_running(self) -> bool:
        return self.state not in ENDED

    @property
    def is_splitting(self) -> bool:
        """Whether any call may go anywhere but to the control."""
        return self.share > 0 or self.twin_share > 0


class EndedRollout(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a rollout that is over."""

    id: str
    number: int
    state: RolloutState
    canary: dict[str, str]
    control: dict[str, str]
    started_at: float
    ended_at: float
    by: str
    reason: str
    verdict: Verdict = Verdict()


class UntoldNews(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a rollout that is to be told: written with the change that it tells of, so neither is without the
    other. What it says of the rollout is as of then.
    """

    id: str
    """Under which it is told, however often that is tried."""
    rollout: str
    number: int
    kind: str
    """`rollout.started | step | held | promoted | rolled_back | superseded`."""
    says: str
    at: float
    """Unix seconds."""
    state: str
    step: int
    share: Share
    held: str
    reason: str
    word: str
    """Of the verdict."""
    evidence: float


class RolloutRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An app's aliases and rollouts. Key: `rollout.{tenant}.{app}`; each change is a compare-and-set."""

    tenant: str
    app: str
    revision: int
    """Counts changes from 1: a home refuses what was decided by an older one than its own."""
    aliases: dict[str, dict[str, str]] = {}
    """function -> alias -> version id."""
    rollout: Rollout | None = None
    """The one under way, or the last one."""
    withdrawn: dict[str, str] = {}
    """Version id -> the rollout that rolled it back: refused until somebody says `--retry`."""
    called_back: tuple[str, ...] = ()
    """Version ids that the last rollback by hand took out of service: what waits for them is sent elsewhere."""
    past: tuple[EndedRollout, ...] = ()
    """The last `LAST_ROLLOUTS` before, oldest first."""
    untold: tuple[UntoldNews, ...] = ()
    """What whoever keeps rollouts has still to tell, oldest first."""

    @property
    def running(self) -> Rollout | None:
        """The rollout that is under way."""
        return self.rollout if self.rollout is not None and self.rollout.is_running else None

    def alias(self, function: str, name: str) -> str | None:
        """The version id that an alias stands for."""
        return self.aliases.get(function, {}).get(name)

    def kept_versions(self) -> set[str]:
        """Version ids that it names beside what is deployed, whose containers and records must stay."""
        named = {version for of_function in self.aliases.values() for version in of_function.values()}
        if (running := self.running) is not None:
            named |= {*running.control.values(), *running.canary.values(), *running.twins.values()}
        return named
