"""Live calls: one event stream each, from the first stage to the result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from pilotlight.client.resources.call_events import read_call
from pilotlight.client.resources.keyed_calls import AUTO, call_keyed
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.client.transport.problems import error_from
from pilotlight.client.transport.retry import RequestRetries
from pilotlight.client.transport.wire import EVENTS, MSGPACK, OutgoingCall, read_json, value_in
from pilotlight.definitions.call_target import CallSettings, CallTarget
from pilotlight.definitions.errors import DeadlineExceeded, Misuse
from pilotlight.definitions.signature import METHOD
from pilotlight_core.model.schema_examples import ORDER

GRACE_S = 5.0
"""How long a caller waits beyond its deadline for the platform's own error."""
MAX_REMEMBERED = 256
"""Functions whose parameters are remembered."""
CallEvent = tuple[str, dict[str, Any]]
"""("stage" | "chunk" | "result", its data)"""


class CallsClient:
    def __init__(self, connection: PlatformConnection, *, grace_s: float = GRACE_S) -> None:
        self._connection = connection
        self._grace_s = grace_s
        self._parameters: dict[tuple[str, str], list[str]] = {}

    async def call(self, target: CallTarget, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function that returns, and return its answer.

        Raises:
            TypeError: if the arguments do not fit.
            Misuse: if they cannot be sent, or the function is a generator.
            PilotlightError: how it failed.
        """
        if target.settings.idempotency_key is not None:
            return await self._call_keyed(target, args, kwargs)
        async with aclosing(self._stream_of(target, args, kwargs)) as stream:
            async for name, data in stream:
                if name == "chunk":
                    raise Misuse(f"{target.label} is a generator: iterate over .remote_gen(…) instead.")
                if name == "result":
                    return target.as_hinted(value_in(data, "output"))
        raise AssertionError("a stream ends with a result or raises")

    async def stream(
        self, target: CallTarget, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """Call a generator, and yield its chunks.

        Raises:
            Misuse: if the function is no generator or has an idempotency key; else as `call`.
        """
        if target.settings.idempotency_key is not None:
            raise Misuse("idempotency_key: a stream is not kept, so it cannot have one.", field="idempotency_key")
        chunks = 0
        async with aclosing(self._stream_of(target, args, kwargs)) as stream:
            async for name, data in stream:
                if name == "chunk":
                    chunks += 1
                    yield target.as_hinted(value_in(data, "value"))
                elif name == "result" and not chunks and value_in(data, "output") is not None:
                    raise Misuse(f"{target.label} is no generator: call .remote(…) instead.")

    async def stream_events(self, call: OutgoingCall, retries: RequestRetries) -> AsyncGenerator[CallEvent, None]:
        """Yield all events of a call, its result last. Closing the iterator cancels the call.

        Raises:
            PilotlightError: how the last attempt failed.
        """
        async for attempt in retries.attempts():
            with attempt:
                async with aclosing(self._attempt(call, retries)) as events:
                    async for name, data in events:
                        if name == "chunk":
                            retries.end()  # what was passed on cannot be taken back
                        yield name, data
                return

    async def fetch_parameters(self, ref: str, method: str) -> list[str]:
        """Return the parameters of a deployed function in order; they are fetched once."""
        if (ref, method) not in self._parameters:
            document = read_json(await self._connection.fetch("GET", f"/v1/functions/{ref}/openapi.json"))
            if len(self._parameters) >= MAX_REMEMBERED:
                self._parameters.clear()
            self._parameters[ref, method] = _order_in(document, method) or []
        return self._parameters[ref, method]

    async def prepare(self, target: CallTarget, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OutgoingCall:
        """Return a call, ready to be sent.

        Raises:
            TypeError: if the arguments do not fit.
        """
        return OutgoingCall(
            path=f"/v1/functions/{target.ref}/calls",
            input=await self._arguments(target, args, kwargs),
            method=target.method or None,
            id=target.settings.id,
            sticky=target.settings.sticky or "",
        )

    async def _call_keyed(self, target: CallTarget, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target.is_generator:
            raise Misuse(f"{target.label} is a generator: iterate over .remote_gen(…) instead.")
        answer = await call_keyed(
            self._connection,
            await self.prepare(target, args, kwargs),
            target.settings.idempotency_key or AUTO,
            deadline=target.settings.deadline,
            grace_s=self._grace_s,
        )
        return target.as_hinted(answer)

    async def _stream_of(
        self, target: CallTarget, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AsyncGenerator[CallEvent, None]:
        settings = target.settings
        call = await self.prepare(target, args, kwargs)
        retries = RequestRetries(settings.deadline, repeatable=target.is_idempotent)
        async with aclosing(self.stream_events(call, retries)) as stream:
            while True:
                try:
                    # Around each wait and not around the loop: what the caller does between chunks is its own time.
                    async with asyncio.timeout(None if retries.left_s is None else retries.left_s + self._grace_s):
                        name, data = await anext(stream)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise DeadlineExceeded(f"{target.label} was not answered within {settings.deadline} s.") from None
                if name == "stage":
                    _report_stage(settings, data)
                else:
                    yield name, data

    async def _arguments(self, target: CallTarget, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if target.callee is not None:
            return target.callee.bind_call(args, kwargs)
        if not args:
            return kwargs
        order = await self.fetch_parameters(str(target.ref), target.method)
        if len(args) > len(order) or set(order[: len(args)]) & kwargs.keys():
            takes = f"its parameters are ({', '.join(order)})" if order else "pass arguments by name"
            raise TypeError(f"{target.label} cannot be called with these arguments: {takes}.")
        return dict(zip(order, args, strict=False)) | kwargs

    async def _attempt(self, call: OutgoingCall, retries: RequestRetries) -> AsyncGenerator[CallEvent, None]:
        body = call.body(retries.left_s)
        headers = {"Content-Type": MSGPACK, "Accept": EVENTS, **call.headers}
        opened = self._connection.open("POST", call.path, content=body, headers=headers, params=call.params)
        async with aclosing(read_call(self._connection, opened, call.params)) as stream:
            async for event in stream:
                data = read_json(event.data)
                if event.event == "error":
                    raise error_from(data)
                if event.event in ("stage", "chunk", "result"):
                    yield event.event, data


def _report_stage(settings: CallSettings, data: dict[str, Any]) -> None:
    if settings.on_stage is not None:
        settings.on_stage(str(data.get("name", "")), float(data.get("ms", 0.0)), data.get("detail") or {})


def _order_in(document: Any, method: str) -> list[str] | None:
    """Find the order of the parameters, which the SDK writes into input schemas."""
    parts: list[Any] = document if isinstance(document, list) else []
    if isinstance(document, dict):
        order = document.get(ORDER)
        if isinstance(order, list) and method in ("", document.get(METHOD)):
            return [str(name) for name in order]
        parts = list(document.values())
    for part in parts:
        if (found := _order_in(part, method)) is not None:
            return found
    return None
