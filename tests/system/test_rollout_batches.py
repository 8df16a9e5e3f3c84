"""A batching function on a real platform: an equal version is not dearer for having fewer mates in its batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.test_rollouts import rollout_of
from tests.waiting import wait_until

CODE = """
import time

from pilotlight import App, batched

app = App("shop")


@app.gpu_function(min_containers=1, max_containers=1, forecast=False)
@batched(max_batch_size=8, wait_ms=15)
def price(item: list[str]) -> list[int]:
    time.sleep(0.04 + 0.001 * len(item))
    return [{answer} for _ in item]
"""
CALLERS = 16
COMPARED = 250
"""Calls of the new version: without a twin an equal one is rolled back after fewer."""


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with run_platform(tmp_path, "--cpu-slots", "4", "--blanks", "0") as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("twin", [True, False])
def test_with_a_twin_an_equal_version_is_left_alone_and_without_one_it_is_called_back(
    platform: Platform, tmp_path: Path, *, twin: bool
) -> None:
    """A tenth of the calls come in smaller batches, whose calls are dearer. The twin has a tenth as well."""
    deploy(platform, tmp_path, "1")
    over = threading.Event()

    def call() -> None:
        headers = {"Authorization": f"Bearer {platform.key}"}
        with httpx.Client(base_url=platform.url, headers=headers, timeout=60.0) as client:
            while not over.is_set():
                client.post("/v1/functions/shop.price/calls", json={"input": {"item": "x"}})

    callers = [threading.Thread(target=call) for _ in range(CALLERS)]
    for caller in callers:
        caller.start()
    try:
        wait_until(lambda: platform.containers("shop"), "it is called", 30.0)
        deploy(platform, tmp_path, "1 + 0", "--no-traffic")
        terms = {"steps": [10, 100], "every_s": 36_000, "pairs": 0, "twin": twin}
        platform.http.post("/v1/apps/shop/rollout", json=terms).raise_for_status()
        came = wait_until(lambda: judged(platform), "it is judged", 200.0)
    finally:
        over.set()
        for caller in callers:
            caller.join()
    if twin:
        assert came["state"] == "ramp", came["sentences"]
        assert came["evidence"] < 100.0
    else:
        assert came["verdict"] == "regressed", came["sentences"]
        assert max(came["guards"], key=came["guards"].get) in {"cost", "dear"}


def deploy(platform: Platform, folder: Path, answer: str, *options: str) -> None:
    file = folder / "app.py"
    file.write_text(CODE.format(answer=answer))
    platform.cli("deploy", str(file), *options)


def judged(platform: Platform) -> dict[str, Any] | None:
    """The rollout once enough was compared, or it is called back."""
    now = rollout_of(platform)
    is_over = now["state"] in ("rolling_back", "rolled_back")
    return now if is_over or now["calls"].get("canary", 0) >= COMPARED else None
