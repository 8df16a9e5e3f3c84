"""Receipts say which call made a call."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "nested_call",
        sa.Column("tenant", sa.String(63), primary_key=True),
        sa.Column("call_id", sa.String(64), primary_key=True),
        sa.Column("parent", sa.String(64), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Index("nested_call_day", "day"),
        sa.Index("nested_call_parent", "tenant", "parent"),
    )
