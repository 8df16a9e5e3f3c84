"""Usage as one HTML page, for people: it stands alone, needs no script and no network, and prints. Pure.

Figures are shown with two to four significant digits; whoever needs all of them takes the CSV.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from html import escape

from pilotlight_core.model.api.billing_api import MonthForecast, ThresholdLine
from pilotlight_core.model.devices import BESIDE_PRICES, gpu_of_price
from pilotlight_core.model.units import COST_UNITS, NS_PER_HOUR, WHOLE_DEVICE, shown_money
from pilotlight_gateway.ledger.usage_report import UsageRow, cost_units
from pilotlight_gateway.reports.svg_charts import GREYED, bar_chart, column_chart, largest_first, legend, part_text

GROUPS = ("day", "tenant", "app", "function", "state", "price", "ppm")
"""Of the sums that it is made of."""
SERIES, ROWS = 4, 30
OTHERS, OPERATOR = GREYED
"""What is together, and what nobody pays for."""
MEANINGS = {
    "busy": "calls ran",
    "idle": "ready, and no call came",
    "loading": "functions were started",
    "draining": "the last calls ended",
    "provisioning": "files were made ready",
    "free": "nobody had it",
    "blank": "kept ready for anybody",
    "parked": "kept in the host's memory",
}
HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
)
STYLE = """
:root { color: #1c2733; background: #fff; font: 15px/1.5 system-ui, "Segoe UI", "Liberation Sans", sans-serif; }
body { max-width: 900px; margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin: 0; } h2 { font-size: 1.1rem; margin: 2.4rem 0 .5rem; }
.sub, .note, td small { color: #5d6b7a; } .sub { margin: .2rem 0 1.6rem; } .note { font-size: .87rem; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); gap: .8rem; }
.card { border: 1px solid #dfe4ea; border-radius: .5rem; padding: .75rem .9rem; }
.card b { display: block; font-size: 1.45rem; font-variant-numeric: tabular-nums; line-height: 1.3; }
.card span { color: #5d6b7a; font-size: .87rem; }
svg { width: 100%; height: auto; display: block; } svg text { font-size: 12px; fill: #47535f; }
svg .grid { stroke: #e6eaee; }
.legend { margin: .2rem 0 .4rem; font-size: .87rem; } .legend span { margin-right: 1.1rem; white-space: nowrap; }
.legend i { display: inline-block; width: .75em; height: .75em; border-radius: 2px; margin-right: .4em; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .38rem .6rem; border-bottom: 1px solid #e6eaee; }
th { color: #5d6b7a; font-weight: 600; font-size: .87rem; } th:first-child, td:first-child { text-align: left; }
tfoot td { font-weight: 600; border-bottom: 0; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } svg, table { break-inside: avoid; } }
"""


class _Sum:
    """What one name used."""

    def __init__(self) -> None:
        self.cost = self.busy = 0.0
        self.calls = self.ns_ppm = 0

    def add(self, row: UsageRow) -> None:
        cost = cost_units(row) / COST_UNITS
        self.cost += cost
        self.calls += row["calls"]
        self.busy += cost if row["state"] == "busy" else 0.0
        self.ns_ppm += row["ns"] * row["ppm"] if row["price"] not in BESIDE_PRICES else 0

    @property
    def hours(self) -> float:
        return self.ns_ppm / (WHOLE_DEVICE * NS_PER_HOUR)


def as_page(
    rows: Iterable[UsageRow],
    *,
    tenant: str | None,
    first: str,
    until: str,
    at: float,
    forecast: MonthForecast | None,
    currency: str,
    thresholds: Sequence[ThresholdLine] = (),
) -> str:
    """The page of sums by `GROUPS`: of a tenant by function, of all of them by tenant.

    Args:
        rows: the sums of the days from `first` to before `until`.
        tenant: whose; None: everybody's.
        first: the first day.
        until: the day after the last.
        at: the unix second at which it is made.
        forecast: of the present month.
        currency: of all amounts.
        thresholds: those of budgets that were reached in these days.
    """
    rows = list(rows)
    paid, unsold = _Sum(), _Sum()
    names: dict[str, _Sum] = defaultdict(_Sum)
    for row in rows:
        if tenant is None and not row["tenant"]:
            unsold.add(row)
        else:
            paid.add(row)
            names[_name(row, tenant)].add(row)
    who = "all tenants" if tenant is None else tenant
    last = (date.fromisoformat(until) - timedelta(days=1)).isoformat()
    days = (date.fromisoformat(until) - date.fromisoformat(first)).days
    made = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    kind = "tenant" if tenant is None else "function"
    return "".join((
        HEAD,
        f"<title>Usage of {escape(who)}, {first} to {last}</title><style>{STYLE}</style></head><body>",
        f"<h1>Usage of {escape(who)}</h1>",
        f'<p class="sub">{_days_text(first, last)} (UTC) · all amounts in {escape(currency)} · made {made}</p>',
        _cards(paid, unsold if tenant is None else None, forecast, currency, days),
        _by_day(rows, names, tenant, kind, first, until),
        f"<h2>What it was spent on</h2>{_states(rows)}",
        f"<h2>Cost by kind of device</h2>{_devices(rows)}",
        f"<h2>By {kind}</h2>{_table(names, paid, unsold if tenant is None else None, kind)}",
        _thresholds(thresholds, currency, with_tenant=tenant is None),
        _notes(forecast, at),
        "</body></html>\n",
    ))  # fmt: skip


def _days_text(first: str, last: str) -> str:
    return first if first == last else f"{first} to {last}"


def _name(row: UsageRow, tenant: str | None) -> str:
    if tenant is None:
        return row["tenant"] or OPERATOR
    return f"{row['app']}.{row['function']}"


def _cards(paid: _Sum, unsold: _Sum | None, forecast: MonthForecast | None, currency: str, days: int) -> str:
    per_call = paid.cost / paid.calls if paid.calls else 0.0
    cards = [
        (f"{shown_money(paid.cost)} {currency}", "paid by tenants" if unsold is not None else "cost"),
        (_count(paid.calls), "calls"),
        (_hours(paid.hours), "device hours"),
        (f"{shown_money(per_call * 1_000)} {currency}", "per 1,000 calls"),
        (_part(paid.busy, paid.cost), "of the cost while calls ran"),
    ]
    if unsold is None:
        cards.append((f"{shown_money(paid.cost / days)} {currency}", "a day, on average"))
    else:
        cards.append((f"{shown_money(unsold.cost)} {currency}", "not sold, at the same prices"))
    if forecast is not None and forecast.method:
        text = "expected by the end of this month"
        if forecast.low is not None and forecast.high is not None:
            text = f"expected this month ({shown_money(forecast.low)} to {shown_money(forecast.high)})"
        cards.append((f"{shown_money(forecast.expected)} {currency}", text))
    inner = "".join(f'<div class="card"><b>{escape(big)}</b><span>{escape(text)}</span></div>' for big, text in cards)
    return f'<div class="cards">{inner}</div>'


def _by_day(
    rows: Sequence[UsageRow], names: dict[str, _Sum], tenant: str | None, kind: str, first: str, until: str
) -> str:
    days = _days(first, until, {row["day"] for row in rows})
    shown = largest_first({name: found.cost for name, found in names.items()}, SERIES, OTHERS)
    if any(not row["tenant"] for row in rows) and tenant is None:
        shown.append((OPERATOR, 0.0))
    places = {name: number for number, (name, _) in enumerate(shown)}
    others = places.get(OTHERS, 0)
    values = [[0.0] * len(days) for _ in shown]
    at = {day: number for number, day in enumerate(days)}
    for row in rows:
        place = places.get(_name(row, tenant), others)
        values[place][at[row["day"]]] += cost_units(row) / COST_UNITS
    series = [(name, of_name) for (name, _), of_name in zip(shown, values, strict=True)]
    chart = column_chart([day[5:] for day in days], series, f"Cost by day and {kind}")
    return f"<h2>Cost by day and {kind}</h2>{legend([name for name, _ in series])}{chart}"


def _days(first: str, until: str, used: set[str]) -> list[str]:
    """Every day, if they are so few that a chart shows them; else those that were used."""
    begin, end = date.fromisoformat(first), date.fromisoformat(until)
    if (end - begin).days > 366:
        return sorted(used)
    return [(begin + timedelta(days=number)).isoformat() for number in range((end - begin).days)]


def _states(rows: Sequence[UsageRow]) -> str:
    sums: dict[str, float] = defaultdict(float)
    for row in rows:
        sums[row["state"]] += cost_units(row) / COST_UNITS
    found = largest_first(sums, 8, OTHERS)
    named = [(f"{state}: {MEANINGS[state]}" if state in MEANINGS else state, cost) for state, cost in found]
    return bar_chart(named, "Cost by state")


def _devices(rows: Sequence[UsageRow]) -> str:
    sums: dict[str, float] = defaultdict(float)
    for row in rows:
        sums[gpu_of_price(row["price"])] += cost_units(row) / COST_UNITS
    named = {"cpu": "CPU slots", "host": "cores and memory of hosts"}
    return bar_chart([(named.get(gpu, gpu), cost) for gpu, cost in largest_first(sums, 8, OTHERS)], "Cost by device")


def _table(names: dict[str, _Sum], paid: _Sum, unsold: _Sum | None, kind: str) -> str:
    ordered = sorted(names.items(), key=lambda found: (-found[1].cost, found[0]))
    columns = (kind, "calls", "device hours", "while calls ran", "per 1,000 calls", "cost")
    head = "".join(f"<th>{text}</th>" for text in columns)
    body = "".join(_line(name, found) for name, found in ordered[:ROWS])
    left_out = f'<p class="note">{len(ordered) - ROWS} more are in the total.</p>' if len(ordered) > ROWS else ""
    total = _line("total", paid) + (_line(OPERATOR, unsold) if unsold is not None else "")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody><tfoot>{total}</tfoot></table>{left_out}"


def _line(name: str, found: _Sum) -> str:
    cells = (
        escape(name), _count(found.calls), _hours(found.hours), _part(found.busy, found.cost),
        shown_money(found.cost / found.calls * 1_000) if found.calls else "–", shown_money(found.cost),
    )  # fmt: skip
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _part(value: float, whole: float) -> str:
    return part_text(value / whole) if whole else "–"


def _thresholds(reached: Sequence[ThresholdLine], currency: str, *, with_tenant: bool) -> str:
    """The last ones, or nothing."""
    if not reached:
        return ""
    lines = "".join(
        f"<tr><td>{escape(one.at[:16].replace('T', ' '))} UTC</td>"
        f"<td>{escape(f'{one.budget} of {one.tenant}' if with_tenant else one.budget)}</td>"
        f"<td>{one.percent} %</td><td>{shown_money(one.usd)}</td></tr>"
        for one in reached[-ROWS:]
    )
    left_out = f'<p class="note">The last {ROWS} of {len(reached)}.</p>' if len(reached) > ROWS else ""
    return (
        "<h2>Budgets that were reached</h2><table><thead><tr><th>at</th><th>budget</th><th>threshold</th>"
        f"<th>budget, {escape(currency)}</th></tr></thead><tbody>{lines}</tbody></table>{left_out}"
    )


def _notes(forecast: MonthForecast | None, at: float) -> str:
    month = datetime.fromtimestamp(at, UTC).strftime("%B %Y")
    told = ""
    if forecast is not None and forecast.method:
        told = (
            f"The forecast of {month} goes by the {escape(forecast.method)}, which of three simple methods missed the "
            f"last {forecast.days} days least; of ten such forecasts eight fell within the range. "
        )
    return (
        f'<h2>How to read this</h2><p class="note">{told}Device hours are of whole devices: half a GPU for two hours '
        "is one. “While calls ran” is that part of the cost; the rest was paid so that they need not wait. "
        "Figures are rounded here; the CSV, FOCUS and Parquet exports have every digit.</p>"
    )


def _count(value: int) -> str:
    return f"{value:,}" if value < 10_000 else f"{float(f'{value:.4g}'):,.0f}"


def _hours(value: float) -> str:
    return f"{float(f'{value:.3g}'):,g}" if value < 1_000 else f"{float(f'{value:.4g}'):,.0f}"
