"""What the dashboard's process shows of itself."""

from __future__ import annotations

import pytest

from pilotlight_core.host.metrics.process_metrics import ProcessMetrics
from pilotlight_gateway.dashboard.dashboard_counts import kind_of
from pilotlight_gateway.dashboard.page_parts.gateway_client import ApiAnswer
from tests.gateway.dashboard.site import Site


@pytest.mark.parametrize(
    ("path", "method", "kind"),
    [
        ("/ui/static/abc/live.js", "GET", "file"), ("/ui/login", "POST", "login"), ("/ui/events", "GET", "stream"),
        ("/ui/nodes", "GET", "page"), ("/ui/do/nodes/n/drain", "POST", "action"), ("/healthz", "GET", "other"),
    ],
)  # fmt: skip
def test_a_request_is_of_a_kind(path: str, method: str, kind: str) -> None:
    """By its address alone."""
    assert kind_of(path, method) == kind


async def test_who_looks_and_what_gateways_say_is_counted(site: Site) -> None:
    """No name of anybody is in a label, and each label is there before something is counted in it."""
    shown = ProcessMetrics(site.app.collect)
    before = shown.exposition().decode()
    assert 'pilotlight_dashboard_requests_total{kind="page",status="5xx"} 0.0' in before
    assert "pilotlight_dashboard_viewers 0.0" in before
    async with site.logged_in() as browser:
        await browser.get("/ui/nodes")
        site.forget()
        site.api.answers["/v1/sessions/current"] = ApiAnswer(status=503, body=b"{}")
        await browser.get("/ui/nodes")
        site.forget()
        site.api.down = True
        await browser.get("/ui/nodes")
    told = shown.exposition().decode()
    assert 'pilotlight_dashboard_requests_total{kind="login",status="3xx"} 1.0' in told
    assert 'pilotlight_dashboard_requests_total{kind="page",status="2xx"} 1.0' in told
    assert 'pilotlight_dashboard_requests_total{kind="page",status="5xx"} 2.0' in told
    assert 'pilotlight_dashboard_asked_total{outcome="failed"} 1.0' in told
    assert 'pilotlight_dashboard_asked_total{outcome="unanswered"} 1.0' in told
    assert "pilotlight_dashboard_page_seconds_count 3.0" in told
    assert "acme" not in told
