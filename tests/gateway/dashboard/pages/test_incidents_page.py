"""Incidents: what happened, the newest first."""

from __future__ import annotations

import json
from typing import Any

from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer
from pilotlight_gateway.dashboard.pages.incidents_page import incidents_blocks
from tests.gateway.dashboard.pages.scenes import answer_of, table_of
from tests.gateway.dashboard.site import Site


def event(number: int, kind: str = "breaker.opened", tenant: str = "acme", **more: Any) -> dict[str, Any]:
    usual = {
        "id": number, "at": 1_000.0 + number, "kind": kind, "tenant": tenant, "function": f"{tenant}:shop.hello",
        "says": f"Event {number}.", "facts": {},
    }  # fmt: skip
    return usual | more


def test_the_newest_stands_first() -> None:
    """With whom it concerns; what names nobody is the platform's."""
    blocks = incidents_blocks({"events": [event(1), event(2, "node.lost", "")]}, {"since": "9d"}, 1_010.0)
    assert answer_of(blocks)[0] == "2 events; the last one 8.00 s ago."
    assert [row[1:] for row in table_of(blocks, "events")] == [
        ("node.lost", "the platform", "Event 2."), ("breaker.opened", "acme", "Event 1."),
    ]  # fmt: skip
    assert answer_of(incidents_blocks({"events": []}, {}, 0.0))[0] == "Nothing has happened in this time."


async def test_operators_ask_for_all(site: Site) -> None:
    """Kinds and times that there are not are not passed on."""
    site.api.answers["/v1/events"] = ApiAnswer(status=200, body=json.dumps({"events": [event(1)]}).encode())
    async with site.logged_in() as operator, site.logged_in(site.world.key) as own:
        assert "Event 1." in (await operator.get("/ui/incidents?kind=breaker&since=1h")).text
        assert "Event 1." in (await operator.get("/ui/incidents?kind=x%26all=true&since=9d")).text
        assert (await own.get("/ui/incidents")).status_code == 403
    asked = [path for _, path in site.api.asked if path.startswith("/v1/events")]
    assert asked == [
        "/v1/events?all=true&since=1h&kind=breaker&limit=200", "/v1/events?all=true&since=24h&limit=200",
    ]  # fmt: skip
