"""Asks the gateways' `/v1` API, for one viewer at a time: bounded connections, times and answers.

What is read is kept for a second for all viewers of one tenant with the same scopes, who would be told the same;
several who ask at once wait for one answer. Whether a viewer's session is still good is asked for each one by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import structlog

from pilotlight_core.host.http_client import HttpClient, NoHttpClient
from pilotlight_gateway.dashboard.page_parts.asking_turns import AskingTurns
from pilotlight_gateway.dashboard.page_parts.shared_work import SharedWork, WorkResult

CONNECTIONS = 32
OF_TENANT = 12
"""Of them for the pages of one tenant: what it asks slowly leaves the others room."""
WITHIN_S = 10.0
ANSWER_BYTES = 32 * 2**20
KEPT_S, UNKNOWN_SESSION = 1.0, 401
KEPT_AT_MOST = 512
KEPT_BYTES = 96 * 2**20
"""Of answers as they came; read they take several times as much."""

log = structlog.get_logger(__name__)


class ApiProblem(Exception):
    """The API's refusal, in its own words; 0: no gateway has answered."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail


class ProblemBody(msgspec.Struct):
    """What is read of the body of a refusal."""

    code: str = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class ApiAnswer:
    status: int
    body: bytes

    def value(self) -> Any:
        """The JSON of it, None for an empty one.

        Raises:
            ApiProblem: it is a refusal, or no JSON.
        """
        if self.status >= 400:
            raise self.problem()
        try:
            return msgspec.json.decode(self.body) if self.body else None
        except msgspec.DecodeError:
            raise ApiProblem(self.status, "internal", "A gateway's answer could not be read.") from None

    def problem(self) -> ApiProblem:
        try:
            told = msgspec.json.decode(self.body, type=ProblemBody)
        except (msgspec.DecodeError, msgspec.ValidationError):
            told = ProblemBody()
        return ApiProblem(self.status, told.code or "internal", told.detail or f"A gateway answered {self.status}.")


class GatewayApi(Protocol):
    """The API of the gateways, as the dashboard asks it."""

    async def ask(self, method: str, path: str, token: str = "", body: Any = None) -> ApiAnswer:
        """One request, with a session's token or an API key. Raises ApiProblem: there is no answer."""
        ...


class GatewayClient:
    """The gateways at `urls`, of which each request tries one after another while they cannot be reached."""

    def __init__(self, urls: Sequence[str], *, ca_file: str = "") -> None:
        self._urls = [url.rstrip("/") for url in urls]
        self._next = 0
        self._client = HttpClient(
            connections=CONNECTIONS, ca_file=ca_file, timeout=WITHIN_S, trust_env=False, follow_redirects=False
        )
        self._free = asyncio.Semaphore(CONNECTIONS)

    async def ask(self, method: str, path: str, token: str = "", body: Any = None) -> ApiAnswer:
        """One request. What changes something is sent to another gateway only if no connection was made.

        Raises:
            ApiProblem: no gateway has answered, or one with too much.
        """
        try:
            client = await self._client.get()
        except NoHttpClient as error:
            raise ApiProblem(0, "internal", f"The dashboard cannot ask: {error}.") from None
        import httpx

        headers = {"accept": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        content = None
        if body is not None:
            headers["content-type"] = "application/json"
            content = msgspec.json.encode(body)
        first = self._next
        for number in range(len(self._urls)):
            url = self._urls[(first + number) % len(self._urls)]
            try:
                async with (
                    self._free,
                    asyncio.timeout(WITHIN_S),
                    client.stream(method, url + path, headers=headers, content=content) as answer,
                ):
                    found = ApiAnswer(status=answer.status_code, body=await _whole(answer))
            except (httpx.ConnectError, httpx.ConnectTimeout):
                self._next = (first + number + 1) % len(self._urls)
                continue
            except (httpx.HTTPError, TimeoutError) as error:
                self._next = (first + number + 1) % len(self._urls)
                if method == "GET":
                    continue
                log.info("a gateway did not answer", path=path, error=type(error).__name__)
                raise ApiProblem(0, "call_lost", "A gateway broke off: whether this was done is not known.") from None
            return found
        raise ApiProblem(0, "unreachable", "No gateway answers at the moment. This page goes on when one does.")

    async def aclose(self) -> None:
        await self._client.aclose()


async def _whole(answer: Any) -> bytes:
    pieces, size = [], 0
    async for piece in answer.aiter_bytes():
        size += len(piece)
        if size > ANSWER_BYTES:
            raise ApiProblem(0, "too_large", "A gateway's answer is larger than a page can show.")
        pieces.append(piece)
    return b"".join(pieces)


class FollowedSource(Protocol):
    """Streams of lines that are followed."""

    async def read(self, audience: object, path: str, token: str) -> tuple[Any, ...]:
        """The last lines at a path. Raises ApiProblem: it is refused."""
        ...


class AnswerCache:
    """Answers to GET, for a second, by who would be told the same. `clock` is monotonic seconds."""

    def __init__(
        self,
        client: GatewayApi,
        clock: Callable[[], float] = time.monotonic,
        followed: FollowedSource | None = None,
    ) -> None:
        self._client = client
        self.followed = followed
        """Streams of lines; None: none is followed here."""
        self._work = SharedWork[Any](at_most=KEPT_AT_MOST, most_bytes=KEPT_BYTES, clock=clock)
        self._turns = AskingTurns(at_a_time=OF_TENANT)

    def __len__(self) -> int:
        return len(self._work)

    async def read(self, audience: object, path: str, token: str) -> Any:
        """The JSON at a path, for the holder of `token`, who is one of `audience`.

        Raises:
            ApiProblem: the refusal.
        """

        async def ask() -> WorkResult[Any]:
            try:
                async with self._turns.taking(_tenant_of(audience)):
                    answer = await self._client.ask("GET", path, token)
                return WorkResult((answer.value(),), KEPT_S, len(answer.body))
            except ApiProblem as problem:
                # That a session has ended is nobody else's; other refusals are told to all who wait.
                return WorkResult(problem, 0.0 if problem.status == UNKNOWN_SESSION else KEPT_S / 2)

        found = await self._work.get((audience, path), ask)
        if isinstance(found, ApiProblem):
            raise ApiProblem(found.status, found.code, found.detail)
        return found[0]


def _tenant_of(audience: object) -> object:
    return audience[0] if isinstance(audience, tuple) else audience
