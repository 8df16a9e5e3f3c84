"""The GPUs of a machine in words: `8xH100`, `2xA100-80GB:mig`, `1xT4:share`, several with commas."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pilotlight_core.model.errors import BadInput
from pilotlight_placement.hardware.catalogue import Device, standard

MOST_GPUS = 64
"""Of one machine; real ones have eight or sixteen."""
EXAMPLE = 'expected such as "8xH100", "2xA100-80GB:mig" or "1xT4:share"'
_ITEM = re.compile(r"(?:([0-9]{1,4})x)?([A-Za-z0-9]+(?:-[A-Za-z0-9]+)*)(:mig|:share)?")


@dataclass(frozen=True, kw_only=True)
class GpuKind:
    """So many GPUs of one kind. `mig`: they are cut; `shareable`: they are given in shares."""

    count: int
    device: Device
    mig: bool = False
    shareable: bool = False


def read_gpus(text: str) -> tuple[GpuKind, ...]:
    """The GPUs of a machine; "" has none.

    Raises:
        BadInput: naming the wrong part.
    """
    kinds = tuple(_kind(item.strip()) for item in text.split(",")) if text.strip() else ()
    if sum(kind.count for kind in kinds) > MOST_GPUS:
        raise BadInput(f"gpus: {text!r} are more than {MOST_GPUS} GPUs.", field="gpus")
    return kinds


def _kind(item: str) -> GpuKind:
    found = _ITEM.fullmatch(item)
    if found is None:
        raise BadInput(f"gpus: {item!r} is not understood: {EXAMPLE}.", field="gpus")
    count, device = int(found[1] or 1), standard().device(found[2].upper())
    if device.name not in standard().devices:
        known = ", ".join(standard().devices)
        raise BadInput(f"gpus: {found[2]} is not in the catalogue, which has {known}.", field="gpus")
    if not 1 <= count <= MOST_GPUS:
        raise BadInput(f"gpus: {item!r}: the count must be 1 to {MOST_GPUS}.", field="gpus")
    if found[3] == ":mig" and device.family is None:
        raise BadInput(f"gpus: {item!r}: a {device.name} has no MIG mode.", field="gpus")
    return GpuKind(count=count, device=device, mig=found[3] == ":mig", shareable=found[3] == ":share")
