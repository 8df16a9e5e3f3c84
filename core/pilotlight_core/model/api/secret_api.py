"""Secrets, as the API shows and takes them. No answer has a value."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class SecretRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new value of a secret."""

    value: Annotated[str, Meta(description="the value, at least 8 characters of one line; it is never shown again")]

    def __repr__(self) -> str:
        return "SecretRequest(value=…)"


class SecretInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A secret, without its value."""

    name: str
    number: int
    """Of its value: counts up from 1 each time it is set."""
    created_at: float
    """Unix seconds."""
    changed_at: float
    """When this value was set, in unix seconds."""
    changed_by: str
    """The id of the API key that set it."""
    functions: list[str] = []
    """`app.function` of those in service that use it."""
