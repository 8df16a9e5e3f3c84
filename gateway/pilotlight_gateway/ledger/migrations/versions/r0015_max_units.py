"""Containers have what their calls are billed for at most of the units that they count."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column: of older containers no units are billed, as before they had prices."""
    op.add_column("bound_container", sa.Column("max_units", sa.Text, nullable=True))
