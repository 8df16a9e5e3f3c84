"""Tokens by which a node joins, once: `pl_join_<id: 8>_<secret: 40>`. Only the digest of the secret is stored."""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple

from pilotlight_core.model.ids import token


class JoinSecret(NamedTuple):
    """The parts of a token."""

    id: str
    secret: str

    def __str__(self) -> str:
        return f"pl_join_{self.id}_{self.secret}"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.secret.encode()).hexdigest()


def new_join_secret() -> JoinSecret:
    return JoinSecret(token(8), secrets.token_urlsafe(30))
