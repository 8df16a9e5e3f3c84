"""Pairs of shadows on a real platform: they see what a little more costs, nobody notices them, and nobody pays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.system.support.ledger import check_no_instant_is_sold_twice, check_nothing_is_in_quarantine, rows
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.test_rollouts import WORKS, WORKS_TOO, rollout_of, write_app
from tests.waiting import wait_until

BASE_S, DEARER_S = 0.1, 0.103
"""Three percent more of a slot's time: less than the 5 % that live calls tolerate."""
MOST_PAIRS, LEAST_SHADOWS = 300, 60
FOUND_S = 240.0


@dataclass(kw_only=True)
class Callers:
    """Two, that pause as long as they call; the ids of their calls, and answers that are not the old version's."""

    platform: Platform
    ids: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @contextmanager
    def calling(self) -> Iterator[None]:
        over = threading.Event()

        def call() -> None:
            headers = {"Authorization": f"Bearer {self.platform.key}"}
            with httpx.Client(base_url=self.platform.url, headers=headers, timeout=60.0) as client:
                while not over.wait(BASE_S):
                    done = client.post("/v1/functions/shop.price/calls", json={"input": {"item": "x"}})
                    if done.status_code != 200 or done.json()["output"] != 1:
                        self.wrong.append(done.text)
                    self.ids.append(done.json()["id"])

        callers = [threading.Thread(target=call) for _ in range(2)]
        for caller in callers:
            caller.start()
        try:
            yield
        finally:
            over.set()
            for caller in callers:
                caller.join()


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with run_platform(tmp_path, "--cpu-slots", "4", "--blanks", "0") as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(500)
@pytest.mark.parametrize(("code", "seconds", "is_found"), [(WORKS, DEARER_S, True), (WORKS_TOO, BASE_S, False)])
def test_three_percent_more_is_found_by_pairs_and_its_tenant_pays_for_none(
    platform: Platform, tmp_path: Path, code: str, seconds: float, *, is_found: bool
) -> None:
    """Before any caller is answered by it; the same version at the same speed is left alone."""
    platform.deploy(Path(write_app(tmp_path, WORKS, BASE_S)))
    (deployed,) = platform.http.get("/v1/apps/shop").json()["functions"]
    control, callers = deployed["version_id"], Callers(platform=platform)
    with callers.calling():
        words = ("--rollout", "--steps", "50,100", "--every", "10h", "--pairs", str(MOST_PAIRS))
        platform.cli("deploy", write_app(tmp_path, code, seconds), *words)
        past = ("ramp", "baking", "rolled_back")
        wait_until(lambda: rollout_of(platform)["state"] in past, "its pairs have run", FOUND_S)
    came = rollout_of(platform)
    assert (came["state"] == "rolled_back") is is_found, came["sentences"]
    if is_found:
        assert came["verdict"] == "regressed"
        assert came["guards"]["pairs"] >= 100.0
        assert "canary" not in came["calls"], "nobody was sent there"
    else:
        platform.cli("rollout", "abort", "shop")
    assert callers.wrong == []

    mine = set(callers.ids)
    wait_until(lambda: mine <= {call for call, _, ns in lines(platform) if ns}, "all of it is in the ledger", 60.0)
    shadows = [line for line in lines(platform) if line[0] not in mine]
    assert len({call for call, *_ in shadows}) > LEAST_SHADOWS
    assert sum(ns for _, tenant, ns in shadows if tenant) == 0
    assert sum(ns for _, tenant, ns in shadows if not tenant) > LEAST_SHADOWS * BASE_S * 1e9
    assert {tenant for call, tenant, ns in lines(platform) if ns and call in mine} == {"default"}
    if is_found:  # its containers have had nothing but shadows
        query = "SELECT DISTINCT tenant FROM lease_line WHERE function = 'price' AND version <> ?"
        assert rows(platform, query, control) == [("",)]
    check_no_instant_is_sold_twice(platform)
    check_nothing_is_in_quarantine(platform)


def lines(platform: Platform) -> list[tuple[str, str, int]]:
    """Of what calls were billed: each with who pays."""
    found = rows(platform, "SELECT call, tenant, ns FROM receipt_line WHERE function = 'price'")
    return [(str(call), str(tenant), int(ns)) for call, tenant, ns in found]
