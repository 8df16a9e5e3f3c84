"""The fold counts every event once, and receipts sum to the report."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pilotlight_core.model.messages.call_messages import Spent
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault, Purpose
from pilotlight_core.model.price_book import PriceBook, load_prices
from pilotlight_core.model.units import cost_of, money
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.call_responses import usage_of
from pilotlight_gateway.duties.ledger_folder import REFUSALS
from pilotlight_gateway.ledger.ledger_errors import LedgerRefused
from pilotlight_gateway.ledger.ledger_store import Ledger, use_wal
from pilotlight_gateway.ledger.ledger_tables import (
    call_receipt,
    lease_line,
    receipt_line,
    receipt_terms,
    usage_day,
    usage_hour,
)
from pilotlight_gateway.ledger.usage_conservation import device_account
from pilotlight_gateway.ledger.usage_queries import receipts
from tests.example_counts import SLOW, examples
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, delivered, event, histories


def content(ledger: Ledger) -> list[list[tuple[object, ...]]]:
    return [
        sorted(tuple(row.values()) for row in ledger.read(sa.select(table)))
        for table in (lease_line, usage_day, receipt_line)
    ]


@pytest.mark.parametrize("table", [usage_day, usage_hour, call_receipt], ids=str)
def test_a_sum_beyond_its_column_is_an_error(ledger: Ledger, table: sa.Table) -> None:
    """The fold puts such usage aside, and shows it: a sum never becomes a number with a fraction."""
    most = 2**63 - 1
    ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", 5, ""))]))
    with ledger._engine.begin() as connection:
        connection.execute(sa.update(table).values(ns=most))

    with pytest.raises(REFUSALS):
        ledger.fold("USAGE", 2, delivered([busy(2, 5, ("a", 1, "ok"))]))

    assert [row["ns"] for row in ledger.read(sa.select(table.c.ns))] == [most]
    assert ledger.last_seq("USAGE") == 1


@examples(60, fewer=SLOW, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(), st.data())
def test_repetition_and_order_change_nothing(history: list[UsageEvent], data: st.DataObject) -> None:
    """Any order, any cut into folds, any repetition: the same ledger, and it conserves the device's time."""
    once, often = Ledger("sqlite://", load_prices()), Ledger("sqlite://", load_prices())
    once.fold("USAGE", len(history), delivered(history))
    deliveries = data.draw(st.permutations(history + data.draw(st.lists(st.sampled_from(history), max_size=6))))
    cut = data.draw(st.integers(0, len(deliveries)))

    folds = [
        often.fold("USAGE", number, delivered(part)) for number, part in enumerate((deliveries[:cut], deliveries[cut:]))
    ]

    assert sum(fold.new for fold in folds) == len(history)
    assert sum(fold.repeated for fold in folds) == len(deliveries) - len(history)
    assert content(once) == content(often)
    end = history[-1].t1
    account = device_account(often, "n1", "d0", 0, end)
    assert (account.excess, account.unrecorded) == (0, 0)
    often.close()
    once.close()


@examples(60)
@given(histories())
def test_receipts_sum_to_the_report(history: list[UsageEvent]) -> None:
    """In nanoseconds and in exact dollars, for every tenant."""
    ledger = Ledger("sqlite://", load_prices())
    ledger.fold("USAGE", 1, delivered(history))
    for tenant in ("acme", "rival"):
        lines = ledger.read(sa.select(usage_day).where(usage_day.c.tenant == tenant, usage_day.c.state == "busy"))
        billed = sum((cost_of(line["ns"], line["ppm"], line["rate"]) for line in lines), Fraction(0))
        calls = {row["call"] for row in ledger.read(sa.select(receipt_line).where(receipt_line.c.tenant == tenant))}
        own = [line for call in calls for line in receipts(ledger, tenant, call)]

        assert sum((line["cost"] for line in own), Fraction(0)) == billed
        assert sum(line["ns"] for line in own) == sum(line["ns"] for line in lines)
    ledger.close()


def test_a_receipt_is_what_the_caller_was_told(ledger: Ledger) -> None:
    """Part by part, the host's beside the slice's, whatever the call had of it."""
    hosts: tuple[dict[str, Any], ...] = ({}, {"core_ppm": 2_000_000, "gib_ppm": 4_000_000})
    for number, host in enumerate(hosts, 1):
        name = f"call{number}"
        call = busy(number, number * SECOND, (name, SECOND // 3, "ok"), ppm=250_000, price="h100", **host)
        ledger.fold("USAGE", number, delivered([call]))
        spent = Spent(ns=SECOND // 3, ppm=250_000, price="h100", **host)

        told = usage_of(CallResult(output=b"", spent=spent), ledger.book)

        kept = sorted((line["price"], line["ppm"], money(line["cost"])) for line in receipts(ledger, "acme", name))
        assert sorted((part.price, part.ppm, part.cost) for part in told.parts) == kept
        assert len(kept) == (3 if host else 1)
        assert Decimal(told.cost) == sum(Decimal(cost) for _, _, cost in kept)


def test_the_place_in_the_stream_is_kept_with_what_was_read(ledger: Ledger) -> None:
    """After a fold, and after a fold of nothing."""
    assert ledger.last_seq("USAGE") == 0
    ledger.fold("USAGE", 7, delivered([event(1, 0, 5)]))
    assert ledger.last_seq("USAGE") == 7
    ledger.fold("USAGE", 9, [])
    assert ledger.last_seq("USAGE") == 9


def test_a_fold_that_fails_leaves_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither lines nor place: the next try reads the same again."""

    def fail(*_: object) -> None:
        raise sa.exc.OperationalError("", {}, Exception("the database went away"))

    monkeypatch.setattr("pilotlight_gateway.ledger.ledger_store.add_receipts", fail)
    with pytest.raises(sa.exc.OperationalError):
        ledger.fold("USAGE", 7, delivered([event(1, 0, 5), event(2, 5, 10)]))

    assert ledger.last_seq("USAGE") == 0
    assert content(ledger) == [[], [], []]


def test_a_new_price_does_not_reprice_what_was_recorded(tmp_path: Path) -> None:
    """Lines keep the rate they were folded with."""
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    for number, rate in enumerate((100, 200)):
        ledger = Ledger(url, PriceBook(rates={"cpu": rate}))
        ledger.fold("USAGE", number, delivered([event(number, number * 5, number * 5 + 5)]))
        lines = ledger.read(sa.select(usage_day.c.rate, usage_day.c.ns).order_by(usage_day.c.rate))
        ledger.close()

    assert [(line["rate"], line["ns"]) for line in lines] == [(100, 5), (200, 5)]


def test_a_call_that_runs_on_has_one_receipt_that_grows(ledger: Ledger) -> None:
    """Each second adds to it; the last one says how it ended."""
    ledger.fold("USAGE", 1, delivered([busy(1, 0, ("a", SECOND, ""))]))
    ledger.fold("USAGE", 2, delivered([busy(2, SECOND, ("a", SECOND, ""))]))
    ledger.fold("USAGE", 3, delivered([busy(3, 2 * SECOND, ("a", 5, "ok"), ("b", 5, "ok"))]))

    (line,) = receipts(ledger, "acme", "a")
    assert (line["ns"], line["outcome"], line["batch_size"]) == (2 * SECOND + 5, "ok", 2)
    assert receipts(ledger, "rival", "a") == []


def test_old_intervals_go_and_sums_stay(ledger: Ledger) -> None:
    """Pruning forgets details only."""
    old = event(1, 0, 5, LeaseState.LOADING, ended_at=MIDNIGHT - 10 * 86_400)
    also = busy(2, 5, ("a", 5, "ok"), ended_at=MIDNIGHT - 10 * 86_400)
    ledger.fold("USAGE", 1, delivered([old, also, busy(3, 10, ("b", 5, "ok"))]))

    assert ledger.prune(MIDNIGHT) == 2

    assert [row["id"] for row in ledger.read(sa.select(lease_line))] == ["node-1.s0.3"]
    assert [row["call"] for row in ledger.read(sa.select(receipt_line))] == ["b"]
    assert len(ledger.read(sa.select(receipt_terms))) == 1
    assert sum(row["ns"] for row in ledger.read(sa.select(usage_day))) == 15


def test_a_thousand_calls_a_second_are_affordable(ledger: Ledger) -> None:
    """A fold takes twice as many statements at most for two thousand events, with as many receipts, as for twenty."""
    asked = []
    sa.event.listen(sa.Engine, "before_cursor_execute", on_statement := lambda *said: asked.append(said[2]))
    try:
        counts = []
        for first, count in ((0, 20), (20, 2_000)):
            events = [busy(number, number * 10, (f"call{number}", 10, "ok")) for number in range(first, first + count)]
            asked.clear()
            assert ledger.fold("USAGE", first + count, delivered(events)).new == count
            counts.append(len(asked))
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", on_statement)
    assert 0 < counts[1] <= 2 * counts[0], asked


def test_a_ledger_in_a_file_is_its_owners(tmp_path: Path) -> None:
    """With what SQLite puts beside it; also one that was open before."""
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices())
    ledger.fold("USAGE", 1, delivered([busy(1, 0, ("call_a", SECOND, "ok"))]))
    files = sorted(tmp_path.iterdir())

    assert [path.name for path in files] == ["ledger.sqlite", "ledger.sqlite-shm", "ledger.sqlite-wal"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}

    for path in files:
        path.chmod(0o644)
    Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}", load_prices()).close()

    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    ledger.close()


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what installs it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(LedgerRefused, match=r"pip install 'pilotlight\[postgres\]'"):
        Ledger("postgresql://db/ledger", load_prices())


def test_postgresql_that_was_started_again_is_used_again(new_database: Callable[[], str]) -> None:
    """Its old connections are closed; the first question meets a new one."""
    ledger = Ledger(new_database(), load_prices())
    ledger.fold("USAGE", 7, [])
    ends = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid != pg_backend_pid()"
    other = Ledger(new_database(), load_prices())
    other.read(sa.select(sa.text(ends.removeprefix("SELECT "))))

    assert ledger.last_seq("USAGE") == 7
    ledger.close()
    other.close()


@examples(8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(), st.data())
def test_databases_agree(new_database: Callable[[], str], history: list[UsageEvent], data: st.DataObject) -> None:
    """To the last line, whatever came in whatever order."""
    deliveries = data.draw(st.permutations(history + data.draw(st.lists(st.sampled_from(history), max_size=3))))
    held = []
    for url in ("sqlite://", new_database()):
        ledger = Ledger(url, load_prices())
        for number, one in enumerate(deliveries):
            ledger.fold("USAGE", number, delivered([one]))
        held.append(content(ledger))
        ledger.close()

    assert held[0] == held[1]


def test_a_file_that_another_process_is_making_is_waited_for(tmp_path: Path) -> None:
    """SQLite refuses the change to WAL at once while another writes; it is asked again until that one is done."""
    path, waits = tmp_path / "ledger.sqlite", []
    maker, opener = sqlite3.connect(path, isolation_level=None), sqlite3.connect(path)
    maker.execute("BEGIN IMMEDIATE")

    def until_it_is_made(seconds: float) -> None:
        waits.append(seconds)
        maker.execute("COMMIT")

    use_wal(opener, until_it_is_made)

    assert len(waits) == 1
    assert opener.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    maker.close()
    opener.close()


def test_lines_have_what_events_said(ledger: Ledger) -> None:
    """Facts of the interval on its own line, of a call on its receipt; an older agent's say nothing."""
    told = CallShare(
        "a", "acme", 5, "raised", key="key_1", tags={"team": "red"}, fault=Fault.TENANT, units={"prompt_tokens": 12}
    )
    place = {"region": "eu", "zone": "eu-a", "purchase": "spot", "memory": 2**34, "used": True}
    exact = int(MIDNIGHT) * SECOND + 7
    newer = event(
        1, 0, 5, LeaseState.BUSY, shares=(told,), purpose=Purpose.FLOOR, wall_ns=exact, ended_at=MIDNIGHT, **place
    )
    older = busy(2, 5, ("b", 5, "ok"), ended_at=MIDNIGHT)

    ledger.fold("USAGE", 1, delivered([newer, older]))

    first, second = ledger.read(sa.select(lease_line).order_by(lease_line.c.t0))
    assert first | place == first
    assert (first["purpose"], first["wall_ns"]) == ("floor", exact)
    assert (second["purpose"], second["wall_ns"], second["region"]) == ("", int(MIDNIGHT) * SECOND, "")
    (of_a,), (of_b,) = receipts(ledger, "acme", "a"), receipts(ledger, "acme", "b")
    assert (of_a["key_id"], of_a["tags"], of_a["fault"], of_a["units"]) == (
        "key_1", '{"team":"red"}', "tenant", '{"prompt_tokens":12}',
    )  # fmt: skip
    assert (of_b["key_id"], of_b["tags"], of_b["fault"], of_b["units"]) == ("", "", "", "")


def test_tags_of_a_function_are_on_the_receipts_of_its_owner(ledger: Ledger) -> None:
    """With those of the call, which come first; another tenant that calls it is not shown them."""
    tags = {"team": "search", "stage": "live"}
    shares = (
        CallShare("a", "acme", 5, "ok", tags={"stage": "test"}),
        CallShare("b", "acme", 5, "ok"),
        CallShare("c", "rival", 5, "ok"),
    )
    ledger.fold("USAGE", 1, delivered([event(1, 0, 15, LeaseState.BUSY, shares=shares, tags=tags)]))

    found = [
        receipts(ledger, tenant, call)[0]["tags"] for tenant, call in (("acme", "a"), ("acme", "b"), ("rival", "c"))
    ]
    assert found == ['{"stage":"test","team":"search"}', '{"stage":"live","team":"search"}', ""]


def test_what_a_call_said_last_holds(ledger: Ledger) -> None:
    """A part of it that says nothing yet, in whatever order they come, takes nothing away."""
    parts = [
        event(1, 0, 5, LeaseState.BUSY, shares=(CallShare("a", "acme", 5, key="key_1"),)),
        event(2, 5, 9, LeaseState.BUSY, shares=(CallShare("a", "acme", 4, "ok", key="key_1", units={"images": 2}),)),
    ]
    for number, part in enumerate(reversed(parts)):
        ledger.fold("USAGE", number, delivered([part]))

    (line,) = receipts(ledger, "acme", "a")
    assert (line["ns"], line["outcome"], line["key_id"], line["units"]) == (9, "ok", "key_1", '{"images":2}')
