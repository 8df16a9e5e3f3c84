"""Corrections that wait for what they correct."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_gateway.ledger import pending_reversals
from pilotlight_gateway.ledger.ledger_entries import Reversal
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import pending_reversal
from pilotlight_gateway.ledger.pending_reversals import keep_pending, take_due
from tests.gateway.ledger.metering import event

END = CallShare("a", "acme", 5, "died", fault=Fault.PLATFORM, earlier=20)


def part(number: int, t0: int, t1: int, *shares: CallShare, **more: str) -> UsageEvent:
    made = event(number, t0, t1, LeaseState.BUSY, shares=shares or (CallShare("a", "acme", t1 - t0),))
    return msgspec.structs.replace(made, **more)


def end(number: int = 9, **more: str) -> Reversal:
    return Reversal(part(number, 100, 105, END, **more), END, "2026-09-22T01", lines=2)


def waiting(ledger: Ledger) -> list[tuple[str, int, int]]:
    rows = ledger.read(sa.select(pending_reversal).order_by(pending_reversal.c.event))
    return [(row["event"], row["ns"], row["lines"]) for row in rows]


def due(ledger: Ledger, *events: UsageEvent, open_from: str = "") -> list[tuple[int, int, str, int]]:
    with ledger._engine.begin() as connection:
        return [
            (found.share.earlier, found.rest, found.hour, found.lines)
            for found in take_due(connection, events, open_from)
        ]


def keep(ledger: Ledger, *left: tuple[Reversal, int]) -> None:
    with ledger._engine.begin() as connection:
        keep_pending(connection, left)


def test_a_correction_waits_for_what_its_container_did_before(ledger: Ledger) -> None:
    """Not for another call, another container's part of it, what came after its end, or what is corrected itself."""
    keep(ledger, (end(), 20))
    others = (
        part(1, 0, 4, CallShare("b", "acme", 4)),
        part(2, 0, 4, container="another"),
        part(3, 105, 109),
        part(4, 0, 4, msgspec.structs.replace(END, ns=4)),
    )
    assert due(ledger, *others) == []
    assert waiting(ledger) == [("node-1.s0.9", 20, 2)]

    assert due(ledger, part(5, 0, 4), part(6, 90, 99), open_from="2026-09-23") == [(13, 7, "2026-09-23", 2)]
    assert waiting(ledger) == []


def test_what_one_correction_takes_another_does_not(ledger: Ledger) -> None:
    """Of a call whose container ended twice, as a node may say."""
    keep(ledger, (end(8), 3), (end(9), 20))
    assert due(ledger, part(1, 0, 4)) == [(3, 0, "2026-09-22T01", 2), (1, 19, "2026-09-22T01", 2)]


def test_of_two_ends_in_one_container_the_first_takes_first(ledger: Ledger) -> None:
    """It can be given back nothing that came after it, unlike the other one, whatever their ids are."""
    first, second = end(9), Reversal(part(10, 200, 205, END), END, "2026-09-22T01")
    keep(ledger, (second, 20), (first, 20))

    assert due(ledger, part(1, 0, 20)) == [(20, 0, "2026-09-22T01", 2)]
    assert due(ledger, part(2, 110, 130)) == [(20, 0, "2026-09-22T01", 0)]
    assert waiting(ledger) == []


def test_a_correction_of_two_shares_waits_as_one(ledger: Ledger) -> None:
    """An event may have several of a call."""
    keep(ledger, (end(), 3), (end()._replace(lines=4), 5))
    assert waiting(ledger) == [("node-1.s0.9", 8, 4)]


def test_a_node_may_have_so_many_wait(ledger: Ledger) -> None:
    """A node may say anything; others have room of their own."""
    keep(ledger, *((end(number), 1) for number in range(pending_reversals.MOST_OF_A_NODE + 1)))
    keep(ledger, (end(1, id="other", node="node-2"), 1), (end(1, id="last"), 1))
    assert len(waiting(ledger)) == pending_reversals.MOST_OF_A_NODE + 1
