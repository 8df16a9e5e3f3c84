"""The ledger's tables.

`lease_line` has every metered interval, by its event's id: a repeated event meets its own key. `usage_day` and
`call_line` are sums of it, kept in the same transaction, so a monthly report reads a few hundred rows. Only `usage_day`
is not pruned by age.
"""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

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
    sa.Index("lease_line_device", "node", "device", "t0"),
    sa.Index("lease_line_wall", "wall"),
)

call_line = sa.Table(
    "call_line",
    metadata,
    sa.Column("tenant", sa.String(63), primary_key=True),
    sa.Column("call", sa.String(64), primary_key=True),
    sa.Column("day", sa.String(10), primary_key=True),
    sa.Column("version", sa.String(63), primary_key=True),
    sa.Column("price", sa.String(63), primary_key=True),
    sa.Column("ppm", sa.Integer, primary_key=True),
    sa.Column("rate", sa.BigInteger, primary_key=True),
    sa.Column("app", sa.String(63), nullable=False),
    sa.Column("function", sa.String(63), nullable=False),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("outcome", sa.String(16), nullable=False),
    sa.Column("batch_size", sa.Integer, nullable=False),
    sa.Index("call_line_day", "day"),
)
"""Receipts: a call has several rows if it crossed midnight or ran again elsewhere."""

USAGE_KEY = ("day", "tenant", "app", "function", "version", "state", "price", "ppm", "rate")

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
    sa.Column("ppm", sa.Integer, primary_key=True),
    sa.Column("rate", sa.BigInteger, primary_key=True),
    sa.Column("ns", sa.BigInteger, nullable=False),
    sa.Column("calls", sa.BigInteger, nullable=False),
)
