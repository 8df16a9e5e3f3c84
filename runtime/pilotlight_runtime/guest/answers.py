"""Running the tenant's code for one call or batch, on the present thread."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from typing import Any, Protocol

from pilotlight_runtime.guest.calls import Batch, Call, Desk, Work
from pilotlight_runtime.guest.frames import BatchResult, ChunkOut, Frame, Result
from pilotlight_runtime.guest.prepared import Columns, Prepared, prepared
from pilotlight_runtime.guest.results import answered, cancelled, encoded, failed, streamed
from pilotlight_runtime.guest.target import Target

now = time.perf_counter_ns


class Line(Protocol):
    """What running code needs of the connection."""

    def send(self, frame: Frame) -> None:
        """Send a frame whole."""

    def heed(self) -> None:
        """Take note of cancels that have arrived."""

    def wait_window(self, call: Call, seq: int) -> bool:
        """Wait until chunk `seq` may be sent; False if it never may."""
        ...


class Prepared(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A function and its arguments; called, it runs the tenant's code."""

    method: Method
    first: list[Any]
    named: dict[str, Any]

    def __call__(self) -> Any:
        return self.method.function(*self.first, **self.named)


def encoded(value: Any, most: int = MAX_VALUE) -> bytes:
    """The msgpack of an answer of at most `most` bytes.

    Raises:
        BadOutput: naming its type or its size.
    """
    try:
        data = values.encode(value)
    except Exception as error:
        raise BadOutput(f"{error} (the answer is {_article(type(value))})") from error
    if len(data) > most:
        raise BadOutput(f"the answer is {len(data)} bytes: {most} are the most that can be sent of it")
    return data


def method_of(target: Target, name: str) -> Method:
    """Raises: BadInput"""
    try:
        return target.methods[name]
    except KeyError:
        raise BadInput(f"there is no method {name!r}") from None


def outcome_of(error: BaseException) -> Outcome:
    """What a failure is to the platform."""
    return Outcome.BAD_OUTPUT if isinstance(error, BadOutput) else Outcome.RAISED


def answered(call: Call, value: Any, execute_ns: int) -> Result:
    """The Result of a call that returned `value`.

    Raises:
        BadOutput
    """
    if call.cancelled:
        return cancelled(call, execute_ns)
    return Result(call=call.frame.call, output=encoded(value), execute_ns=execute_ns)


def streamed(call: Call, execute_ns: int, last_seq: int) -> Result:
    """The Result of a stream that came to its end."""
    if call.cancelled:
        return cancelled(call, execute_ns, last_seq)
    return Result(call=call.frame.call, output=NOTHING, execute_ns=execute_ns, last_seq=last_seq)


def failed(call: Call, error: BaseException, execute_ns: int, last_seq: int = 0) -> Result:
    """The Result of a call whose code, input or output failed; whatever a cancelled one raised, it was cancelled."""
    after_failure(error)
    if call.cancelled:
        return cancelled(call, execute_ns, last_seq)
    return Result(
        call=call.frame.call,
        outcome=outcome_of(error),
        error=remote_error(error),
        execute_ns=execute_ns,
        last_seq=last_seq,
    )


def cancelled(call: Call, execute_ns: int, last_seq: int = 0) -> Result:
    """The Result of a call that had begun when it was cancelled."""
    return Result(call=call.frame.call, outcome=Outcome.CANCELLED, execute_ns=execute_ns, last_seq=last_seq)


def prepared(target: Target, call: Call) -> Prepared:
    """What a call's frame asks for.

    Raises:
        BadInput
    """
    method = method_of(target, call.frame.method)
    first, named = method.parameters.place(method.parameters.read(call.frame.input))
    return Prepared(method=method, first=first, named=named)


def run_work(target: Target, work: Work, desk: Desk, line: Line) -> Result | BatchResult | None:
    """Run a call or a batch to its end, unless it was cancelled before; None if its Result has been sent already."""
    if not desk.begin(work):
        desk.end(work)
        return work.unstarted() if isinstance(work, Batch) else None
    frame = run_call(target, work, line) if isinstance(work, Call) else run_batch(target, work, line)
    desk.end(work)
    return frame


def run_call(target: Target, call: Call, line: Line) -> Result:
    """Run one call to its end; chunks of a stream are sent on the way. Never raises."""
    began = now()
    try:
        ready = prepared(target, call)
        if ready.method.streams:
            return _run_stream(ready, call, line)
        began = now()
        value = ready()
        spent = now() - began
        line.heed()
        return answered(call, value, spent)
    except BaseException as error:  # noqa: BLE001 - SystemExit in a call is that call's failure
        return failed(call, error, now() - began)


def _run_stream(ready: Prepared, call: Call, line: Line) -> Result:
    began = now()
    seq = 0
    chunks: Iterator[Any] | None = None
    try:
        chunks = iter(ready())
        for value in chunks:
            line.heed()
            if call.cancelled or not line.wait_window(call, seq + 1):
                return cancelled(call, now() - began, seq)
            line.send(ChunkOut(call=call.frame.call, seq=seq + 1, data=encoded(value)))
            seq += 1
        return streamed(call, now() - began, seq)
    except BaseException as error:  # noqa: BLE001 - as in run_call
        return failed(call, error, now() - began, seq)
    finally:
        _close(chunks)


def _close(chunks: Iterator[Any] | None) -> None:
    """Run the generator's `finally` blocks. What they raise goes into the tenant's log: the call has its answer."""
    try:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()
    except BaseException:  # noqa: BLE001 - it is the tenant's code
        traceback.print_exc()


class Columns:
    """A batch on its way through the tenant's code: items whose input cannot be read have their answer before it."""

    def __init__(self, target: Target, batch: Batch) -> None:
        self.method = target.methods[batch.frame.method]
        self.calls: list[str] = []
        self._batch = batch
        self._answers: dict[str, ItemResult] = {}
        self._whole = False
        rows = []
        for call, data in batch.wanted():
            try:
                rows.append(self.method.parameters.read(data))
                self.calls.append(call)
            except BadInput as error:
                self._answers[call] = item_failed(call, error)
        self._named = self.method.parameters.columns(rows)

    def ready(self) -> Prepared:
        """The call of the method with its columns."""
        first, named = self.method.parameters.place(self._named)
        return Prepared(method=self.method, first=first, named=named)

    def answer(self, value: Any) -> None:
        """Take what the method returned.

        Raises:
            BadOutput: if it is not a list with an element for each item.
        """
        if type(value) is not list:
            raise BadOutput(f"a batched method must return a list, and it returned {_article(type(value))}")
        if len(value) != len(self.calls):
            raise BadOutput(
                f"a batched method must return a list as long as its arguments: {len(self.calls)} were given, "
                f"{len(value)} returned"
            )
        room = MAX_VALUE
        for call, item in zip(self.calls, value, strict=True):
            self._answers[call] = answer = _item(call, item, room)
            room -= len(answer.output)

    def fail(self, error: BaseException) -> None:
        """The method raised, or answered wrongly: every item that was given to it failed with that."""
        after_failure(error)
        self._whole = True
        same = remote_error(error)
        self._answers |= {call: ItemResult(call=call, outcome=outcome_of(error), error=same) for call in self.calls}

    def result(self, execute_ns: int) -> BatchResult:
        """An answer for each item; one without, or dropped meanwhile, was cancelled."""
        unwanted = self._batch.dropped
        results = []
        for call, _ in self._batch.frame.items:
            answer = None if call in unwanted else self._answers.get(call)
            results.append(answer or ItemResult(call=call, outcome=Outcome.CANCELLED))
        return BatchResult(
            batch=self._batch.frame.batch, results=tuple(results), execute_ns=execute_ns, whole=self._whole
        )


def run_batch(target: Target, batch: Batch, line: Line) -> BatchResult:
    """Run one batch to its end. Never raises."""
    columns = Columns(target, batch)
    began = now()
    try:
        if columns.calls:
            value = columns.ready()()
            spent = now() - began
            line.heed()
            columns.answer(value)
            return columns.result(spent)
    except BaseException as error:  # noqa: BLE001 - as in run_call
        columns.fail(error)
    return columns.result(now() - began)


def item_failed(call: str, error: BaseException) -> ItemResult:
    """One item's failure."""
    return ItemResult(call=call, outcome=outcome_of(error), error=remote_error(error))


def _item(call: str, value: Any, room: int) -> ItemResult:
    if isinstance(value, BaseException):
        return item_failed(call, value)
    try:
        return ItemResult(call=call, output=encoded(value, room))
    except BadOutput as error:
        return item_failed(call, error)


def _article(cls: type) -> str:
    name = type_name(cls)
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
