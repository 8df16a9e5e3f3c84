"""Messages of the usage stream that this release cannot read: kept whole, for the release that can.

A newer agent may say what an older fold does not know, such as a new state. Its message waits in a table, is tried
again when the fold starts and now and then, and counts as if it had been folded when it came. A node may also store
garbage, so what is kept of each is bounded; beyond the bound, and after `KEPT_S`, it goes into quarantine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from pilotlight_core.bus import Undecodable
from pilotlight_core.model.messages.wire import decode
from pilotlight_gateway.ledger.ledger_tables import unread_usage
from pilotlight_gateway.ledger.usage_delivery import UsageDelivery, delivery_of
from pilotlight_gateway.ledger.usage_intake import shown

BYTES_OF_A_NODE = 64 * 2**20
"""What is kept of one node."""
KEPT_S = 400 * 86_400.0
"""How long it waits for a release that reads it, in seconds."""
AT_ONCE = 64
"""Messages of a page: a message has at most a megabyte."""


class UnreadMessage(NamedTuple):
    """A row of `unread_usage`, tried again: its delivery has the message now, or still `Undecodable`."""

    id: int
    delivery: UsageDelivery

    @property
    def is_read(self) -> bool:
        return not isinstance(self.delivery.message, Undecodable)


class UnreadCount(NamedTuple):
    """How much waits, and since which unix second (0.0: nothing does)."""

    messages: int = 0
    oldest_at: float = 0.0


def keep_unread(connection: sa.Connection, found: Sequence[UsageDelivery]) -> list[UsageDelivery]:
    """Keep messages that cannot be read; returns those for which their node has no room left."""
    room: dict[str, int] = {}
    kept, beyond = [], []
    for delivery in found:
        node, size = delivery.node, len(delivery.message.data)
        if node not in room:
            taken = sa.select(sa.func.coalesce(sa.func.sum(unread_usage.c.bytes), 0))
            room[node] = BYTES_OF_A_NODE - int(connection.scalar(taken.where(unread_usage.c.node == node)) or 0)
        if size > room[node]:
            beyond.append(delivery)
            continue
        room[node] -= size
        kept.append(
            {"seq": delivery.seq, "at": delivery.at, "node": node, "subject": delivery.subject,
             "data": delivery.message.data, "bytes": size, "why": shown(delivery.message.error)}
        )  # fmt: skip
    if kept:
        connection.execute(sa.insert(unread_usage), kept)
    return beyond


def read_again(connection: sa.Connection, after: int, at: float) -> list[UnreadMessage]:
    """The next page behind row `after`, in the order in which they came, decoded anew at the unix second `at`."""
    query = sa.select(unread_usage).where(unread_usage.c.id > after).order_by(unread_usage.c.id).limit(AT_ONCE)
    return [
        UnreadMessage(
            row["id"],
            msgspec.structs.replace(
                delivery_of(row["seq"], row["subject"], row["at"], _decoded(row["data"])), folded_at=at
            ),
        )
        for row in connection.execute(query).mappings()
    ]


def drop_unread(connection: sa.Connection, ids: Sequence[int]) -> None:
    connection.execute(sa.delete(unread_usage).where(unread_usage.c.id.in_(ids)))


def count_unread(connection: sa.Connection) -> UnreadCount:
    messages, oldest_at = connection.execute(sa.select(sa.func.count(), sa.func.min(unread_usage.c.at))).one()
    return UnreadCount(messages, oldest_at or 0.0)


def _decoded(data: bytes) -> object:
    try:
        return decode(data)
    except msgspec.DecodeError as error:
        return Undecodable(data, str(error))
