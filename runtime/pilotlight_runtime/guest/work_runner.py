"""Running the tenant's code for one call or batch: its arguments are read, it runs, its result becomes a frame."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

import msgspec

from pilotlight_core.model import values
from pilotlight_core.model.engines.call_facts import CALL_FACTS
from pilotlight_core.model.engines.generation import UnfitGeneration
from pilotlight_core.model.messages.call_messages import Outcome
from pilotlight_core.model.messages.running_code import COUNTING, IN_BATCH, RUNNING_CALL, RUNNING_ITEMS, RUNNING_TRACE
from pilotlight_core.model.streams.running_stream import RUNNING_STREAM
from pilotlight_runtime.guest.basics.remote_errors import (
    MAX_TRACEBACK,
    BadAnswer,
    BadArguments,
    remote_error,
    type_name,
)
from pilotlight_runtime.guest.call_table import CallProgress, CallTable
from pilotlight_runtime.guest.frames import (
    MAX_CHUNK,
    MAX_VALUE,
    BatchResult,
    GuestFrame,
    GuestItemResult,
    GuestWork,
    Invoke,
    InvokeBatch,
    Result,
)
from pilotlight_runtime.guest.guest_target import GuestTarget, TargetMethod
from pilotlight_runtime.guest.stream_out import StreamOut

NOTHING = values.encode(None)
MAX_TRACEBACKS = 2**20
"""Characters of a batch's tracebacks together."""
LEAST_TRACEBACK = 2 * 1024
RAISED_WHOLE = (
    "(This batch of {count} raised, so each of its items failed: return an exception in the place of a bad item, and "
    "the others are answered. With idempotent=True a batch that raises is run again item by item.)"
)
now = time.perf_counter_ns


def method_of(target: GuestTarget, name: str) -> TargetMethod:
    try:
        return target.methods[name]
    except KeyError:
        raise BadArguments(f"there is no method {name!r}") from None


def prepared(target: GuestTarget, call: Invoke) -> tuple[TargetMethod, partial[Any]]:
    """The method of a call, and its function with the call's arguments; raises BadArguments."""
    method = method_of(target, call.method)
    first, named = method.parameters.place(method.parameters.read(call.input))
    return method, partial(method.function, *first, **named)


def encoded(value: Any, most: int = MAX_VALUE) -> bytes:
    """The msgpack of an answer of at most `most` bytes; raises BadAnswer naming its type or its size."""
    try:
        data = values.encode(value)
    except Exception as error:
        raise BadAnswer(f"{error} (the answer is {with_article(type(value))})") from error
    if len(data) > most:
        raise BadAnswer(f"the answer is {len(data)} bytes: {most} are the most that can be sent of it")
    return data


def encoded_chunk(out: StreamOut, value: Any) -> bytes:
    """The msgpack of a chunk; raises BadAnswer, and RuntimeError for one that is not the next."""
    out.check_resumed()
    data = encoded(value, MAX_CHUNK)
    out.note_size(len(data))
    return data


def outcome_of(error: BaseException) -> Outcome:
    if isinstance(error, BadArguments | UnfitGeneration):
        return Outcome.BAD_INPUT
    return Outcome.BAD_OUTPUT if isinstance(error, BadAnswer) else Outcome.RAISED


def answered(call: Invoke, progress: CallProgress, value: Any, execute_ns: int) -> Result:
    """The Result of a call that returned `value`; raises BadAnswer."""
    if progress.cancelled:
        return cancelled(call, execute_ns)
    return Result(call_id=call.call_id, output=encoded(value), execute_ns=execute_ns)


def streamed(call: Invoke, progress: CallProgress, execute_ns: int, last_seq: int) -> Result:
    if progress.cancelled:
        return cancelled(call, execute_ns, last_seq)
    return Result(call_id=call.call_id, output=NOTHING, execute_ns=execute_ns, last_seq=last_seq)


def failed(call: Invoke, progress: CallProgress, error: BaseException, execute_ns: int, last_seq: int = 0) -> Result:
    """The Result of a call that failed; CANCELLED if it was cancelled."""
    if progress.cancelled:
        return cancelled(call, execute_ns, last_seq)
    return Result(
        call_id=call.call_id,
        outcome=outcome_of(error),
        error=remote_error(error),
        execute_ns=execute_ns,
        last_seq=last_seq,
    )


def cancelled(call: Invoke, execute_ns: int, last_seq: int = 0) -> Result:
    return Result(call_id=call.call_id, outcome=Outcome.CANCELLED, execute_ns=execute_ns, last_seq=last_seq)


def with_units(result: Result, progress: CallProgress) -> Result:
    """The result with what the call counted, however it ended."""
    return msgspec.structs.replace(result, units=progress.counted[0]) if progress.counted else result


def with_article(cls: type) -> str:
    """Its name, as in "a list" or "an int"."""
    name = type_name(cls)
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


class ColumnBatch:
    """One batch in the tenant's code: items whose input cannot be read are answered before."""

    def __init__(self, target: GuestTarget, batch: InvokeBatch, dropped: set[str]) -> None:
        self.method = target.methods[batch.method]
        self.calls: list[str] = []
        self._batch = batch
        self._dropped = dropped
        self._answers: dict[str, GuestItemResult] = {}
        self._whole = False
        rows = []
        for call, data in batch.items:
            if call in dropped:
                continue
            try:
                rows.append(self.method.parameters.read(data))
                self.calls.append(call)
            except BadArguments as error:
                self._answers[call] = self._failed(call, error)
        self._named = self.method.parameters.columns(rows)
        self.items = len(self.calls)
        self.counted: list[dict[str, int]] | None = None
        """The units that it counted, of each of its calls; see `running_code`."""

    def traced_calls(self) -> list[tuple[str, str]]:
        """The id of each call, and its traceparent."""
        batch = self._batch
        came = dict(zip([call for call, _ in batch.items], batch.traceparents, strict=False))
        return [(call, came.get(call, "")) for call in self.calls]

    def ready(self) -> partial[Any]:
        first, named = self.method.parameters.place(self._named)
        return partial(self.method.function, *first, **named)

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
        same = self._failed("", error, RAISED_WHOLE.format(count=len(self.calls)) if len(self.calls) > 1 else "")
        for call in self.calls:
            self._answers[call] = msgspec.structs.replace(same, call_id=call)

    def result(self, execute_ns: int) -> BatchResult:
        """An answer for each item; one without, or dropped meanwhile, was cancelled."""
        results = []
        if self.counted is not None:
            for call, units in zip(self.calls, self.counted, strict=True):
                if call in self._answers:
                    self._answers[call] = msgspec.structs.replace(self._answers[call], units=units)
        for call, _ in self._batch.items:
            answer = None if call in self._dropped else self._answers.get(call)
            results.append(answer or GuestItemResult(call_id=call, outcome=Outcome.CANCELLED))
        return BatchResult(batch=self._batch.batch, results=tuple(results), execute_ns=execute_ns, whole=self._whole)

    def _item(self, call_id: str, value: Any, room: int) -> GuestItemResult:
        if isinstance(value, BaseException):
            return self._failed(call_id, value)
        try:
            return GuestItemResult(call_id=call_id, output=encoded(value, room))
        except BadAnswer as error:
            return self._failed(call_id, error)

    def _failed(self, call_id: str, error: BaseException, note: str = "") -> GuestItemResult:
        share = MAX_TRACEBACKS // len(self._batch.items)
        most = min(MAX_TRACEBACK, max(LEAST_TRACEBACK, share))
        return GuestItemResult(call_id=call_id, outcome=outcome_of(error), error=remote_error(error, most, note))


def unstarted(batch: InvokeBatch) -> BatchResult:
    """The answer to a batch whose items were all cancelled before it began."""
    results = tuple(GuestItemResult(call_id=call, outcome=Outcome.CANCELLED) for call, _ in batch.items)
    return BatchResult(batch=batch.batch, results=results, started=False)


class ReplyChannel(Protocol):
    """What running code needs of the connection."""

    def send(self, frame: GuestFrame) -> None: ...

    def send_soon(self, frame: GuestFrame) -> None:
        """Send a frame with those that follow soon, in order with all others."""
        ...

    def read_cancels(self) -> None: ...

    def wait_read(self, progress: CallProgress, seq: int) -> bool:
        """Wait until the reader has chunk `seq`; False if it never does."""
        ...


def run_work(
    target: GuestTarget, work: GuestWork, table: CallTable, channel: ReplyChannel
) -> Result | BatchResult | None:
    """Run a call or batch to its end, unless it was cancelled before; None if its Result has been sent already."""
    if isinstance(work, Invoke):
        progress = table.begin(work)
        if progress is None:
            return None
        COUNTING.set(progress)
        RUNNING_CALL.set(work.call_id)
        RUNNING_TRACE.set(work.traceparent)
        if work.facts is not None:
            CALL_FACTS.set(work.facts)
        frame: Result | BatchResult = with_units(run_call(target, work, progress, channel), progress)
    else:
        frame = run_batch(target, work, table.dropped(work), channel)
    table.end(work)
    return frame


def run_call(target: GuestTarget, call: Invoke, progress: CallProgress, channel: ReplyChannel) -> Result:
    """Run one call to its end; chunks of a stream are sent on the way. Never raises."""
    began = now()
    try:
        method, ready = prepared(target, call)
        if method.streams:
            return _run_stream(ready, call, progress, channel)
        began = now()
        value = ready()
        spent = now() - began
        channel.read_cancels()
        return answered(call, progress, value, spent)
    except BaseException as error:  # noqa: BLE001 - SystemExit in a call is that call's failure
        return failed(call, progress, error, now() - began)


def _run_stream(ready: partial[Any], call: Invoke, progress: CallProgress, channel: ReplyChannel) -> Result:
    began = now()
    out = StreamOut(call, channel.send, channel.send_soon)
    progress.read_seq = max(progress.read_seq, out.seq)
    RUNNING_STREAM.set(out)
    chunks: Iterator[Any] | None = None
    try:
        chunks = iter(ready())
        for value in chunks:
            data = encoded_chunk(out, value)
            channel.read_cancels()
            if progress.cancelled or not channel.wait_read(progress, out.needs_read):
                return cancelled(call, now() - began, out.seq)
            out.send_chunk(data)
        return streamed(call, progress, now() - began, out.seq)
    except BaseException as error:  # noqa: BLE001 - as in run_call
        return failed(call, progress, error, now() - began, out.seq)
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


def run_batch(target: GuestTarget, batch: InvokeBatch, dropped: set[str], channel: ReplyChannel) -> BatchResult:
    """Run one batch to its end, without its `dropped` items. Never raises."""
    if len(dropped) == len(batch.items):
        return unstarted(batch)
    columns = ColumnBatch(target, batch, dropped)
    COUNTING.set(columns)
    RUNNING_CALL.set(IN_BATCH)
    RUNNING_ITEMS.set(columns)
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
