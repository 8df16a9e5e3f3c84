"""What versions are tagged with. Older usage has no tags."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "version_tags",
        sa.Column("tenant", sa.String(63), primary_key=True),
        sa.Column("version", sa.String(63), primary_key=True),
        sa.Column("tags", sa.Text, nullable=False),
    )
