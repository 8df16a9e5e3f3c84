"""Maps over durable jobs: each input is one job, however often it is sent.

The client chooses each job's id: a repeated submission finds its job, and a job can be cancelled before its answer is
there. One request submits a job and waits for its end; a longer job is polled.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from pilotlight.client.poll_backoff import PollBackoff
from pilotlight.client.resources.calls import CallsClient
from pilotlight.client.resources.jobs import ENDED, WAIT_S, JobsClient, outcome_of, pause_after
from pilotlight.client.resources.platform import Json, PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.client.transport.retry import attempts
from pilotlight.client.transport.wire import MSGPACK, OutgoingCall, read_answer
from pilotlight.definitions.call_target import CallTarget
from pilotlight.definitions.errors import PilotlightError
from pilotlight_core.model.ids import token

T = TypeVar("T")

PATIENCE_S = 60.0
"""How long a map goes on without answers; a gateway restarts in less."""
LONGEST_WAIT_S = 300.0
"""The longest Retry-After to wait out."""
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
KEEP_S = 3600.0
"""How long the platform keeps a result."""
GOODBYE_S = 1.5
"""How long a cancellation may take: the platform may not know the job yet."""
GOODBYE_PAUSE_S = 0.1
ALIVE = ("rate_limited", "queue_full")
"""Codes by which a healthy platform refuses."""
GONE = ("call_lost", "starting", "draining", "overloaded", "no_capacity", "internal")
"""Codes after which the same request is repeated."""


class DurableMap:
    """Calls one function as durable jobs; cancelling a call cancels its job."""

    def __init__(
        self,
        connection: PlatformConnection,
        calls: CallsClient,
        jobs: JobsClient,
        platform: PlatformClient,
        target: CallTarget,
        kwargs: dict[str, Any],
    ) -> None:
        self._connection = connection
        self._calls = calls
        self._jobs = jobs
        self._platform = platform
        self._target = target
        self._kwargs = kwargs
        self._backoff = PollBackoff()
        self._trouble_at: float | None = None
        """Since when requests go unanswered."""

    async def __call__(self, args: tuple[Any, ...]) -> Any:
        """Call the function, and return its answer.

        Raises:
            TypeError: if the arguments do not fit.
            PilotlightError: how it failed.
        """
        call = await self._calls.prepare(self._target, args, self._kwargs)
        call = msgspec.structs.replace(call, id=f"cid_{token()}")
        settings = self._target.settings
        body = call.body(None, run_at=settings.run_at, expires_in_s=settings.deadline, keep_s=KEEP_S)
        sent = False

        async def submit() -> tuple[bool, bytes]:
            nonlocal sent
            sent = True
            return await self._submit(call, body)

        try:
            ended, answer = await self._persist(submit)
            return self._target.as_hinted(read_answer(answer) if ended else await self._wait_result(answer))
        except asyncio.CancelledError:
            if sent:
                await self._cancel(call)
            raise

    async def _submit(self, call: OutgoingCall, body: bytes) -> tuple[bool, bytes]:
        """Submit a job; return whether it has ended, and its answer."""
        prefer = f"respond-async, wait={WAIT_S}"
        headers = {"Content-Type": MSGPACK, "Accept": MSGPACK, "Prefer": prefer, **call.headers}
        async with self._connection.open("POST", call.path, content=body, headers=headers) as answer:
            return answer.status_code != 202, await answer.aread()

    async def _wait_result(self, accepted: bytes) -> Any:
        job = str(msgspec.json.decode(accepted, type=Json)["id"])
        while True:
            asked_at = time.monotonic()
            found = await self._persist(lambda: self._jobs.fetch_status(job, WAIT_S))
            if found["state"] in ENDED:
                return outcome_of(found)
            await asyncio.sleep(pause_after(time.monotonic() - asked_at, WAIT_S))

    async def _persist(self, send: Callable[[], Awaitable[T]]) -> T:
        """Repeat a request while that is safe and may help."""
        pause_s, sent_at = FIRST_PAUSE_S, 0.0

        def delay_after(error: PilotlightError) -> float | None:
            nonlocal pause_s
            if (wait_s := self._wait_after(error, pause_s)) is None:
                return None
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self._backoff.note_refusal(sent_at, wait_s)
            return 0.0  # the backoff holds back the next attempt, and those of all the other inputs

        async for attempt in attempts(delay_after):
            with attempt:
                sent_at = await self._backoff.wait_turn()
                answer = await send()
                self._trouble_at = None
                return answer
        raise AssertionError("attempts end with an answer or raise")

    def _wait_after(self, error: PilotlightError, pause_s: float) -> float | None:
        """Return the seconds until the next attempt; None: it would not help."""
        code, at = error.wire_code, time.monotonic()
        if error.more.get("state") in ENDED or code not in (*ALIVE, *GONE):
            self._trouble_at = None
            return None
        wait_s = pause_s if error.retry_after is None else error.retry_after
        if code in ALIVE:
            self._trouble_at = None
            return wait_s if wait_s <= LONGEST_WAIT_S else None
        since = self._trouble_at = at if self._trouble_at is None else self._trouble_at
        return wait_s if at + wait_s - since <= PATIENCE_S else None

    async def _cancel(self, call: OutgoingCall) -> None:
        """Cancel a job; the platform may know a submitted one a moment later, or never."""
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(GOODBYE_S):
                async for attempt in attempts(lambda _: GOODBYE_PAUSE_S):
                    with attempt:
                        await self._platform.cancel_call(str(call.id))
