"""The bodies of the placement part of the HTTP API: decisions explained, memory computed, the fleet drawn."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.spec import FunctionSpec


class DecisionStatus(StrEnum):
    """What has become of what was decided."""

    STARTING = "starting"  # the container was sent for, and is not ready
    RUNNING = "running"
    LEAVING = "leaving"  # it finishes what it holds
    GONE = "gone"
    WAITING = "waiting"  # there is no place for it still
    OVER = "over"  # it does not wait any more


class PlaceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A place, and its value in each step of the policy; smaller goes first."""

    node: str
    slice: str
    what: str
    value: dict[str, float]
    step: str = ""
    """Of a loser: the step at which it lost."""


class DecisionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One decision about one container."""

    container: str
    """"" if none was started."""
    function: str
    revision: int
    """Of the fleet that it was made on."""
    considered: int
    """Devices and slots."""
    refused: dict[str, int]
    """By filter: how many it ruled out that passed all before it."""
    winner: PlaceInfo | None = None
    losers: tuple[PlaceInfo, ...] = ()
    """The best loser of each step."""
    reason: str = ""
    """Why there is no winner."""
    never: bool = False
    version: str = ""
    """`app.function@v7`."""
    state: DecisionStatus = DecisionStatus.GONE
    """What has become of it."""
    decided_at: str = ""
    """ISO 8601, UTC."""
    since: str = ""
    """When it was decided for the first time: a refusal is repeated as long as the version waits."""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/placement/explain`: the same in sentences and as data."""

    lines: tuple[str, ...]
    decisions: tuple[DecisionInfo, ...]
    """The latest last."""


class MemoryRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the arithmetic of device memory: bytes on each device."""

    what: str
    arithmetic: str
    bytes: int


class MemoryPlanInfo(msgspec.Struct, frozen=True, kw_only=True):
    """For one choice of GPUs: what is needed on each, and the largest slice that the fleet has of its type."""

    gpu: str
    """ "H100:2"."""
    devices: int
    per_device: int
    """Bytes; 0 if nothing says how much is needed."""
    rows: tuple[MemoryRow, ...]
    largest: str = ""
    """"" if the fleet has none of the type."""
    largest_bytes: int = 0


class PlacementQuestion(Request, frozen=True, kw_only=True):
    """`POST /v1/placement/plan`: a function as it would be deployed."""

    spec: FunctionSpec
    method: str = ""
    """Of a class: it is the class's container that is told of."""


ROOM_COUNTED = 100
"""Places that are looked for one after the other to say how much of a floor fits now: at most 0.2 s on 10,000 GPUs."""


class FloorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a floor (`min_containers`) fits."""

    wanted: int
    there: int
    """Containers of the version that there are."""
    room: int
    """Of those that are missing: how many would find a place now; `ROOM_COUNTED` is that or more."""
    most: int
    """As many as the fleet could hold at most, if all of it were free."""


class FunctionPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/functions/{ref}/placement`, `POST /v1/placement/plan`."""

    version: str
    """`app.function@v7`; the function's name where it is not deployed."""
    lines: tuple[str, ...]
    plans: tuple[MemoryPlanInfo, ...]
    fits: bool
    """Whether the fleet could hold it, if all of it were free."""
    reason: str = ""
    """Why not."""
    floor: FloorInfo | None = None
    """None if it has none."""


class FleetSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a device: used, free, or stranded (free, and of no use to any instance)."""

    use: str
    width: int
    label: str = ""
    tenant: str = ""
    container: str = ""


class FleetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU or slot. The segments' widths sum to `width`."""

    node: str
    region: str
    zone: str
    id: str
    type: str
    mig: bool
    spot: bool
    draining: bool
    width: int
    segments: tuple[FleetSegment, ...]
    withdrawn: str = ""
    """Why nothing new may start on it."""
    software: bool = False
    """It exists in software only: containers run on the host's processors."""


class FleetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/fleet`. Parts of devices in all, by type: used, free and stranded."""

    devices: tuple[FleetRow, ...]
    totals: dict[str, dict[str, float]]
