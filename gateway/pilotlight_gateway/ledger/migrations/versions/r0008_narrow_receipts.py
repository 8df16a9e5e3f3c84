"""A call's receipt as one narrow row, beside the terms that many have in common.

Older receipts stay in `call_line`, where the view finds them until they are pruned: there may be hundreds of millions.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

RECEIPT_LINE = Path(__file__).parents[1] / "receipt_line_0008.sql"
"""A new ledger has the view from there too."""


def upgrade() -> None:
    """Create the two tables, and the view over them and `call_line`."""
    _create_terms()
    _create_receipts()
    op.execute(RECEIPT_LINE.read_text())


def _create_terms() -> None:
    op.create_table(
        "receipt_terms",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("tenant", sa.String(63), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("app", sa.String(63), nullable=False),
        sa.Column("function", sa.String(63), nullable=False),
        sa.Column("version", sa.String(63), nullable=False),
        sa.Column("price", sa.String(63), nullable=False),
        sa.Column("ppm", sa.BigInteger().with_variant(sa.Integer, "sqlite"), nullable=False),
        sa.Column("rate", sa.BigInteger, nullable=False),
        sa.Column("core_ppm", sa.BigInteger, nullable=False),
        sa.Column("core_rate", sa.BigInteger, nullable=False),
        sa.Column("gib_ppm", sa.BigInteger, nullable=False),
        sa.Column("gib_rate", sa.BigInteger, nullable=False),
        sa.Column("key_id", sa.String(64), nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("receipt_terms_tenant", "receipt_terms", ["tenant"])
    op.create_index("receipt_terms_day", "receipt_terms", ["day"])


def _create_receipts() -> None:
    op.create_table(
        "call_receipt",
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
