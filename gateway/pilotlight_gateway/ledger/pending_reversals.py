"""Corrections of what is not folded yet: they wait until it is.

Events may be folded after the one that corrects them: their message waited for a release that reads it, or for a way
to the stream. A correction is of what its own container did before, so nothing else is given back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from pilotlight_core.model.messages.usage import UsageEvent
from pilotlight_core.model.messages.usage_facts import Fault
from pilotlight_gateway.ledger.ledger_entries import Reversal
from pilotlight_gateway.ledger.ledger_tables import pending_reversal

MOST_OF_A_NODE = 10_000
"""Corrections of one node that wait; further ones are dropped."""


class PendingReversal(NamedTuple):
    """A row of `pending_reversal`."""

    event: str
    call_id: str
    node: str
    container: str
    hour: str
    ns: int
    lines: int
    data: bytes


_decoder = msgspec.msgpack.Decoder(UsageEvent)
_encoder = msgspec.msgpack.Encoder()


def take_due(connection: sa.Connection, events: Iterable[UsageEvent], open_from: str) -> list[Reversal]:
    """The corrections that wait for something of these events, which are fresh; they wait no more.

    They are booked on their own day, or on the first that is open. A container may have lost a call more than once: the
    first end takes first, since what came before it came before the later ones too.
    """
    table = pending_reversal.c
    if connection.scalar(sa.select(table.event).limit(1)) is None:  # the common case
        return []
    with_calls = [event for event in events if event.shares]
    query = sa.select(pending_reversal).where(table.container.in_({event.container for event in with_calls}))
    due: list[Reversal] = []
    taken = Counter[tuple[str, str]]()
    rows = [PendingReversal(*row) for row in connection.execute(query.order_by(table.event, table.call_id)).all()]
    waiting = [(_decoder.decode(pending.data), pending) for pending in rows]
    for event, pending in sorted(waiting, key=lambda one: one[0].t0):
        if found := _found(pending, event, with_calls, taken):
            share = msgspec.structs.replace(event.shares[0], earlier=found)
            hour = max(pending.hour, open_from)
            due.append(Reversal(event, share, hour, pending.lines, pending.ns - found))
            mine = (table.event == pending.event, table.call_id == pending.call_id)
            connection.execute(sa.delete(pending_reversal).where(*mine))
    return due


def _found(
    pending: PendingReversal, end: UsageEvent, events: Iterable[UsageEvent], taken: Counter[tuple[str, str]]
) -> int:
    """Nanoseconds of its call that its container billed before its end, and that no other correction has taken."""
    found = 0
    for event in events:
        if event.container == pending.container and event.t1 <= end.t0:
            for share in event.shares:
                if share.call_id == pending.call_id and share.fault is not Fault.PLATFORM:
                    part = min(share.ns - taken[event.id, share.call_id], pending.ns - found)
                    taken[event.id, share.call_id] += part
                    found += part
    return found


def keep_pending(connection: sa.Connection, left: Iterable[tuple[Reversal, int]]) -> None:
    """Keep what corrections found nothing for, each with its nanoseconds, as far as their nodes have room."""
    room: dict[str, int] = {}
    rows: dict[tuple[str, str], PendingReversal] = {}
    for reversal, ns in left:
        event, call = reversal.event, reversal.share.call_id
        if (known := rows.get((event.id, call))) is not None:
            rows[event.id, call] = known._replace(ns=known.ns + ns, lines=max(known.lines, reversal.lines))
            continue
        if event.node not in room:
            count = sa.select(sa.func.count()).where(pending_reversal.c.node == event.node)
            room[event.node] = MOST_OF_A_NODE - int(connection.scalar(count) or 0)
        if room[event.node] > 0:
            room[event.node] -= 1
            data = _encoder.encode(msgspec.structs.replace(event, shares=(reversal.share,)))
            rows[event.id, call] = PendingReversal(
                event.id, call, event.node, event.container, reversal.hour, ns, reversal.lines, data
            )
    if rows:
        connection.execute(sa.insert(pending_reversal), [row._asdict() for row in rows.values()])
