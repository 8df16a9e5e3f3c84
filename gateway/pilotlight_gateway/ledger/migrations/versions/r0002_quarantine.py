"""What was bound, the devices that are known, and usage in quarantine."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the four tables; what was a misfit is counted as quarantined."""
    _create_bounds()
    _create_quarantine()
    op.execute("UPDATE fold_result SET result = 'quarantined' WHERE result = 'misfits'")


def _create_bounds() -> None:
    op.create_table(
        "bound_container",
        sa.Column("container", sa.String(128), primary_key=True),
        sa.Column("node", sa.String(63), nullable=False),
        sa.Column("tenant", sa.String(63), nullable=False),
        sa.Column("app", sa.String(63), nullable=False),
        sa.Column("function", sa.String(63), nullable=False),
        sa.Column("version", sa.String(63), nullable=False),
        sa.Column("slice", sa.String(512), nullable=False),
        sa.Column("ppm", sa.Integer, nullable=False),
        sa.Column("price", sa.String(63), nullable=False),
        sa.Column("bound_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float, nullable=True),
        sa.Column("ns", sa.BigInteger, nullable=False),
    )
    op.create_index("bound_container_ended", "bound_container", ["ended_at"])
    op.create_table(
        "known_device",
        sa.Column("node", sa.String(63), primary_key=True),
        sa.Column("device", sa.String(128), primary_key=True),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("ns", sa.BigInteger, nullable=False),
    )


def _create_quarantine() -> None:
    op.create_table(
        "quarantined_usage",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("node", sa.String(63), nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
    )
    op.create_index("quarantined_usage_node", "quarantined_usage", ["node", "id"])
    op.create_table(
        "quarantine_count",
        sa.Column("node", sa.String(63), primary_key=True),
        sa.Column("reason", sa.String(16), primary_key=True),
        sa.Column("events", sa.BigInteger, nullable=False),
    )
