"""The revisions of the ledger's tables, as scripts of alembic.

A change of `ledger_tables.py` goes with a script `versions/rNNNN_….py` and with `HEAD` in `ledger_upgrade.py`. A
released script is never changed. Gateways of the release before still use the tables while they are replaced: a
revision adds what these can do without, and drops only what they no longer use.
"""
