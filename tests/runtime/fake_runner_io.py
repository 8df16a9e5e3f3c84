"""A runner's `RunnerIO` in memory: what it asks for is recorded, and tests play the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from pilotlight_core.model.messages.call_messages import CallFrame, Chunk, Ended, Outcome, Refusal, Refused, Run, Spent
from pilotlight_core.model.messages.node_messages import STOP_GRACE_S
from pilotlight_core.model.spec import Batching, Mode
from pilotlight_runtime.calls.call_runner import CallRunner
from pilotlight_runtime.calls.runner_io import InputFetched, OutputUploaded
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest import frames as guest
from tests.builders.specs import function_spec, method

T = TypeVar("T")


class FakeRunnerIO:
    """`refuse_start` is what `start` answers; the lists are what was asked."""

    def __init__(self) -> None:
        self.price = "cpu"
        self.sent: list[CallFrame] = []
        self.commands: list[guest.GuestFrame] = []
        self.unwanted: list[str] = []
        self.fetches: list[AcceptedCall] = []
        self.uploads: list[AcceptedCall] = []
        self.kills: list[str] = []
        self.retired: list[str] = []
        self.waiting: list[str] = []
        self.released: list[str] = []
        self.batches: list[tuple[int, float]] = []
        self.splits: list[list[str]] = []
        self.restarts: list[str] = []
        self.repeated: list[str] = []
        self.kept: list[str] = []
        self.pumps_at: float | None = None
        self.refuse_start: Refusal | None = None

    def send(self, gateway: str, frame: CallFrame) -> None:
        self.sent.append(frame)

    def send_chunks(self, call: AcceptedCall, seq: int, data: tuple[bytes, ...]) -> None:
        for number, each in enumerate(data, seq):
            self.sent.append(Chunk(call_id=call.call_id, grant_number=call.grant_number, seq=number, data=each))

    def send_to_guest(self, frame: guest.GuestFrame) -> None:
        self.commands.append(frame)

    def end_nested(self, call: AcceptedCall) -> None:
        self.unwanted.append(call.call_id)

    def fetch_input(self, call: AcceptedCall, done: InputFetched) -> None:
        self.fetches.append(call)

    def upload_output(self, call: AcceptedCall, done: OutputUploaded) -> None:
        self.uploads.append(call)

    def note_waiting(self, call: AcceptedCall) -> None:
        self.waiting.append(call.call_id)

    def start(self, call: AcceptedCall, at: float) -> Refusal | None:
        if self.refuse_start is None:
            call.start(at)
        return self.refuse_start

    def refund(self, calls: Iterable[AcceptedCall]) -> None:
        self.splits.append([call.call_id for call in calls])

    def restart(self, call: AcceptedCall) -> None:
        self.restarts.append(call.call_id)

    def end_repeat(self, call: AcceptedCall) -> None:
        self.repeated.append(call.call_id)

    def keep_work(self, calls: Sequence[AcceptedCall]) -> None:
        self.kept += [call.call_id for call in calls]

    def finish(self, call: AcceptedCall, outcome: Outcome) -> Spent | None:
        return Spent(ns=1_000, ppm=500_000, price="cpu", batch_size=call.batch_size)

    def record_batch(self, size: int, ms: float) -> None:
        self.batches.append((size, ms))

    def release(self, call: AcceptedCall) -> None:
        self.released.append(call.call_id)

    def pump_at(self, at: float | None, pump: Callable[[float], None]) -> None:
        self.pumps_at = at

    def retire(self, reason: str) -> None:
        self.retired.append(reason)

    def kill(self, reason: str) -> None:
        self.kills.append(reason)

    def of(self, kind: type[T]) -> list[T]:
        """What was sent or commanded of one kind."""
        return [frame for frame in (*self.sent, *self.commands) if isinstance(frame, kind)]

    def last(self, call: str) -> Ended | Refused:
        """The one last frame of a call."""
        found = [f for f in self.sent if isinstance(f, Ended | Refused) and f.call_id == call]
        assert len(found) == 1, found
        return found[0]


def accepted(run: Run, at: float, received_at: float | None = None) -> AcceptedCall:
    """A call that the slot table has accepted at `at`."""
    return AcceptedCall(run, at, at if received_at is None else received_at)


def runner_of(
    io: FakeRunnerIO,
    *,
    batching: Batching | None = None,
    mode: Mode = Mode.UNARY,
    stop_grace_s: float = STOP_GRACE_S,
    **spec: Any,
) -> CallRunner:
    """A runner of a function with one method."""
    made = function_spec("f", method(batching=batching, mode=mode), **spec)
    return CallRunner(made, "c1", io, stop_grace_s=stop_grace_s)
