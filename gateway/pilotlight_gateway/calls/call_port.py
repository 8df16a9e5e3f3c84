"""The port of live calls, `CallPort`, and the values that it returns.

`call_service.CallService` is the real one, `call_fake.FakeCalls` the one in memory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from pilotlight_core.model.api.call_api import CallStatus
from pilotlight_core.model.errors import PilotlightError
from pilotlight_core.model.messages.call_messages import Grant, Spent
from pilotlight_core.model.tracing.kept_call import BatchMates, KeptAttempt
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.home.home_report import HomeStatistics


class CallResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call that succeeded. `output` is msgpack; of a generator it is empty."""

    output: bytes
    answer_size: int = 0
    """Not 0: the answer lies at the internal listener, and is not in `output` yet."""
    spent: Spent | None = None
    """What its tenant pays of its last start, and of those before on slices of the same kind."""
    metered: Spent | None = None
    """What the last start took, whoever pays: of a shadow the operator does."""
    spent_before: tuple[Spent, ...] = ()
    """Of starts on slices of other kinds."""
    stages: dict[str, float] = msgspec.field(default_factory=dict)
    """Milliseconds in gateway, queue, start, transport, batch_wait and execute; `response_of` adds `respond`."""
    cold_start: dict[str, float] | None = None
    """The steps of the start that the call waited for, in ms; None: a container was ready."""
    attempts: int = 1
    container: str = ""
    nth: int = 0
    """Of the calls that its container has begun, from 1; 0: it is not known."""
    batch: int = 0
    """Of the batches of its container, from 1; 0: it ran alone."""
    units: dict[str, int] | None = None
    """What the function counted in its last start."""
    sold: dict[str, int] | None = None
    """What of it is billed where it has a price: no more than the function names."""
    fallback: str = ""
    """The ref of the version that ran it in place of the one that was asked for; "": that one did."""
    moved: str = ""
    """Why another version of its rollout ran it, by the code of what its own came to; "": that one did."""
    moved_from: CallResult | None = None
    """How far it came there."""
    grant: Grant | None = None
    """Of its last start."""
    mates: BatchMates = ()
    """The other calls of its batch in its last start, where its agent tells them."""
    trail: tuple[KeptAttempt, ...] = ()
    """The attempts before."""


def without_output(result: CallResult) -> CallResult:
    """A result that says how large its output was."""
    return msgspec.structs.replace(result, output=b"", answer_size=len(result.output))


class StageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """The call has entered a stage: queued, a state of a starting container (detail: its steps), running."""

    name: str
    ms: float
    """Since the request arrived."""
    detail: dict[str, Any] = msgspec.field(default_factory=dict)


class ChunkEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One piece of a stream: `data` is msgpack, `seq` rises by one from 1."""

    seq: int
    data: bytes


CallEvent = StageEvent | ChunkEvent | CallResult


@dataclass(frozen=True, kw_only=True, slots=True)
class CallStatistics:
    """Counts over all functions of this gateway."""

    queued: int = 0
    oldest_ms: float = 0.0
    running: int = 0
    containers: dict[str, int] = field(default_factory=dict)
    """By state, as the nodes last reported."""
    nodes: int = 0
    blanks: int = 0
    homes: int = 0
    """Shards whose home this gateway is."""
    scheduling: tuple[HomeStatistics, ...] = ()


class CallWaiter(Protocol):
    """Who waits for a call without a task. It is told once, from within the frame that brings the result."""

    def finished(self, result: CallResult) -> None:
        """The call has succeeded."""
        ...

    def failed(self, error: PilotlightError) -> None:
        """The call has failed."""
        ...


class ChunkTaker(Protocol):
    """Who takes the chunks of a stream without a task, from within the message that brings them.

    Asked while whoever reads the events waits for the next ones, so that all before were passed on. The first chunk of
    a stream is among those always: what stands between, and has to know whether there was one, hears of it.
    """

    def take(self, seq: int, data: tuple[bytes, ...]) -> bool:
        """Pass these on, `seq` the number of the first; False: none of them was, and they come as events."""
        ...


class BegunCall(Protocol):
    """A call that a waiter waits for."""

    def end(self) -> None:
        """Nobody waits any more: forget the call, and cancel it if it runs. The waiter is told nothing."""
        ...


class CallPort(Protocol):
    """Live calls. All methods raise errors of the PilotlightError tree."""

    def new_id(self) -> str:
        """A new call id, with the epoch of this gateway's lease. Raises Unavailable (`starting`) without a lease."""
        ...

    def address_of_home(self, function: str) -> bytes:
        """Where clients reach the home of a function (`tenant:app.function`); b"" if it is here, or not known."""
        ...

    def begin(self, call: PreparedCall, waiter: CallWaiter) -> BegunCall:
        """Begin a call whose result its waiter is told, not before this returns; `end` it then, in any case."""
        ...

    async def run(self, call: PreparedCall) -> CallResult:
        """Run a call to its end. Cancelling the task cancels the call."""
        ...

    def stream(self, call: PreparedCall, taker: ChunkTaker | None = None) -> AsyncIterator[list[CallEvent]]:
        """Run a call; yields its events in bunches of those that are there, last a CallResult.

        Closing the iterator (`aclose`) cancels the call. What was yielded counts as read when the next is asked for.
        Chunks that the `taker` takes are read, and not yielded.
        """
        ...

    async def cancel(self, tenant: str, id: str) -> bool:  # noqa: A002 - the name of the thing in the API
        """Cancel by call id or client id, at any gateway; whether it was alive. Raises UnknownCall."""
        ...

    async def status(self, tenant: str, id: str) -> CallStatus:  # noqa: A002
        """A call's status, by call id or client id, at any gateway. Raises UnknownCall."""
        ...

    def containers(self, tenant: str | None) -> list[dict[str, Any]]:
        """A tenant's containers (None: of all tenants) as the nodes last reported them."""
        ...

    def each_container(self, tenant: str | None) -> Iterator[dict[str, Any]]:
        """The same one by one: whoever wants all of a large fleet lets others have a turn meanwhile."""
        ...

    def nodes(self) -> list[dict[str, Any]]:
        """The nodes' last reports: slices, blanks, and the number of containers."""
        ...

    def ready(self) -> str:
        """Why no calls can be taken now, such as "no home lease"; "" if they can."""
        ...

    def statistics(self) -> CallStatistics:
        """Present counts."""
        ...


class RelayedCalls:
    """The base of a `CallPort` over another one, which leaves all but beginning, running and streaming to that one."""

    def __init__(self, calls: CallPort) -> None:
        self._calls = calls
        self.new_id = calls.new_id
        self.address_of_home = calls.address_of_home
        self.cancel = calls.cancel
        self.status = calls.status
        self.containers = calls.containers
        self.each_container = calls.each_container
        self.nodes = calls.nodes
        self.ready = calls.ready
        self.statistics = calls.statistics
