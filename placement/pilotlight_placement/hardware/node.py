"""The values that a fleet consists of: nodes, devices, slices, and placed containers."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from pilotlight_core.model.devices import SHARE_UNITS as SHARE_UNITS
from pilotlight_core.model.messages.node_messages import HostShare, SliceKind
from pilotlight_core.model.spec import DEFAULT_BASE
from pilotlight_core.model.units import WHOLE_DEVICE
from pilotlight_placement.hardware.catalogue import Device
from pilotlight_placement.hardware.geometry import Layout

MAX_UNITS = 4096
"""Devices and slots of one node."""
NO_SHARE = HostShare()
UNBOUNDED = 2**60


@dataclass(frozen=True, kw_only=True, order=True)
class NodeAbilities:
    """What agents can do beyond starting containers in the base environment "default"."""

    bases: tuple[str, ...] = (DEFAULT_BASE,)
    features: tuple[str, ...] = ()
    shm: int = UNBOUNDED
    """The most bytes that a container may have as /dev/shm, `scratch` as /tmp; `pids` the most processes."""
    scratch: int = UNBOUNDED
    pids: int = UNBOUNDED


@dataclass(frozen=True, kw_only=True, order=True)
class Domain:
    """What nodes have in common besides their hardware, by which whole groups of devices are filtered."""

    region: str = "local"
    zone: str = ""
    pool: str = ""
    spot: bool = False
    abilities: NodeAbilities = NodeAbilities()


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One device of a node. In MIG mode it is cut into instances; otherwise it is allocated whole, or in shares."""

    id: str
    device: Device
    mig: bool = False
    shareable: bool = False
    """Whether MPS or time slicing is set up, so that it may be allocated in bounded shares."""
    instances: Layout = ()
    recut: Layout = ()
    """Places of instances that a plan is about to destroy or to make: nothing else starts there."""
    link: str = ""
    """GPUs of one node with the same link have the fastest connection."""
    withdrawn: str = ""
    """Why nothing new may start on it, or "". Present containers stay."""
    kept: str = ""
    """Why it is reserved for an ask, or ""."""
    software: bool = False


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A slice that is allocated as it is: a CPU slot, or a part of a GPU that its agent has cut. `memory` is MiB."""

    id: str
    kind: SliceKind
    type: str
    memory: int
    ppm: int


class BlankPlace(NamedTuple):
    """Where a blank is ready."""

    part: str
    """The device or slot; "": any CPU slot of its node."""
    base: str
    """Its base environment."""
    profile: str = ""
    start: int = 0


class ParkedPlace(NamedTuple):
    """Where on a GPU a parked container returns to, which keeps its context there."""

    container: str
    tenant: str
    part: str
    """The device."""
    profile: str = ""
    start: int = 0


@dataclass(frozen=True, kw_only=True)
class Node:
    """One host."""

    name: str
    domain: Domain = Domain()
    gpus: tuple[Gpu, ...] = ()
    slots: tuple[Slot, ...] = ()
    host: HostShare | None = None
    """What its containers may be promised in all; None if it does not say, so that nothing bounds them."""
    kept_host: HostShare = NO_SHARE
    """The part of it that is reserved for an ask."""
    draining: bool = False
    """It accepts nothing new, and its containers are left alone."""
    resident: frozenset[str] = frozenset()
    """Ids of the weights in its memory or on its disk, and of the environments that it has built of requirements.

    Of weights in its memory it has `in_memory` of them too.
    """
    blanks: frozenset[BlankPlace] = frozenset()
    parked: tuple[ParkedPlace, ...] = ()
    """Of its containers that are parked off a GPU, sorted."""


def in_memory(resident: str) -> str:
    """The id that a node has beside that of weights, if they are in its memory."""
    return f"{resident} in memory"


def parts_of(node: Node) -> list[Gpu | Slot]:
    return [*node.gpus, *node.slots]


@dataclass(frozen=True, kw_only=True)
class Slice:
    """The slice of a container. `memory` is MiB on each device, `ppm` its part of each device."""

    node: str
    kind: SliceKind
    type: str
    ids: tuple[str, ...]
    """The devices (one, or several whole ones), or the one slot."""
    memory: int
    ppm: int = WHOLE_DEVICE
    profile: str = ""
    start: int = 0
    units: int = 0
    slot: bool = False
    """It is allocated as it is, and not cut by placement."""

    @property
    def id(self) -> str:
        return "+".join(self.ids) + (f":{self.profile}@{self.start}" if self.profile else "")

    @property
    def what(self) -> str:
        """Its kind in words: "3g of an H100-80GB", "2 whole T4"."""
        if self.profile:
            return f"{self.profile} at {self.start} of {_with_article(self.type)}"
        if self.kind is SliceKind.CPU:
            return "a CPU slot"
        if self.units or self.kind is SliceKind.SHARE:
            return f"{self.ppm / 10_000:.0f} % of {_with_article(self.type)}"
        if self.kind is SliceKind.MIG:
            return f"a MIG instance of {_with_article(self.type)}"
        return f"a whole {self.type}" if len(self.ids) == 1 else f"{len(self.ids)} whole {self.type}"

    def __str__(self) -> str:
        return f"{self.what} on {self.node}"


@dataclass(frozen=True, kw_only=True)
class PlacedContainer:
    container: str
    slice: Slice
    function: str = ""
    tenant: str = ""
    since: float = 0.0
    neighbours: bool = False
    """Whether it agrees to other tenants on its device."""
    host: HostShare = NO_SHARE
    """What it is promised of its host."""
    avoid: tuple[str, ...] = ()
    """Functions (`tenant:app.function`) that must not come to its node."""


def rank_of(name: str) -> int:
    """A node's position in the fixed order: the hash of its name, the same in every process."""
    return int.from_bytes(blake2b(name.encode(), digest_size=6).digest(), "big")


def _with_article(name: str) -> str:
    return f"an {name}" if name[:1] in "AHL" else f"a {name}"


def units_of(mib: int, device: Device) -> int:
    """The thousandths of a device that hold `mib` MiB; more than all if the device is too small."""
    return max(1, -(-mib * SHARE_UNITS // device.memory)) if device.memory else SHARE_UNITS + 1
