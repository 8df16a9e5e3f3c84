"""Containers have so many slots, and have ended so many calls: what they can have is bounded."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. How many slots older containers have is not known."""
    op.add_column("bound_container", sa.Column("slots", sa.Integer, nullable=False, server_default="0"))
    op.add_column("bound_container", sa.Column("starts", sa.BigInteger, nullable=False, server_default="0"))
