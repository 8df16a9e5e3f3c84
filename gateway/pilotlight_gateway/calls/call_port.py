"""What the HTTP side asks of whoever runs calls, and the values that pass between them.

The real one is `call_service.CallService`; `call_fake.FakeCalls` is the in-memory one, scripted by fields.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.messages.agent_messages import Spent
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.home.home_report import HomeStatistics


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """A call that succeeded. `output` is msgpack; of a generator it is empty."""

    output: bytes
    answer_size: int = 0
    """Not 0: the answer lies at the internal listener, and `output` is still to be filled with it."""
    spent: Spent | None = None
    """Of all its starts, as far as they ran on slices of one kind."""
    stages: dict[str, float] = msgspec.field(default_factory=dict)
    """Milliseconds in gateway, queue, start, transport, batch_wait and execute; the HTTP side adds `respond`."""
    cold_start: dict[str, float] | None = None
    """The steps of the start that the call waited for, in ms; None when a container was ready."""
    attempts: int = 1
    container: str = ""


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
