"""What the HTTP side asks of whoever runs calls, and the values that pass between them.

The real one is `call_service.CallService`; `call_fake.FakeCalls` is the in-memory one, scripted by fields.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.messages.agent_messages import Run, Spent
from pilotlight_core.model.spec import MethodSpec, Priority, VersionRecord
from pilotlight_gateway.home.home_report import HomeStatistics
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.tenancy.scheduling_class import PLAIN, SchedulingClass


class Go(Protocol):
    """Sends the call, or gives it up."""

    def __call__(self, *, allowed: bool) -> bool:
        """Whether it was sent: by now the grant may have been taken back."""
        ...


class Gate(Protocol):
    """What has to happen between a call's grant and its sending, such as noting a job's start."""

    def __call__(self, run: Run, go: Go) -> None:
        """`run` is about to be sent. Calls `go` once, now or later."""
        ...


class PreparedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is authenticated, resolved and validated. Instants are this process's monotonic seconds."""

    id: str
    client_id: str | None
    tenant: str
    """Who calls and pays; the version may be another tenant's only where that is allowed."""
    version: VersionRecord
    method: MethodSpec
    input: bytes
    """The msgpack of the named arguments."""
    priority: Priority
    deadline: float
    """The instant at which the caller gives up."""
    arrived: float
    """The instant at which the request's head was read."""
    stream: bool
    """Whether stages and chunks are wanted as they happen; a generator's chunks always are."""
    standing: SchedulingClass = PLAIN
    """Of its tenant at this function."""
    traceparent: str = ""
    gateway_ms: float = 0.0
    """From arrival to here: authenticate, parse, validate."""
    tab: CallUsage | None = None
    """Where whoever runs the call notes what it takes, before the call is over for its caller: see `CallUsage`."""
    gate: Gate | None = None
    """What it has to pass between each grant and its container; None: nothing."""


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """A call that succeeded. `output` is msgpack; of a generator it is empty."""

    output: bytes
    spent: Spent | None = None
    stages: dict[str, float] = msgspec.field(default_factory=dict)
    """Milliseconds in gateway, queue, start, transport, batch_wait and execute; the HTTP side adds `respond`."""
    cold_start: dict[str, float] | None = None
    """The steps of the start that the call waited for, in ms; None when a container was ready."""
    attempts: int = 1
    container: str = ""
    batch_size: int = 1


class StageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The call has entered a stage: queued, starting (detail: the steps so far), running."""

    name: str
    ms: float
    """Since the request arrived."""
    detail: dict[str, Any] = msgspec.field(default_factory=dict)


class ChunkEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of a stream: `data` is the msgpack of the value, `seq` rises by one from 1."""

    seq: int
    data: bytes


CallEvent = StageEvent | ChunkEvent | CallResult


@dataclass(frozen=True, kw_only=True, slots=True)
class CallStatistics:
    """How the calls of this gateway are, over all functions."""

    queued: int = 0
    oldest_ms: float = 0.0
    running: int = 0
    containers: dict[str, int] = field(default_factory=dict)
    """state -> how many, as the nodes last reported."""
    nodes: int = 0
    blanks: int = 0
    homes: int = 0
    """Shards that this gateway is the home of."""
    scheduling: tuple[HomeStatistics, ...] = ()
    """How each of its homes is."""


class CallPort(Protocol):
    """The verbs of live calls. All raise errors of the PilotlightError tree."""

    def new_id(self) -> str:
        """A fresh call id of this gateway's lease epoch. Raises Unavailable (`starting`) before there is one."""
        ...

    async def run(self, call: PreparedCall) -> CallResult:
        """Run it to its end. Cancelling the task cancels the call."""
        ...

    def stream(self, call: PreparedCall) -> AsyncIterator[CallEvent]:
        """Its events, the last of which is a CallResult. Closing the iterator (`aclose`) cancels the call."""
        ...

    async def cancel(self, tenant: str, id: str) -> bool:  # noqa: A002 - the name of the thing in the API
        """Cancel by call id or client id, at whatever gateway it is; whether it was alive. Raises UnknownCall."""
        ...

    async def status(self, tenant: str, id: str) -> CallStatus:  # noqa: A002
        """What is known of a call, by call id or client id, here or at another gateway. Raises UnknownCall."""
        ...

    def containers(self, tenant: str | None) -> list[dict[str, Any]]:
        """The containers of a tenant (None: of all) as the nodes last reported them."""
        ...

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes as they last reported: slices, blanks, and how many containers."""
        ...

    def ready(self) -> str:
        """Why no calls can be taken now ("no home lease"); "" when they can."""
        ...

    def statistics(self) -> CallStatistics:
        """How it is, at once."""
        ...
