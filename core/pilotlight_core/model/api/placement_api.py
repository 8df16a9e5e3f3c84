"""The bodies of the HTTP API about placement: explained decisions, computed memory, and the fleet."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.api.call_api import Request
from pilotlight_core.model.spec import DEFAULT_BASE, FunctionSpec


class DecisionStatus(StrEnum):
    STARTING = "starting"  # the container is being started
    RUNNING = "running"
    LEAVING = "leaving"  # it finishes its calls
    GONE = "gone"
    WAITING = "waiting"  # there is still no place for it
    OVER = "over"  # it waits no more


class PlaceInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A place, and its value in each step of the policy; smaller goes first."""

    node: str
    slice: str
    what: str
    value: dict[str, float]
    step: str = ""
    """For a loser: the step at which it lost."""


class DecisionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One decision about one container."""

    container: str
    """"" if none was started."""
    function: str
    revision: int
    considered: int
    refused: dict[str, int]
    """By filter: how many it excluded that passed all earlier ones."""
    winner: PlaceInfo | None = None
    losers: tuple[PlaceInfo, ...] = ()
    reason: str = ""
    never: bool = False
    version: str = ""
    """`app.function@v7`."""
    state: DecisionStatus = DecisionStatus.GONE
    decided_at: str = ""
    """ISO 8601, UTC."""
    since: str = ""
    """When it was decided for the first time: a refusal is repeated while the version waits."""


class ContainerStopRequest(Request, frozen=True, kw_only=True):
    """`POST /v1/containers/{container}/stop`."""

    grace_s: Annotated[float, Meta(ge=0, le=3600)] | None = None
    """What its calls have to end in, in seconds; 0: nothing. Default: the platform's, 30 s unless configured."""


class ContainerStopInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a container: it takes no new calls, and is killed after `grace_s` if it has not ended."""

    id: str
    node: str
    """For operators; else ""."""
    grace_s: float


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/placement/explain`: decisions in sentences and as data."""

    lines: tuple[str, ...]
    decisions: tuple[DecisionInfo, ...]


class MemoryRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the computation of device memory: bytes on each device."""

    what: str
    arithmetic: str
    bytes: int


class MemoryPlanInfo(msgspec.Struct, frozen=True, kw_only=True):
    """For one choice of GPUs: the memory needed on each, and the largest slice of that type in the fleet."""

    gpu: str
    """ "H100:2"."""
    devices: int
    per_device: int
    """Bytes; 0: unknown."""
    rows: tuple[MemoryRow, ...]
    largest: str = ""
    largest_bytes: int = 0


class PlacementQuestion(Request, frozen=True, kw_only=True, omit_defaults=True):
    """`POST /v1/placement/plan`: a function as it would be deployed."""

    spec: FunctionSpec
    method: str = ""
    """For a class: any of its methods; the answer is about the class's container."""
    base: str = DEFAULT_BASE
    """The base environment of its app."""


ROOM_COUNTED = 100
"""Places that are searched one by one to count how much of a floor fits now: at most 0.2 s on 10,000 GPUs."""


class FloorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a floor (`min_containers`) fits."""

    wanted: int
    there: int
    room: int
    """Missing containers that would find a place now; `ROOM_COUNTED` means that or more."""
    most: int
    """The most that the whole fleet could hold, if it were free."""


class FunctionPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/functions/{ref}/placement`, `POST /v1/placement/plan`."""

    version: str
    """`app.function@v7`; the function's name if it is not deployed."""
    lines: tuple[str, ...]
    plans: tuple[MemoryPlanInfo, ...]
    fits: bool
    """Whether the whole fleet could hold it, if it were free."""
    reason: str = ""
    floor: FloorInfo | None = None


class FleetSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a device: used, free, or stranded (free, but of no use to any instance)."""

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
    software: bool = False


class HostInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a node has to promise to containers, less the platform's reserve, and what of it is promised."""

    node: str
    cores: float
    cores_promised: float
    memory: int
    """Bytes."""
    memory_promised: int


class FleetInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`GET /v1/fleet`. The totals are parts of devices by type: used, free and stranded."""

    devices: tuple[FleetRow, ...]
    totals: dict[str, dict[str, float]]
    hosts: tuple[HostInfo, ...] = ()
    """Of the nodes that say what they have."""
