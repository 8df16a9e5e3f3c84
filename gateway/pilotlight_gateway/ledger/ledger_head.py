"""The ledger's revision, and the name of one that has it, read without SQLAlchemy.

That takes half a second to load, and a gateway that starts needs it only where the tables have to be made or upgraded.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from urllib.parse import quote

HEAD = "0018"
"""The last revision. A constant, since importing alembic takes 0.2 s and is rarely needed."""
SQLITE = "sqlite:///"
WAIT_S = 10.0
"""For another process that writes."""


def identity_at_head(url: str) -> str | None:
    """What tells a SQLite ledger of this revision from others; None: it has to be opened as a `Ledger`, which says why.

    Nothing is made, or changed.
    """
    path = url.removeprefix(SQLITE)
    if path == url or not path.startswith("/") or "%" in path or "?" in path:  # SQLAlchemy reads those as of a URL
        return None
    try:
        with closing(sqlite3.connect(f"file:{quote(path)}?mode=rw", uri=True, timeout=WAIT_S)) as connection:
            if connection.execute("SELECT version_num FROM alembic_version").fetchall() != [(HEAD,)]:
                return None
            return str(connection.execute("SELECT id FROM ledger_identity").fetchone()[0])
    except (sqlite3.Error, TypeError):
        return None
