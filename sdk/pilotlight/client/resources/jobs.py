"""Durable calls: submitted once, then polled."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from urllib.parse import quote

import msgspec

from pilotlight.client.resources.calls import CallsClient
from pilotlight.client.resources.keyed_calls import make_key
from pilotlight.client.resources.platform import Json, PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.client.transport.problems import error_from
from pilotlight.client.transport.retry import RequestRetries
from pilotlight.client.transport.wire import MSGPACK, OutgoingCall
from pilotlight.definitions.call_target import CallTarget
from pilotlight.definitions.errors import BadInput, BadOutput, Cancelled, NotEnded
from pilotlight_core.model import values

WAIT_S = 25
"""How long one request waits for the end of a job; below `platform_connection.SILENCE_S`."""
LEAST_TURN_S = 1.0
"""A gateway that is about to end answers at once; it is not asked more often than so."""
ENDED = ("succeeded", "failed", "cancelled", "expired")
PAGE = 100


def pause_after(answered_s: float, left_s: float) -> float:
    """How long not to ask again for a job that had not ended, as the answer took `answered_s` of `left_s` seconds."""
    return max(0.0, min(LEAST_TURN_S, left_s) - answered_s)


class JobsClient:
    def __init__(self, connection: PlatformConnection, calls: CallsClient, platform: PlatformClient) -> None:
        self._connection = connection
        self._calls = calls
        self._platform = platform

    async def spawn(self, target: CallTarget, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Store a call; return its id."""
        call = await self._calls.prepare(target, args, kwargs)
        settings = target.settings
        key = settings.idempotency_key if settings.idempotency_key not in (None, "auto") else None
        return await self.submit(call, key=key, run_at=settings.run_at, deadline=settings.deadline)

    async def submit(
        self, call: OutgoingCall, *, key: str | None = None, run_at: float | None = None, deadline: float | None = None
    ) -> str:
        """Store a call under one key, however often it is sent; return its id.

        `run_at`: unix seconds before which it does not begin. `deadline`: seconds that it may wait for a container.
        """
        headers = {"Content-Type": MSGPACK, "Accept": MSGPACK, "Prefer": "respond-async", **call.headers}
        if call.id is None:  # which is as good as a key
            headers["Idempotency-Key"] = key or make_key()
        body = call.body(None, run_at=run_at, expires_in_s=deadline)

        async def send() -> bytes:
            return await self._connection.fetch("POST", call.path, content=body, headers=headers)

        answer = await RequestRetries(repeatable=True, from_first_trouble=True).run(send)
        return str(msgspec.json.decode(answer, type=Json)["id"])

    async def wait_result(self, job: str, timeout: float | None = None) -> Any:
        """Return a job's answer, after at most `timeout` seconds.

        Raises:
            NotEnded: if it has not ended by then; it goes on.
            PilotlightError: how it failed.
        """
        end_at = None if timeout is None else time.monotonic() + timeout
        while True:
            asked_at = time.monotonic()
            left = WAIT_S if end_at is None else max(0.0, min(WAIT_S, end_at - asked_at))
            found = await self.get_status(job, wait=left)
            if found["state"] in ENDED:
                return outcome_of(found)
            at = time.monotonic()
            if end_at is not None and at >= end_at:
                raise NotEnded(f"{job} has not ended within {timeout:g} s; it goes on.")
            await asyncio.sleep(pause_after(at - asked_at, left))

    async def get_status(self, job: str, wait: float = 0.0) -> Json:
        """Return a job's state, after waiting at most `wait` seconds for its end."""
        return await RequestRetries(repeatable=True, from_first_trouble=True).run(lambda: self.fetch_status(job, wait))

    async def fetch_status(self, job: str, wait: float = 0.0) -> Json:
        """Do the same in a single attempt."""
        headers = {"Accept": MSGPACK}
        if wait:
            headers["Prefer"] = f"wait={int(wait) or 1}"
        async with self._connection.open("GET", f"/v1/calls/{quote(job, safe='')}", headers=headers) as answer:
            body, packed = await answer.aread(), answer.headers.get("content-type", "").startswith(MSGPACK)
        try:
            found: Json = values.decode(body) if packed else msgspec.json.decode(body, type=Json)
        except ModuleNotFoundError as error:
            raise BadOutput(f"The answer holds an array, and {error.name} is not installed here.") from error
        except (msgspec.DecodeError, BadInput, UnicodeDecodeError) as error:
            raise BadOutput(f"The platform's answer cannot be read: {error}.") from error
        return found

    async def list_page(self, *, state: str = "", function: str = "", limit: int = PAGE, cursor: str = "") -> Json:
        """Return a page of jobs, the last changed first: `jobs`, and the cursor `next`."""
        asked = {"state": state, "function": function, "limit": str(limit), "cursor": cursor}
        params = {name: value for name, value in asked.items() if value}
        return await self._platform.request("GET", "/v1/jobs", params=params, answer_type=Json)

    async def cancel(self, job: str) -> bool:
        """End a job; return whether it was alive."""
        return await self._platform.cancel_call(job)

    async def redrive(self, job: str) -> Json:
        """Queue a dead or cancelled job anew."""
        return await self._platform.request("POST", f"/v1/jobs/{quote(job, safe='')}/redrive", answer_type=Json)

    async def gather(self, jobs: list[str], *, timeout: float | None, keep_exceptions: bool) -> list[Any]:
        """Return the answers of all jobs, in order; failures are raised, or kept."""
        results = (self.wait_result(job, timeout) for job in jobs)
        return list(await asyncio.gather(*results, return_exceptions=keep_exceptions))


def outcome_of(found: Json) -> Any:
    """Return the answer of a job that has ended.

    Raises:
        PilotlightError: how it failed.
    """
    if found["state"] == "succeeded":
        return found.get("output")
    if found["state"] == "cancelled":
        raise Cancelled("The job was cancelled.")
    error = found.get("error") or {"code": "deadline_exceeded", "detail": "The job did not start in the time it had."}
    raise error_from({**error, "call_id": found["id"]})
