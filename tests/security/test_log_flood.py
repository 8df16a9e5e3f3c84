"""Who prints without end is cut off at the node, and its log says so; another's lines are there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.system.support.platform import Platform, make_tenant
from tests.waiting import wait_until

pytestmark = pytest.mark.system
APP = Path(__file__).parent / "apps" / "loud" / "app.py"
LIMIT = 1_000_000


def test_a_flood_of_lines_is_cut_off_and_said_to_be(platform: Platform) -> None:
    """A tenth of the tenant's bytes an hour is kept, however much it prints."""
    key = make_tenant(platform, "printer", tier="free")
    platform.cli("quota", "set", "printer", f"log_bytes_per_hour={LIMIT}")
    platform.cli("deploy", str(APP), key=key)
    platform.deploy(APP)
    with platform.as_holder_of(key) as printer:
        flooded = printer.post("/v1/functions/loud.flood/calls", json={"input": {"seconds": 3.0}})
        assert flooded.json()["output"] * 500 > LIMIT

        assert platform.output("loud.say", word="quiet") == "quiet"
        wait_until(lambda: [line for line in platform.logs("loud") if line["text"] == "quiet"], "it is in the log")
        kept = [json.loads(line) for line in printer.get("/v1/apps/loud/logs").text.splitlines() if line]

    told = [line["text"] for line in kept if line["stream"] == "platform"]
    limit = "printer may log 1 MB an hour on a node, a tenth of it at once (the limit log_bytes_per_hour)"
    assert f"lines from here on are dropped for a while: {limit}" in told
    assert sum(len(line["text"]) for line in kept if line["stream"] == "stdout") <= LIMIT / 10
    assert not [line for line in platform.logs("loud") if line["stream"] == "platform"]
