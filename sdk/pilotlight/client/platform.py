"""The platform's own endpoints: apps, deploys, logs, containers, usage."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from pilotlight.client.connection import Connection, Content
from pilotlight.client.retry import QUICK_CONNECT_S, Patience
from pilotlight.errors import BadOutput
from pilotlight_core.model.api.call_api import AppInfo, DeployRequest, DeployResponse
from pilotlight_core.model.api.curve_api import CurveRequest, FunctionCurves, Trial, TrialRequest
from pilotlight_core.model.api.placement_api import PlacementQuestion
from pilotlight_core.model.spec import FunctionSpec

T = TypeVar("T")
Json = dict[str, Any]
JSON = {"Content-Type": "application/json", "Accept": "application/json"}
MAX_LINE_BYTES = 2**20


class Apps(msgspec.Struct, frozen=True):
    apps: tuple[AppInfo, ...]


class Platform:
    """What a person or the command line asks for. Reads are sent again where that helps."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def apps(self) -> tuple[AppInfo, ...]:
        """What is deployed."""
        return (await self.ask("GET", "/v1/apps", answer_type=Apps)).apps

    async def history(self, app: str) -> list[Json]:
        """The app's deploys."""
        return list((await self.ask("GET", f"/v1/apps/{app}/history", answer_type=Json))["history"])

    async def stop(self, app: str) -> Json:
        """Take the app out of service."""
        return await self.ask("POST", f"/v1/apps/{app}/stop", answer_type=Json)

    async def deploy(self, app: str, request: DeployRequest) -> DeployResponse:
        """Deploy, or be told which blobs to upload first."""
        return await self.ask("POST", f"/v1/apps/{app}/deploys", body=request, answer_type=DeployResponse)

    async def put_blob(self, sha256: str, size: int, read: Callable[[], Content]) -> None:
        """Upload one blob; `read` is called anew for each attempt."""
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}

        async def attempt() -> bytes:
            return await self._connection.fetch("PUT", f"/v1/blobs/{sha256}", content=read(), headers=headers)

        await Patience(repeatable=True).retrying(attempt)

    async def containers(self) -> list[Json]:
        """The containers that run now."""
        return list((await self.ask("GET", "/v1/containers", answer_type=Json))["containers"])

    async def fleet(self) -> Json:
        """Every GPU and slot: `devices`, and `totals` by type."""
        return await self.ask("GET", "/v1/fleet", answer_type=Json)

    async def explain(self, subject: str = "", why_not: str = "", method: str = "") -> Json:
        """Why a container (its id) or a function's containers (`app.function`) are there: `lines`, `decisions`.

        Of a class also by a `method` of it.

        Raises:
            NotFound: if nothing is remembered of it.
        """
        named = {"function" if {".", ":"} & {*subject} else "container": subject, "method": method, "why_not": why_not}
        params = {key: value for key, value in named.items() if value}
        return await self.ask("GET", "/v1/placement/explain", params=params, answer_type=Json)

    async def placement(self, ref: str, rps: float | None = None, method: str = "") -> Json:
        """How much GPU memory a function needs, and whether the fleet could hold it: `lines`, `plans`, `fits`.

        A `method` of a class is told of as its class.
        """
        params = {} if rps is None else {"rps": f"{rps:g}"}
        params |= {"method": method} if method else {}
        return await self.ask("GET", f"/v1/functions/{ref}/placement", params=params, answer_type=Json)

    async def placement_of(self, spec: FunctionSpec, method: str = "") -> Json:
        """The same for a function that is not deployed."""
        body = PlacementQuestion(spec=spec, method=method)
        return await self.ask("POST", "/v1/placement/plan", body=body, answer_type=Json)

    async def curves(self, ref: str) -> FunctionCurves:
        """How fast a version is on which slices, and where it could be measured."""
        return await self.ask("GET", f"/v1/functions/{ref}/curves", answer_type=FunctionCurves)

    async def put_curve(self, ref: str, given: CurveRequest) -> FunctionCurves:
        """Keep what was measured of a version."""
        return await self.ask("PUT", f"/v1/functions/{ref}/curves", body=given, answer_type=FunctionCurves)

    async def begin_trial(self, ref: str, gpu: str, slice_: str) -> Trial:
        """A version like this one that runs on one kind of slice only."""
        body = TrialRequest(gpu=gpu, slice=slice_)
        return await self.ask("POST", f"/v1/functions/{ref}/trials", body=body, answer_type=Trial)

    async def usage(self, start: str | None, end: str | None) -> Json:
        """The usage report: `lines` and `total`."""
        params = {key: value for key, value in (("from", start), ("to", end)) if value}
        return await self.ask("GET", "/v1/usage", params=params, answer_type=Json)

    async def cancel(self, id: str) -> bool:  # noqa: A002
        """Cancel a call by its id or the caller's own; whether it was still alive.

        What waits never runs. A plain function that runs already runs on to its end, and is charged for that.

        Raises:
            UnknownCall: if there is none.
        """
        answer = await self.ask("DELETE", f"/v1/calls/{quote(id, safe='')}", answer_type=Json)
        return bool(answer.get("cancelled", True))

    async def logs(
        self,
        app: str,
        *,
        function: str | None = None,
        since: str | None = None,
        tail: int | None = None,
        follow: bool = False,
    ) -> AsyncGenerator[Json, None]:
        """The app's log lines, oldest first; the last `tail` of them; with `follow`, without end."""
        named = {
            "function": function,
            "since": since,
            "tail": None if tail is None else str(tail),
            "follow": "true" if follow else None,
        }
        params = {key: value for key, value in named.items() if value}
        headers = {"Accept": "application/x-ndjson"}
        path = f"/v1/apps/{app}/logs"
        # A function that says nothing keeps its log open and silent: only the far end's closing it is an end.
        async with self._connection.open("GET", path, params=params, headers=headers, timeout=3600.0) as answer:
            async for line in _lines(answer.aiter_bytes()):
                yield msgspec.json.decode(line)

    async def tell(self, method: str, path: str) -> None:
        """A request whose answer has no content."""
        await self._connection.fetch(method, path)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | Json | None = None,
        params: Mapping[str, str] | None = None,
        answer_type: type[T],
    ) -> T:
        """The answer to a request with a JSON body or none."""
        content = None if body is None else msgspec.json.encode(body)

        async def attempt() -> bytes:
            return await self._connection.fetch(method, path, content=content, params=params, headers=JSON)

        answer = await Patience(repeatable=method == "GET", connect_within=QUICK_CONNECT_S).retrying(attempt)
        try:
            return msgspec.json.decode(answer, type=answer_type)
        except msgspec.DecodeError as error:
            raise BadOutput(f"The platform's answer to {method} {path} cannot be read: {error}.") from error


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                yield line
        if len(rest) > MAX_LINE_BYTES:
            raise BadOutput(f"A log line is longer than {MAX_LINE_BYTES} bytes.")
    if rest.strip():
        yield rest
