"""Receipts say what memory of its device a call's container was promised. Older rows say nothing of it."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

RECEIPT_LINE = Path(__file__).parents[1] / "receipt_line_0010.sql"
"""A new ledger has the view from there too."""


def upgrade() -> None:
    """Add the column, to the view of all receipts too."""
    op.execute("DROP VIEW receipt_line")
    op.add_column("receipt_terms", sa.Column("memory", sa.BigInteger, nullable=False, server_default="0"))
    op.execute(RECEIPT_LINE.read_text())
