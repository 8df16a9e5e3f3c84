"""Containers have the labels of their nodes, by which they are billed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns: of older containers, and of nodes that have not joined by a token, nothing is on record."""
    op.add_column("bound_container", sa.Column("region", sa.String(63), nullable=True))
    op.add_column("bound_container", sa.Column("purchase", sa.String(16), nullable=True))
