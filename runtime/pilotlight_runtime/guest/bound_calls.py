"""A call or a batch on its way into the tenant's code, with its arguments read."""

from __future__ import annotations

from typing import Any

import msgspec

from pilotlight_core.model.messages.agent_messages import Outcome
from pilotlight_runtime.guest.call_table import GuestBatch, GuestCall
from pilotlight_runtime.guest.frames import MAX_VALUE, BatchResult, GuestItemResult
from pilotlight_runtime.guest.guest_target import GuestTarget, TargetMethod
from pilotlight_runtime.guest.remote_errors import MAX_TRACEBACK, BadAnswer, BadArguments, remote_error
from pilotlight_runtime.guest.result_frames import encoded, outcome_of, with_article

MAX_TRACEBACKS = 2**20
"""Characters of a batch's tracebacks together."""
LEAST_TRACEBACK = 2 * 1024


class BoundCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A function and its arguments; called, it runs the tenant's code."""

    method: TargetMethod
    first: list[Any]
    named: dict[str, Any]

    def __call__(self) -> Any:
        return self.method.function(*self.first, **self.named)


def method_of(target: GuestTarget, name: str) -> TargetMethod:
    """Raises: BadArguments"""
    try:
        return target.methods[name]
    except KeyError:
        raise BadArguments(f"there is no method {name!r}") from None


def prepared(target: GuestTarget, call: GuestCall) -> BoundCall:
    """What a call's frame asks for.

    Raises:
        BadArguments
    """
    method = method_of(target, call.frame.method)
    first, named = method.parameters.place(method.parameters.read(call.frame.input))
    return BoundCall(method=method, first=first, named=named)


class ColumnBatch:
    """A batch on its way through the tenant's code: items whose input cannot be read have their answer before it."""

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
        """The call of the method with its columns."""
        first, named = self.method.parameters.place(self._named)
        return BoundCall(method=self.method, first=first, named=named)

    def answer(self, value: Any) -> None:
        """Take what the method returned.

        Raises:
            BadAnswer: if it is not a list with an element for each item.
        """
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
        """The method raised, or answered wrongly: every item that was given to it failed with that."""
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
