"""How many more containers a tenant may have, and which of its own give way."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_autoscaler.policy.tenant_rooms import LimitedVersion, TenantRooms, floors, give_way, unlimited
from pilotlight_core.model.limits import NO_LIMITS, Limits, ReachedLimit
from pilotlight_core.model.scaling.scale_bounds import bounds_of
from pilotlight_core.model.scaling.scale_record import BoundOverride, ScaleRecord
from pilotlight_core.model.spec import FunctionSpec
from pilotlight_core.model.units import GpuAsk
from tests.autoscaler.builders import record
from tests.builders.nodes import container
from tests.builders.specs import function_spec

PAIR = (GpuAsk("H100", 2), GpuAsk("CPU"))


def rooms(limits: Limits, *held: FunctionSpec | None) -> TenantRooms:
    """Rooms of `acme`, which holds these; nobody else has limits."""
    of = {"acme": limits}
    return TenantRooms(lambda tenant: of.get(tenant, NO_LIMITS), lambda _: [(spec, 1) for spec in held])


@pytest.mark.parametrize(
    ("limits", "options", "wanted", "allowed", "reached"),
    [
        ({}, {}, 5, 5, None),
        ({"containers": 5}, {}, 3, 3, None),
        ({"containers": 4}, {}, 3, 2, ("containers", 4, 2)),
        ({"containers": 2}, {}, 1, 0, ("containers", 2, 2)),
        ({"containers": 1}, {}, 1, 0, ("containers", 1, 2)),
        ({"gpus": 0}, {}, 1, 1, None),
        ({"gpus": 7}, {"gpu": PAIR}, 3, 2, ("gpus", 7, 2)),
        ({"gpus": 7, "containers": 3}, {"gpu": PAIR}, 3, 1, ("containers", 3, 2)),
    ],
)
def test_a_limit_lets_so_many_start(
    limits: dict[str, Any],
    options: dict[str, Any],
    wanted: int,
    allowed: int,
    reached: tuple[str, float, float] | None,
) -> None:
    """Beside two containers, one of them with two GPUs; each GPU limit counts what a container may ask for."""
    room = rooms(Limits(**limits), function_spec(gpu=PAIR), None)

    found, limit = room.take("acme", function_spec(**options), wanted)

    assert found == allowed
    assert (limit and (limit.limit, limit.allowed, limit.current)) == reached


def test_what_was_taken_counts() -> None:
    """For the tenant's next function, and for nobody else's."""
    room = rooms(Limits(containers=3))
    assert room.take("acme", function_spec(), 2)[0] == 2
    assert room.take("acme", function_spec(), 2)[0] == 1
    assert room.take("zoo", function_spec(), 100)[0] == 100
    assert TenantRooms(unlimited, lambda _: []).take("acme", function_spec(), 9) == (9, None)


def limited(limit: str = "containers", missing: int = 1) -> LimitedVersion:
    reached = ReachedLimit(limit=limit, tenant="acme", allowed=2, current=2)
    return LimitedVersion(version="ver_1", missing=missing, reached=reached)


def test_its_own_idle_containers_give_way_the_longest_idle_first() -> None:
    """Not those of others, not its own, and no more than are missing, counting those that leave anyway."""
    versions = {
        "ver_1": record("ver_1"),
        "ver_2": record("ver_2", gpu=PAIR),
        "ver_3": record("ver_3"),
        "ver_4": msgspec.structs.replace(record("ver_4"), tenant="zoo"),
    }
    idle = [(container(f"c{n}", f"ver_{n}", idle_s=10.0 * n), f"ver_{n}") for n in range(1, 5)]

    def chosen(which: LimitedVersion, *leaving: str) -> list[str]:
        gone = [container(f"old{n}", version) for n, version in enumerate(leaving)]
        return [name for name, _ in give_way(which, idle, gone, versions)]

    assert chosen(limited()) == ["c3"]
    assert chosen(limited(missing=9)) == ["c3", "c2"]
    assert chosen(limited("gpus", missing=9)) == ["c2"]
    assert chosen(limited(missing=2), "ver_3") == ["c3"]
    assert chosen(limited(missing=1), "ver_3") == []
    assert chosen(limited(missing=1), "ver_4") == ["c3"]


def test_floors_stand_up_to_their_tenants_limit() -> None:
    """In a fixed order, so that they do not change from pass to pass."""
    versions = {f"ver_{n}": record(f"ver_{n}", min_containers=2) for n in range(3)}
    versions["ver_9"] = msgspec.structs.replace(record("ver_9", min_containers=7), tenant="zoo")
    versions["ver_8"] = record("ver_8")
    of = {"acme": Limits(floor_containers=3)}

    found = floors(versions, lambda tenant: of.get(tenant, NO_LIMITS))

    assert found == {"ver_0": 2, "ver_1": 1, "ver_2": 0, "ver_9": 7}


def test_floors_that_people_say_count_as_others() -> None:
    """And so do those of warm windows."""
    versions = {"ver_0": record("ver_0", min_containers=2), "ver_1": record("ver_1"), "ver_2": record("ver_2")}
    said = ScaleRecord(tenant="acme", app="hello", function="greet", min_containers=BoundOverride(value=3, at=0.0))
    bounds = {"ver_1": bounds_of(versions["ver_1"].spec, said, 0.0)}

    assert floors(versions, lambda _: Limits(floor_containers=4), bounds) == {"ver_0": 2, "ver_1": 2}


def test_a_limit_is_told_with_its_value() -> None:
    """Callers, who may be others, do not learn how much there is."""
    assert limited().reason == "acme has 2 containers, and its limit containers=2 allows no more"
    assert "GPUs of its containers" in limited("gpus").reason
    assert limited().for_callers == "the function's owner may have 2 at a time (limit containers)"
