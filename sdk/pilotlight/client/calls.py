"""Calling functions: one event stream per call, from the first stage to the result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from pilotlight.client.connection import Connection, lost
from pilotlight.client.keyed import AUTO, call_keyed
from pilotlight.client.problems import error_from
from pilotlight.client.retry import Patience
from pilotlight.client.sse import events
from pilotlight.client.wire import EVENTS, MSGPACK, Outgoing, read_json, value_in
from pilotlight.errors import DeadlineExceeded, Misuse, PilotlightError
from pilotlight.signature import METHOD, ORDER

if TYPE_CHECKING:
    from pilotlight.function import CallSettings, Function

GRACE_S = 5.0
"""What a caller waits beyond its deadline for the platform to say that it has passed."""
MAX_DESCRIBED = 256
Event = tuple[str, dict[str, Any]]
"""("stage" | "chunk" | "result", its data)"""


class Calls:
    """Live calls over one connection."""

    def __init__(self, connection: Connection, *, grace_s: float = GRACE_S) -> None:
        self._connection = connection
        self._grace_s = grace_s
        self._orders: dict[tuple[str, str], list[str]] = {}

    async def call(self, function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The answer of a function that returns."""
        if function.settings.idempotency_key is not None:
            return await self._keyed(function, args, kwargs)
        async with aclosing(self._stream_of(function, args, kwargs)) as stream:
            async for name, data in stream:
                if name == "chunk":
                    raise Misuse(f"{function.label} is a generator: iterate over .remote_gen(…) instead.")
                if name == "result":
                    return value_in(data, "output")
        raise AssertionError("a stream ends with a result or raises")

    async def stream(
        self, function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """The chunks of a generator."""
        if function.settings.idempotency_key is not None:
            raise Misuse("idempotency_key: a stream is not kept, so it cannot have one.", field="idempotency_key")
        chunks = 0
        async with aclosing(self._stream_of(function, args, kwargs)) as stream:
            async for name, data in stream:
                if name == "chunk":
                    chunks += 1
                    yield value_in(data, "value")
                elif name == "result" and not chunks and value_in(data, "output") is not None:
                    raise Misuse(f"{function.label} is no generator: call .remote(…) instead.")

    async def events(self, outgoing: Outgoing, patience: Patience) -> AsyncGenerator[Event, None]:
        """Everything that happens to a call; the last event is its result. Closing the iterator cancels the call.

        Raises:
            PilotlightError: how it failed, once sending it again is no longer safe or no longer helps.
        """
        while True:
            chunks = 0
            try:
                async with aclosing(self._attempt(outgoing, patience)) as attempt:
                    async for name, data in attempt:
                        chunks += name == "chunk"
                        yield name, data
                return
            except PilotlightError as error:
                if chunks:
                    raise  # what was passed on cannot be taken back
                await patience.wait_after(error)

    async def describe(self, ref: str, method: str) -> list[str]:
        """The parameters of a deployed function in order; asked for once."""
        if (ref, method) not in self._orders:
            document = read_json(await self._connection.fetch("GET", f"/v1/functions/{ref}/openapi.json"))
            if len(self._orders) >= MAX_DESCRIBED:
                self._orders.clear()
            self._orders[ref, method] = _order_in(document, method) or []
        return self._orders[ref, method]

    async def _keyed(self, function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if function.is_generator:
            raise Misuse(f"{function.label} is a generator: iterate over .remote_gen(…) instead.")
        settings = function.settings
        return await call_keyed(
            self._connection,
            await self.outgoing(function, args, kwargs),
            settings.idempotency_key or AUTO,
            deadline=settings.deadline,
            grace_s=self._grace_s,
        )

    async def outgoing(self, function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Outgoing:
        """The call, ready to be sent."""
        return Outgoing(
            path=f"/v1/functions/{function.ref}/calls",
            input=await self._named(function, args, kwargs),
            method=function.method or None,
            id=function.settings.id,
        )

    async def _stream_of(
        self, function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AsyncGenerator[Event, None]:
        settings = function.settings
        outgoing = await self.outgoing(function, args, kwargs)
        repeatable = function.callee is not None and function.spec.idempotent
        patience = Patience(settings.deadline, repeatable=repeatable)
        async with aclosing(self.events(outgoing, patience)) as stream:
            while True:
                try:
                    # Around each wait and not around the loop: what the caller does between chunks is its own time.
                    async with asyncio.timeout(None if patience.left is None else patience.left + self._grace_s):
                        name, data = await anext(stream)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    raise DeadlineExceeded(f"{function.label} was not answered within {settings.deadline} s.") from None
                if name == "stage":
                    _tell(settings, data)
                else:
                    yield name, data

    async def _named(self, function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if function.callee is not None:
            return function.callee.named(args, kwargs)
        if not args:
            return kwargs
        order = await self.describe(str(function.ref), function.method)
        if len(args) > len(order) or set(order[: len(args)]) & kwargs.keys():
            takes = f"its parameters are ({', '.join(order)})" if order else "pass arguments by name"
            raise TypeError(f"{function.label} cannot be called with these arguments: {takes}.")
        return dict(zip(order, args, strict=False)) | kwargs

    async def _attempt(self, outgoing: Outgoing, patience: Patience) -> AsyncGenerator[Event, None]:
        body = outgoing.body(patience.left)
        headers = {"Content-Type": MSGPACK, "Accept": EVENTS}
        async with (
            self._connection.open(
                "POST", outgoing.path, content=body, headers=headers, params=outgoing.params
            ) as answer,
            aclosing(events(answer.aiter_bytes())) as stream,
        ):
            async for event in stream:
                data = read_json(event.data)
                if event.name == "error":
                    raise error_from(data)
                if event.name in ("stage", "chunk", "result"):
                    yield event.name, data
                if event.name == "result":
                    return
        raise lost("The answer broke off before its end; the call may have been carried out.")


def _tell(settings: CallSettings, data: dict[str, Any]) -> None:
    if settings.on_stage is not None:
        settings.on_stage(str(data.get("name", "")), float(data.get("ms", 0.0)), data.get("detail") or {})


def _order_in(document: Any, method: str) -> list[str] | None:
    """The parameters' order, which the SDK wrote into the input schema, wherever in the document that stands."""
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
