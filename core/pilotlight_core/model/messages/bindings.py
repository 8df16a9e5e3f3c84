"""What the controller has bound: the only containers of a node that others believe in.

A `Binding` is written before its `Bind` is sent and removed when the container has ended. Homes grant to bound
containers only, the ledger bills their tenants only, and readers of logs show their lines only.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from pilotlight_core.model.messages.message import Message


class Binding(msgspec.Struct, frozen=True, kw_only=True):
    """One container of a version on a slice of a node."""

    container: str
    node: str
    version: str
    tenant: str
    """The owner of the version."""
    function: str
    """`tenant:app.function`"""
    slice: str
    ppm: int
    """Of each device of the slice."""
    price: str
    """The price id of its devices."""
    slots: int
    """The most calls that it holds at once."""
    core_ppm: int = 0
    """Millionths of a core that it pays for beside its slice."""
    gib_ppm: int = 0
    """Millionths of a GiB of host memory that it pays for."""
    tags: dict[str, str] = {}
    """Of the function, as its owner set them: usage is reported by these."""
    max_units: dict[str, int] = {}
    """What a call is billed for at most of the units that it counts, by `CallUnit`; of others nothing."""
    region: str = ""
    purchase: str = ""
    """On record of its node, as is its region; "": it is not, and the node's word counts."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The metered slices: the slice itself, or each of several whole devices."""
        devices = self.slice.split("+")
        return tuple(devices) if len(devices) > 1 else (self.slice,)

    @property
    def app_and_function(self) -> tuple[str, str]:
        return _app_and_function(self.function)


@lru_cache(maxsize=16_384)
def _app_and_function(name: str) -> tuple[str, str]:
    """Of `tenant:app.function`; each second it is asked for of each container of each node."""
    app, _, function = name.partition(":")[2].partition(".")
    return app, function


class Bound(Message, frozen=True, kw_only=True):
    """A container was bound: from here on the ledger takes its usage."""

    binding: Binding


class Unbound(Message, frozen=True, kw_only=True):
    """A bound container has ended: from here on no time passes for it."""

    container: str
    node: str
