"""Receipts of what is booked late name their day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("receipt_terms", sa.Column("of_day", sa.String(10), nullable=True))
