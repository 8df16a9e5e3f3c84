"""What was used and what it costs: reports of a tenant, and of all for the operator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import msgspec
from msgspec import UNSET, structs
from starlette.requests import Request
from starlette.responses import Response

from pilotlight_core.model.api.billing_api import FleetCosts, MonthForecast, ThresholdLine
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.ids import NAME_PATTERN, check_name
from pilotlight_core.model.money.budgets import HomeTranches
from pilotlight_core.model.units import COST_UNITS
from pilotlight_gateway.budgets.budget_settings import reached_lines
from pilotlight_gateway.http.protocol.api_operations import (
    Operation,
    Parameter,
    json_answer,
    principal_of,
    truth_of,
)
from pilotlight_gateway.ledger.ledger_reader import LedgerReader
from pilotlight_gateway.ledger.usage_report import UsageReport, UsageRow, as_csv, cost_units, read_groups
from pilotlight_gateway.reports import fleet_costs, focus_export, meter_events, usage_page
from pilotlight_gateway.reports.usage_forecast import KNOWN_DAYS, forecast_month
from pilotlight_gateway.reports.usage_parquet import as_parquet
from pilotlight_gateway.tenancy.registry_port import RegistryPort

DAYS_BY_DEFAULT = 30
JSON, CSV, HTML = "application/json", "text/csv", "text/html"
PARQUET, EVENTS = "application/vnd.apache.parquet", "application/cloudevents-batch+json"
FORMATS = {"json": JSON, "csv": CSV, "parquet": PARQUET, "focus": CSV, "html": HTML}
DAY_SCHEMA = {"type": "string", "format": "date"}


@dataclass(frozen=True, kw_only=True)
class UsageServices:
    """The ports of these endpoints. `wall` is the clock, in unix seconds."""

    ledger: LedgerReader
    registry: RegistryPort
    tranches: Callable[[str], Awaitable[HomeTranches | None]]
    """What the home of a tenant's limits has noted of its budgets."""
    all_tranches: Callable[[], Awaitable[list[HomeTranches]]]
    """The same of all tenants."""
    wall: Callable[[], float] = time.time


@dataclass(frozen=True, kw_only=True)
class UsageScope:
    """Whose usage, None being everybody's, of the days from `first` to before `until`."""

    tenant: str | None
    first: str
    until: str


async def show_usage(request: Request, services: UsageServices) -> Response:
    """`GET /v1/usage`: whole UTC days from the first up to, but not including, the last."""
    scope = scope_of(request, services.wall())
    groups = read_groups(request.query_params.get("group", ""), all_tenants=scope.tenant is None)
    wanted = _format_of(request)
    thresholds = await _thresholds(services, scope) if wanted in ("json", "html") else ()
    text = await asyncio.to_thread(_rendered, services, scope, groups, wanted, thresholds)
    return Response(text, media_type=FORMATS[wanted])


async def show_forecast(request: Request, services: UsageServices) -> Response:
    """`GET /v1/usage/forecast`."""
    at = services.wall()
    tenant = scope_of(request, at).tenant
    return json_answer(await asyncio.to_thread(_forecast, services, tenant, at))


async def show_meter_events(request: Request, services: UsageServices) -> Response:
    """`GET /v1/usage/events`."""
    scope = scope_of(request, services.wall())
    events = await asyncio.to_thread(_meter_events, services, scope)
    return Response(msgspec.json.encode(events), media_type=EVENTS)


async def show_fleet_costs(request: Request, services: UsageServices) -> Response:
    """`GET /v1/usage/fleet`."""
    first, until = days_of(request.query_params, services.wall())
    paid = fleet_costs.read_paid(request.query_params.get("cost", ""))
    return json_answer(await asyncio.to_thread(_fleet_costs, services, first, until, paid))


def scope_of(request: Request, at: float) -> UsageScope:
    """Whose usage of which days is asked for, at the unix second `at`.

    Raises:
        BadInput: names the parameter.
        Forbidden: other tenants' usage is the operator's to see.
    """
    asked, principal = request.query_params, principal_of(request)
    tenant: str | None = principal.tenant
    if truth_of(request, "all"):
        principal.require("operator")
        tenant = None
    elif "tenant" in asked:
        tenant = check_name(asked["tenant"], "tenant")
        if tenant != principal.tenant:
            principal.require("operator")
    first, until = days_of(asked, at)
    return UsageScope(tenant=tenant, first=first, until=until)


def days_of(asked: Mapping[str, str], at: float) -> tuple[str, str]:
    """The first day, and that after the last.

    Raises:
        BadInput: names the parameter.
    """
    today = datetime.fromtimestamp(at, UTC).date()
    until = read_day(asked["to"], "to") if "to" in asked else today + timedelta(days=1)
    days = min(DAYS_BY_DEFAULT, (until - date.min).days)
    first = read_day(asked["from"], "from") if "from" in asked else until - timedelta(days=days)
    if first >= until:
        raise BadInput("to: expected a day after 'from'.", field="to")
    return first.isoformat(), until.isoformat()


def read_day(text: str, field: str) -> date:
    """The day of text such as `2026-11-20`, or of an instant.

    Raises:
        BadInput: names `field`.
    """
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        raise BadInput(f"{field}: expected a day such as 2026-11-20.", field=field) from None


def with_refs(report: UsageReport, registry: RegistryPort) -> UsageReport:
    """The report with refs (`app.function@v7`) in place of known version ids."""
    refs = {line.version: line.version for line in report.lines}
    refs |= {known.id: known.ref for name in refs if (known := registry.version(name)) is not None}
    lines = tuple(structs.replace(line, version=refs[line.version]) for line in report.lines)
    return structs.replace(report, lines=lines)


def _format_of(request: Request) -> str:
    asked = request.query_params.get("format")
    if asked is None:
        accepted = request.headers.get("accept", "")
        return next((name for name in ("csv", "parquet", "html") if FORMATS[name] in accepted), "json")
    if asked not in FORMATS:
        raise BadInput(f"format: expected one of {', '.join(FORMATS)}.", field="format")
    return asked


async def _thresholds(services: UsageServices, scope: UsageScope) -> tuple[ThresholdLine, ...]:
    if scope.tenant is None:
        return reached_lines(await services.all_tranches(), scope.first, scope.until)
    noted = await services.tranches(scope.tenant)
    return reached_lines([noted] if noted is not None else [], scope.first, scope.until)


def _rendered(
    services: UsageServices,
    scope: UsageScope,
    groups: Sequence[str],
    wanted: str,
    thresholds: tuple[ThresholdLine, ...],
) -> str | bytes:
    ledger = services.ledger
    if wanted == "focus":
        return focus_export.as_focus(_sums(ledger, scope, focus_export.GROUPS), ledger.book.currency)
    if wanted == "html":
        return _page(services, scope, thresholds)
    report = ledger.usage(scope.tenant, scope.first, scope.until, groups)
    report = structs.replace(with_refs(report, services.registry), thresholds=thresholds or UNSET)
    if wanted == "csv":
        return as_csv(report, groups)
    return as_parquet(report, groups) if wanted == "parquet" else msgspec.json.encode(report)


def _page(services: UsageServices, scope: UsageScope, thresholds: tuple[ThresholdLine, ...]) -> str:
    at = services.wall()
    return usage_page.as_page(
        _sums(services.ledger, scope, usage_page.GROUPS),
        tenant=scope.tenant,
        first=scope.first,
        until=scope.until,
        at=at,
        forecast=_forecast(services, scope.tenant, at),
        currency=services.ledger.book.currency,
        thresholds=thresholds,
    )


def _sums(ledger: LedgerReader, scope: UsageScope, groups: Sequence[str]) -> list[UsageRow]:
    return ledger.sums(scope.tenant, scope.first, scope.until, groups)


def _forecast(services: UsageServices, tenant: str | None, at: float) -> MonthForecast:
    today = datetime.fromtimestamp(at, UTC).date()
    first = min(today - timedelta(days=KNOWN_DAYS), today.replace(day=1))
    daily: dict[date, Fraction] = {}
    for row in services.ledger.sums(tenant, first.isoformat(), (today + timedelta(days=1)).isoformat(), ("tenant",)):
        if row["tenant"]:  # what nobody pays for is no spending
            day = date.fromisoformat(row["day"])
            daily[day] = daily.get(day, Fraction(0)) + Fraction(cost_units(row), COST_UNITS)
    return forecast_month(daily, at, services.ledger.book.currency)


def _meter_events(services: UsageServices, scope: UsageScope) -> list[meter_events.MeterEvent]:
    ledger = services.ledger
    until = min(scope.until, ledger.open_from())
    if until <= scope.first:
        return []
    rows = ledger.sums(scope.tenant, scope.first, until, meter_events.GROUPS)
    return meter_events.meter_events(rows, ledger.identity(), ledger.book.currency)


def _fleet_costs(services: UsageServices, first: str, until: str, paid: Mapping[str, int]) -> FleetCosts:
    ledger = services.ledger
    rows = ledger.sums(None, first, until, fleet_costs.GROUPS)
    return fleet_costs.fleet_costs(rows, ledger.device_sums(first, until), paid, ledger.book.currency)


DAYS = (
    Parameter(name="from", about="First day, 2026-11-01; default: 30 days before 'to'.", schema=DAY_SCHEMA),
    Parameter(name="to", about="First day that is not in it, after 'from'; default: tomorrow.", schema=DAY_SCHEMA),
)
WHOSE = (
    Parameter(
        name="tenant", about="For operators: another tenant's.", schema={"type": "string", "pattern": NAME_PATTERN}
    ),
    Parameter(name="all", about="For operators: all tenants', and their own.", schema={"type": "boolean"}),
)

USAGE = (
    Operation(
        method="GET", path="/v1/usage", name="getUsage", about="What was used and what it costs, by UTC day.",
        endpoint=show_usage, scopes=("read", "operator"), answer=UsageReport,
        answer_media=(JSON, CSV, HTML, PARQUET), errors=("bad_input",),
        parameters=(
            *DAYS,
            Parameter(
                name="group",
                about="Comma-separated: day, hour, app, function, version, state, price, ppm, key, gpu, purpose, "
                "purchase, region, tag:NAME; with all=true tenant.",
            ),
            Parameter(
                name="format", about="json, csv, parquet, focus (FOCUS 1.2) or html (a page).",
                schema={"enum": list(FORMATS)},
            ),
            *WHOSE,
        ),
    ),
    Operation(
        method="GET", path="/v1/usage/forecast", name="getUsageForecast", endpoint=show_forecast,
        about="What this month will have cost at its end, and how far such forecasts were off.",
        scopes=("read", "operator"), answer=MonthForecast, errors=("bad_input",), parameters=WHOSE,
    ),
    Operation(
        method="GET", path="/v1/usage/events", name="getUsageEvents", endpoint=show_meter_events,
        about="The usage of closed days as CloudEvents, for metering systems: what is sent again counts once.",
        scopes=("read", "operator"), answer={"type": "array", "items": {"type": "object"}}, answer_media=(EVENTS,),
        errors=("bad_input",), parameters=(*DAYS, *WHOSE),
    ),
    Operation(
        method="GET", path="/v1/usage/fleet", name="getFleetCosts", endpoint=show_fleet_costs,
        about="Who spends most, what nobody pays for, and what each device earned.", scopes=("operator",),
        answer=FleetCosts, errors=("bad_input",),
        parameters=(
            *DAYS,
            Parameter(
                name="cost", about="What an hour of a device costs the operator: h100:1.9,l4:0.35.",
                schema={"type": "string", "pattern": fleet_costs.PAID_PATTERN},
            ),
        ),
    ),
)  # fmt: skip
