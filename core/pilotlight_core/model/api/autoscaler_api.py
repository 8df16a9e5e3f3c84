"""The bodies of the HTTP API about the size of functions, and about gateways for those who scale them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pilotlight_core.model.api.call_api import Life, Request

KeptCount = Annotated[int, Meta(ge=0, le=1_000)]
MostCount = Annotated[int, Meta(ge=1, le=10_000)]
WindowSeconds = Annotated[float, Meta(ge=0, le=86_400)]


class AutoscalerRequest(Request, frozen=True, kw_only=True):
    """`PATCH /v1/functions/{ref}/autoscaler`: what is missing stays as it is; null: as it is deployed."""

    min_containers: KeptCount | UnsetType | None = UNSET
    max_containers: MostCount | UnsetType | None = UNSET
    buffer_containers: KeptCount | UnsetType | None = UNSET
    scaledown_window: WindowSeconds | UnsetType | None = UNSET
    zero_window: WindowSeconds | UnsetType | None = UNSET
    """Of the last container."""
    forecast: bool | UnsetType | None = UNSET
    """Whether what its past foretells may keep or start containers."""
    ends_at: float | None = None
    """The unix second at which what is given here ends, and holds again as it is deployed; default: it stays."""
    ends_in_s: Life | None = None
    """The same in seconds from now, for who does not trust its clock."""


class ScaleBoundInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One bound of a function, as it holds now."""

    value: float | bool
    """Containers, seconds, or whether."""
    because: str
    """Whose word it is."""
    deployed: float | bool
    """What its specification says."""
    ends_at: float | None = None
    """The unix second at which that ends; null: it stays."""


class WarmInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A warm window of a function."""

    when: str
    tz: str
    containers: int
    open: bool
    changes_at: float | None
    """The unix second at which it opens or closes next; null: it is always open."""


class AutoscalerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/functions/{ref}/autoscaler`: what a function is held to now, and why."""

    function: str
    """`app.function`."""
    version: str
    """The deployed one, `app.function@v7`."""
    at: float
    """The unix second of which all this is."""
    min_containers: ScaleBoundInfo
    max_containers: ScaleBoundInfo
    buffer_containers: ScaleBoundInfo
    scaledown_window: ScaleBoundInfo
    zero_window: ScaleBoundInfo
    forecast: ScaleBoundInfo
    warm: tuple[WarmInfo, ...]
    changes_at: float | None
    """The next unix second at which a bound may change by itself; null: none does."""


class GatewayLoadInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The load of one gateway."""

    gateway: str
    """Its process; a new one after each start."""
    name: str
    age_s: float
    """How long ago it told this."""
    requests_per_s: float
    """On average over the last half minute."""
    loop_lag_s: float
    """99 of 100 callbacks of its event loop were at most so late in the last half minute."""
    body_bytes: int
    """Of bodies in its memory."""
    body_bytes_limit: int
    """Beyond which it refuses requests."""
    calls: int
    """Whose callers wait there."""


class GatewayLoadTotal(msgspec.Struct, frozen=True, kw_only=True):
    """One number for all gateways of each kind: their sum, or that of the most loaded one."""

    gateways: int
    requests_per_s: float
    loop_lag_s: float
    body_bytes: int
    body_part: float
    """Of bodies, the part of what a gateway may hold: 1 is full."""
    calls: int


class GatewayScaling(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/scaling/gateways`. A gateway that has told nothing for seven seconds is not in it."""

    gateways: tuple[GatewayLoadInfo, ...]
    sum: GatewayLoadTotal
    most: GatewayLoadTotal
