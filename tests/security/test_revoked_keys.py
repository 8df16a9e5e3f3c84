"""What is open ends with its key, and a request says once who it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.system.support.platform import Platform

pytestmark = pytest.mark.system
APP = Path(__file__).parent / "apps" / "open" / "app.py"
PATIENCE_S = 60.0
"""What is open would go on for an hour."""


@pytest.fixture(scope="module", autouse=True)
def opened(platform: Platform) -> Iterator[None]:
    platform.deploy(APP)
    yield
    assert platform.http.post("/v1/apps/open/stop").is_success


@pytest.fixture
def key(platform: Platform) -> str:
    """A key of its own."""
    return platform.cli("key", "create", "--scopes", "invoke,read").stdout.strip()


def revoke(platform: Platform, key: str) -> None:
    platform.cli("key", "revoke", key.split("_")[2])


def test_a_stream_ends_when_its_key_is_revoked(platform: Platform, key: str) -> None:
    """It has an error as its last event; without that it would go on for an hour."""
    headers = {"Accept": "text/event-stream"}
    body = {"input": {"seconds": 3_600.0}}
    with (
        platform.as_holder_of(key) as client,
        client.stream("POST", "/v1/functions/open.ticks/calls", json=body, headers=headers) as stream,
    ):
        lines = stream.iter_lines()
        assert any(line == "event: chunk" for line in lines)

        revoke(platform, key)

        rest = list(lines)
    assert "event: error" in rest
    assert any("The API key was revoked." in line for line in rest)


def test_a_reader_of_logs_ends_when_its_key_is_revoked(platform: Platform, key: str) -> None:
    """Its connection breaks off."""
    with (
        platform.as_holder_of(key) as client,
        client.stream("GET", "/v1/apps/open/logs", params={"follow": "true"}) as lines,
    ):
        assert lines.status_code == 200
        revoke(platform, key)
        with pytest.raises(httpx.RemoteProtocolError):
            lines.read()


def test_a_call_that_waits_for_its_answer_ends_when_its_key_is_revoked(platform: Platform, key: str) -> None:
    """401, while the call was on its way."""
    with platform.as_holder_of(key) as client, ThreadPoolExecutor(1) as pool:
        sent = pool.submit(client.post, "/v1/functions/open.wait/calls", json={"input": {"seconds": 3_600.0}})
        time.sleep(0.5)  # it may as well be revoked before the call is there: then it is refused
        revoke(platform, key)
        answer = sent.result(PATIENCE_S)
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("path", ["/v1/functions/open.wait/calls", "/v1/apps"])
def test_two_authorization_headers_are_refused(platform: Platform, stranger_key: str, path: str) -> None:
    """In any order, so that nobody in between can be made to see another caller than the gateway does."""
    keys = [f"Bearer {platform.key}", f"Bearer {stranger_key}"]
    for pair in (keys, keys[::-1]):
        headers = [("Authorization", value) for value in pair]
        method = "POST" if path.endswith("calls") else "GET"
        with httpx.Client(base_url=platform.url) as client:
            answer = client.request(method, path, headers=headers, content=b"{}")
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_request")
