"""What is paid of hosts beside slices. Older rows paid nothing."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, and let a `ppm` be that of thousands of GiB."""
    for name in ("core_ppm", "core_rate", "gib_ppm", "gib_rate"):
        op.add_column("lease_line", sa.Column(name, sa.BigInteger, nullable=True))
    for name in ("core_ppm", "gib_ppm"):
        op.add_column("bound_container", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "postgresql":  # SQLite has one size of integers
        for table in ("call_line", "usage_day"):
            op.alter_column(table, "ppm", type_=sa.BigInteger)
