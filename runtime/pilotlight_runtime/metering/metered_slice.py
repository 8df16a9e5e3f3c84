"""A metered slice, who pays for it, and what a call used of it."""

from __future__ import annotations

import msgspec

from pilotlight_core.model.messages.usage import CallShare
from pilotlight_core.model.messages.usage_facts import Purpose


class SliceOwner(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Who pays for a slice; all empty is the operator."""

    tenant: str = ""
    app: str = ""
    function: str = ""
    version: str = ""
    container: str = ""
    purpose: Purpose = Purpose.CALL
    memory: int = 0
    """Bytes of memory that the container was promised."""
    tags: dict[str, str] = {}
    """Of the function."""
    core_ppm: int = 0
    gib_ppm: int = 0
    """What it pays for beside the slice: millionths of a core, and of a GiB of host memory."""


OPERATOR = SliceOwner()


class MeteredSlice(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    instance: str
    """The agent's incarnation: event ids are `{instance}.{slice}.{n}`."""
    node: str
    device: str
    slice: str
    ppm: int
    price: str
    region: str = ""
    zone: str = ""
    purchase: str = ""


class EndedShare(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """What a call that has ended used of a slice, as far as it may not be on disk yet."""

    lease: MeteredSlice
    owner: SliceOwner
    share: CallShare
    """Its nanoseconds since the last checkpoint."""
    checkpoint_ns: int
    """The instant of the last checkpoint."""
    checkpoint_share_ns: int
    """Its nanoseconds in the events of that checkpoint, and of those before that did not come to disk."""
    ended_ns: int
    """The instant at which it ended."""
    ended_at: float
    """The same in unix seconds."""
    wall_ns: int = 0
    """The same in unix nanoseconds; 0: an older agent noted it."""
