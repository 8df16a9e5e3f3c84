"""The usage report: as a table, as CSV and as JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.sdk.cli.every_command import FLEET_COSTS, FORECAST
from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import Answer, ScriptedPlatform, answer, problem

LINE = {
    "day": "2026-11-20", "app": "search", "function": "embed", "version": "search.embed@v7", "state": "busy",
    "price": "cpu", "ppm": 500_000, "calls": 2, "ns": 5, "gpu_seconds": 1.23456, "cost": "0.01", "currency": "USD",
}  # fmt: skip
TOTAL = {"calls": 2, "ns": 5, "gpu_seconds": 1.23456, "cost": "0.01", "currency": "USD"}


def test_a_day_that_the_platform_refuses_is_an_error(platform: ScriptedPlatform) -> None:
    """Nothing is printed, so that a file of CSV is empty rather than wrong."""
    platform.will("GET", "/v1/usage", problem("bad_input", "from: expected a day"))
    done = invoke("usage", "--from", "yesterday", "--csv")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("error: from: expected a day\n")


def test_usage_is_a_table_with_its_total(platform: ScriptedPlatform) -> None:
    """A period without usage is a sentence."""
    report = {"lines": [LINE], "total": TOTAL}
    platform.will("GET", "/v1/usage", answer(report), answer(report), answer({"lines": [], "total": {}}))
    assert cells(run("usage")) == [
        ["day", "function", "state", "price", "calls", "seconds", "cost"],
        ["2026-11-20", "search.embed@v7", "busy", "cpu", "2", "1.235", "0.01 USD"],
        ["total", "2", "1.235", "0.01 USD"],
    ]
    assert msgspec.json.decode(run("usage", "--json")) == report
    empty = invoke("usage")
    assert (empty.stdout, empty.stderr) == ("", "Nothing was used.\n")


def test_thresholds_that_were_reached_are_lines(platform: ScriptedPlatform) -> None:
    """Below the table, not in CSV."""
    reached = {"at": "2026-11-20T14:03:00Z", "tenant": "acme", "budget": "month", "percent": 80, "usd": "250"}
    report = {"lines": [LINE], "total": TOTAL, "thresholds": [reached]}
    platform.will("GET", "/v1/usage", answer(report), answer(report), answer(report))
    assert run("usage").splitlines()[-1] == (
        "2026-11-20T14:03:00Z: 80 % of the budget month of acme was reached, 250.00 USD"
    )
    assert "80 %" not in run("usage", "--csv")
    assert msgspec.json.decode(run("usage", "--json")) == report


def test_usage_as_csv_and_of_a_period(platform: ScriptedPlatform) -> None:
    """CSV has every column."""
    platform.will("GET", "/v1/usage", answer({"lines": [LINE], "total": TOTAL}))
    lines = run("usage", "--from", "2026-11-01", "--to", "2026-12-01", "--csv").splitlines()
    assert lines[0].startswith("day,app,function,version,state,price,ppm,calls,ns,")
    assert lines[1] == "2026-11-20,search,embed,search.embed@v7,busy,cpu,500000,2,5,1.23456,0.01,USD"
    assert platform.requests[0].query == "from=2026-11-01&to=2026-12-01"


def test_usage_of_parts_of_several_sizes_is_one_line(platform: ScriptedPlatform) -> None:
    """The table adds up lines that look alike; JSON has each of them, and every digit."""
    lines = [LINE, LINE | {"ppm": 250_000, "calls": 3, "cost": "0.000000000001"}, LINE | {"state": "idle", "calls": 0}]
    platform.will("GET", "/v1/usage", answer({"lines": lines, "total": TOTAL}))
    rows = [row.split() for row in run("usage").splitlines()[1:3]]
    assert rows == [
        ["2026-11-20", "search.embed@v7", "busy", "cpu", "5", "2.469", "0.01", "USD"],
        ["2026-11-20", "search.embed@v7", "idle", "cpu", "0", "1.235", "0.01", "USD"],
    ]
    assert msgspec.json.decode(run("usage", "--json"))["lines"] == lines


def test_usage_by_tags(platform: ScriptedPlatform) -> None:
    """The table has what was asked for, in that order, and CSV a column for each tag."""
    blank = {"day": "", "app": "", "function": "", "version": "", "price": "", "ppm": 0}
    lines = [LINE | blank | {"tags": {"team": team}} for team in ("", "red")]
    platform.will("GET", "/v1/usage", *[answer({"lines": lines, "total": TOTAL})] * 2, answer({"lines": []}))
    assert cells(run("usage", "--by", "tag:team, state")) == [
        ["tag:team", "state", "calls", "seconds", "cost"],
        ["busy", "2", "1.235", "0.01 USD"],
        ["red", "busy", "2", "1.235", "0.01 USD"],
        ["total", "2", "1.235", "0.01 USD"],
    ]
    assert platform.requests[0].query == "group=tag:team,+state"
    written = run("usage", "--by", "tag:team", "--csv").splitlines()
    assert [row.rpartition(",")[2] for row in written] == ["tag:team", "", "red"]
    assert invoke("usage", "--by", "app").stderr == "Nothing was used.\n"


def test_usage_of_all_tenants_names_them(platform: ScriptedPlatform) -> None:
    """In a table of its own column, and in CSV."""
    lines = [LINE | {"tenant": name} for name in ("acme", "rival")]
    platform.will("GET", "/v1/usage", *[answer({"lines": lines, "total": TOTAL})] * 2)
    rows = cells(run("usage", "--all"))
    assert rows[0] == ["tenant", "day", "function", "state", "price", "calls", "seconds", "cost"]
    assert [row[0] for row in rows[1:]] == ["acme", "rival", "total"]
    assert run("usage", "--all", "--csv").splitlines()[0].endswith(",cost,currency,tenant")
    assert platform.requests[0].query == "all=true"


def test_usage_is_written_to_files(platform: ScriptedPlatform, tmp_path: Path) -> None:
    """Or to stdout; one at a time."""
    platform.will("GET", "/v1/usage", *[Answer(pieces=[b"<!doctype html>"])] * 2)
    platform.will("GET", "/v1/usage/events", answer([]))
    page = tmp_path / "usage.html"
    done = invoke("usage", "--html", str(page), "--from", "2026-11-01")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"Wrote {page}.\n")
    assert page.read_text() == "<!doctype html>"
    assert run("usage", "--focus", "-") == "<!doctype html>"
    assert run("usage", "--events", "-") == "[]"
    assert platform.requests[0].query == "from=2026-11-01&format=html"
    assert "exclude each other" in invoke("usage", "--html", "a", "--focus", "b").stderr
    assert "cannot be written" in invoke("usage", "--html", str(tmp_path / "none" / "a")).stderr


def test_a_forecast_is_a_sentence(platform: ScriptedPlatform) -> None:
    """With its range if it has one."""
    unknown = FORECAST | {"method": "", "low": None, "high": None}
    few = FORECAST | {"low": None, "high": None}
    platform.will("GET", "/v1/usage/forecast", *map(answer, (FORECAST, unknown, few, FORECAST)))
    assert run("usage", "--forecast") == (
        "2026-11: 105.61 USD so far, 124.62 expected at its end, 122.59 to 126.66 in eight of ten such forecasts "
        "(same weekdays, from 24 days).\n"
    )
    assert run("usage", "--forecast") == "2026-11: 105.61 USD so far; nothing is known to forecast from.\n"
    assert run("usage", "--forecast").endswith("124.62 expected at its end (same weekdays, from 24 days).\n")
    assert msgspec.json.decode(run("usage", "--forecast", "--json")) == FORECAST


def test_the_fleets_costs_are_three_tables(platform: ScriptedPlatform) -> None:
    """Who spends, what nobody pays for, and what devices earned."""
    platform.will("GET", "/v1/usage/fleet", answer(FLEET_COSTS), answer(FLEET_COSTS))
    rows = cells(run("usage", "--fleet", "--paid", "h100:1.9"))
    assert ["acme", "1871", "38.57", "12.98", "54.85"] in rows
    assert ["fragmentation", "165.7", "677.01"] in rows
    assert rows[-1] == ["node-eu-1", "h100-embed", "H100", "197.5", "16%", "79.57", "718.65", "375.20"]
    assert platform.requests[0].query == "cost=h100:1.9"
    assert msgspec.json.decode(run("usage", "--fleet", "--json")) == FLEET_COSTS
