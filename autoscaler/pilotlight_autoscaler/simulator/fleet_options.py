"""The fleet of a simulation in words, or as `pilotlight plan --json` prints it.

In words: `H100-80GB:8`, `A100-80GB:16:mig` (in MIG mode), `T4:4:shared` (may be allocated in parts), `CPU:64` (slots).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pilotlight_autoscaler.simulator.simulated_fleet import GpuGroup
from pilotlight_placement.hardware.catalogue import Catalogue, standard

MOST_GPUS = 1_000_000
MODES = ("mig", "shared")
CPU = "CPU"


class BadFleet(ValueError):
    """What is no fleet; says what was expected."""


def groups_of(words: Sequence[str], catalogue: Catalogue | None = None) -> list[GpuGroup]:
    """The groups of GPUs in words, each of which may also name a file with a plan.

    Raises:
        BadFleet: naming the word.
    """
    found: list[GpuGroup] = []
    for word in words:
        if word.endswith(".json"):
            found += _planned(Path(word), catalogue or standard())
        else:
            found.append(_group(word, catalogue or standard()))
    if sum(group.count for group in found) > MOST_GPUS:
        raise BadFleet(f"more than {MOST_GPUS:,} devices")
    return found


def _group(word: str, catalogue: Catalogue) -> GpuGroup:
    kind, _, rest = word.partition(":")
    count, _, mode = rest.partition(":")
    if not count.isdecimal() or not 0 < int(count) <= MOST_GPUS or mode not in ("", *MODES):
        raise BadFleet(f"{word!r} is no part of a fleet: expected such as H100-80GB:8, A100-80GB:16:mig or T4:4:shared")
    return _checked(kind, int(count), mode, catalogue)


def _checked(kind: str, count: int, mode: str, catalogue: Catalogue) -> GpuGroup:
    if kind.upper() == CPU and not mode:
        return GpuGroup(device=None, count=count)
    device = catalogue.devices.get(kind.upper()) or catalogue.devices.get(kind)
    if device is None:
        raise BadFleet(f"{kind!r} is no GPU that is known: expected one of {', '.join(catalogue.devices)}")
    if mode == "mig" and device.family is None:
        raise BadFleet(f"{device.name} has no MIG mode")
    return GpuGroup(device=device, count=count, mig=mode == "mig", shareable=mode == "shared")


def _planned(path: Path, catalogue: Catalogue) -> list[GpuGroup]:
    """The GPUs of a plan; those that it cuts are in MIG mode."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        gpus = {str(name): int(count) for name, count in told["gpus"].items()}
        cut = [str(each["gpu"]) for each in told.get("layouts", ()) if each["slices"][0]["profile"] != "whole"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise BadFleet(f"{path}: expected what pilotlight plan --json prints: {error!r}") from None
    found = []
    for kind, count in gpus.items():
        in_mig = min(count, cut.count(kind))
        parts = ((in_mig, "mig"), (count - in_mig, ""))
        found += [_checked(kind, number, mode, catalogue) for number, mode in parts if number > 0]
    return found
