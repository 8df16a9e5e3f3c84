"""The platform as a whole: apps, deploys, logs, containers, placement, prices."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec

from pilotlight.client.transport.platform_connection import Content, PlatformConnection
from pilotlight.client.transport.retry import QUICK_CONNECT_S, RequestRetries
from pilotlight.definitions.errors import BadOutput
from pilotlight_core.model.api.call_api import AppInfo, DeployRequest, DeployResponse, RenewRequest
from pilotlight_core.model.api.curve_api import CurveRequest, FunctionCurves, Trial, TrialRequest
from pilotlight_core.model.api.placement_api import ContainerStopInfo, ContainerStopRequest, PlacementQuestion
from pilotlight_core.model.api.price_api import PriceInfo, PriceList
from pilotlight_core.model.api.seeing.diagnosis_api import DiagnosisList, FunctionDiagnosis
from pilotlight_core.model.spec import DEFAULT_BASE, FunctionSpec

T = TypeVar("T")
Json = dict[str, Any]
JSON = {"Content-Type": "application/json", "Accept": "application/json"}
MAX_LINE_BYTES = 2**20


class AppList(msgspec.Struct, frozen=True):
    """The answer of /v1/apps."""

    apps: tuple[AppInfo, ...]


LOCK_SILENCE_S = 300.0
"""A deploy with requirements says nothing while they are resolved: a minute, and again by other nodes."""


class PlatformClient:
    """Requests to the platform as a whole. Reads are repeated after a broken connection."""

    def __init__(self, connection: PlatformConnection) -> None:
        self._connection = connection

    async def list_apps(self) -> tuple[AppInfo, ...]:
        return (await self.request("GET", "/v1/apps", answer_type=AppList)).apps

    async def list_changes(
        self, *, since: str, limit: int, operation: str = "", key: str = "", tenant: str = "", of_all: bool = False
    ) -> Json:
        """Who changed what: `entries`, the oldest first, and whether there are `more`."""
        asked = {
            "since": since, "limit": str(limit), "operation": operation, "key": key, "tenant": tenant,
            "all": "true" * of_all,
        }  # fmt: skip
        params = {name: value for name, value in asked.items() if value}
        return await self.request("GET", "/v1/audit", params=params, answer_type=Json)

    async def list_deploys(self, app: str) -> list[Json]:
        return list((await self.request("GET", f"/v1/apps/{app}/history", answer_type=Json))["history"])

    async def stop_app(self, app: str) -> Json:
        """Take an app out of service."""
        return await self.request("POST", f"/v1/apps/{app}/stop", answer_type=Json)

    async def delete_app(self, app: str) -> Json:
        """Delete an app with its versions."""
        return await self.request("DELETE", f"/v1/apps/{app}", answer_type=Json)

    async def deploy_app(self, app: str, request: DeployRequest) -> DeployResponse:
        """Deploy an app, unless blobs are `missing` and must be uploaded first."""
        timeout = LOCK_SILENCE_S if request.requirements else None
        return await self.request(
            "POST", f"/v1/apps/{app}/deploys", body=request, answer_type=DeployResponse, timeout=timeout
        )

    async def renew_app(self, app: str, ends_in_s: float) -> Json:
        """Let a run end that many seconds from now."""
        body = RenewRequest(ends_in_s=ends_in_s)
        return await self.request("POST", f"/v1/apps/{app}/renew", body=body, answer_type=Json)

    async def upload_blob(self, sha256: str, size: int, read: Callable[[], Content]) -> None:
        """Upload one blob of `size` bytes; each attempt calls `read` anew."""
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}

        async def send() -> bytes:
            return await self._connection.fetch("PUT", f"/v1/blobs/{sha256}", content=read(), headers=headers)

        await RequestRetries(repeatable=True).run(send)

    async def list_containers(self) -> list[Json]:
        return list((await self.request("GET", "/v1/containers", answer_type=Json))["containers"])

    async def stop_container(self, container: str, grace_s: float | None = None) -> ContainerStopInfo:
        """End a container: its calls have `grace_s` seconds (default: the platform's grace), then it is killed.

        Raises:
            NotFound: if the tenant has none of that id.
        """
        path = f"/v1/containers/{quote(container, safe='')}/stop"
        body = ContainerStopRequest(grace_s=grace_s)
        return await self.request("POST", path, body=body, answer_type=ContainerStopInfo)

    async def get_fleet(self) -> Json:
        """Return every GPU and slot: `devices`, and `totals` by type."""
        return await self.request("GET", "/v1/fleet", answer_type=Json)

    async def explain_placement(self, subject: str = "", why_not: str = "", method: str = "") -> Json:
        """Return the reasons for the place of a container (its id) or of a function's containers: `lines`, `decisions`.

        `why_not`: a node, to learn why it was not chosen; `method`: of a class.
        """
        named = {"function" if {".", ":"} & {*subject} else "container": subject, "method": method, "why_not": why_not}
        params = {key: value for key, value in named.items() if value}
        return await self.request("GET", "/v1/placement/explain", params=params, answer_type=Json)

    async def explain_function(self, ref: str, at: str = "", *, advised: bool = False) -> Json:
        """Return why a function has the containers that it has: `lines`, `changes`, `methods`, `more_needs`.

        `at`: of an instant, in ISO 8601 with a zone. `advised`: what a controller that only advises would have.
        """
        params = {"at": at} if at else {}
        params |= {"advised": "true"} if advised else {}
        return await self.request("GET", f"/v1/functions/{ref}/explanation", params=params, answer_type=Json)

    async def diagnose_function(self, ref: str, window: str = "10m", rate: float | None = None) -> FunctionDiagnosis:
        """Return what bounds a function, with evidence, what to do, and what will be different then.

        `rate`: calls per second that are wanted, if that is more than there are.
        """
        params = {"window": window} | ({} if rate is None else {"rate": f"{rate:g}"})
        path = f"/v1/functions/{ref}/diagnosis"
        return await self.request("GET", path, params=params, answer_type=FunctionDiagnosis)

    async def list_diagnoses(self, window: str = "10m") -> DiagnosisList:
        """Return a sentence for each function that had calls: what bounds it, or that nothing does."""
        return await self.request("GET", "/v1/diagnoses", params={"window": window}, answer_type=DiagnosisList)

    async def plan_deployed(self, ref: str, rps: float | None = None, method: str = "") -> Json:
        """Return a function's need of GPU memory, and whether the fleet could hold it: `lines`, `plans`, `fits`.

        `rps`: calls per second, to count containers for. A `method` is planned as its class.
        """
        params = {} if rps is None else {"rps": f"{rps:g}"}
        params |= {"method": method} if method else {}
        return await self.request("GET", f"/v1/functions/{ref}/placement", params=params, answer_type=Json)

    async def plan_undeployed(self, spec: FunctionSpec, method: str = "", *, base: str = DEFAULT_BASE) -> Json:
        """Do as `plan_deployed` for a function that is not deployed."""
        body = PlacementQuestion(spec=spec, method=method, base=base)
        return await self.request("POST", "/v1/placement/plan", body=body, answer_type=Json)

    async def get_curves(self, ref: str) -> FunctionCurves:
        """Return a version's curves by slice, and the slices that could measure it."""
        return await self.request("GET", f"/v1/functions/{ref}/curves", answer_type=FunctionCurves)

    async def put_curve(self, ref: str, given: CurveRequest) -> FunctionCurves:
        """Store a measured curve of a version."""
        return await self.request("PUT", f"/v1/functions/{ref}/curves", body=given, answer_type=FunctionCurves)

    async def start_trial(self, ref: str, gpu: str, slice_: str) -> Trial:
        """Make a copy of a version that runs on one kind of slice only."""
        body = TrialRequest(gpu=gpu, slice=slice_)
        return await self.request("POST", f"/v1/functions/{ref}/trials", body=body, answer_type=Trial)

    async def list_prices(self) -> PriceList:
        """Return what an hour costs, and from when on."""
        return await self.request("GET", "/v1/prices", answer_type=PriceList)

    async def set_price(
        self, price: str, usd_per_hour: str, starts: str | None, minimum_ms: int | None = None
    ) -> PriceInfo:
        """Change a price from an instant or a day on; None: as soon as all processes can know of it."""
        body: Json = {"usd_per_hour": usd_per_hour, "from": starts}
        if minimum_ms is not None:
            body["minimum_ms"] = minimum_ms
        return await self.request("PUT", f"/v1/prices/{quote(price, safe='')}", body=body, answer_type=PriceInfo)

    async def drop_price_changes(self, price: str) -> PriceInfo:
        """Take back the changes of a price that are to come."""
        path = f"/v1/prices/{quote(price, safe='')}/changes"
        return await self.request("DELETE", path, answer_type=PriceInfo)

    async def get_quarantine(self, node: str | None, limit: int) -> Json:
        """Return the last usage that cannot be, of one node or of all: `items` and `counts`."""
        params = {"limit": str(limit)} | ({"node": node} if node else {})
        return await self.request("GET", "/v1/usage/quarantine", params=params, answer_type=Json)

    async def cancel_call(self, id: str) -> bool:  # noqa: A002
        """Cancel a call by its id or the caller's own; return whether it was alive.

        A plain function that runs goes on to its end, and is charged.

        Raises:
            UnknownCall: if there is none.
        """
        answer = await self.request("DELETE", f"/v1/calls/{quote(id, safe='')}", answer_type=Json)
        return bool(answer.get("cancelled", True))

    async def read_logs(
        self,
        app: str,
        *,
        function: str | None = None,
        call_id: str | None = None,
        since: str | None = None,
        tail: int | None = None,
        follow: bool = False,
    ) -> AsyncGenerator[Json, None]:
        """Yield an app's log lines, oldest first; only the last `tail`; with `follow`, without end.

        `call_id`: only those of one call. `since`: 30s, 10m, 2h or 1d ago, or unix seconds.
        """
        named = {
            "function": function,
            "call": call_id,
            "since": since,
            "tail": None if tail is None else str(tail),
            "follow": "true" if follow else None,
        }
        params = {key: value for key, value in named.items() if value}
        headers = {"Accept": "application/x-ndjson"}
        path = f"/v1/apps/{app}/logs"
        # A function that prints nothing keeps its log open and silent: only the far end's closing it is an end.
        async with self._connection.open("GET", path, params=params, headers=headers, timeout=3600.0) as answer:
            async for line in _lines(answer.aiter_bytes()):
                yield msgspec.json.decode(line)

    async def send(self, method: str, path: str) -> None:
        """Send a request whose answer has no content."""
        await self._connection.fetch(method, path)

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: msgspec.Struct | Json | None = None,
        params: Mapping[str, str] | None = None,
        answer_type: type[T],
        timeout: float | None = None,
    ) -> T:
        """Send a request with a JSON body or none; return its answer. `timeout`: as `PlatformConnection.fetch` has it.

        Raises:
            BadOutput: if the answer is no `answer_type`.
        """
        content = None if body is None else msgspec.json.encode(body)

        async def send() -> bytes:
            return await self._connection.fetch(
                method, path, content=content, params=params, headers=JSON, timeout=timeout
            )

        answer = await RequestRetries(repeatable=method == "GET", connect_within=QUICK_CONNECT_S).run(send)
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
