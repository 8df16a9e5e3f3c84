"""The ledger's tables.

`lease_line` has every metered interval, by its event's id: a repeated event meets its own key. `usage_day`,
`usage_hour` and `call_receipt` are sums of it and of `correction_line`, kept in the same transaction, so a monthly
report reads a few hundred rows. Only the first two and `version_tags` are not pruned by age. `bound_container` and
`known_device` bound what nodes may say; what does not fit is in `quarantined_usage`, and what cannot be read yet in
`unread_usage`.

A call's receipt is read from the view `receipt_line`, a line for each price that it was billed at: of `call_receipt`,
which has the few values that are a call's own, with the `receipt_terms` that it has in common with thousands, and of
`call_line`, where older releases wrote it.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()
PPM = sa.BigInteger().with_variant(sa.Integer, "sqlite")
"""Millionths of a device, or of thousands of GiB. SQLite has one size of integers."""

folded = sa.Table(
    "folded",
    metadata,
    sa.Column("stream", sa.String(64), primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
)
"""How far each stream is folded, updated in the fold's transaction."""

fold_result = sa.Table(
    "fold_result",
    metadata,
    sa.Column("result", sa.String(16), primary_key=True),
    sa.Column("events", sa.BigInteger, nullable=False),
)
"""Events by result over all folds, updated in the fold's transaction."""

lease_line = sa.Table(
    "lease_line",
    metadata,
    sa.Column("id", sa.String(255), primary_key=True),
    sa.Column("node", sa.String(63), nullable=False),
    sa.Column("device", sa.String(128), nullable=False),
    sa.Column("slice", sa.String(128), nullable=False),
    sa.Column("ppm", sa.Integer, nullable=False),
    sa.Column("price", sa.String(63), nullable=False),
    sa.Column("rate", sa.BigInteger, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("tenant", sa.String(63), nullable=False),
    sa.Column("app", sa.String(63), nullable=False),
    sa.Column("function", sa.String(63), nullable=False),
    sa.Column("version", sa.String(63), nullable=False),
    sa.Column("container", sa.String(128), nullable=False),
    sa.Column("t0", sa.BigInteger, nullable=False),
    sa.Column("t1", sa.BigInteger, nullable=False),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("wall", sa.Float, nullable=False),
    sa.Column("day", sa.String(10), nullable=False),
    sa.Column("wall_ns", sa.BigInteger, nullable=True),
    sa.Column("purpose", sa.String(16), nullable=True),
    sa.Column("used", sa.Boolean, nullable=True),
    sa.Column("memory", sa.BigInteger, nullable=True),
    sa.Column("region", sa.String(63), nullable=True),
    sa.Column("zone", sa.String(63), nullable=True),
    sa.Column("purchase", sa.String(16), nullable=True),
    sa.Column("core_ppm", sa.BigInteger, nullable=True),
    sa.Column("core_rate", sa.BigInteger, nullable=True),
    sa.Column("gib_ppm", sa.BigInteger, nullable=True),
    sa.Column("gib_rate", sa.BigInteger, nullable=True),
    sa.Column("holder", sa.String(63), nullable=True),
    sa.Column("policy", sa.Integer, nullable=True),
    sa.Column("booked_from", sa.String(10), nullable=True),
    sa.Column("discount", sa.BigInteger, nullable=True),
    sa.Index("lease_line_device", "node", "device", "t0"),
    sa.Index("lease_line_wall", "wall"),
)

"""`tenant` pays, `holder` had the slice; `policy` decided it (`attribution`), NULL: the agent. What is of days before
`booked_from` was folded when they were closed, and is in the sums of that day. `discount`: nano-dollars of each dollar
that its payer does not pay; of a busy one, whose calls have each their tenant's, that of `tenant`."""

receipt_terms = sa.Table(
    "receipt_terms",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("tenant", sa.String(63), nullable=False),
    sa.Column("day", sa.String(10), nullable=False),
    sa.Column("app", sa.String(63), nullable=False),
    sa.Column("function", sa.String(63), nullable=False),
    sa.Column("version", sa.String(63), nullable=False),
    sa.Column("price", sa.String(63), nullable=False),
    sa.Column("ppm", PPM, nullable=False),
    sa.Column("rate", sa.BigInteger, nullable=False),
    sa.Column("core_ppm", sa.BigInteger, nullable=False),
    sa.Column("core_rate", sa.BigInteger, nullable=False),
    sa.Column("gib_ppm", sa.BigInteger, nullable=False),
    sa.Column("gib_rate", sa.BigInteger, nullable=False),
    sa.Column("key_id", sa.String(64), nullable=False),
    sa.Column("tags", sa.Text, nullable=False),
    sa.Column("memory", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("discount", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("of_day", sa.String(10), nullable=True),
    sa.Index("receipt_terms_tenant", "tenant"),
    sa.Index("receipt_terms_day", "day"),
    sqlite_with_rowid=False,
)
"""On which calls were billed; `id` is the digest of the rest. A part of the host that costs nothing has 0 in both
columns. `tags`: the function's, as a JSON object, or "". `memory`: bytes of the device that the container was promised;
0 in older rows. `of_day`: of what came when its day was closed, and is booked on `day`; "" or NULL: it is `day`."""

call_receipt = sa.Table(
    "call_receipt",
    metadata,
    sa.Column("terms", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("call", sa.String(64), primary_key=True),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("batch_size", sa.Integer, nullable=False),
    sa.Column("fault", sa.String(16), nullable=False),
    sa.Column("units", sa.Text, nullable=False),
    sa.Column("tags", sa.Text, nullable=False),
    sqlite_with_rowid=False,
)
"""A call has several rows if it crossed midnight or ran again elsewhere; "": it has not ended, or said nothing. `units`
and `tags` are JSON objects; `tags` are those of the function too, where the call has some of its own. Calls of the
same terms stand together, new ones at their end, since ids rise with time."""

call_line = sa.Table(
    "call_line",
    metadata,
    sa.Column("tenant", sa.String(63), primary_key=True),
    sa.Column("call", sa.String(64), primary_key=True),
    sa.Column("day", sa.String(10), primary_key=True),
    sa.Column("version", sa.String(63), primary_key=True),
    sa.Column("price", sa.String(63), primary_key=True),
    sa.Column("ppm", PPM, primary_key=True),
    sa.Column("rate", sa.BigInteger, primary_key=True),
    sa.Column("app", sa.String(63), nullable=False),
    sa.Column("function", sa.String(63), nullable=False),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("batch_size", sa.Integer, nullable=False),
    sa.Column("key_id", sa.String(64), nullable=True),
    sa.Column("tags", sa.Text, nullable=True),
    sa.Column("fault", sa.String(16), nullable=True),
    sa.Column("units", sa.Text, nullable=True),
    sa.Index("call_line_day", "day"),
)
"""Receipts of before revision 0008, a row for each line: nobody writes here any more but duties that have run since
before, and pruning empties it. The last four columns are NULL where a still older release wrote the row."""

receipt_line = sa.table(
    "receipt_line",
    *(sa.column(column.name, column.type) for column in call_line.columns),
    sa.column("memory", sa.BigInteger),
    sa.column("discount", sa.BigInteger),
)
"""The view of all receipts: for each call a line of its slice, and lines of their own for cores and memory
(`HOST_PRICES`, `ppm` of a core or a GiB). Only the slice's has how the call ended."""

USAGE_KEY = ("day", "tenant", "app", "function", "version", "state", "price", "ppm", "rate", "discount")

usage_day = sa.Table(
    "usage_day",
    metadata,
    sa.Column("day", sa.String(10), primary_key=True),
    sa.Column("tenant", sa.String(63), primary_key=True),
    sa.Column("app", sa.String(63), primary_key=True),
    sa.Column("function", sa.String(63), primary_key=True),
    sa.Column("version", sa.String(63), primary_key=True),
    sa.Column("state", sa.String(16), primary_key=True),
    sa.Column("price", sa.String(63), primary_key=True),
    sa.Column("ppm", PPM, primary_key=True),
    sa.Column("rate", sa.BigInteger, primary_key=True),
    sa.Column("discount", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("calls", sa.BigInteger, nullable=False),
)
"""`rate` is the list price, `discount` what the tenant does not pay of it. Of `CHARGES` `ns` is no time of a device."""

HOUR_KEY = ("hour", *USAGE_KEY[1:], "key_id", "purpose", "purchase", "region", "policy")

usage_hour = sa.Table(
    "usage_hour",
    metadata,
    sa.Column("hour", sa.String(13), primary_key=True),
    sa.Column("tenant", sa.String(63), primary_key=True),
    sa.Column("app", sa.String(63), primary_key=True),
    sa.Column("function", sa.String(63), primary_key=True),
    sa.Column("version", sa.String(63), primary_key=True),
    sa.Column("state", sa.String(16), primary_key=True),
    sa.Column("price", sa.String(63), primary_key=True),
    sa.Column("ppm", PPM, primary_key=True),
    sa.Column("rate", sa.BigInteger, primary_key=True),
    sa.Column("discount", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("key_id", sa.String(64), primary_key=True),
    sa.Column("purpose", sa.String(16), primary_key=True),
    sa.Column("purchase", sa.String(16), primary_key=True),
    sa.Column("region", sa.String(63), primary_key=True),
    sa.Column("policy", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("calls", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""`hour`: UTC, such as `2026-11-20T14`; a day alone, and "" in what follows `rate`: folded before there were hours."""

correction_line = sa.Table(
    "correction_line",
    metadata,
    sa.Column("id", sa.String(350), primary_key=True),
    sa.Column("day", sa.String(10), nullable=False),
    sa.Column("corrects", sa.String(255), nullable=False),
    sa.Column("of_day", sa.String(10), nullable=False),
    sa.Column("call", sa.String(64), nullable=False),
    sa.Column("why", sa.String(32), nullable=False),
    sa.Column("payer", sa.String(63), nullable=False),
    sa.Column("tenant", sa.String(63), nullable=False),
    sa.Column("terms", sa.BigInteger, nullable=False),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("policy", sa.Integer, nullable=False),
    sa.Index("correction_line_day", "day"),
)
"""What was billed to `tenant` on `of_day` and is `payer`'s ("": the operator's) from `day` on: its `terms` are those of
the receipt's line that it corrects, `corrects` is the event that showed it. The line itself stays as it is."""

cold_start = sa.Table(
    "cold_start",
    metadata,
    sa.Column("tenant", sa.String(63), primary_key=True),
    sa.Column("call_id", sa.String(64), primary_key=True),
    sa.Column("event", sa.String(255), primary_key=True),
    sa.Column("day", sa.String(10), nullable=False),
    sa.Column("us", sa.BigInteger, nullable=False),
    sa.Column("billed", sa.Boolean, nullable=False),
    sa.Index("cold_start_day", "day"),
)
"""The starts of containers for which calls waited, in microseconds: few of all calls. `event` is that of its end."""

nested_call = sa.Table(
    "nested_call",
    metadata,
    sa.Column("tenant", sa.String(63), primary_key=True),
    sa.Column("call_id", sa.String(64), primary_key=True),
    sa.Column("parent", sa.String(64), nullable=False),
    sa.Column("day", sa.String(10), nullable=False),
    sa.Index("nested_call_day", "day"),
    sa.Index("nested_call_parent", "tenant", "parent"),
)
"""The calls that functions made, and which call made each: few of all calls."""

pending_reversal = sa.Table(
    "pending_reversal",
    metadata,
    sa.Column("event", sa.String(255), primary_key=True),
    sa.Column("call_id", sa.String(64), primary_key=True),
    sa.Column("node", sa.String(63), nullable=False),
    sa.Column("container", sa.String(128), nullable=False),
    sa.Column("hour", sa.String(13), nullable=False),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("lines", sa.Integer, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Index("pending_reversal_container", "container"),
    sa.Index("pending_reversal_node", "node"),
)
"""Corrections of what is not folded yet: `ns` of a call in a container, which have `lines` lines so far. `data` is the
event that showed it, with the call's share alone."""

closed_period = sa.Table(
    "closed_period",
    metadata,
    sa.Column("until", sa.String(10), primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
)
"""Sums of days before `until` are never changed again: what comes late is booked on that day."""

version_tags = sa.Table(
    "version_tags",
    metadata,
    sa.Column("tenant", sa.String(63), primary_key=True),
    sa.Column("version", sa.String(63), primary_key=True),
    sa.Column("tags", sa.Text, nullable=False),
)
"""What an owner has tagged a version with, as a JSON object; a version without tags is not there."""

bound_container = sa.Table(
    "bound_container",
    metadata,
    sa.Column("container", sa.String(128), primary_key=True),
    sa.Column("node", sa.String(63), nullable=False),
    sa.Column("tenant", sa.String(63), nullable=False),
    sa.Column("app", sa.String(63), nullable=False),
    sa.Column("function", sa.String(63), nullable=False),
    sa.Column("version", sa.String(63), nullable=False),
    sa.Column("slice", sa.String(512), nullable=False),
    sa.Column("ppm", sa.Integer, nullable=False),
    sa.Column("price", sa.String(63), nullable=False),
    sa.Column("bound_at", sa.Float, nullable=False),
    sa.Column("ended_at", sa.Float, nullable=True),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("core_ppm", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("gib_ppm", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("slots", sa.Integer, nullable=False, server_default="0"),
    sa.Column("starts", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("max_units", sa.Text, nullable=True),
    sa.Column("region", sa.String(63), nullable=True),
    sa.Column("purchase", sa.String(16), nullable=True),
    sa.Index("bound_container_ended", "ended_at"),
)
"""What the controller bound, and how much of it was folded; instants are unix seconds of the bus's clock. `slots`: 0 in
rows of before it was kept. `max_units`: a JSON object, or NULL. `region`, `purchase`: of a node that has joined."""

known_device = sa.Table(
    "known_device",
    metadata,
    sa.Column("node", sa.String(63), primary_key=True),
    sa.Column("device", sa.String(128), primary_key=True),
    sa.Column("since", sa.Float, nullable=False),
    sa.Column("ns", sa.BigInteger, nullable=False),
)

quarantined_usage = sa.Table(
    "quarantined_usage",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("node", sa.String(63), nullable=False),
    sa.Column("reason", sa.String(16), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Index("quarantined_usage_node", "node", "id"),
)
"""Usage that has no place in the ledger: the last of each node. `text` is its beginning, as JSON."""

quarantine_count = sa.Table(
    "quarantine_count",
    metadata,
    sa.Column("node", sa.String(63), primary_key=True),
    sa.Column("reason", sa.String(16), primary_key=True),
    sa.Column("events", sa.BigInteger, nullable=False),
)
"""Of all quarantined usage, also what is not kept."""

unread_usage = sa.Table(
    "unread_usage",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("node", sa.String(63), nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("why", sa.Text, nullable=False),
    sa.Index("unread_usage_node", "node"),
)
"""Messages of the stream that this release cannot read, whole, until a release can. `at`: when the bus stored it."""

ledger_identity = sa.Table("ledger_identity", metadata, sa.Column("id", sa.String(63), primary_key=True))
"""One row: what tells this ledger from others."""
