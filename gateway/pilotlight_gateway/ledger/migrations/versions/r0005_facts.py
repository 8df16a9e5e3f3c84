"""What usage says besides time. Older rows say nothing of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("lease_line", sa.Column("wall_ns", sa.BigInteger, nullable=True))
    op.add_column("lease_line", sa.Column("purpose", sa.String(16), nullable=True))
    op.add_column("lease_line", sa.Column("used", sa.Boolean, nullable=True))
    op.add_column("lease_line", sa.Column("memory", sa.BigInteger, nullable=True))
    op.add_column("lease_line", sa.Column("region", sa.String(63), nullable=True))
    op.add_column("lease_line", sa.Column("zone", sa.String(63), nullable=True))
    op.add_column("lease_line", sa.Column("purchase", sa.String(16), nullable=True))
    op.add_column("call_line", sa.Column("key_id", sa.String(64), nullable=True))
    op.add_column("call_line", sa.Column("tags", sa.Text, nullable=True))
    op.add_column("call_line", sa.Column("fault", sa.String(16), nullable=True))
    op.add_column("call_line", sa.Column("units", sa.Text, nullable=True))
