"""Calls that a function makes of others: over its container's port, since it has neither a network nor a key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Any

import msgspec

from pilotlight.client.transport.problems import error_from
from pilotlight.client.transport.wire import OutgoingCall, read_answer
from pilotlight.definitions.call_target import CallTarget
from pilotlight_core.model.errors import NestedRefused
from pilotlight_core.model.messages.running_code import NestedPort, NestedReply

WINDOW = 32
"""Concurrent calls of a map: half of what one call may wait for."""
INSTEAD = {
    "remote_gen": "stream: chunks do not reach a function one by one. .remote(…) of a generator gives their list here.",
    "spawn": "job: a function stores no jobs, since they outlive the call that pays for them. Use .remote(…) or "
    ".map(…), or spawn from outside.",
}


class NestedClient:
    """Calls one function from within another."""

    window = WINDOW

    def __init__(self, port: NestedPort, target: CallTarget, *, has_client: bool) -> None:
        self._port = port
        self._target = target
        self._has_client = has_client

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it and wait for its answer; of a generator that is the list of its chunks.

        Raises:
            NestedRefused: a bound of calls within functions.
            TypeError: if the arguments do not fit.
            PilotlightError: how it failed.
        """
        begun = self._begin(args, kwargs, blocking=True)
        try:
            reply = begun.result()
        except BaseException:
            self._port.leave(begun)
            raise
        return self._answer(reply)

    async def call_async(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do the same in an event loop."""
        return await self._wait(self._begin(args, kwargs, blocking=False))

    def mapped(self, kwargs: dict[str, Any]) -> Callable[[tuple[Any, ...]], Awaitable[Any]]:
        """What calls it with the arguments of one item, in an event loop, for the call that runs here."""
        # It runs in a thread of its own, which knows no call.
        context = copy_context()

        async def call(args: tuple[Any, ...]) -> Any:
            return await self._wait(context.copy().run(self._begin, args, kwargs, blocking=False))

        return call

    def refusal(self, verb: str) -> NestedRefused:
        """Why a function cannot use this verb of others."""
        return NestedRefused(INSTEAD[verb])

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any], *, blocking: bool) -> Future[NestedReply]:
        target, settings = self._target, self._target.settings
        self._check()
        named, placed = (target.callee.bind_call(args, kwargs), ()) if target.callee else (kwargs, args)
        outgoing = OutgoingCall(path="", input=named, method=target.method or None, id=settings.id)
        request = outgoing.body(settings.deadline, args=list(placed) or None)
        of_app = target.spec is not None and target.ref.app == self._port.own_app
        return self._port.begin(str(target.ref), request, of_app=of_app, blocking=blocking)

    async def _wait(self, begun: Future[NestedReply]) -> Any:
        try:
            reply = await asyncio.wrap_future(begun)
        except asyncio.CancelledError:
            self._port.leave(begun)
            raise
        return self._answer(reply)

    def _check(self) -> None:
        settings = self._target.settings
        if self._has_client:
            raise NestedRefused("options(client=…): a function calls those of its own platform. Leave it out.")
        if settings.on_stage is not None:
            raise NestedRefused("options(on_stage=…): calls within functions tell no stages. Leave it out.")
        if settings.idempotency_key is not None:
            raise NestedRefused(
                "options(idempotency_key=…): calls within functions are carried out once for each run of their caller. "
                "Leave it out."
            )
        if settings.sticky is not None:
            raise NestedRefused("options(sticky=…): calls within functions are on their caller's side. Leave it out.")
        if settings.run_at is not None:
            raise NestedRefused("options(run_at=…): calls within functions begin at once. Leave it out.")

    def _answer(self, reply: NestedReply) -> Any:
        if reply.problem:
            raise error_from(msgspec.json.decode(reply.problem, type=dict[str, Any]))
        return self._target.as_stored(read_answer(reply.body))
