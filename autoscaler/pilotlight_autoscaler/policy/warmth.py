"""Which tier of warmth a container without calls is worth: the cheapest that keeps its function's promise. Pure.

    ready    on its slice: what `desired` asks for
    parked   its process and memory, without the slice
    none     it ends: the next call waits for a start

A start that a caller can bear is not worth memory: one that takes no longer than the service level, or than
`BEARABLE_S` where there is none. What is parked stays for ten minutes for each second that a start takes, since each
would have its callers wait for it.
"""

from __future__ import annotations

from pilotlight_autoscaler.policy.wish import Warmth
from pilotlight_core.model.messages.node_messages import ContainerReport, HostMemory
from pilotlight_core.model.spec import FunctionSpec

BEARABLE_S = 0.25
"""Half of the default service level of a unary call."""
STAYS_S = 600.0
"""For each second of a start."""
LONGEST_S = 3600.0
UNKNOWN_CHANCE = 0.5
"""Of a call in the next minute, where nothing is known of a function."""


def bearable_s(spec: FunctionSpec) -> float:
    """The longest start that a caller of the function can bear."""
    return BEARABLE_S if spec.slo.p95_ms is None else spec.slo.p95_ms / 1000.0


def tier_of(spec: FunctionSpec, load_s: float, *, is_funded: bool = True) -> Warmth:
    """The tier of a container that nothing asks for, where a start takes so long."""
    return Warmth.PARKED if is_funded and load_s > bearable_s(spec) else Warmth.NONE


def stays_s(load_s: float) -> float:
    """For how long a container that nobody calls stays parked."""
    return min(LONGEST_S, STAYS_S * load_s)


def can_be_parked(container: ContainerReport, memory: HostMemory | None) -> bool:
    """Whether its node may have room for it. Only the node knows what it would take, and what is worth less."""
    return bool(container.parks) and memory is not None and memory.total > 0
