"""Models as `GET /v1/models` lists them."""

from __future__ import annotations

import msgspec


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name under which a function is served."""

    id: str
    """The name."""
    object: str
    created: int
    """When the function got the name, in unix seconds."""
    owned_by: str
    """The tenant."""
    function: str
    """`app.function`."""
    parent: str | None = None
    """The model that it is an adapter on."""


class ModelListing(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `GET /v1/models`."""

    object: str = "list"
    data: tuple[ModelInfo, ...] = ()
