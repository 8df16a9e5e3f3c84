"""What the calls of a real platform were, as its gateways together tell it."""

from __future__ import annotations

from typing import Any

from tests.system.support.platform import Platform
from tests.waiting import wait_until


def test_both_gateways_tell_one_story(pair: Platform) -> None:
    """Calls over either of them, a failure, and the queue and container at the function's home."""
    urls = pair.urls
    assert len(urls) == 2
    for number in range(6):
        url = f"{urls[number % 2]}/v1/functions/calls.echo/calls"
        answer = pair.http.post(url, json={"input": {"value": number}})
        assert answer.status_code == 200, answer.text
    refused = pair.http.post(f"{urls[0]}/v1/functions/calls.echo/calls", json={"input": {"nonsense": 1}})
    assert refused.status_code == 422

    found: dict[str, Any] = {}
    available: set[float] = set()

    def told(url: str) -> bool:
        found.update(pair.http.get(f"{url}/v1/functions/calls.echo/stats?window=5m").json())
        return bool(found["calls"] >= 7 and found["home"]["ready"] > 0)

    for url in urls:
        wait_until(lambda url=url: told(url), "both gateways' calls are added up")  # type: ignore[misc]
        assert found["succeeded"] >= 6
        assert found["failed"]["bad_input"] >= 1
        assert found["silent"] == []
        available.add(found["availability"])
        assert {"queue", "execute", "respond"} <= set(found["stages"])
        assert len(found["gateways"]) == 2
    assert len(available) == 1
    listed = pair.http.get("/v1/stats").json()
    assert "calls.echo" in [row["function"] for row in listed["functions"]]
    assert 'pilotlight_function_calls_total{code="",function="calls.echo"' in pair.http.get("/v1/metrics").text
