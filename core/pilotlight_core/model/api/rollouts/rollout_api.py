"""What the API says and is told of rollouts."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.api.rollouts.rollback_api import Reason
from pilotlight_core.model.api.webhook_api import LONGEST_URL, URL_PATTERN
from pilotlight_core.model.ids import NAME_PATTERN
from pilotlight_core.model.rollouts.rollout_record import ANSWER_TOLERANCE

Percent = Annotated[float, Meta(gt=0, le=100)]
GuardName = Annotated[str, Meta(pattern=NAME_PATTERN)]
Gate = Annotated[str, Meta(max_length=LONGEST_URL, pattern=f"^(?:{URL_PATTERN[1:-1]})?$")]
HeaderName = Annotated[str, Meta(pattern="^x-[a-z0-9-]{1,60}$")]


class OwnGuard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A guard on a field of the answer."""

    name: GuardName
    kind: Annotated[str, Meta(pattern="^(event|amount)$")]
    field: Annotated[str, Meta(min_length=1, max_length=200)]
    weight: Annotated[float, Meta(gt=0, le=100)] = 1.0


class RolloutRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/apps/{app}/rollout`."""

    canary: Annotated[str, Meta(max_length=64)] = ""
    """`v8` of an app with one function; the number of a deploy (`12`); "": the newest deploy without traffic."""
    steps: Annotated[tuple[Percent, ...], Meta(min_length=1, max_length=20)] = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0)
    """Percent of the traffic, rising."""
    every_s: Annotated[float, Meta(ge=1, le=7 * 86_400)] = 300.0
    calls: Annotated[int, Meta(ge=0, le=10**6)] = 100
    bake_s: Annotated[float, Meta(ge=0, le=7 * 86_400)] = 1_800.0
    hold_back: Annotated[float, Meta(ge=0, le=50)] = 5.0
    """Percent that stay on the old version until the end."""
    sticky: Annotated[str, Meta(pattern="^(call|tenant|user|key|header)$")] = "call"
    cohort_tenants: Annotated[tuple[GuardName, ...], Meta(max_length=64)] = ()
    cohort_headers: Annotated[dict[HeaderName, Annotated[str, Meta(max_length=200)]], Meta(max_length=8)] = {}  # noqa: RUF012 - a struct's
    twin: bool = True
    pairs: Annotated[int, Meta(ge=0, le=5_000)] = 300
    tolerance: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The part by which it may be slower or dearer, such as 0.05."""
    answer_tolerance: Annotated[float, Meta(ge=0, le=1)] = ANSWER_TOLERANCE
    """The part, or the amount, by which numbers in the answers of pairs may differ; 0: they are equal."""
    weights: Annotated[dict[str, Annotated[float, Meta(ge=0, le=100)]], Meta(max_length=16)] = {}  # noqa: RUF012 - a struct's
    guards: Annotated[tuple[OwnGuard, ...], Meta(max_length=8)] = ()
    on_undecided: Annotated[str, Meta(pattern="^(promote|hold|rollback)$")] = "promote"
    surge: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    gate: Gate = ""
    allow_breaking: bool = False
    skip_judging: bool = False
    retry: bool = False


class RolloutWord(Request, frozen=True, kw_only=True):
    """What a person says to a rollout: pause, resume, promote, abort, freeze."""

    reason: Reason = ""
    rollout: Annotated[str, Meta(max_length=64)] = ""
    """The id of the one that is meant, else nothing is done; "": whichever is under way."""


class GuardView(msgspec.Struct, frozen=True, kw_only=True):
    """What a guard has seen of a function, on both sides."""

    function: str
    guard: str
    about: str
    """In words."""
    weight: float = 1.0
    """Its part of E; 0: it is shown alone."""
    evidence: float = 1.0
    """Its e."""
    canary: int = 0
    """Of the new version: events of `canary_of` calls, or calls whose amounts were compared."""
    canary_of: int | None = None
    """None: it is no guard on events."""
    other: int = 0
    other_of: int | None = None
    effect: float | None = None
    """By which part the new version is above the old one, as estimated: 0.2 is a fifth more; None: not known yet."""
    low: float | None = None
    """Of the interval that has the effect in 19 of 20 looks."""
    high: float | None = None
    proven: float | None = None
    """The part by which it is proven not to be worse, however often one looks; None: nothing is proven."""


class RolloutView(msgspec.Struct, frozen=True, kw_only=True):
    """A rollout as people see it. Shares are percent, instants unix seconds."""

    id: str
    number: int
    app: str
    tenant: str = ""
    state: str
    held: str = ""
    """Why it does not go on; "": it does."""
    step: int = 0
    """From 1; 0: none yet."""
    steps: tuple[float, ...] = ()
    share: float = 0.0
    twin_share: float = 0.0
    since: float = 0.0
    next_at: float = 0.0
    """When it goes on at the earliest; 0: that is no matter of time."""
    started_at: float = 0.0
    by: str = ""
    paused_by: str = ""
    frozen: bool = False
    reason: str = ""
    functions: dict[str, dict[str, str]] = {}
    """function -> `control` and `canary`, as `app.function@v7`."""
    verdict: str = "undecided"
    evidence: float = 1.0
    """E: from 10 it holds, from 100 it goes back."""
    guards: dict[str, float] = {}
    seen: tuple[GuardView, ...] = ()
    """What each guard has seen, the loudest first; of the last rollout alone."""
    verified_within: dict[str, float] = {}
    calls: dict[str, int] = {}
    sentences: tuple[str, ...] = ()
    ready: dict[str, int] = {}
    """Ready containers of `control`, `canary` and `twin`."""
    terms: dict[str, Any] = {}


class RolloutList(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/rollouts`."""

    rollouts: tuple[RolloutView, ...]
    left: int = 0
    """More that there are, which ended earlier."""


class RolloutStarted(msgspec.Struct, frozen=True, kw_only=True):
    rollout: RolloutView
    visible: tuple[str, ...] = ()
    """What the smallest regressions are that it will see, at the present traffic."""
    warnings: tuple[str, ...] = ()
