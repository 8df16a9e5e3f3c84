"""The revisions of the ledger's tables, as scripts of alembic.

A change of `tables.py` goes with a script `versions/rNNNN_….py` (copy the last one) and with `HEAD` in `upgrade.py`. A
script that has been released is never changed. While gateways are replaced one by one, those of the release before
still use the tables: a revision adds what they can do without, and takes away only what they no longer use.
"""
