"""The revisions of the ledger's tables, as alembic scripts.

A change of `ledger_tables.py` needs a script `versions/rNNNN_….py` and a new `HEAD` in `ledger_upgrade.py`. Released
scripts never change. The previous release may still use the tables: a revision adds only what it can ignore, and drops
only what it does not use.
"""
