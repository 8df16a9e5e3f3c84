"""People's word about a function's size: what is stored of it, and what it is held to."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.api.autoscaler_api import AutoscalerRequest
from pilotlight_core.model.calendar.warm_windows import Warm
from pilotlight_core.model.errors import BadInput, QuotaExceeded
from pilotlight_core.model.limits import Limits
from pilotlight_core.model.scaling.scale_record import BoundOverride, ScaleRecord
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_core.model.tenancy import LimitsRecord, TenantRecord
from pilotlight_gateway.deploys.scale_overrides import autoscaler_info, override_scale, reset_scale
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.specs import function_spec, version_record


@pytest.fixture
def registry() -> MemoryRegistry:
    """`acme` has deployed `hello.greet`."""
    registry = MemoryRegistry()
    registry.tenant_records["acme"] = TenantRecord(name="acme", created_at=0.0, tier="enterprise")
    registry.versions["ver_1"] = version_record(function_spec(min_containers=1))
    registry.apps["acme", "hello"] = AppRecord(tenant="acme", app="hello", revision=1, functions={"greet": "ver_1"})
    return registry


def version(registry: MemoryRegistry) -> VersionRecord:
    return registry.versions["ver_1"]


async def say(registry: MemoryRegistry, at: float = 100.0, **asked: Any) -> ScaleRecord | None:
    return await override_scale(registry, version(registry), AutoscalerRequest(**asked), by="key_1", at=at)


async def test_each_word_is_stored_with_its_end_and_who_said_it(registry: MemoryRegistry) -> None:
    """One that has ended goes with the next one; what is not mentioned stays."""
    await say(registry, min_containers=2, ends_at=200.0)
    await say(registry, max_containers=20)
    await say(registry, buffer_containers=1, ends_in_s=5.0)
    assert await say(registry, at=300.0, scaledown_window=5.0) == ScaleRecord(
        tenant="acme", app="hello", function="greet",
        max_containers=BoundOverride(value=20, at=100.0, by="key_1"),
        scaledown_window=BoundOverride(value=5, at=300.0, by="key_1"),
    )  # fmt: skip


async def test_a_reset_leaves_nothing(registry: MemoryRegistry) -> None:
    await say(registry, min_containers=2)
    await reset_scale(registry, version(registry))
    assert registry.scale_records == {}


async def test_words_that_contradict_each_other_are_refused_as_a_deploy_would(registry: MemoryRegistry) -> None:
    """With the function's name and field."""
    with pytest.raises(BadInput, match=r"greet: min_containers=11 is out of range: expected at most max_containers"):
        await say(registry, min_containers=11)
    await say(registry, max_containers=5)
    with pytest.raises(BadInput, match=r"min_containers=6"):
        await say(registry, min_containers=6)
    assert await say(registry, max_containers=None, min_containers=6) is not None


async def test_a_floor_that_is_lifted_is_held_to_what_all_functions_keep(registry: MemoryRegistry) -> None:
    """Also to what others keep by people's word; one that goes down is not."""
    registry.versions["ver_2"] = version_record(function_spec("bye"), id="ver_2", app="other")
    registry.apps["acme", "other"] = AppRecord(tenant="acme", app="other", revision=1, functions={"bye": "ver_2"})
    registry.scale_records["acme", "other", "bye"] = ScaleRecord(
        tenant="acme", app="other", function="bye", min_containers=BoundOverride(value=4, at=0.0, ends_at=150.0)
    )
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(floor_containers=6))
    with pytest.raises(BadInput, match="would keep 7 containers, 4 of them of other functions"):
        await say(registry, min_containers=3)
    assert await say(registry, at=150.0, min_containers=3) is not None
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(floor_containers=0))
    assert await say(registry, at=150.0, min_containers=2) is not None


async def test_records_may_be_as_many_as_the_tenant_has_room_for(registry: MemoryRegistry) -> None:
    """Another word about the same function needs none."""
    await say(registry, min_containers=2)
    registry.limit_records["acme"] = LimitsRecord(tenant="acme", limits=Limits(record_bytes=1))
    await say(registry, min_containers=3)
    await reset_scale(registry, version(registry))
    with pytest.raises(QuotaExceeded, match="record_bytes"):
        await say(registry, min_containers=3)


async def test_a_window_of_an_unknown_zone_is_shown_as_shut(registry: MemoryRegistry) -> None:
    """It was deployed where another list of zones is known."""
    strange = version_record(function_spec(warm=(Warm("00:00-24:00", 2, "Moon/Tycho"), Warm("00:00-24:00"))))
    shown = autoscaler_info(strange, None, 0.0)
    assert [(window.open, window.changes_at) for window in shown.warm] == [(False, None), (True, None)]
    assert shown.min_containers.value == 1
