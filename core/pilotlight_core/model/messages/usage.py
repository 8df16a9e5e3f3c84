"""Metered usage, from agents to the stream of usage."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from pilotlight_core.model.messages.message import Message
from pilotlight_core.model.messages.usage_facts import Fault, Purpose


class LeaseState(StrEnum):
    """What a slice was doing.

    PARKED is metered on the host's memory (the device `MEMORY_DEVICE`), not on the device that was left: its part is of
    what the node keeps for parked containers, and its price is that of the memory alone, by `gib_ppm`.
    """

    FREE = "free"  # unused: the operator pays
    BLANK = "blank"  # held by a blank: the operator pays
    LOADING = "loading"  # the function's code is imported and started
    IDLE = "idle"  # ready, without calls
    BUSY = "busy"
    DRAINING = "draining"
    PROVISIONING = "provisioning"  # bound: files and a sandbox are prepared; nobody's until the version is verified
    PARKED = "parked"  # off the device, with its weights in host memory


class CallShare(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One call's exact part of a busy interval.

    There are thousands a second: what goes without saying is not sent, and none can be a part of a cycle.
    """

    call_id: str = msgspec.field(name="call")
    tenant: str
    ns: int
    ended: str = ""
    """The outcome, in the interval in which the call ended; else ""."""
    batch_size: int = 1
    key: str = ""
    """The id of the API key that asked for the call; "": not known."""
    tags: dict[str, str] = {}
    """Of the call itself, beside its function's."""
    fault: Fault = Fault.NONE
    """Whose fault the end was, in the interval in which the call ended."""
    units: dict[str, int] = {}
    """What the function counted of the call, by `CallUnit`, in the interval in which the call ended."""
    earlier: int = 0
    """Nanoseconds of the same start in earlier intervals, in the interval in which the call ended; agents of 0.1 say so
    only where the platform is at fault for the end."""
    cold_us: int = 0
    """Microseconds that the start of its container took, for which it waited, in the interval in which it ended."""
    shadow: bool = False
    """Its answer is dropped: the platform asked for it, beside the call of `tenant` that another version answers."""
    parent: str = ""
    """The id of the call that made it, in the interval in which it ended; "": it came from outside."""
    moved: bool = False
    """Its container died, and its stream goes on elsewhere: the call counts there."""
    resumed: bool = False
    """It is the rest of a stream that began elsewhere, where the least that a start is billed for was billed."""


class UsageEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One metered interval of one slice in one state. `id` is deterministic, so a repeated event counts once.

    For BUSY, the shares sum to `t1 - t0` exactly.
    """

    id: str
    """{instance}.{slice}.{n}"""
    node: str
    device: str
    slice: str
    ppm: int
    price: str
    state: LeaseState
    t0: int
    """Nanoseconds of the node's boot clock."""
    t1: int
    ended_at: float = msgspec.field(name="wall")
    """`t1` in unix seconds, for those who do not know `wall_ns`."""
    tenant: str = ""
    """Who holds the slice; "": nobody, or nobody is known yet. The ledger decides who pays."""
    app: str = ""
    function: str = ""
    version: str = ""
    container: str = ""
    shares: tuple[CallShare, ...] = ()
    wall_ns: int = 0
    """`t1` in unix nanoseconds; 0: only `ended_at` is known, of an older agent."""
    purpose: Purpose = Purpose.CALL
    """Why the container is there."""
    used: bool = False
    """Whether the container had begun a call by `t1`, since it is there for `purpose`."""
    memory: int = 0
    """Bytes of memory that the container was promised: of its device, on a CPU slot of its host."""
    region: str = ""
    zone: str = ""
    purchase: str = ""
    """How the node was bought, a `Purchase`; "": not known."""
    tags: dict[str, str] = {}
    """Of the function, as its owner set them."""
    core_ppm: int = 0
    """Millionths of a core that are paid for beside the slice; of several devices, on the first alone."""
    gib_ppm: int = 0
    """Millionths of a GiB of host memory that are paid for; of several devices, on the first alone."""


class UsageBatch(Message, frozen=True, kw_only=True):
    events: tuple[UsageEvent, ...]
