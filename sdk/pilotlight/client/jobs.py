"""Durable calls over one connection: submitted once, however often it takes, and asked for until they have ended."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from pilotlight.client.calls import Calls
from pilotlight.client.connection import Connection
from pilotlight.client.keyed import fresh_key
from pilotlight.client.platform import Json, Platform
from pilotlight.client.problems import error_from
from pilotlight.client.retry import Patience
from pilotlight.client.wire import MSGPACK, Outgoing
from pilotlight.errors import BadInput, BadOutput, Cancelled, NotEnded
from pilotlight_core.model import values

if TYPE_CHECKING:
    from pilotlight.function import Function

WAIT_S = 25
"""How long one question waits at the platform for the end of a job. Shorter than `connection.SILENCE_S`."""
ENDED = ("succeeded", "failed", "cancelled", "expired")
PAGE = 100


class Jobs:
    """What is asked about durable calls."""

    def __init__(self, connection: Connection, calls: Calls, platform: Platform) -> None:
        self._connection = connection
        self._calls = calls
        self._platform = platform

    async def spawn(self, function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Store a call of a function; its id. Once this returns, it will be carried out."""
        outgoing = await self._calls.outgoing(function, args, kwargs)
        settings = function.settings
        key = settings.idempotency_key if settings.idempotency_key not in (None, "auto") else None
        return await self.submit(outgoing, key=key, run_at=settings.run_at, deadline=settings.deadline)

    async def submit(
        self, outgoing: Outgoing, *, key: str | None = None, run_at: float | None = None, deadline: float | None = None
    ) -> str:
        """Store a call; its id. It is sent as often as it takes to hear that it is stored, under one key."""
        headers = {"Content-Type": MSGPACK, "Accept": MSGPACK, "Prefer": "respond-async"}
        if outgoing.id is None:  # which is as good as a key
            headers["Idempotency-Key"] = key or fresh_key()
        body = outgoing.body(None, run_at=run_at, expires_in_s=deadline)

        async def attempt() -> bytes:
            return await self._connection.fetch("POST", outgoing.path, content=body, headers=headers)

        answer = await Patience(repeatable=True, from_first_trouble=True).retrying(attempt)
        return str(msgspec.json.decode(answer, type=Json)["id"])

    async def result(self, job: str, timeout: float | None = None) -> Any:
        """What a job returned, once it has ended.

        Raises:
            DeadlineExceeded: if it has not within `timeout` seconds; it goes on.
            PilotlightError: how it ended.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            left = WAIT_S if end is None else max(0.0, min(WAIT_S, end - time.monotonic()))
            found = await self.status(job, wait=left)
            if found["state"] in ENDED:
                return outcome(found)
            if end is not None and time.monotonic() >= end:
                raise NotEnded(f"{job} has not ended within {timeout:g} s; it goes on.")

    async def status(self, job: str, wait: float = 0.0) -> Json:
        """How a job is, after at most `wait` seconds; its `output` as what it was."""
        return await Patience(repeatable=True, from_first_trouble=True).retrying(lambda: self.look(job, wait))

    async def look(self, job: str, wait: float = 0.0) -> Json:
        """As `status`, asked once."""
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

    async def page(self, *, state: str = "", function: str = "", limit: int = PAGE, cursor: str = "") -> Json:
        """A page of jobs, the last changed first: `jobs` and `next`."""
        asked = {"state": state, "function": function, "limit": str(limit), "cursor": cursor}
        params = {name: value for name, value in asked.items() if value}
        return await self._platform.ask("GET", "/v1/jobs", params=params, answer_type=Json)

    async def cancel(self, job: str) -> bool:
        """End a job; whether it was alive."""
        return await self._platform.cancel(job)

    async def redrive(self, job: str) -> Json:
        """Queue a dead or cancelled job anew."""
        return await self._platform.ask("POST", f"/v1/jobs/{quote(job, safe='')}/redrive", answer_type=Json)

    async def gather(self, jobs: list[str], *, timeout: float | None, keep_exceptions: bool) -> list[Any]:
        """What all of them returned, in order; the first failure ends the waiting, unless failures are kept."""
        results = (self.result(job, timeout) for job in jobs)
        return list(await asyncio.gather(*results, return_exceptions=keep_exceptions))


def outcome(found: Json) -> Any:
    """What a job that has ended returned; raises how it failed."""
    if found["state"] == "succeeded":
        return found.get("output")
    if found["state"] == "cancelled":
        raise Cancelled("The job was cancelled.")
    error = found.get("error") or {"code": "deadline_exceeded", "detail": "The job did not start in the time it had."}
    raise error_from({**error, "call_id": found["id"]})
