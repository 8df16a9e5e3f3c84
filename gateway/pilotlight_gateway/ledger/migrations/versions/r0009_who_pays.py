"""Who pays is decided in the ledger: each line has the holder and the policy. Sums by hour, corrections, closed days.

Days of before have one sum each, whose hour is the day itself.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

HOURS_OF_DAYS = """
INSERT INTO usage_hour (hour, tenant, app, function, version, state, price, ppm, rate, key_id, purpose, purchase,
    region, policy, ns, calls)
SELECT day, tenant, app, function, version, state, price, ppm, rate, '', '', '', '', 0, ns, calls FROM usage_day
"""


def upgrade() -> None:
    """Add the columns and tables."""
    op.add_column("lease_line", sa.Column("holder", sa.String(63), nullable=True))
    op.add_column("lease_line", sa.Column("policy", sa.Integer, nullable=True))
    op.add_column("lease_line", sa.Column("booked_from", sa.String(10), nullable=True))
    _create_hours()
    op.execute(HOURS_OF_DAYS)
    op.create_table(
        "correction_line",
        sa.Column("id", sa.String(350), primary_key=True),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("corrects", sa.String(255), nullable=False),
        sa.Column("of_day", sa.String(10), nullable=False),
        sa.Column("call", sa.String(64), nullable=False),
        sa.Column("why", sa.String(32), nullable=False),
        sa.Column("payer", sa.String(63), nullable=False),
        sa.Column("tenant", sa.String(63), nullable=False),
        sa.Column("terms", sa.BigInteger, nullable=False),
        sa.Column("ns", sa.BigInteger, nullable=False),
        sa.Column("policy", sa.Integer, nullable=False),
    )
    op.create_index("correction_line_day", "correction_line", ["day"])
    op.create_table(
        "closed_period",
        sa.Column("until", sa.String(10), primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
    )


def _create_hours() -> None:
    op.create_table(
        "usage_hour",
        sa.Column("hour", sa.String(13), primary_key=True),
        sa.Column("tenant", sa.String(63), primary_key=True),
        sa.Column("app", sa.String(63), primary_key=True),
        sa.Column("function", sa.String(63), primary_key=True),
        sa.Column("version", sa.String(63), primary_key=True),
        sa.Column("state", sa.String(16), primary_key=True),
        sa.Column("price", sa.String(63), primary_key=True),
        sa.Column("ppm", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        sa.Column("rate", sa.BigInteger, primary_key=True),
        sa.Column("key_id", sa.String(64), primary_key=True),
        sa.Column("purpose", sa.String(16), primary_key=True),
        sa.Column("purchase", sa.String(16), primary_key=True),
        sa.Column("region", sa.String(63), primary_key=True),
        sa.Column("policy", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("ns", sa.BigInteger, nullable=False),
        sa.Column("calls", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
