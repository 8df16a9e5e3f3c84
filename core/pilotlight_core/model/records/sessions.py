"""What the platform keeps of a login in a browser, and of the link that opens one: a digest, never the token."""

from __future__ import annotations

import msgspec

SESSION_KEYS = "session."
"""In front of its id: the key of a session's record in the registry."""


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Key: `session.{id}`. It opens what its API key opens, for as long as that key is valid."""

    id: str
    """The digest of its token."""
    tenant: str
    key: str
    """The id of the API key that opened it, or of whoever had a token of an issuer."""
    created_at: float
    expires_at: float
    """The unix second at which it ends, however much it is used."""
    seen_at: float
    """When it was last used, give or take some minutes."""
    link: bool = False
    """Whether it is no session yet, but the code of a link: it opens one session, and nothing else."""
    issuer: str = ""
    """The name of the issuer whose token opened it; "": a key did."""
    issuer_changed_at: float = 0.0
    """Of that issuer's record, as it was then: a change of it ends the session."""
    scopes: tuple[str, ...] = ()
    """What the token gave; of a key its own record says so."""
