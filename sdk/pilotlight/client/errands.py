"""Inputs of a map carried out as durable jobs: each is stored before it runs, and is one job however often it is sent.

An input has an id of its own, so that a submission whose answer is lost is sent again and meets its own job, and so
that it can be cancelled before its answer is there. One request submits it and waits for its end; only what takes
longer is asked for again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pilotlight.client.calls import Calls
from pilotlight.client.connection import Connection
from pilotlight.client.jobs import ENDED, WAIT_S, Jobs, outcome
from pilotlight.client.pace import Pace
from pilotlight.client.platform import Json, Platform
from pilotlight.client.wire import MSGPACK, Outgoing, read_answer
from pilotlight.errors import PilotlightError
from pilotlight_core.model.ids import token

if TYPE_CHECKING:
    from pilotlight.function import Function

T = TypeVar("T")

PATIENCE_S = 60.0
"""How long a map goes on while nothing that it asks is answered: a gateway is restarted in less."""
LONGEST_WAIT_S = 300.0
"""Who is told to come back later than that is not kept waiting, but told."""
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
KEEP_S = 3600.0
"""How long the platform keeps the result of an input, which is fetched as soon as it is there."""
GOODBYE_S = 1.5
"""For cancelling, of which an input that is being submitted may not be known yet."""
GOODBYE_PAUSE_S = 0.1
ALIVE = ("rate_limited", "queue_full")
"""Refusals of a platform that is well."""
GONE = ("call_lost", "starting", "draining", "overloaded", "no_capacity", "internal")
"""Errors after which the same is asked again."""


class Errands:
    """The inputs of one map. Called with the arguments of each; cancelling that cancels its job."""

    def __init__(
        self,
        connection: Connection,
        calls: Calls,
        jobs: Jobs,
        platform: Platform,
        function: Function[..., Any],
        kwargs: dict[str, Any],
    ) -> None:
        self._connection = connection
        self._calls = calls
        self._jobs = jobs
        self._platform = platform
        self._function = function
        self._kwargs = kwargs
        self._pace = Pace()
        self._trouble: float | None = None
        """Since when nothing was answered; None: the last thing was."""

    async def __call__(self, args: tuple[Any, ...]) -> Any:
        """What the function returns for these arguments.

        Raises:
            PilotlightError: how it failed, or why nobody could carry it out.
        """
        outgoing = await self._calls.outgoing(self._function, args, self._kwargs)
        outgoing = msgspec.structs.replace(outgoing, id=f"cid_{token()}")
        settings = self._function.settings
        body = outgoing.body(None, run_at=settings.run_at, expires_in_s=settings.deadline, keep_s=KEEP_S)
        sent = False

        async def submit() -> tuple[bool, bytes]:
            nonlocal sent
            sent = True
            return await self._submit(outgoing, body)

        try:
            ended, answer = await self._persist(submit)
            return read_answer(answer) if ended else await self._result(answer)
        except asyncio.CancelledError:
            if sent:
                await self._take_back(outgoing)
            raise

    async def _submit(self, outgoing: Outgoing, body: bytes) -> tuple[bool, bytes]:
        """Whether it has ended, and the answer."""
        prefer = f"respond-async, wait={WAIT_S}"
        headers = {"Content-Type": MSGPACK, "Accept": MSGPACK, "Prefer": prefer}
        async with self._connection.open("POST", outgoing.path, content=body, headers=headers) as answer:
            return answer.status_code != 202, await answer.aread()

    async def _result(self, accepted: bytes) -> Any:
        job = str(msgspec.json.decode(accepted, type=Json)["id"])
        while True:
            found = await self._persist(lambda: self._jobs.look(job, WAIT_S))
            if found["state"] in ENDED:
                return outcome(found)

    async def _persist(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer, asked for again whenever that is safe and may help."""
        pause = FIRST_PAUSE_S
        while True:
            at = await self._pace.turn()
            try:
                answer = await ask()
            except PilotlightError as error:
                wait = self._wait_after(error, pause)
                if wait is None:
                    raise
                pause = min(2 * pause, LONGEST_PAUSE_S)
                self._pace.refused(at, wait)
            else:
                self._trouble = None
                return answer

    def _wait_after(self, error: PilotlightError, pause: float) -> float | None:
        """Seconds until the same may be asked again; None: it would not help."""
        code, at = error.wire_code, time.monotonic()
        if error.more.get("state") in ENDED or code not in (*ALIVE, *GONE):
            self._trouble = None
            return None
        wait = pause if error.retry_after is None else error.retry_after
        if code in ALIVE:
            self._trouble = None
            return wait if wait <= LONGEST_WAIT_S else None
        since = self._trouble = at if self._trouble is None else self._trouble
        return wait if at + wait - since <= PATIENCE_S else None

    async def _take_back(self, outgoing: Outgoing) -> None:
        """Cancel its job. One that was being submitted is there a moment later, or never."""
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(GOODBYE_S):
                while True:
                    try:
                        await self._platform.cancel(str(outgoing.id))
                    except PilotlightError:
                        await asyncio.sleep(GOODBYE_PAUSE_S)
                    else:
                        return
