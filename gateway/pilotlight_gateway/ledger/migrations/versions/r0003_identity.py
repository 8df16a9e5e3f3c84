"""What tells a ledger from others."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from pilotlight_core.model.ids import token

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table with its one row."""
    identity = op.create_table("ledger_identity", sa.Column("id", sa.String(63), primary_key=True))
    op.bulk_insert(identity, [{"id": token()}])
