"""Running the tenant's code for one call or batch: its arguments are read, it runs, its result becomes a frame."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from pilotlight_core.model import values
from pilotlight_core.model.messages.agent_messages import Outcome
from pilotlight_runtime.guest.call_table import CallTable, GuestBatch, GuestCall, GuestWork
from pilotlight_runtime.guest.frames import (
    MAX_CHUNK,
    MAX_VALUE,
    BatchResult,
    ChunkOut,
    GuestFrame,
    GuestItemResult,
    Result,
)
from pilotlight_runtime.guest.guest_target import GuestTarget, TargetMethod
from pilotlight_runtime.guest.remote_errors import MAX_TRACEBACK, BadAnswer, BadArguments, remote_error, type_name

NOTHING = values.encode(None)
MAX_TRACEBACKS = 2**20
"""Characters of a batch's tracebacks together."""
LEAST_TRACEBACK = 2 * 1024
now = time.perf_counter_ns


class BoundCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    method: TargetMethod
    first: list[Any]
    named: dict[str, Any]

    def __call__(self) -> Any:
        return self.method.function(*self.first, **self.named)


def method_of(target: GuestTarget, name: str) -> TargetMethod:
    try:
        return target.methods[name]
    except KeyError:
        raise BadArguments(f"there is no method {name!r}") from None


def prepared(target: GuestTarget, call: GuestCall) -> BoundCall:
    """The function and arguments that a call's frame names; raises BadArguments."""
    method = method_of(target, call.frame.method)
    first, named = method.parameters.place(method.parameters.read(call.frame.input))
    return BoundCall(method=method, first=first, named=named)


def encoded(value: Any, most: int = MAX_VALUE) -> bytes:
    """The msgpack of an answer of at most `most` bytes; raises BadAnswer naming its type or its size."""
    try:
        data = values.encode(value)
    except Exception as error:
        raise BadAnswer(f"{error} (the answer is {with_article(type(value))})") from error
    if len(data) > most:
        raise BadAnswer(f"the answer is {len(data)} bytes: {most} are the most that can be sent of it")
    return data


def outcome_of(error: BaseException) -> Outcome:
    if isinstance(error, BadArguments):
        return Outcome.BAD_INPUT
    return Outcome.BAD_OUTPUT if isinstance(error, BadAnswer) else Outcome.RAISED


def answered(call: GuestCall, value: Any, execute_ns: int) -> Result:
    """The Result of a call that returned `value`; raises BadAnswer."""
    if call.cancelled:
        return cancelled(call, execute_ns)
    return Result(call_id=call.frame.call_id, output=encoded(value), execute_ns=execute_ns)


def streamed(call: GuestCall, execute_ns: int, last_seq: int) -> Result:
    if call.cancelled:
        return cancelled(call, execute_ns, last_seq)
    return Result(call_id=call.frame.call_id, output=NOTHING, execute_ns=execute_ns, last_seq=last_seq)


def failed(call: GuestCall, error: BaseException, execute_ns: int, last_seq: int = 0) -> Result:
    """The Result of a call that failed; CANCELLED if it was cancelled."""
    if call.cancelled:
        return cancelled(call, execute_ns, last_seq)
    return Result(
        call_id=call.frame.call_id,
        outcome=outcome_of(error),
        error=remote_error(error),
        execute_ns=execute_ns,
        last_seq=last_seq,
    )


def cancelled(call: GuestCall, execute_ns: int, last_seq: int = 0) -> Result:
    return Result(call_id=call.frame.call_id, outcome=Outcome.CANCELLED, execute_ns=execute_ns, last_seq=last_seq)


def with_article(cls: type) -> str:
    """Its name, as in "a list" or "an int"."""
    name = type_name(cls)
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


class ColumnBatch:
    """One batch in the tenant's code: items whose input cannot be read are answered before."""

    def __init__(self, target: GuestTarget, batch: GuestBatch) -> None:
        self.method = target.methods[batch.frame.method]
        self.calls: list[str] = []
        self._batch = batch
        self._answers: dict[str, GuestItemResult] = {}
        self._whole = False
        rows = []
        for call, data in batch.wanted():
            try:
                rows.append(self.method.parameters.read(data))
                self.calls.append(call)
            except BadArguments as error:
                self._answers[call] = self._failed(call, error)
        self._named = self.method.parameters.columns(rows)

    def ready(self) -> BoundCall:
        first, named = self.method.parameters.place(self._named)
        return BoundCall(method=self.method, first=first, named=named)

    def answer(self, value: Any) -> None:
        """Take what the method returned; raises BadAnswer unless it is a list with an element for each item."""
        if type(value) is not list:
            raise BadAnswer(f"a batched method must return a list, and it returned {with_article(type(value))}")
        if len(value) != len(self.calls):
            raise BadAnswer(
                f"a batched method must return a list as long as its arguments: {len(self.calls)} were given, "
                f"{len(value)} returned"
            )
        room = MAX_VALUE
        for call, item in zip(self.calls, value, strict=True):
            self._answers[call] = answer = self._item(call, item, room)
            room -= len(answer.output)

    def fail(self, error: BaseException) -> None:
        """Fail every item that was given to the method."""
        self._whole = True
        same = self._failed("", error)
        for call in self.calls:
            self._answers[call] = msgspec.structs.replace(same, call_id=call)

    def result(self, execute_ns: int) -> BatchResult:
        """An answer for each item; one without, or dropped meanwhile, was cancelled."""
        unwanted = self._batch.dropped
        results = []
        for call, _ in self._batch.frame.items:
            answer = None if call in unwanted else self._answers.get(call)
            results.append(answer or GuestItemResult(call_id=call, outcome=Outcome.CANCELLED))
        return BatchResult(
            batch=self._batch.frame.batch, results=tuple(results), execute_ns=execute_ns, whole=self._whole
        )

    def _item(self, call_id: str, value: Any, room: int) -> GuestItemResult:
        if isinstance(value, BaseException):
            return self._failed(call_id, value)
        try:
            return GuestItemResult(call_id=call_id, output=encoded(value, room))
        except BadAnswer as error:
            return self._failed(call_id, error)

    def _failed(self, call_id: str, error: BaseException) -> GuestItemResult:
        share = MAX_TRACEBACKS // len(self._batch.frame.items)
        most = min(MAX_TRACEBACK, max(LEAST_TRACEBACK, share))
        return GuestItemResult(call_id=call_id, outcome=outcome_of(error), error=remote_error(error, most))


class ReplyChannel(Protocol):
    """What running code needs of the connection."""

    def send(self, frame: GuestFrame) -> None: ...

    def read_cancels(self) -> None: ...

    def wait_window(self, call: GuestCall, seq: int) -> bool:
        """Wait until chunk `seq` may be sent; False if it never may."""
        ...


def run_work(
    target: GuestTarget, work: GuestWork, table: CallTable, channel: ReplyChannel
) -> Result | BatchResult | None:
    """Run a call or batch to its end, unless it was cancelled before; None if its Result has been sent already."""
    if not table.begin(work):
        table.end(work)
        return work.unstarted() if isinstance(work, GuestBatch) else None
    frame = run_call(target, work, channel) if isinstance(work, GuestCall) else run_batch(target, work, channel)
    table.end(work)
    return frame


def run_call(target: GuestTarget, call: GuestCall, channel: ReplyChannel) -> Result:
    """Run one call to its end; chunks of a stream are sent on the way. Never raises."""
    began = now()
    try:
        ready = prepared(target, call)
        if ready.method.streams:
            return _run_stream(ready, call, channel)
        began = now()
        value = ready()
        spent = now() - began
        channel.read_cancels()
        return answered(call, value, spent)
    except BaseException as error:  # noqa: BLE001 - SystemExit in a call is that call's failure
        return failed(call, error, now() - began)


def _run_stream(ready: BoundCall, call: GuestCall, channel: ReplyChannel) -> Result:
    began = now()
    seq = 0
    chunks: Iterator[Any] | None = None
    try:
        chunks = iter(ready())
        for value in chunks:
            channel.read_cancels()
            if call.cancelled or not channel.wait_window(call, seq + 1):
                return cancelled(call, now() - began, seq)
            channel.send(ChunkOut(call_id=call.frame.call_id, seq=seq + 1, data=encoded(value, MAX_CHUNK)))
            seq += 1
        return streamed(call, now() - began, seq)
    except BaseException as error:  # noqa: BLE001 - as in run_call
        return failed(call, error, now() - began, seq)
    finally:
        _close(chunks)


def _close(chunks: Iterator[Any] | None) -> None:
    """What it raises goes into the tenant's log."""
    try:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    except BaseException:  # noqa: BLE001 - it is the tenant's code
        traceback.print_exc()


def run_batch(target: GuestTarget, batch: GuestBatch, channel: ReplyChannel) -> BatchResult:
    """Run one batch to its end. Never raises."""
    columns = ColumnBatch(target, batch)
    began = now()
    try:
        if columns.calls:
            value = columns.ready()()
            spent = now() - began
            channel.read_cancels()
            columns.answer(value)
            return columns.result(spent)
    except BaseException as error:  # noqa: BLE001 - as in run_call
        columns.fail(error)
    return columns.result(now() - began)
