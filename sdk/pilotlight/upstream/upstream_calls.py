"""Calls of an API that are under way in one container.

What waits is bounded by what the container holds; `report_full` says when the API takes no more, so that further calls
wait at the platform, where tenants take turns, instead of here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from pilotlight.upstream.capacity_limit import CapacityLimit
from pilotlight.upstream.upstream_port import NotRun, Overloaded, UpstreamError, UpstreamTransport
from pilotlight.upstream.waiting_items import WaitingItems

MOST_TRIES = 5
"""Of one call."""
CONNECT_PAUSE_S = 0.2
"""Before another try of what found no connection, times the number of tries."""


class BatchFields(NamedTuple):
    """Where a request has its inputs, and an answer its outputs, in lists of the same order; "": no lists."""

    inputs: str = ""
    outputs: str = ""


class UpstreamCall:
    """One call: its input as JSON, and who waits for its output."""

    __slots__ = ("done", "ends_at", "request", "text", "tries", "was_sent")

    def __init__(self, text: str, done: asyncio.Future[Any], ends_at: float) -> None:
        self.text = text
        self.done = done
        self.ends_at = ends_at
        self.tries = 0
        self.was_sent = False
        self.request: UpstreamRequest | None = None
        """The one under way that has it."""


class UpstreamRequest:
    """A request under way: the calls in it, and the task that waits for its answer."""

    __slots__ = ("calls", "sent_at", "task")

    def __init__(self, calls: list[UpstreamCall], sent_at: float) -> None:
        self.calls = calls
        self.sent_at = sent_at
        self.task: asyncio.Task[None] | None = None


class UpstreamCalls:
    """Sends calls in requests. All methods run on one event loop."""

    def __init__(
        self,
        transport: UpstreamTransport,
        limit: CapacityLimit,
        waiting: WaitingItems[UpstreamCall],
        fields: BatchFields,
        *,
        timeout_s: float,
        report_full: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._transport = transport
        self.limit = limit
        self._waiting = waiting
        self._fields = fields
        self._timeout_s = timeout_s
        self._report_full = report_full
        self._told = 0
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._requests: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def call(self, input: Any) -> Any:  # noqa: A002 - its name
        """The output for an input.

        Raises:
            UpstreamError: the API did not give one, or the input is no JSON: others go in the same request.
        """
        try:
            text = json.dumps(input, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise UpstreamError(f"The input is not JSON, which is what the API gets: {error}.") from None
        at = self._loop.time()
        call = UpstreamCall(text, self._loop.create_future(), at + self._timeout_s)
        self._waiting.add(call, at)
        self._send_due()
        try:
            async with asyncio.timeout_at(call.ends_at):
                return await call.done
        except TimeoutError:
            raise UpstreamError(self._late(call)) from None
        except asyncio.CancelledError:
            self._leave(call)
            raise
        finally:
            if call.done.cancelled():
                self._waiting.discard(call)
                self._report()

    async def close(self) -> None:
        """Give up what is under way."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._requests):
            task.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)
        await self._transport.close()

    def _leave(self, call: UpstreamCall) -> None:
        """Its caller has gone: what the API does for nobody else is given up, and makes room.

        Not where the time of all is up: that the API had no answer by then says that it has too much to do.
        """
        request = call.request
        if request is not None and request.task is not None and all(one.done.done() for one in request.calls):
            request.task.cancel()

    def _late(self, call: UpstreamCall) -> str:
        if not call.was_sent:
            return f"The API took no more calls for {self._timeout_s:g} s: the call was not sent."
        return f"The API did not answer within {self._timeout_s:g} s, and may have run the call."

    def _send_due(self) -> None:
        """Send what is due, and wake up when more is. What nobody waits for any more, or too long, is not sent."""
        at = self._loop.time()
        while self.limit.room(at) and (taken := self._waiting.take(at)):
            calls = [call for call in taken if not call.done.done() and at < call.ends_at]
            if not calls:
                continue
            request = UpstreamRequest(calls, at)
            for call in calls:
                call.was_sent, call.request = True, request
            self.limit.send()
            request.task = task = self._loop.create_task(self._request(request))
            self._requests.add(task)
            task.add_done_callback(partial(self._request_over, request))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due_in = self._waiting.due_in(at)
        if due_in is not None and (wait_s := max(due_in, self.limit.pause_s(at))) > 0:
            self._timer = self._loop.call_later(wait_s, self._send_due)
        self._report()

    def _report(self) -> None:
        """Tell how many calls wait for capacity, if that changes from or to none: from a whole request's on."""
        is_full = not self.limit.room(self._loop.time()) and len(self._waiting) >= self._waiting.size
        over = len(self._waiting) if is_full else 0
        if bool(over) != bool(self._told):
            self._told = over
            self._report_full(over)

    def _request_over(self, request: UpstreamRequest, task: asyncio.Task[None]) -> None:
        self._requests.discard(task)
        for call in request.calls:
            if call.request is request:  # it may be in another one by now
                call.request = None
        if task.cancelled():  # here, since one that has not begun to run sees nothing of it
            self.limit.on_failure()
            _fail(request.calls, UpstreamError("The container ends."))
            if not self._is_closed:
                self._send_due()

    async def _request(self, request: UpstreamRequest) -> None:
        calls, sent_at = request.calls, request.sent_at
        try:
            timeout_s = max(call.ends_at for call in calls) - sent_at
            outputs = self._outputs(await self._transport.post(self._body(calls), timeout_s), len(calls))
        except NotRun as error:
            self._on_not_run(calls, error, sent_at)
        except Overloaded as error:
            self.limit.on_refusal(sent_at, self._loop.time(), error.retry_after_s)
            _fail(calls, UpstreamError(f"The API is overloaded, and may have run the call: {error}."))
        except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for it
            self.limit.on_failure()
            _fail(calls, error)
        else:
            self.limit.on_answer()
            for call, output in zip(calls, outputs, strict=True):
                if not call.done.done():
                    call.done.set_result(output)
        self._send_due()

    def _on_not_run(self, calls: list[UpstreamCall], error: NotRun, sent_at: float) -> None:
        at = self._loop.time()
        if error.is_refusal:
            self.limit.on_refusal(sent_at, at, error.retry_after_s)
        else:
            self.limit.on_refusal(sent_at, at, CONNECT_PAUSE_S * (1 + calls[0].tries))
        pause_s, again = self.limit.pause_s(at), []
        for call in calls:
            call.tries += 1
            call.was_sent = False
            if call.done.done():
                continue
            if call.tries < MOST_TRIES and at + pause_s < call.ends_at:
                again.append(call)
            else:
                call.done.set_exception(UpstreamError(f"The API takes no calls, after {call.tries} tries: {error}."))
        self._waiting.add_again(again, at)

    def _body(self, calls: list[UpstreamCall]) -> str:
        if not self._fields.inputs:
            return calls[0].text
        return f"{{{json.dumps(self._fields.inputs)}: [{', '.join([call.text for call in calls])}]}}"

    def _outputs(self, answer: Any, count: int) -> list[Any]:
        if not self._fields.outputs:
            return [answer]
        found = answer.get(self._fields.outputs) if isinstance(answer, dict) else None
        if not isinstance(found, list) or len(found) != count:
            what = f"{len(found)} of them" if isinstance(found, list) else "none"
            raise UpstreamError(f"The API was asked for {count} {self._fields.outputs}, and answered with {what}.")
        return found


def _fail(calls: list[UpstreamCall], error: Exception) -> None:
    for call in calls:
        if not call.done.done():
            call.done.set_exception(error)
