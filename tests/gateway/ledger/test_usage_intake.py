"""What becomes of deliveries: folded, known already, or in quarantine."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from pilotlight_core.model.messages.bindings import Bound, Unbound
from pilotlight_core.model.messages.call_messages import Cancel
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageBatch, UsageEvent
from pilotlight_core.model.price_book import DatedRate
from pilotlight_gateway.ledger.ledger_store import KEPT_OF_A_NODE, Ledger
from pilotlight_gateway.ledger.ledger_tables import lease_line, usage_day, version_tags
from pilotlight_gateway.ledger.usage_checks import MOST_DEVICES, UsageFault
from pilotlight_gateway.ledger.usage_delivery import Sender, UsageDelivery
from pilotlight_gateway.ledger.usage_intake import KnownUsage, sort_usage
from tests.builders.nodes import binding
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, event

AT = MIDNIGHT + 86_400.0
BINDING = binding("c1", "ver_1", function="acme:shop.hello", slice="s0", ppm=1_000_000)


def told(message: Any, *, node: str = "n1", at: float = AT, sender: Sender = Sender.AGENT) -> UsageDelivery:
    return UsageDelivery(seq=1, at=at, sender=sender, node=node, message=message)


def metered(*events: UsageEvent, **more: Any) -> UsageDelivery:
    return told(UsageBatch(events=events), **more)


def bound(at: float = AT - 60.0, **more: Any) -> UsageDelivery:
    named = BINDING if not more else binding(**{"function": "acme:shop.hello", "slice": "s0"} | more)
    return told(Bound(binding=named), node=named.node, at=at, sender=Sender.CONTROLLER)


def reasons(ledger: Ledger) -> list[str]:
    return [row["reason"] for row in reversed(ledger.quarantine(node=None, before=None, limit=100))]


def test_usage_of_a_bound_container_is_folded(ledger: Ledger) -> None:
    """In one fold with its binding, or in a later one."""
    first = ledger.fold("USAGE", 1, [bound(), metered(event(1, 0, SECOND, ended_at=AT))])
    second = ledger.fold("USAGE", 2, [metered(event(2, SECOND, 2 * SECOND, ended_at=AT))])

    assert (first.new, first.quarantined, second.new, second.quarantined) == (1, 0, 1, 0)
    assert ledger.bound_containers(["c1", "c9"])["c1"].ns == 2 * SECOND


def test_one_bad_interval_takes_no_other_with_it(ledger: Ledger) -> None:
    """What fits is folded; what does not is kept with its reason, and the place in the stream moves on."""
    forged = busy(2, 0, ("a", SECOND, "ok"), tenant="rival", ended_at=AT)
    bad = [
        event(1, 0, SECOND, ended_at=1e300), forged, event(3, 2**63, 2**63, ended_at=AT), event(4, 0, 5, ppm=2**64 - 1),
        event(5, 0, 5, LeaseState.BUSY, shares=(CallShare("a", "b", 10**15), CallShare("b", "c", 5 - 10**15))),
    ]  # fmt: skip

    done = ledger.fold("USAGE", 9, [bound(), metered(*bad, event(6, 0, SECOND, ended_at=AT))])

    assert (done.new, done.quarantined) == (1, len(bad))
    assert ledger.last_seq("USAGE") == 9
    assert reasons(ledger) == ["bad_time", "other_terms", "bad_time", "bad_part", "bad_shares"]
    assert [row["id"] for row in ledger.read(sa.select(lease_line.c.id))] == ["node-1.s0.6"]
    (row,) = ledger.quarantine(node="n1", before=None, limit=1)
    assert row["node"] == "n1"
    assert "node-1.s0.5" in row["text"]


def test_time_beyond_the_binding_is_not_billed(ledger: Ledger) -> None:
    """An hour that was never bound, at once or bit by bit; the bill has what was."""
    hour = event(1, 0, 3_600 * SECOND, ended_at=AT)
    bits = [event(n, n * SECOND, (n + 1) * SECOND, ended_at=AT) for n in range(2, 200)]

    ledger.fold("USAGE", 1, [bound(), metered(hour), metered(*bits)])
    billed = sum(row["ns"] for row in ledger.read(sa.select(usage_day).where(usage_day.c.tenant == "acme")))

    assert billed <= 71 * SECOND
    assert set(reasons(ledger)) == {"too_long"}


def test_calls_that_a_node_makes_up_are_charged_within_bounds(ledger: Ledger) -> None:
    """They take no time, and would be billed for the least that a start is billed for, each."""
    ledger.book.put("cpu", [DatedRate(nano_usd_per_hour=10**9, minimum_ms=10_000)])
    made_up = 30_000 * (CallShare("a", "victim", 0, "ok"),)
    told_ = [event(n, SECOND, SECOND, LeaseState.BUSY, shares=made_up, ended_at=AT) for n in range(4)]

    done = ledger.fold("USAGE", 1, [bound(at=AT - 1.0), *map(metered, told_)])

    assert (done.new, done.quarantined) == (1, 3)
    assert set(reasons(ledger)) == {"too_many"}
    assert ledger.bound_containers(["c1"])["c1"].starts == 30_000
    charged = sum(row["ns"] for row in ledger.read(sa.select(usage_day).where(usage_day.c.price == "minimum")))
    assert charged == 30_000 * 10 * SECOND
    later = ledger.fold("USAGE", 2, [metered(event(9, SECOND, 2 * SECOND, ended_at=AT), at=AT + 1.0)])
    assert later.new == 1


def test_the_end_of_a_binding_ends_the_bill(ledger: Ledger) -> None:
    """What came before and late is billed."""
    ended = told(Unbound(container="c1", node="n1"), at=AT - 50.0, sender=Sender.CONTROLLER)
    late = event(1, 0, 10 * SECOND, ended_at=AT - 50.0)
    ledger.fold("USAGE", 1, [bound(), ended, metered(late)])
    done = ledger.fold("USAGE", 2, [metered(event(2, 10 * SECOND, 60 * SECOND, ended_at=AT), at=AT + 3_600.0)])

    assert (done.new, done.quarantined) == (0, 1)
    assert ledger.bound_containers(["c1"])["c1"].ended_at == AT - 50.0


def test_only_the_controller_binds(ledger: Ledger) -> None:
    """Neither an agent under its own name nor anybody for another node."""
    claims = [
        told(Bound(binding=BINDING)),
        told(Unbound(container="c1", node="n1")),
        told(Bound(binding=BINDING), node="n2", sender=Sender.CONTROLLER),
        metered(event(1, 0, SECOND, ended_at=AT), sender=Sender.CONTROLLER),
    ]
    ledger.fold("USAGE", 1, [*claims, metered(event(2, 0, SECOND, ended_at=AT))])

    assert reasons(ledger) == ["not_its_place"] * 4 + ["not_bound"]


def test_a_container_is_bound_once(ledger: Ledger) -> None:
    """A repeated message gives it no more time."""
    ledger.fold("USAGE", 1, [bound(), bound(at=AT - 86_000.0), metered(event(1, 0, 3_600 * SECOND, ended_at=AT))])

    assert reasons(ledger) == ["too_long"]


def test_tags_of_a_version_are_the_controllers_to_tell(ledger: Ledger) -> None:
    """A node that has its container moves no cost into another group, and what could not be a tag is none."""
    theirs = event(1, 0, SECOND, ended_at=AT, tags={"team": "theirs"})
    bad = bound(container="c2", version="ver_2", tags={"=cmd": "x"})
    ledger.fold("USAGE", 1, [bound(), bad, metered(theirs)])
    assert (reasons(ledger), ledger.read(sa.select(version_tags))) == ([], [])

    tagged = bound(container="c3", tags={"team": "search"})
    later = bound(container="c4", tags={"team": "ads"})
    for number, each in enumerate((tagged, later), 2):
        ledger.fold("USAGE", number, [each])
    assert ledger.read(sa.select(version_tags)) == [
        {"tenant": "acme", "version": "ver_1", "tags": '{"team":"search"}'},
    ]


def test_a_message_of_another_kind_has_no_place(ledger: Ledger) -> None:
    """Its text is kept without control characters."""
    ledger.fold("USAGE", 1, [told(Cancel(call_id="a\0"))])

    (row,) = ledger.quarantine(node=None, before=None, limit=9)
    assert row["reason"] == "not_its_place"
    assert "\0" not in row["text"]


def test_an_id_of_another_node_is_no_repetition(ledger: Ledger) -> None:
    """Else a node could make another's usage count as known, unseen."""
    free = {"tenant": "", "app": "", "function": "", "version": "", "container": "", "ended_at": AT}
    squatted = event(1, 0, 5, LeaseState.FREE, node="n2", **free)
    ledger.fold("USAGE", 1, [metered(squatted, node="n2")])
    ledger.fold("USAGE", 2, [bound(), metered(event(1, 0, SECOND, ended_at=AT))])

    assert reasons(ledger) == [UsageFault.REPEATED_ID]


def test_the_operators_time_is_bounded_too(ledger: Ledger) -> None:
    """By the device: in pieces of any number and under any names of slices; and so are a node's devices."""
    free = {"tenant": "", "app": "", "function": "", "version": "", "container": "", "ended_at": AT}
    day = [event(n, 0, 1_800 * SECOND, LeaseState.FREE, slice=f"s{n}", **free) for n in range(10)]
    many = [event(n, 0, 5, LeaseState.FREE, device=f"d{n}", **free) for n in range(100, 101 + MOST_DEVICES)]

    ledger.fold("USAGE", 1, [metered(*day), metered(*many)])

    assert set(reasons(ledger)) == {"too_much"}
    assert sum(row["ns"] for row in ledger.read(sa.select(usage_day))) <= 3_600 * SECOND + 5 * MOST_DEVICES


def test_what_is_kept_of_a_node_is_bounded(ledger: Ledger) -> None:
    """The last of each node, whatever others send; all of it is counted."""
    ledger.fold("USAGE", 1, [metered(event(1, 0, 5, node="x"), node="n2")])
    for start in range(3):
        bad = [event(start * 500 + n, 0, 5, ppm=0) for n in range(500)]
        ledger.fold("USAGE", 2, [metered(*bad)])

    assert len(ledger.quarantine(node="n1", before=None, limit=9_999)) == KEPT_OF_A_NODE
    assert len(ledger.quarantine(node="n2", before=None, limit=9_999)) == 1
    newest = ledger.quarantine(node=None, before=None, limit=2)
    assert "node-1.s0.1499" in newest[0]["text"]
    (older,) = ledger.quarantine(node=None, before=newest[-1]["id"], limit=1)
    assert "node-1.s0.1497" in older["text"]
    assert ledger.quarantine_counts() == [
        {"node": "n1", "reason": "bad_part", "events": 1_500}, {"node": "n2", "reason": "other_node", "events": 1},
    ]  # fmt: skip
    assert ledger.results()["quarantined"] == 1_501


def test_records_of_before_nodes_are_taken_as_they_are() -> None:
    """Nobody may publish there any more; their numbers are checked like all others'."""
    old = UsageDelivery(
        seq=1, at=AT, sender=Sender.BEFORE_NODES,
        message=UsageBatch(events=(event(1, 0, SECOND), event(2, 0, 5, ppm=0))),
    )  # fmt: skip

    found = sort_usage([old], KnownUsage())

    assert [each.id for each in found.fresh] == ["node-1.s0.1"]
    assert [each.reason for each in found.quarantined] == ["bad_part"]


def test_what_is_pruned_is_gone_with_its_bounds(ledger: Ledger) -> None:
    """Ended bindings and old quarantine."""
    ended = told(Unbound(container="c1", node="n1"), at=AT, sender=Sender.CONTROLLER)
    ledger.fold("USAGE", 1, [bound(), bound(container="c2"), ended, metered(event(1, 0, 5, ppm=0))])
    ledger.prune(AT + 1.0)

    assert list(ledger.bound_containers(["c1", "c2"])) == ["c2"]
    assert ledger.quarantine(node=None, before=None, limit=9) == []


def test_what_a_restored_stream_has_again_counts_once(ledger: Ledger) -> None:
    """Also what is pruned by now: it is too old, and shown in quarantine. Before it is that old its line is there."""
    again = metered(event(1, 0, SECOND, ended_at=AT))
    ledger.fold("USAGE", 1, [bound(), again])
    replayed = [replace(again, read_at=AT + 30 * 86_400.0), replace(again, read_at=AT + 120 * 86_400.0)]
    known = ledger.fold("USAGE", 1, replayed[:1])
    ledger.prune(AT + 10.0)

    gone = ledger.fold("USAGE", 1, replayed[1:])

    assert (known.repeated, gone.new, gone.quarantined) == (1, 0, 1)
    assert reasons(ledger) == [UsageFault.TOO_OLD]
    assert sum(row["ns"] for row in ledger.read(sa.select(usage_day))) == SECOND


def test_a_call_on_several_devices_counts_once(ledger: Ledger) -> None:
    """Its time on each is billed."""
    share = CallShare("a", "acme", SECOND, "ok")
    on = [
        event(number, 0, SECOND, LeaseState.BUSY, device=device, slice=device, shares=(share,), ended_at=AT)
        for number, device in enumerate(("g1", "g2"))
    ]

    done = ledger.fold("USAGE", 1, [bound(slice="g1+g2", ppm=1_000_000), metered(*on)])

    assert (done.new, done.quarantined) == (2, 0)
    rows = ledger.read(sa.select(usage_day))
    assert (sum(row["ns"] for row in rows), sum(row["calls"] for row in rows)) == (2 * SECOND, 1)
