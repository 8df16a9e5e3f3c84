"""Runs the scripts in the transaction of `ledger_upgrade.py`; alembic executes this file."""

from __future__ import annotations

from alembic import context

from pilotlight_gateway.ledger.ledger_tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite alters a column by copying its table
)
context.run_migrations()
