"""Receipts say for which start of a container a call waited."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "cold_start",
        sa.Column("tenant", sa.String(63), primary_key=True),
        sa.Column("call_id", sa.String(64), primary_key=True),
        sa.Column("event", sa.String(255), primary_key=True),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("us", sa.BigInteger, nullable=False),
        sa.Column("billed", sa.Boolean, nullable=False),
        sa.Index("cold_start_day", "day"),
    )
