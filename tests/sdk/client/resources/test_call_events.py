"""A stream over several connections: what breaks is read on, and what nobody wants is cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import pilotlight
from pilotlight import App
from pilotlight.client.resources import call_events
from pilotlight.client.resources.calls import CallsClient
from pilotlight.client.transport.config import ClientConfig
from pilotlight.client.transport.platform_connection import PlatformConnection
from tests.sdk.scripted import (
    JOB,
    KEY,
    Answer,
    ScriptedPlatform,
    answer,
    event,
    problem,
    problem_document,
    result,
    typed,
)

app = App("hello")
CALL, EVENTS = "/v1/functions/hello.count/calls", f"/v1/calls/{JOB}/events"


@app.gpu_function(resumable=True)
def count(upto: int) -> Iterator[int]:
    """Count."""
    yield from range(upto)


def numbered(number: int, value: int) -> bytes:
    """A chunk, as gateways send it."""
    data = {"seq": number, "value": value, "value_b64": typed(value)}
    return f"id: {number}\nevent: chunk\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"


def last(number: int, data: bytes) -> bytes:
    """The last event, with its number."""
    return f"id: {number}\n".encode() + data


def begun(*pieces: bytes, seconds: str = "30", **how: Any) -> Answer:
    """The answer to the call."""
    headers = {"content-type": "text/event-stream", "pilotlight-call-id": JOB, "pilotlight-resume-s": seconds}
    return Answer(headers=headers, pieces=pieces, **how)


def behind(*pieces: bytes, **how: Any) -> Answer:
    """The answer to who comes back."""
    return Answer(headers={"content-type": "text/event-stream"}, pieces=pieces, **how)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between attempts."""
    monkeypatch.setattr(call_events, "BACKOFF_S", 0.001)


@pytest.mark.parametrize("cut", [True, False])
def test_it_is_read_on_behind_the_last_event(platform: ScriptedPlatform, cut: bool) -> None:
    """Broken or ended too soon; what comes twice is passed on once."""
    platform.will("POST", CALL, begun(numbered(1, 0), numbered(2, 1), cut=cut))
    platform.will(
        "GET", EVENTS,
        problem("no_capacity"),
        behind(numbered(2, 1), numbered(3, 2), cut=True),
        behind(event("stage", {"name": "moving", "ms": 1.0}), last(4, result(None))),
    )  # fmt: skip

    assert list(count.remote_gen(3)) == [0, 1, 2]
    assert [request.headers["last-event-id"] for request in platform.asked(EVENTS)] == ["2", "2", "3"]
    assert all(request.query == "values=msgpack" for request in platform.asked(EVENTS))
    assert not platform.asked(f"/v1/calls/{JOB}")


@pytest.mark.parametrize("code", ["unknown_call", "events_gone", "call_lost"])
def test_what_cannot_be_read_on_is_raised(platform: ScriptedPlatform, code: str) -> None:
    """Another attempt would not mend it."""
    platform.will("POST", CALL, begun(numbered(1, 0), cut=True))
    platform.will("GET", EVENTS, problem(code))
    chunks = count.remote_gen(3)

    assert next(chunks) == 0
    with pytest.raises(pilotlight.PilotlightError) as raised:
        next(chunks)
    assert raised.value.wire_code == code
    assert len(platform.asked(EVENTS)) == 1


def test_it_tries_for_as_long_as_the_stream_waits(platform: ScriptedPlatform) -> None:
    """Then it is lost."""
    platform.will("POST", CALL, begun(numbered(1, 0), cut=True, seconds="0.05"))
    platform.will("GET", EVENTS, problem("no_capacity"))

    with pytest.raises(pilotlight.Unavailable):
        list(count.remote_gen(3))
    assert len(platform.asked(EVENTS)) > 1


def test_a_connection_that_was_silent_for_long_is_followed_by_another(
    platform: ScriptedPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream waits from when it breaks, not from when the one before broke."""
    clock = SimpleNamespace(monotonic=lambda: 100.0 * len(platform.asked(EVENTS)))
    monkeypatch.setattr(call_events, "time", clock)
    platform.will("POST", CALL, begun(numbered(1, 0), cut=True))
    platform.will("GET", EVENTS, behind(b": keepalive\n\n", cut=True), behind(numbered(2, 1), last(3, result(None))))

    assert list(count.remote_gen(2)) == [0, 1]


def test_a_last_event_that_is_lost_is_said(platform: ScriptedPlatform) -> None:
    """204: nothing follows, and its result has not come."""
    platform.will("POST", CALL, begun(numbered(1, 0), cut=True))
    platform.will("GET", EVENTS, Answer(status=204))

    with pytest.raises(pilotlight.UnknownCall, match="its last event is lost"):
        list(count.remote_gen(1))


async def test_a_client_that_is_closed_reads_on_nothing(platform: ScriptedPlatform) -> None:
    """Its streams end with it."""
    platform.will("POST", CALL, begun(numbered(1, 0), hold=True))
    connection = PlatformConnection(ClientConfig(url=platform.url, api_key=KEY))
    chunks = CallsClient(connection).stream(count.target, (3,), {})

    assert await anext(chunks) == 0
    await connection.aclose()
    with pytest.raises((pilotlight.UnknownCall, RuntimeError)):  # the latter is aiohttp's, if nobody waits as it closes
        await anext(chunks)
    assert [request.path for request in platform.requests] == [CALL]


def test_an_error_is_the_last_event(platform: ScriptedPlatform) -> None:
    """Nothing is read on behind it."""
    platform.will("POST", CALL, begun(last(1, event("error", problem_document("container_died")))))

    with pytest.raises(pilotlight.ContainerDied):
        list(count.remote_gen(3))
    assert not platform.asked(EVENTS)


def test_who_leaves_cancels(platform: ScriptedPlatform) -> None:
    """By a word, since its going would not end the call; of another stream it does."""
    platform.will("POST", CALL, begun(numbered(1, 0), hold=True), begun(numbered(1, 0), seconds="soon", hold=True))
    platform.will("DELETE", f"/v1/calls/{JOB}", answer({"id": JOB, "cancelled": True}, status=202))
    for _ in range(2):
        with closing(count.remote_gen(3)) as chunks:  # type: ignore[type-var]  # a generator
            assert next(chunks) == 0

    assert [request.method for request in platform.asked(f"/v1/calls/{JOB}")] == ["DELETE"]
