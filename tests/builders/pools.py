"""Pools of nodes and their machines: one type and one zone each, unless a test says more."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.api.pools.pool_terms import MachineType, PoolProvider, PoolTerms
from pilotlight_core.model.records.pools import LaunchRecord, LaunchState, PoolRecord, PoolState

L4 = MachineType(name="g6.xlarge", gpus="1xL4", cores=4, memory_gib=16, usd_per_hour=1.0)
EIGHT_L4 = MachineType(name="g6.48xlarge", gpus="8xL4", cores=192, memory_gib=768, usd_per_hour=6.0)
CPUS = MachineType(name="m7.large", cores=2, memory_gib=8, usd_per_hour=0.1)


def pool(name: str = "l4", *types: MachineType, state: PoolState = PoolState.OPEN, **terms: Any) -> PoolRecord:
    """A pool of machines with one L4; on EC2's terms without what only EC2 needs."""
    fields: dict[str, Any] = {"provider": PoolProvider.EC2, "most_nodes": 10, "zones": ("a",), "budgets": ()} | terms
    return PoolRecord(name=name, id=f"id-of-{name}", terms=PoolTerms(types=types or (L4,), **fields), state=state)


def launch(number: int = 1, record: PoolRecord | None = None, **more: Any) -> LaunchRecord:
    """A machine of a pool, which is up."""
    record = record or pool()
    type_ = record.terms.types[0]
    fields: dict[str, Any] = {
        "id": f"{record.name}-launch{number}", "pool": record.name, "slot": number, "node": f"{record.name}-n{number}",
        "type": type_.name, "zone": (record.terms.zones or ("a",))[0], "state": LaunchState.UP,
        "usd_per_hour": type_.usd_per_hour, "gpus": 1 if type_.gpus else 0,
        "digest": record.terms.digest_of(type_.name),
    }  # fmt: skip
    return LaunchRecord(**fields | more)
