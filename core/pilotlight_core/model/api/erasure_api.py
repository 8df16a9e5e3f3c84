"""The bodies of the HTTP API about erasing a tenant."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Request


class ErasureState(StrEnum):
    """How far the erasure of a tenant is."""

    PLANNED = "planned"  # the tenant is disabled, and nothing is gone: enable it, and nothing has happened
    ERASING = "erasing"  # it goes on, or has to be asked for again: something of it was not there to be deleted yet
    ERASED = "erased"  # nothing is left but what stays


class ErasureRequest(Request, frozen=True, kw_only=True):
    """`PUT /v1/tenants/{tenant}/erasure`."""

    confirmation: Annotated[str, Meta(min_length=1, max_length=64)]
    """As the plan gave it."""


class ErasureInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What goes, or went, of a tenant."""

    tenant: str
    state: ErasureState
    found: dict[str, int]
    """Of each kind, how many are there; of an erasure, how many it has deleted so far."""
    blob_bytes: int = 0
    """Of its blobs, as stored."""
    containers: int = 0
    """Of it that have not ended."""
    confirmation: str = ""
    """What the second step has to be asked with, each time."""
    why: str = ""
    """What it waits for, while it is `erasing`."""
    keeps: list[str] = []
    """What stays."""
