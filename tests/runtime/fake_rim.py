"""The world of a runner, in memory: what it asks for is written down, and tests play the answers."""

from __future__ import annotations

from typing import Any, TypeVar

from pilotlight_core.model.messages.agent_messages import CallFrame, Ended, Outcome, Refusal, Refused, Spent
from pilotlight_core.model.spec import Batching, Mode
from pilotlight_runtime.calls.accepted_call import AcceptedCall
from pilotlight_runtime.calls.call_runner import CallRunner
from pilotlight_runtime.guest import frames as guest
from tests.builders.specs import function_spec, method

T = TypeVar("T")


class FakeRim:
    """`refuse_start` is what `start` answers; `told`, `commands`, `killed` and the others are what was asked."""

    def __init__(self) -> None:
        self.told: list[CallFrame] = []
        self.commands: list[guest.GuestFrame] = []
        self.fetches: list[AcceptedCall] = []
        self.leaves: list[AcceptedCall] = []
        self.killed: list[str] = []
        self.waiting: list[str] = []
        self.freed_calls: list[str] = []
        self.work: list[tuple[int, float]] = []
        self.wake_at: float | None = None
        self.refuse_start: Refusal | None = None

    def tell(self, gateway: str, frame: CallFrame) -> None:
        self.told.append(frame)

    def command(self, frame: guest.GuestFrame) -> None:
        self.commands.append(frame)

    def fetch(self, held: AcceptedCall) -> None:
        self.fetches.append(held)

    def leave(self, held: AcceptedCall) -> None:
        self.leaves.append(held)

    def waits(self, held: AcceptedCall) -> None:
        self.waiting.append(held.run.call)

    def start(self, held: AcceptedCall, at: float) -> Refusal | None:
        return self.refuse_start

    def spent(self, held: AcceptedCall, outcome: Outcome) -> Spent | None:
        return Spent(ns=1_000, ppm=500_000, price="cpu", batch_size=held.batch_size)

    def ran(self, batch: int, ms: float) -> None:
        self.work.append((batch, ms))

    def freed(self, held: AcceptedCall) -> None:
        self.freed_calls.append(held.run.call)

    def wake(self, at: float | None) -> None:
        self.wake_at = at

    def kill(self, reason: str) -> None:
        self.killed.append(reason)

    def of(self, kind: type[T]) -> list[T]:
        """What was told or commanded of one kind."""
        return [frame for frame in (*self.told, *self.commands) if isinstance(frame, kind)]

    def last(self, call: str) -> Ended | Refused:
        """The one last frame of a call."""
        found = [f for f in self.told if isinstance(f, Ended | Refused) and f.call == call]
        assert len(found) == 1, found
        return found[0]


def runner_of(rim: FakeRim, *, batching: Batching | None = None, mode: Mode = Mode.UNARY, **spec: Any) -> CallRunner:
    """A runner of a function with one method."""
    return CallRunner(function_spec("f", method(batching=batching, mode=mode), **spec), "c1", rim)
