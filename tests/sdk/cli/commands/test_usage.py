"""The usage report: as a table, as CSV and as JSON."""

from __future__ import annotations

import msgspec

from tests.sdk.cli.shell import cells, invoke, run
from tests.sdk.scripted import ScriptedPlatform, answer, problem

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


def test_usage_as_csv_and_of_a_period(platform: ScriptedPlatform) -> None:
    """CSV has every column."""
    platform.will("GET", "/v1/usage", answer({"lines": [LINE], "total": TOTAL}))
    lines = run("usage", "--from", "2026-11-01", "--to", "2026-12-01", "--csv").splitlines()
    assert lines[0].startswith("day,app,function,version,state,price,ppm,calls,ns,")
    assert lines[1] == "2026-11-20,search,embed,search.embed@v7,busy,cpu,500000,2,5,1.23456,0.01,USD"
    assert platform.requests[0].query == "from=2026-11-01&to=2026-12-01"


def test_usage_of_parts_of_several_sizes_is_one_line(platform: ScriptedPlatform) -> None:
    """The table adds up lines that look alike, exactly; JSON has each of them."""
    lines = [LINE, LINE | {"ppm": 250_000, "calls": 3, "cost": "0.000000000001"}, LINE | {"state": "idle", "calls": 0}]
    platform.will("GET", "/v1/usage", answer({"lines": lines, "total": TOTAL}))
    rows = [row.split() for row in run("usage").splitlines()[1:3]]
    assert rows == [
        ["2026-11-20", "search.embed@v7", "busy", "cpu", "5", "2.469", "0.010000000001", "USD"],
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
