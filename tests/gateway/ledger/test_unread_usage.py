"""What a release cannot read waits, whole, and is on the bill as soon as one can."""

from __future__ import annotations

import msgspec
import pytest
import sqlalchemy as sa

from pilotlight_core.bus import Undecodable
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.bindings import Bound
from pilotlight_core.model.messages.usage import UsageBatch, UsageEvent
from pilotlight_core.model.messages.wire import encode
from pilotlight_gateway.ledger import ledger_tables, unread_usage
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_checks import UsageFault
from pilotlight_gateway.ledger.usage_delivery import UsageDelivery, delivery_of
from pilotlight_gateway.ledger.usage_queries import usage_report
from tests.builders.nodes import binding
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, event

AT = MIDNIGHT + 86_400.0
LATER = AT + 86_400.0
DAY = ("2026-09-20", "2026-09-30")


def stored(message: object, subject: str = "usage.local.n1.acme", at: float = AT, seq: int = 7) -> UsageDelivery:
    return delivery_of(seq, subject, at, message)


def unread(*events: UsageEvent, seq: int = 7) -> UsageDelivery:
    """A batch that this release is said not to read."""
    return stored(Undecodable(encode(UsageBatch(events=events)), "Invalid enum value 'asleep\0'"), seq=seq)


def bound(at: float = AT - 60.0) -> UsageDelivery:
    named = binding("c1", "ver_1", function="acme:shop.hello", slice="s0", ppm=1_000_000)
    return stored(Bound(binding=named), subjects.bindings("local", "n1"), at, seq=1)


def billed_ns(ledger: Ledger) -> int:
    return usage_report(ledger, "acme", *DAY).total.ns


def test_what_cannot_be_read_waits_whole(ledger: Ledger) -> None:
    """With its place, its subject, when it came and why; nothing of it is in quarantine, and the fold goes on."""
    message = unread(event(1, 0, SECOND, ended_at=AT))

    done = ledger.fold("USAGE", 9, [bound(), message])

    assert (done.unread, done.quarantined, done.new) == (1, 0, 0)
    assert ledger.last_seq("USAGE") == 9
    assert ledger.unread_count() == (1, AT)
    (row,) = ledger.read(sa.select(ledger_tables.unread_usage))
    assert (row["seq"], row["subject"], row["node"], row["at"]) == (7, "usage.local.n1.acme", "n1", AT)
    assert row["data"] == message.message.data
    assert row["why"] == "Invalid enum value 'asleep\\u0000'"


def test_what_can_be_read_by_now_is_folded_once(ledger: Ledger) -> None:
    """Its row goes in the same transaction; the place in the stream stays."""
    ledger.fold("USAGE", 9, [bound(), unread(event(1, 0, SECOND, ended_at=AT))])

    page = ledger.unread(0, LATER)
    done = ledger.fold_unread("USAGE", page)

    assert (done.new, done.quarantined, done.seq) == (1, 0, 9)
    assert billed_ns(ledger) == SECOND
    assert ledger.unread_count() == (0, 0.0)
    assert ledger.fold("USAGE", 10, [stored(UsageBatch(events=(event(1, 0, SECOND, ended_at=AT),)))]).repeated == 1


def test_what_was_metered_meanwhile_leaves_room_for_it(ledger: Ledger) -> None:
    """A container has run on for hours, all of which is folded, before its first minute can be read."""
    first, minute = event(1, 0, 60 * SECOND, ended_at=AT), 3_600 * SECOND
    ledger.fold("USAGE", 7, [bound(), unread(first)])
    for hour in range(5):
        at = AT + 3_600.0 * (hour + 1)
        one = event(2 + hour, hour * minute, (hour + 1) * minute, ended_at=at)
        assert ledger.fold("USAGE", 8 + hour, [stored(UsageBatch(events=(one,)), at=at)]).new == 1

    ledger.fold_unread("USAGE", ledger.unread(0, LATER))

    assert ledger.quarantine(node=None, before=None, limit=9) == []
    assert billed_ns(ledger) == 5 * minute + 60 * SECOND


def test_what_still_cannot_be_read_stays(ledger: Ledger) -> None:
    """It is told apart from what can."""
    data = msgspec.msgpack.encode({"type": "UsageBatch", "events": [{"state": "asleep"}]})
    ledger.fold("USAGE", 9, [bound(), stored(Undecodable(data, "why")), unread(event(1, 0, SECOND, ended_at=AT))])

    assert [each.is_read for each in ledger.unread(0, LATER)] == [False, True]


def test_what_is_kept_of_a_node_is_bounded(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that stores garbage fills only its own part; what is beyond is in quarantine, where operators see it."""
    monkeypatch.setattr(unread_usage, "BYTES_OF_A_NODE", 10)
    garbage = Undecodable(b"\0\xff56", "no msgpack")
    done = ledger.fold("USAGE", 1, [stored(garbage) for _ in range(3)])
    again = ledger.fold("USAGE", 2, [stored(garbage), stored(garbage, "usage.local.n2.acme")])

    assert (done.unread, done.quarantined, again.unread, again.quarantined) == (2, 1, 1, 1)
    row = ledger.quarantine(node="n1", before=None, limit=1)[0]
    assert row["reason"] == UsageFault.UNREADABLE
    assert "no msgpack" in row["text"]


def test_what_nobody_ever_reads_goes_into_quarantine(ledger: Ledger) -> None:
    """By name, once."""
    ledger.fold("USAGE", 1, [stored(Undecodable(b"x", "no msgpack"))])
    (message,) = ledger.unread(0, LATER)

    done = ledger.give_up_unread("USAGE", message, UsageFault.UNREADABLE, "no release reads it")

    assert (done.quarantined, done.seq) == (1, 1)
    assert ledger.unread_count().messages == 0
    assert ledger.quarantine(node="n1", before=None, limit=1)[0]["text"] == "no release reads it"
