"""Ten thousand calls, of which shadows repeat half: whoever called pays for his calls alone, to the nanosecond."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import sqlalchemy as sa

from pilotlight_core.bus import connect
from pilotlight_core.model.messages.usage import UsageBatch
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.subjects import USAGE_STREAM
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import receipt_line, usage_day
from pilotlight_gateway.ledger.usage_conservation import device_account
from pilotlight_gateway.ledger.usage_delivery import UsageDelivery, delivery_of
from tests.system.support.ledger import (
    LATE_NS,
    check_devices_are_accounted_whole,
    check_no_instant_is_sold_twice,
    check_nothing_is_in_quarantine,
    ended,
    receipts,
    rows,
)
from tests.system.support.platform import Platform
from tests.system.support.platform import platform as run_platform
from tests.system.test_rollouts import rollout_of
from tests.waiting import wait_until

CODE = """
import asyncio

from pilotlight import App, concurrent

app = App("shop")


@app.gpu_function(gpu="H100", vram="8GiB", min_containers=1, max_containers=1, forecast=False)
@concurrent(max_inputs=8)
async def price(item: str = "") -> int:
    await asyncio.sleep(0.01)
    return {answer}


@app.gpu_function(gpu="H100", vram="8GiB", max_containers=1, forecast=False)
def never() -> int:
    return {answer}
"""
"""Of `never` there are no pairs, so the rollout gathers them until the test has enough."""
CALLS, PAIRS, CALLERS = 10_000, 5_000, 6
AHEAD = 40
"""Calls by which callers are ahead of twice the pairs, at most: half of the calls are repeated."""
TOLERANT = 0.5
"""No equal version is rolled back here by chance, or by how busy the machine is."""
LONG_S = 1_500.0


@dataclass(kw_only=True)
class PacedCallers:
    """They call as fast as shadows follow, and keep what each answer says that it costs."""

    platform: Platform
    book: dict[str, int] = field(default_factory=dict)
    """By call, the nanoseconds of its answer."""
    wrong: list[str] = field(default_factory=list)
    pairs: int = 0

    def __post_init__(self) -> None:
        self._numbers, self._over, self._moved = itertools.count(1), threading.Event(), threading.Condition()

    def call_all(self) -> None:
        """Until there are so many calls, and so many pairs."""
        with ThreadPoolExecutor(CALLERS) as callers:
            calling = [callers.submit(self._keep_calling) for _ in range(CALLERS)]
            try:
                wait_until(self._is_enough, "calls and pairs", LONG_S)
            finally:
                self._over.set()
            for each in calling:
                each.result()

    def _is_enough(self) -> bool:
        (seen,) = [one for one in rollout_seen(self.platform) if one["function"] == "price"] or [{"canary": 0}]
        self.pairs = seen["canary"]
        with self._moved:
            self._moved.notify_all()
        return len(self.book) >= CALLS and self.pairs >= PAIRS

    def _keep_calling(self) -> None:
        headers = {"Authorization": f"Bearer {self.platform.key}"}
        with httpx.Client(base_url=self.platform.url, headers=headers, timeout=60.0) as client:
            for number in self._numbers:
                while number > 2 * self.pairs + AHEAD and not self._over.is_set():
                    with self._moved:
                        self._moved.wait(1.0)
                if self._over.is_set():
                    return
                done = client.post("/v1/functions/shop.price/calls", json={"input": {"item": "x"}})
                if done.status_code != 200 or done.json()["output"] != 1:
                    self.wrong.append(done.text)
                self.book[done.json()["id"]] = done.json()["usage"]["ns"]


def rollout_seen(platform: Platform) -> list[dict[str, Any]]:
    """What the guard on pairs has seen."""
    shown = platform.http.get("/v1/apps/shop/rollout").raise_for_status().json()
    return [one for one in shown["seen"] if one["guard"] == "pairs"]


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with run_platform(tmp_path, "--fake-gpus", "1xH100:mig", "--cpu-slots", "1", "--blanks", "0") as running:
        yield running


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_of_ten_thousand_calls_half_are_repeated_and_their_bill_is_as_without(
    platform: Platform, tmp_path: Path
) -> None:
    """What callers pay is what their answers said, and to the nanosecond what a ledger says that never heard of the
    shadows; the operator has all else, and no time of the device is lost or sold twice.
    """
    platform.deploy(written(tmp_path, "1"))
    (control,) = [one["version_id"] for one in functions(platform) if one["name"] == "price"]
    platform.output("shop.price", item="x")
    wait_until(lambda: platform.containers("shop"), "its container is there")
    platform.cli("deploy", str(written(tmp_path, "1 + 0")), "--no-traffic")
    terms = {"steps": [50, 100], "every_s": 36_000, "pairs": PAIRS, "tolerance": TOLERANT}
    platform.http.post("/v1/apps/shop/rollout", json=terms).raise_for_status()
    wait_until(lambda: rollout_of(platform)["state"] == "pairs", "shadows run", 60.0)
    callers = PacedCallers(platform=platform)
    callers.call_all()
    came = rollout_of(platform)
    assert (came["state"], came["calls"]) == ("pairs", {}), "nobody was answered by the new version"
    assert callers.wrong == []
    assert len(callers.book) >= CALLS
    assert callers.pairs >= PAIRS
    platform.cli("rollout", "abort", "shop")
    platform.cli("app", "stop", "shop")
    wait_until(lambda: not platform.containers("shop"), "its containers have ended")
    wait_until(lambda: is_folded(platform, callers.book), "all of it is in the ledger")

    check_bills(platform, callers, control)
    check_without_shadows(platform, tmp_path, control)
    check_device(platform)


def functions(platform: Platform) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = platform.http.get("/v1/apps/shop").json()["functions"]
    return found


def written(folder: Path, answer: str) -> Path:
    file = folder / "app.py"
    file.write_text(CODE.format(answer=answer))
    return file


def is_folded(platform: Platform, book: dict[str, int]) -> bool:
    """Whether every call has ended in the ledger, and every container that was bound."""
    (still,) = rows(platform, "SELECT count(*) FROM bound_container WHERE ended_at IS NULL")
    return still == (0,) and book.keys() <= ended(platform, "price")


def check_bills(platform: Platform, callers: PacedCallers, control: str) -> None:
    """Each call's receipt is what its answer said; nothing else is the tenant's but what its own container did."""
    billed = receipts(platform, "price")
    first = billed.keys() - callers.book.keys() - shadows_in(platform)
    assert len(first) == 1, "the call before the rollout"
    assert {call: ns for call, ns in billed.items() if call in callers.book} == callers.book

    shadows = {call: billed[call] for call in shadows_in(platform)}
    assert len(shadows) >= 2 * PAIRS
    ours = "SELECT sum(ns) FROM lease_line WHERE tenant = 'default' AND state = ? AND version = ?"
    mine = sum(callers.book.values()) + sum(billed[call] for call in first)
    assert rows(platform, ours, "busy", control) == [(mine,)]
    of_others = "SELECT count(*) FROM lease_line WHERE tenant = 'default' AND version <> ?"
    assert rows(platform, of_others, control) == [(0,)]
    theirs = "SELECT sum(ns) FROM lease_line WHERE tenant = '' AND state = 'busy' AND version <> ?"
    assert rows(platform, theirs, control) == [(sum(shadows.values()),)]


def shadows_in(platform: Platform) -> set[str]:
    """The calls that the operator pays."""
    return {call for (call,) in rows(platform, "SELECT DISTINCT call FROM receipt_line WHERE tenant = ''")}


def check_without_shadows(platform: Platform, folder: Path, control: str) -> None:
    """Fold the same usage into a new ledger, without what the containers of other versions did: the tenant's sums and
    receipts are the same rows.
    """
    told = asyncio.run(usage_of(platform.nats_url))
    kept = [msgspec.structs.replace(one, message=_only(one.message, control)) for one in told]
    tenants = []
    for name, deliveries in (("whole", told), ("without", kept)):
        ledger = Ledger(f"sqlite:///{folder / name}.sqlite", load_prices())
        ledger.fold(USAGE_STREAM, told[-1].seq, deliveries)
        tenants.append(bill_of(ledger))
        ledger.close()
    assert tenants[0] == tenants[1]
    assert len(tenants[0]["receipts"]) >= CALLS
    query = "SELECT state, price, ppm, rate, ns, calls FROM usage_day WHERE tenant = 'default'"
    assert Counter(rows(platform, query)) == Counter(tenants[0]["days"]), "the platform's own ledger has these sums"


async def usage_of(nats_url: str) -> list[UsageDelivery]:
    """All that agents and the controller have told."""
    async with connect(nats_url, name="test", makes_streams=False) as bus:
        return [
            delivery_of(one.seq, one.subject, one.at, one.message)
            async for one in bus.read_stream(USAGE_STREAM, "usage.>")
        ]


def _only(message: Any, version: str) -> Any:
    """A message without the events of other versions."""
    if not isinstance(message, UsageBatch):
        return message
    events = tuple(event for event in message.events if event.version in ("", version))
    return msgspec.structs.replace(message, events=events)


def bill_of(ledger: Ledger) -> dict[str, list[tuple[Any, ...]]]:
    """A tenant's sums, and the receipts of its calls: those of nothing are of shadows, whose time the operator has."""
    days = sa.select(*(usage_day.c[name] for name in ("state", "price", "ppm", "rate", "ns", "calls")))
    lines = sa.select(*(receipt_line.c[name] for name in ("call", "price", "ppm", "rate", "ns", "outcome")))
    lines = lines.where(receipt_line.c.tenant == "default", receipt_line.c.ns > 0)
    return {
        "days": sorted(tuple(row.values()) for row in ledger.read(days.where(usage_day.c.tenant == "default"))),
        "receipts": sorted(tuple(row.values()) for row in ledger.read(lines)),
    }


def check_device(platform: Platform) -> None:
    """The GPU's whole time is in the ledger, once: the tenant's, and the operator's."""
    check_devices_are_accounted_whole(platform, "fake-h100")
    check_no_instant_is_sold_twice(platform)
    check_nothing_is_in_quarantine(platform)
    ledger = Ledger(f"sqlite:///{platform.state / 'ledger.sqlite'}", load_prices())
    query = "SELECT node, device, min(t0), max(t1) FROM lease_line WHERE price LIKE ? GROUP BY node, device"
    found = rows(platform, query, "fake-h100%")
    assert found
    for node, device, t0, t1 in found:
        account = device_account(ledger, node, device, t0, t1 - LATE_NS)
        assert (account.excess, account.unrecorded) == (0, 0), device
        assert account.tenants["default"] > 0
        assert account.operator > 0
    ledger.close()
    audit = json.loads(platform.cli("ledger", "verify", "--json", "--state-dir", str(platform.state)).stdout)
    assert audit["discrepancy"] is None, audit
