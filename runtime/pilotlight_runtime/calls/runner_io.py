"""The port between a `CallRunner` and its container: what it sends, and what it has done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from pilotlight_core.model.messages.call_messages import CallFrame, Outcome, Refusal, Spent
from pilotlight_runtime.calls.slot_table import AcceptedCall
from pilotlight_runtime.guest import frames as guest


class RunnerIO(Protocol):
    """What a `CallRunner` needs of its container. No method waits; instants are monotonic seconds."""

    @property
    def price(self) -> str:
        """The price id of the slice that it has."""

    def send(self, gateway: str, frame: CallFrame) -> None: ...

    def send_chunks(self, call: AcceptedCall, seq: int, data: tuple[bytes, ...]) -> None:
        """Send chunks of a call's stream, `seq` the first, in order with its other frames."""

    def send_to_guest(self, frame: guest.GuestFrame) -> None: ...

    def end_nested(self, call: AcceptedCall) -> None:
        """End the calls that it has made: it is not wanted any more."""

    def fetch_input(self, call: AcceptedCall, done: InputFetched) -> None:
        """Fetch a large input, then call `done(call, data, at)`; `data` is None if the fetch failed."""

    def upload_output(self, call: AcceptedCall, done: OutputUploaded) -> None:
        """Upload `call.output` to the origin, then call `done(call, taken, at)`."""

    def note_waiting(self, call: AcceptedCall) -> None:
        """Note a call as not started; `start` or `release` follows."""

    def start(self, call: AcceptedCall, at: float) -> Refusal | None:
        """Count the call as started, right before the guest gets it; None if done, GONE if it has ended already."""

    def refund(self, calls: Iterable[AcceptedCall]) -> None:
        """Their batch raised as a whole, and each is to run again alone: what they took of it is not theirs to pay."""

    def restart(self, call: AcceptedCall) -> None:
        """A call of such a batch runs again."""

    def end_repeat(self, call: AcceptedCall) -> None:
        """A call has done again what is billed elsewhere: that is not its tenant's to pay here, what follows is."""

    def keep_work(self, calls: Sequence[AcceptedCall]) -> None:
        """What streams have done up to now need not be done again, if they go on elsewhere."""

    def finish(self, call: AcceptedCall, outcome: Outcome) -> Spent | None:
        """End the metering of a call that the guest has ended; returns what it cost."""

    def record_batch(self, size: int, ms: float) -> None: ...

    def release(self, call: AcceptedCall) -> None:
        """Free the call's slot; `call.outcome` is None if it was refused."""

    def pump_at(self, at: float | None, pump: Callable[[float], None]) -> None:
        """Call `pump(at)` at that instant instead of any set before; None: never."""

    def retire(self, reason: str) -> None:
        """Take no new call, let the held ones end, and end."""

    def kill(self, reason: str) -> None: ...


InputFetched = Callable[[AcceptedCall, bytes | None, float], None]
OutputUploaded = Callable[[AcceptedCall, bool, float], None]
