"""Calls without room run at their function's fallback, which the answer, the receipt and a metric name."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.system.support.platform import Platform
from tests.system.support.sample_apps import APPS, deployed
from tests.waiting import wait_until

CALLS = 6


@pytest.fixture(scope="module", autouse=True)
def _deployed(platform: Platform) -> Iterator[None]:
    with deployed(platform, APPS / "fallbacks" / "app.py"):
        platform.cli("quota", "set", "default", "queue_calls=1", "--function", "fallbacks.big")
        yield
        platform.cli("quota", "clear", "default", "--function", "fallbacks.big")


def test_a_call_for_which_there_is_no_room_runs_at_the_fallback(platform: Platform) -> None:
    """One may wait: of six at once most have no place, and none is refused."""

    def call(number: int) -> dict[str, Any]:
        answer = platform.http.post("/v1/functions/fallbacks.big/calls", json={"input": {"text": str(number)}})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    with ThreadPoolExecutor(CALLS) as pool:
        answers = list(pool.map(call, range(CALLS)))
    fell_back = [answer for answer in answers if "fallback_for" in answer]
    assert len(fell_back) >= CALLS - 2
    for number, answer in enumerate(answers):
        name = "small" if answer in fell_back else "big"
        assert (answer["output"], answer["version"]) == (f"{name} {number}", f"fallbacks.{name}@v1")
    assert {answer["fallback_for"] for answer in fell_back} == {"fallbacks.big@v1"}

    receipt = f"/v1/calls/{fell_back[0]['id']}/receipt"
    wait_until(lambda: platform.http.get(receipt).status_code == 200, "the call is in the ledger")
    assert "fallbacks.small" in platform.http.get(receipt).text
    (exposition,) = platform.metrics()
    assert f'pilotlight_fallbacks_total{{reason="queue_full"}} {len(fell_back)}.0' in exposition
