"""What nodes do ahead of binds: how many blanks they keep, and which versions they fetch."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import Bytes, Count, ShortText
from pilotlight_core.model.messages.message import Message

MOST_BLANK_SIZES = 1_024
"""Base environments times kinds of slices of one node."""


class BlankSize(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """So many blanks of a base environment on slices of one kind, as far as those are free."""

    base: ShortText
    count: Count
    gpu_type: ShortText = ""
    """As `SliceReport` has it; "": CPU slots."""
    memory: Bytes = 0
    """Of such a slice, by which MIG instances differ; 0 for CPU slots."""


class KeepBlanks(Message, frozen=True, kw_only=True):
    """From now on keep so many blanks, and none of what is not named."""

    epoch: int
    sizes: Annotated[tuple[BlankSize, ...], Meta(max_length=MOST_BLANK_SIZES)]


class Prefetch(Message, frozen=True, kw_only=True):
    """Fetch a version that was just deployed, if that can be done: it may be bound here soon."""

    epoch: int
    version: str
    tenant: str
    manifest_sha256: str
