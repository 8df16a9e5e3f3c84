"""Corrections wait for what is folded after them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "pending_reversal",
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
