"""What functions use of an API outside."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight.definitions.errors import OptionError
from pilotlight.upstream.upstream import AUTHORITY_FILE, KEY_VARIABLE, Upstream, UpstreamBatch
from pilotlight_core.model.messages.engine_report import EngineReport, open_engine_reports
from tests.sdk.upstream.test_upstream_calls import FakeTransport, all_of

URL = "https://api.example.com/v1/rank"


@pytest.fixture
def anyio_backend() -> str:
    """Functions run on asyncio."""
    return "asyncio"


def test_it_names_what_its_function_needs() -> None:
    """The host and port, and the places of its secrets."""
    plain = Upstream(URL)
    assert (plain.target, plain.secrets, plain.most_calls) == ("api.example.com:443", {}, 128)
    other = Upstream("https://Api.example.com:8443/", key="k", authority="ca", batch=UpstreamBatch("i", "o"))
    assert other.target == "api.example.com:8443"
    assert other.secrets == {KEY_VARIABLE: "k", AUTHORITY_FILE: "ca"}
    assert other.most_calls == 2 * 64 * 32


@pytest.mark.parametrize(
    "url",
    ["http://api.example.com/", "https://10.0.0.1/", "https://localhost/", "https://u:p@api.example.com/", "api", "",
     "https://api.example.com:99999/", "https://[::1]/"],
)  # fmt: skip
def test_an_address_is_https_and_a_name(url: str) -> None:
    """As the way out of a container has it."""
    with pytest.raises(OptionError):
        Upstream(url)


@pytest.mark.parametrize(
    "options",
    [{"concurrency": 0}, {"concurrency": 10**6}, {"timeout": 0}],
)
def test_options_are_within_their_bounds(options: dict[str, Any]) -> None:
    """And so are those of batches."""
    with pytest.raises(OptionError):
        Upstream(URL, **options)
    for wrong in ({"size": 0}, {"wait_ms": -1}, {"inputs": ""}):
        with pytest.raises(OptionError):
            UpstreamBatch(**{"inputs": "i", "outputs": "o"} | wrong)


async def test_its_calls_go_in_batches_and_tell_when_they_wait(anyio_backend: str) -> None:
    """So that further ones wait at the platform."""
    api, transport = Upstream(URL, batch=UpstreamBatch("inputs", "outputs", size=8, wait_ms=0)), FakeTransport()
    told: list[EngineReport] = []
    open_engine_reports(told.append)
    try:
        api._calls = api.open(transport)
        assert await all_of(api._calls, range(100)) == list(range(100))
        assert await api.call(5) == 5
    finally:
        open_engine_reports(None)
    assert max(len(body["inputs"]) for body in transport.seen) == 8
    assert told[0].waiting > 0
    assert told[-1] == EngineReport()
