"""Usage and invoices over HTTP: what is asked, and how answers are read."""

from __future__ import annotations

import pytest

from pilotlight.client.resources.billing import BillingClient, UsageQuestion
from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from tests.sdk.cli.every_command import FLEET_COSTS, FORECAST, INVOICE, INVOICES
from tests.sdk.scripted import Answer, ScriptedPlatform, answer


@pytest.fixture
def billing(connection: PlatformConnection) -> BillingClient:
    return BillingClient(connection, PlatformClient(connection))


async def test_usage_is_of_a_period_or_of_all(platform: ScriptedPlatform, billing: BillingClient) -> None:
    """What is not given is not sent."""
    platform.will("GET", "/v1/usage", answer({"lines": []}))
    await billing.get_usage(UsageQuestion(start="2026-11-01"))
    await billing.get_usage(UsageQuestion())
    await billing.get_usage(UsageQuestion(by="tag:team", tenant="acme"))
    await billing.get_usage(UsageQuestion(everybody=True))
    assert [request.query for request in platform.requests] == [
        "from=2026-11-01", "", "group=tag:team&tenant=acme", "all=true",
    ]  # fmt: skip


async def test_an_export_is_bytes_as_they_come(platform: ScriptedPlatform, billing: BillingClient) -> None:
    """And is asked for again after a broken connection."""
    platform.will("GET", "/v1/usage", Answer(cut=True), Answer(pieces=[b"PAR1\x00"]))
    platform.will("GET", "/v1/usage/events", answer([]))
    assert await billing.export_usage(UsageQuestion(end="2026-12-01"), "parquet") == b"PAR1\x00"
    assert await billing.export_usage(UsageQuestion(), "events") == b"[]"
    assert platform.requests[0].query == "to=2026-12-01&format=parquet"


async def test_what_is_of_a_month_needs_no_days(platform: ScriptedPlatform, billing: BillingClient) -> None:
    """Whose it is goes along, and what an operator pays."""
    platform.will("GET", "/v1/usage/forecast", answer(FORECAST))
    platform.will("GET", "/v1/usage/fleet", answer(FLEET_COSTS))
    platform.will("GET", "/v1/billing/invoices", answer(INVOICES))
    platform.will("GET", "/v1/billing/invoices/2026-11", answer(INVOICE))
    asked = UsageQuestion(start="2026-11-01", by="day", everybody=True)
    assert (await billing.get_forecast(asked)).month == "2026-11"
    assert (await billing.get_fleet_costs(asked, "h100:1.9")).tenants[0].tenant == "acme"
    assert (await billing.list_invoices()).invoices[0].number == "acme-2026-11"
    assert (await billing.get_invoice("2026-11", "acme")).amount == "54.85"
    assert [request.query for request in platform.requests] == [
        "all=true", "from=2026-11-01&cost=h100:1.9", "", "tenant=acme",
    ]  # fmt: skip
