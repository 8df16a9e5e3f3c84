"""The settings of the dashboard."""

from __future__ import annotations

import pytest

from pilotlight_core.host.config import BadSetting, parse
from pilotlight_gateway.dashboard.dashboard_settings import DashboardSettings


def test_settings_name_all_gateways() -> None:
    """A certificate has its key."""
    settings = parse(DashboardSettings, "", ["--gateways", "http://a:1, https://b"], {})
    assert settings.gateway_urls == ["http://a:1", "https://b"]
    with pytest.raises(BadSetting, match="--dashboard-tls-cert"):
        parse(DashboardSettings, "", ["--dashboard-tls-cert", "a.pem"], {})
