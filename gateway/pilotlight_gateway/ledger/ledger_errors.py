"""Errors of the ledger, apart from it: who only names them does not load SQLAlchemy."""

from __future__ import annotations


class LedgerRefused(Exception):
    """The ledger cannot be opened; the message says why and what to do."""
