"""Reports add up, whatever they are grouped by."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from msgspec import UNSET

from pilotlight_core.model.devices import HOST_PRICES
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages.usage import LeaseState, UsageEvent
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.units import cost_of, money
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_queries import usage_report
from pilotlight_gateway.ledger.usage_report import COLUMNS, GROUPS, as_csv, cells_of, columns_of, read_groups
from tests.example_counts import examples
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, delivered, event, histories, tagged


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices())
    ledger.fold(
        "USAGE",
        1,
        delivered(
            [
                event(1, 0, SECOND, LeaseState.LOADING),
                busy(2, SECOND, ("a", SECOND, "ok"), ("b", SECOND, "ok")),
                event(3, 3 * SECOND, 4 * SECOND, version="ver_2"),
                event(4, 4 * SECOND, 5 * SECOND, tenant="rival"),
                event(5, 5 * SECOND, 6 * SECOND, LeaseState.FREE, tenant="", app="", function="", version=""),
                event(6, 6 * SECOND, 7 * SECOND, ended_at=MIDNIGHT + 90_000),
            ]
        ),
    )
    yield ledger
    ledger.close()


def test_a_tenant_sees_its_own_lines_by_default_in_full(ledger: Ledger) -> None:
    """One line per day, version, state and price, and nobody else's."""
    report = usage_report(ledger, "acme", "2026-09-22", "2026-09-23")

    assert [(line.version, line.state, line.calls, line.ns) for line in report.lines] == [
        ("ver_1", "busy", 2, 2 * SECOND),
        ("ver_1", "loading", 0, SECOND),
        ("ver_2", "idle", 0, SECOND),
    ]
    assert report.lines[0].cost == money(cost_of(2 * SECOND, 1_000_000, ledger.book.rate("cpu")))
    assert report.lines[0].gpu_seconds == 2.0
    assert (report.total.calls, report.total.ns) == (2, 4 * SECOND)


def test_cores_and_memory_have_lines_of_their_own() -> None:
    """Which add to the cost and not to the device's time; without grouping by price they are in the slice's line."""
    ledger = Ledger("sqlite://", load_prices())
    call = busy(1, 0, ("a", 2 * SECOND, "ok"), price="l4", ppm=500_000, core_ppm=2_000_000, gib_ppm=4_000_000)
    ledger.fold("USAGE", 1, delivered([call]))

    by_price = usage_report(ledger, "acme", "2026-09-22", "2026-09-23")
    together = usage_report(ledger, "acme", "2026-09-22", "2026-09-23", read_groups("function,state"))

    rates = {price: ledger.book.rate(price) for price in ("cpu_core", "l4", "memory_gib")}
    assert [(line.price, line.ppm, line.calls, line.gpu_seconds, line.cost) for line in by_price.lines] == [
        ("cpu_core", 2_000_000, 0, 4.0, money(cost_of(4 * SECOND, 1_000_000, rates["cpu_core"]))),
        ("l4", 500_000, 1, 1.0, money(cost_of(SECOND, 1_000_000, rates["l4"]))),
        ("memory_gib", 4_000_000, 0, 8.0, money(cost_of(8 * SECOND, 1_000_000, rates["memory_gib"]))),
    ]
    (line,) = together.lines
    assert (line.calls, line.ns, line.gpu_seconds, line.cost) == (1, 2 * SECOND, 1.0, together.total.cost)
    assert together.total == by_price.total
    ledger.close()


@examples(40)
@given(histories())
def test_the_total_does_not_depend_on_the_grouping(history: list[UsageEvent]) -> None:
    """Lines are rounded once each, the total once from exact sums."""
    ledger = Ledger("sqlite://", load_prices())
    ledger.fold("USAGE", 1, delivered(history))

    reports = [usage_report(ledger, "acme", "2026-01-01", "2027-01-01", groups) for groups in (GROUPS, ("day",), ())]

    assert len({report.total for report in reports}) == 1
    for report in reports:
        apart = abs(sum(Decimal(line.cost) for line in report.lines) - Decimal(report.total.cost))
        assert apart <= Decimal("1e-12") * len(report.lines)
        assert sum(line.ns for line in report.lines if line.price not in HOST_PRICES) == report.total.ns
    ledger.close()


def test_what_it_is_not_grouped_by_is_blank(ledger: Ledger) -> None:
    """Grouped by state, a line belongs to no day or version."""
    report = usage_report(ledger, "acme", "2026-09-22", "2026-09-24", read_groups("state"))

    assert [(line.state, line.day, line.version, line.ppm) for line in report.lines] == [
        ("busy", "", "", 0),
        ("idle", "", "", 0),
        ("loading", "", "", 0),
    ]


def test_usage_is_grouped_by_tags(ledger: Ledger) -> None:
    """Beside other dimensions, or by several; what is not tagged so is a line of its own, and the sum is the same."""
    red, both = {"team": "red"}, {"team": "blue", "stage": "live"}
    ledger.fold(
        "USAGE",
        2,
        delivered(
            [
                busy(11, 0, ("c", SECOND, "ok"), version="ver_3"),
                event(12, SECOND, 2 * SECOND, version="ver_4"),
                event(13, SECOND, 2 * SECOND, version="ver_5", app="other"),
                event(14, 0, SECOND, version="ver_1", tenant="rival"),
            ]
        ),
    )
    ledger.fold("USAGE", 3, tagged({"ver_3": red, "ver_4": both, "ver_5": red}))
    ledger.fold("USAGE", 4, tagged({"ver_1": {"team": "theirs"}}, "rival"))
    groups = read_groups("state, tag:team,tag:stage,tag:team")
    by_team, by_both, whole = (
        usage_report(ledger, "acme", "2026-09-22", "2026-09-23", each) for each in (("tag:team",), groups, GROUPS)
    )

    assert [(line.tags, line.app, line.calls, line.ns) for line in by_team.lines] == [
        ({"team": ""}, "", 2, 4 * SECOND),
        ({"team": "blue"}, "", 0, SECOND),
        ({"team": "red"}, "", 1, 2 * SECOND),
    ]
    assert [(line.state, line.tags) for line in by_both.lines] == [
        ("busy", {"team": "", "stage": ""}),
        ("busy", {"team": "red", "stage": ""}),
        ("idle", {"team": "", "stage": ""}),
        ("idle", {"team": "blue", "stage": "live"}),
        ("idle", {"team": "red", "stage": ""}),
        ("loading", {"team": "", "stage": ""}),
    ]
    assert by_team.total == by_both.total == whole.total
    rows = list(csv.DictReader(io.StringIO(as_csv(by_both, groups))))
    assert [(row["tag:team"], row["tag:stage"]) for row in rows[3:5]] == [("blue", "live"), ("red", "")]


def test_parked_time_costs_what_its_part_and_price_say(ledger: Ledger) -> None:
    """As warm time does, and it is a line of its own; provisioning is the operator's."""
    small = {"ppm": 62_500, "price": "16xcpu", "tenant": "parker"}
    for number, state in enumerate((LeaseState.IDLE, LeaseState.PARKED, LeaseState.PROVISIONING), 20):
        ledger.fold("USAGE", number, delivered([event(number, 0, 1_000 * SECOND, state, **small)]))
    report = usage_report(ledger, "parker", "2026-09-22", "2026-09-23", read_groups("state"))

    cost = money(cost_of(1_000 * SECOND, 62_500, ledger.book.rate("16xcpu")))
    assert [(line.state, line.cost) for line in report.lines] == [
        ("idle", cost), ("parked", cost),
    ]  # fmt: skip
    assert Decimal(cost) > 0


def test_usage_is_grouped_by_what_only_hours_know(ledger: Ledger) -> None:
    """And by kind of GPU; the sum is the same, and what is not asked for is not there."""
    groups = read_groups("gpu,hour,purpose,purchase,region,key,day")
    by_all, whole = (
        usage_report(ledger, "acme", "2026-09-22", "2026-09-24", each) for each in (groups, GROUPS)
    )  # fmt: skip

    assert [(line.hour, line.day, line.gpu, line.purpose, line.key) for line in by_all.lines] == [
        ("2026-09-22T12", "2026-09-22", "cpu", "", ""), ("2026-09-23T00", "2026-09-23", "cpu", "", ""),
    ]  # fmt: skip
    assert by_all.total == whole.total
    assert all(line.hour is UNSET and line.gpu is UNSET for line in whole.lines)
    assert columns_of(groups)[-6:] == ("hour", "key", "gpu", "purpose", "purchase", "region")
    assert len(cells_of(by_all.lines[0], groups)) == len(columns_of(groups))


def test_all_tenants_are_told_apart(ledger: Ledger) -> None:
    """With what nobody pays for; a report of one tenant cannot be grouped by tenant."""
    groups = read_groups("tenant", all_tenants=True)
    found = usage_report(ledger, None, "2026-09-22", "2026-09-23", groups)

    assert [(line.tenant, line.ns) for line in found.lines] == [
        ("", SECOND), ("acme", 4 * SECOND), ("rival", SECOND),
    ]  # fmt: skip
    assert read_groups("", all_tenants=True) == (*GROUPS, "tenant")
    with pytest.raises(BadInput, match="cannot be grouped by 'tenant'"):
        read_groups("tenant")


def test_groups_are_read_in_any_order_and_refused_by_name() -> None:
    """Commas and blanks; an unknown one is named."""
    assert read_groups("") == GROUPS
    assert read_groups(" state, day ") == ("day", "state")
    assert read_groups("tag:team,day") == ("day", "tag:team")
    for wrong in ("day,tenant", "tag:", "tag:a b", "team"):
        with pytest.raises(BadInput, match="tag:NAME"):
            read_groups(wrong)
    assert len(read_groups(",".join(f"tag:t{n % 10}" for n in range(20)))) == 10
    with pytest.raises(BadInput, match="by 11 tags: expected at most 10"):
        read_groups(",".join(f"tag:t{n}" for n in range(11)))


def test_csv_says_the_same(ledger: Ledger) -> None:
    """With a header, and every column of the JSON."""
    report = usage_report(ledger, "acme", "2026-09-22", "2026-09-23")
    rows = list(csv.DictReader(io.StringIO(as_csv(report))))

    assert list(rows[0]) == list(COLUMNS)
    assert [row["cost"] for row in rows] == [line.cost for line in report.lines]
