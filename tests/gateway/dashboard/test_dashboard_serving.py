"""The process of the dashboard, which needs nothing but an address of gateways."""

from __future__ import annotations

import asyncio
import os
import signal

import httpx

from pilotlight_gateway.dashboard import dashboard_serving
from pilotlight_gateway.dashboard.dashboard_settings import DashboardSettings
from pilotlight_supervisor.free_ports import free_port


async def test_it_serves_while_no_gateway_does_and_ends_at_a_signal() -> None:
    """Its login is shown, and what needs a gateway says that there is none."""
    port = free_port()
    settings = DashboardSettings(dashboard_port=port, gateways="http://127.0.0.1:9, http://127.0.0.1:10")
    serving = asyncio.ensure_future(dashboard_serving.serve(settings))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as browser:
        async with asyncio.timeout(20.0):
            while True:
                try:
                    health = await browser.get("/healthz")
                    break
                except httpx.ConnectError:
                    await asyncio.sleep(0)
        login = await browser.get("/ui/login")
        session = {"cookie": f"__Host-pilotlight=pl_session_{43 * 'x'}"}
        page = await browser.get("/ui/nodes", headers=session)
    assert (health.status_code, login.status_code, page.status_code) == (200, 200, 503)
    assert "No gateway answers" in page.text
    assert login.headers["x-frame-options"] == "DENY"
    os.kill(os.getpid(), signal.SIGTERM)
    await serving
