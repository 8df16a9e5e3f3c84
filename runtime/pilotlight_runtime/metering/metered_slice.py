"""A metered slice, and who pays for it."""

from __future__ import annotations

import msgspec

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
