"""Requests and answers of the API about nodes."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pilotlight_core.model.ids import NAME_PATTERN
from pilotlight_core.model.placing import Purchase

NodeName = Annotated[str, Meta(pattern=NAME_PATTERN)]
LabelText = Annotated[str, Meta(max_length=63)]
JOIN_LIFE_S = 900.0
CLOCK_OFF_S = 2.0
"""Clocks that differ by more are told of."""


class JoinTokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST /v1/nodes/tokens`. The labels are those of the node that joins by it."""

    node: LabelText = ""
    """The only name under which it may; "": any that no node has."""
    zone: NodeName | None = None
    """None: that of the gateway."""
    pool: LabelText = ""
    purchase: Purchase = Purchase.ON_DEMAND
    expires_in_s: Annotated[float, Meta(ge=10, le=7 * 86_400)] = JOIN_LIFE_S


class NewJoinToken(msgspec.Struct, frozen=True, kw_only=True):
    """Only here the token is shown."""

    id: str
    token: str
    expires_at: float
    region: str
    zone: str
    pool: str
    purchase: Purchase
    node: str = ""


class JoinRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`POST /v1/nodes/join`, without an API key: the token is what it is believed for."""

    token: Annotated[str, Meta(max_length=128)]
    node: NodeName
    key: Annotated[str, Meta(max_length=64)]
    """The public half of the key that the node has made, and will connect to the bus with."""


class JoinedNode(msgspec.Struct, frozen=True, kw_only=True):
    """What the node's agent needs to know."""

    node: str
    region: str
    zone: str
    pool: str
    purchase: Purchase
    bus_url: str
    """Addresses of the bus, without credentials."""
    expires_at: float
    """The agent renews its identity before."""


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A node, by its record and its last report."""

    node: str
    status: str
    """"up", "silent" (there is no report of the last seconds), "revoked" or "expired"."""
    state: str
    """"open", "cordoned" or "draining", by its operator or its agent."""
    joined: bool = False
    region: str = ""
    zone: str = ""
    pool: str = ""
    purchase: str = ""
    expires_at: float | None = None
    sandbox: str = ""
    draining: bool = False
    """By its agent's word: it ends."""
    bases: tuple[str, ...] = ()
    blanks: dict[str, int] = {}
    slices: list[dict[str, Any]] = []
    containers: int = 0
    clock_s: float | None = None
    """How far its clock is ahead of the gateway's, in seconds; None: it does not say."""
    guarantees: dict[str, Any] = {}
    """What its agent holds containers to."""
    notice: dict[str, Any] | None = None
    """What its provider has said of its end: `kind`, `deadline` in unix seconds, `reason`; None: nothing."""


class NodeList(msgspec.Struct, frozen=True, kw_only=True):
    nodes: list[NodeInfo]
