"""A platform of which a test writes every answer: real HTTP on loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import base64
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import uvicorn

from pilotlight_core.model import values
from pilotlight_core.model.errors import CODES

KEY = "pl_live_test_secret"
JOB = "call_local_1_abc"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def call(self) -> dict[str, Any]:
        """The body of a call: msgpack, arrays and all."""
        decoded: dict[str, Any] = values.decode(self.body)
        return decoded


@dataclass(kw_only=True)
class Answer:
    """An answer, sent piece by piece. `hold`: after the last piece nothing is sent until the client hangs up."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    pieces: Sequence[bytes] = ()
    hold: bool = False
    cut: bool = False
    """Break the connection instead of ending the answer."""
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when the client went away while the answer was held."""
    wait_for: threading.Event | None = None
    """Not answered before this is set."""


def answer(body: Any, status: int = 200, **headers: str) -> Answer:
    """A JSON answer."""
    return Answer(
        status=status, headers={"content-type": "application/json", **headers}, pieces=[msgspec.json.encode(body)]
    )


def problem_document(code: str, detail: str = "it went wrong", **more: Any) -> dict[str, Any]:
    """The document that the gateway writes for an error."""
    meaning = CODES[code]
    return {
        "type": f"urn:pilotlight:error:{code}", "title": meaning.title, "status": meaning.status, "detail": detail,
        "code": code, "advice": meaning.advice, "request_id": "req_1", **more,
    }  # fmt: skip


def problem(
    code: str, detail: str = "it went wrong", *, headers: Mapping[str, str] | None = None, **more: Any
) -> Answer:
    """An error answer."""
    media = {"content-type": "application/problem+json", **(headers or {})}
    body = msgspec.json.encode(problem_document(code, detail, **more))
    return Answer(status=CODES[code].status, headers=media, pieces=[body])


def event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


def typed(value: Any) -> str:
    """A value as typed events carry it."""
    return base64.b64encode(values.encode(value)).decode()


def result(output: Any, **more: Any) -> bytes:
    """The last event of a unary call, typed and readable both."""
    usage = {"gpu_ms": 0.0, "ns": 5, "ppm": 1, "price": "cpu", "cost": "0.000000000001", "currency": "USD"}
    return event(
        "result",
        {
            "id": "call_local_1_abc", "output": output if _is_json(output) else None, "output_b64": typed(output),
            "version": "hello.greet@v1", "usage": {**usage, "batch_size": 1, "attempts": 1},
            "latency": {"total_ms": 12.0, "stages": {"queue": 1.0, "execute": 8.0}}, "cold_start": None, **more,
        },
    )  # fmt: skip


def chunk(seq: int, value: Any) -> bytes:
    return event("chunk", {"seq": seq, "value": value, "value_b64": typed(value)})


def stream(*pieces: bytes, hold: bool = False, cut: bool = False) -> Answer:
    """An event stream."""
    return Answer(headers={"content-type": "text/event-stream"}, pieces=pieces, hold=hold, cut=cut)


def job_taken(name: str = JOB, *, cut: bool = False) -> Answer:
    """The answer of a submission that was stored; `cut`: the connection breaks in it."""
    given = answer({"id": name, "state": "queued"}, status=202)
    return Answer(status=202, headers=given.headers, pieces=given.pieces, cut=cut)


def job_status(state: str, name: str = JOB, **more: Any) -> Answer:
    """How a job is, as msgpack."""
    body = values.encode({"id": name, "state": state, **more})
    return Answer(headers={"content-type": "application/msgpack"}, pieces=[body])


def _is_json(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except TypeError:
        return False
    return not isinstance(value, bytes)


Handler = Callable[[Request], Answer]


class ScriptedPlatform:
    """An ASGI application. Scripted answers to an address are given in turn, the last one for ever."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self._answers: dict[tuple[str, str], deque[Answer]] = {}
        self._handlers: dict[tuple[str, str], Handler] = {}
        self._failure: Answer | None = None

    def will(self, method: str, path: str, *answers: Answer) -> None:
        """Answer requests to `path` with these, in turn."""
        self._answers[method, path] = deque(answers)

    def does(self, method: str, path: str, handler: Handler) -> None:
        """Answer requests to `path` (or below it, if it ends in a slash) as `handler` says."""
        self._handlers[method, path] = handler

    def fail_with(self, given: Answer) -> None:
        """Answer every request with this from now on."""
        self._failure = given

    def asked(self, path: str) -> list[Request]:
        """The requests to `path` so far."""
        return [request for request in self.requests if request.path == path]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = await self._read(scope, receive)
        self.requests.append(request)
        given = self._answer(request)
        if given.wait_for is not None:
            await asyncio.to_thread(given.wait_for.wait, 10)
        headers = [(name.encode(), value.encode()) for name, value in given.headers.items()]
        await send({"type": "http.response.start", "status": given.status, "headers": headers})
        for piece in given.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if given.hold:
            while (await receive())["type"] != "http.disconnect":
                pass
            given.hung_up.set()
        elif given.cut:
            raise ConnectionAbortedError
        else:
            await send({"type": "http.response.body", "body": b""})

    def _answer(self, request: Request) -> Answer:
        if self._failure is not None:
            return self._failure
        address = (request.method, request.path)
        if scripted := self._answers.get(address):
            return scripted.popleft() if len(scripted) > 1 else scripted[0]
        folder = (request.method, request.path.rpartition("/")[0] + "/")
        handler = self._handlers.get(address) or self._handlers.get(folder)
        return handler(request) if handler else problem("not_found", f"no script for {request.method} {request.path}")

    async def _read(self, scope: Any, receive: Any) -> Request:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        return Request(
            method=scope["method"], path=scope["path"], query=scope["query_string"].decode(), headers=headers, body=body
        )


@contextmanager
def serving(platform: ScriptedPlatform) -> Iterator[ScriptedPlatform]:
    """The platform behind a real port."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(platform, log_level="critical", lifespan="off", ws="none", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    platform.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield platform
    finally:
        server.should_exit = server.force_exit = True
        thread.join(10)
        listener.close()
