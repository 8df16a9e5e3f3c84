"""Usage in its forms, forecasts, invoices, and what the fleet costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from pilotlight.client.resources.platform import PlatformClient
from pilotlight.client.transport.platform_connection import PlatformConnection
from pilotlight.client.transport.retry import QUICK_CONNECT_S, RequestRetries
from pilotlight_core.model.api.billing_api import FleetCosts, Invoice, InvoiceList, MonthForecast
from pilotlight_core.model.api.receipt_api import CallReceipt

Json = dict[str, Any]
EVERYBODY = {"all": "true"}


class UsageQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Which usage: from the day `start` (2026-11-01) to before `end`; None: the platform's defaults."""

    start: str | None = None
    end: str | None = None
    by: str | None = None
    """What lines are grouped by, such as "app,tag:team"; None: all but what is asked for by name."""
    tenant: str | None = None
    """For operators: another tenant's."""
    everybody: bool = False
    """For operators: all tenants', and their own."""

    @property
    def parameters(self) -> dict[str, str]:
        named = {"from": self.start, "to": self.end, "group": self.by, "tenant": self.tenant}
        return {key: value for key, value in named.items() if value} | (EVERYBODY if self.everybody else {})


class BillingClient:
    """Reads what was used and what it costs."""

    def __init__(self, connection: PlatformConnection, platform: PlatformClient) -> None:
        self._connection = connection
        self._platform = platform

    async def get_usage(self, asked: UsageQuestion) -> Json:
        """Return the usage: `lines` and `total`."""
        return await self._platform.request("GET", "/v1/usage", params=asked.parameters, answer_type=Json)

    async def export_usage(self, asked: UsageQuestion, format: str) -> bytes:  # noqa: A002 - the API's word
        """Return the usage as csv, focus, parquet, html or events (CloudEvents)."""
        if format == "events":
            return await self._fetch("/v1/usage/events", asked.parameters)
        return await self._fetch("/v1/usage", asked.parameters | {"format": format})

    async def get_forecast(self, asked: UsageQuestion) -> MonthForecast:
        """Return what this month will have cost."""
        whose = {name: value for name, value in asked.parameters.items() if name in ("tenant", "all")}
        return await self._platform.request("GET", "/v1/usage/forecast", params=whose, answer_type=MonthForecast)

    async def get_fleet_costs(self, asked: UsageQuestion, paid: str = "") -> FleetCosts:
        """Return who spends most, what nobody pays for, and what devices earned; `paid`: "h100:1.9"."""
        days = {name: value for name, value in asked.parameters.items() if name in ("from", "to")}
        params = days | ({"cost": paid} if paid else {})
        return await self._platform.request("GET", "/v1/usage/fleet", params=params, answer_type=FleetCosts)

    async def get_receipt(self, call: str) -> CallReceipt:
        """Return what a call was billed, and which call made it.

        Raises:
            NotFound: there is none, or none yet: it follows the call by some seconds.
        """
        path = f"/v1/calls/{quote(call, safe='')}/receipt"
        return await self._platform.request("GET", path, answer_type=CallReceipt)

    async def list_invoices(self, tenant: str | None = None) -> InvoiceList:
        """Return the months with usage, the newest first."""
        return await self._platform.request(
            "GET", "/v1/billing/invoices", params=_of(tenant), answer_type=InvoiceList
        )  # fmt: skip

    async def get_invoice(self, month: str, tenant: str | None = None) -> Invoice:
        """Return the invoice of a month such as 2026-11."""
        path = f"/v1/billing/invoices/{month}"
        return await self._platform.request("GET", path, params=_of(tenant), answer_type=Invoice)

    async def _fetch(self, path: str, params: Mapping[str, str]) -> bytes:
        async def send() -> bytes:
            return await self._connection.fetch("GET", path, params=params)

        return await RequestRetries(repeatable=True, connect_within=QUICK_CONNECT_S).run(send)


def _of(tenant: str | None) -> dict[str, str]:
    return {"tenant": tenant} if tenant else {}
