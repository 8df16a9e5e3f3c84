"""What a container loads that its node may have already: weights, and the packages that it requires.

A node is preferred by the bytes that it has. What is in its memory is as good as loaded; what is on its disk, or built
there, is read eight times as fast as it is fetched; and what is not there at all counts whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pilotlight_core.model.artifacts.artifact_entries import ArtifactInfo
from pilotlight_core.model.versions.pushed_weights import RESIDENT, resident_id

LOAD_STEP: Final = 16 * 2**20
"""Bytes whose fetch is one step: nodes that differ by less are alike."""
DISK_SPEED: Final = 8
"""So many times as fast a disk reads as bytes are fetched, or packages installed."""
UNTOLD_BYTES: Final = 2**30
"""Of weights that have a name alone, whose size nobody says."""
PACKAGE_BYTES: Final = 2**28
"""Of an environment: what it takes is known where it is built, and not before."""


class ResidentAsk(NamedTuple):
    """One thing that is preferably resident on the node."""

    id: str
    size: int = UNTOLD_BYTES
    """Bytes."""
    is_built: bool = False
    """Whether nodes build it of packages, and do not fetch it."""


ResidentAsks = tuple[ResidentAsk, ...]


def resident_asks(
    tenant: str, *, name: str = "", artifacts: Iterable[ArtifactInfo] = (), environment: str = ""
) -> ResidentAsks:
    """What a version of a tenant loads: weights by their digests or by a `name` alone, and its environment."""
    found = {each.digest: ResidentAsk(resident_id(tenant, each.digest), each.size) for each in artifacts if each.digest}
    asks = list(found.values())
    # Deploys of before wrote the digest of the largest of the weights as the name.
    if name and name.removeprefix(RESIDENT) not in found:
        asks.append(ResidentAsk(f"{tenant}:{name}"))
    if environment:
        asks.append(ResidentAsk(environment, PACKAGE_BYTES, is_built=True))
    return tuple(sorted(asks))


def fetch_steps(ask: ResidentAsk) -> int:
    """What a node lacks that has nothing of it."""
    return max(2, -(-ask.size // LOAD_STEP))


def disk_steps(ask: ResidentAsk) -> int:
    """What a node lacks that has it on its disk."""
    return max(1, ask.size // (DISK_SPEED * LOAD_STEP))
