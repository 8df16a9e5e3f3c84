"""What a tenant does not pay of the list price is a part of each sum's key, and of each line and receipt. Older rows
were paid in full.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

RECEIPT_LINE = Path(__file__).parents[1] / "receipt_line_0013.sql"
"""A new ledger has the view from there too."""
TEXTS = ("day", "tenant", "app", "function", "version", "state", "price")
OF_HOURS = ("key_id", "purpose", "purchase", "region")


def upgrade() -> None:
    """Add the column everywhere, to the view of all receipts too."""
    op.execute("DROP VIEW receipt_line")
    op.add_column("lease_line", sa.Column("discount", sa.BigInteger, nullable=True))
    op.add_column("receipt_terms", sa.Column("discount", sa.BigInteger, nullable=False, server_default="0"))
    day = (*TEXTS, "ppm", "rate", "discount")
    hour = ("hour", *day[1:], *OF_HOURS, "policy")
    for table, key in (("usage_day", day), ("usage_hour", hour)):
        if op.get_bind().dialect.name == "postgresql":
            _change_key(table, key)
        else:
            _copy(table, key)
    op.execute(RECEIPT_LINE.read_text())


def _change_key(table: str, key: tuple[str, ...]) -> None:
    op.add_column(table, sa.Column("discount", sa.BigInteger, nullable=False, server_default="0"))
    op.alter_column(table, "discount", server_default=None)
    op.drop_constraint(f"{table}_pkey", table)
    op.create_primary_key(f"{table}_pkey", table, list(key))


def _copy(table: str, key: tuple[str, ...]) -> None:
    """SQLite changes no key."""
    lengths = {"day": 10, "hour": 13, "state": 16, "purpose": 16, "purchase": 16, "key_id": 64}
    numbers: dict[str, type[sa.Integer]] = {
        **dict.fromkeys(("ppm", "policy"), sa.Integer), **dict.fromkeys(("rate", "discount"), sa.BigInteger)
    }  # fmt: skip
    columns = [
        sa.Column(
            name,
            numbers[name]() if name in numbers else sa.String(lengths.get(name, 63)),
            primary_key=True,
            autoincrement=False,
        )
        for name in key
    ]
    sums = [sa.Column(name, sa.BigInteger, nullable=False) for name in ("ns", "calls")]
    whole = {"sqlite_with_rowid": False} if table == "usage_hour" else {}
    op.create_table(f"{table}_new", *columns, *sums, **whole)
    kept = ", ".join([*(name for name in key if name != "discount"), "ns", "calls"])
    op.execute(f"INSERT INTO {table}_new ({kept}, discount) SELECT {kept}, 0 FROM {table}")  # noqa: S608 - our own names
    op.drop_table(table)
    op.rename_table(f"{table}_new", table)
