"""Whose signatures over code and artifacts count for a tenant: public keys on record, with their terms."""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.supply.key_terms import ALWAYS, KeyTerms

MOST_TRUSTED = 32
"""Keys of one tenant, revoked ones among them."""
PEM_LENGTH = 1_024
TRUST_KEYS = "trust."
KEY_DIGITS = 16
"""Of a key's hint, which are its id."""


class TrustedKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A public key."""

    name: str
    """One of its tenant; people's."""
    pem: Annotated[str, Meta(max_length=PEM_LENGTH)]
    """SubjectPublicKeyInfo, with one line feed at the end; of the curve P-256."""
    added_at: float
    """Unix seconds."""
    added_by: str = ""
    """The id of the API key."""
    terms: KeyTerms = ALWAYS

    @property
    def hint(self) -> str:
        """What signatures name it by."""
        return hint_of(self.pem)

    @property
    def id(self) -> str:
        """Hexadecimal digits."""
        return self.hint[:KEY_DIGITS]


class TrustRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Key: `trust.{tenant}`."""

    tenant: str
    keys: Annotated[tuple[TrustedKey, ...], Meta(max_length=MOST_TRUSTED)] = ()

    def hinted(self, hint: str) -> TrustedKey | None:
        """The key that a signature names."""
        return next((each for each in self.keys if each.hint == hint), None)


def hint_of(pem: str) -> str:
    """The sha256 of a public key's PEM, as the signatures of model-signing have it."""
    return hashlib.sha256(pem.encode()).hexdigest()
