"""The tables as they were before revisions. Those that a ledger already has stay as they are."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the missing ones of the five tables and their indexes."""
    _create_folds()
    _create_intervals()
    _create_receipts()
    _create_sums()


def _create_folds() -> None:
    op.create_table(
        "folded",
        sa.Column("stream", sa.String(64), primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )
    op.create_table(
        "fold_result",
        sa.Column("result", sa.String(16), primary_key=True),
        sa.Column("events", sa.BigInteger, nullable=False),
        if_not_exists=True,
    )


def _create_intervals() -> None:
    op.create_table(
        "lease_line",
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
        if_not_exists=True,
    )
    op.create_index("lease_line_device", "lease_line", ["node", "device", "t0"], if_not_exists=True)
    op.create_index("lease_line_wall", "lease_line", ["wall"], if_not_exists=True)


def _create_receipts() -> None:
    op.create_table(
        "call_line",
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
        if_not_exists=True,
    )
    op.create_index("call_line_day", "call_line", ["day"], if_not_exists=True)


def _create_sums() -> None:
    op.create_table(
        "usage_day",
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
        if_not_exists=True,
    )
