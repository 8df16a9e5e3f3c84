"""Pools as operators change them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from pilotlight_core.model.api.pools.pool_terms import (
    DisruptionBudget,
    Ec2Terms,
    KubernetesTerms,
    MachineType,
    PoolProvider,
    PoolTerms,
)
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.pools import MOST_POOLS, PoolState
from pilotlight_gateway.nodes import pool_book
from pilotlight_gateway.nodes.pool_book import check_terms, drain_pool, pool_infos, remove_pool, set_pool, show_pool
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.pools import L4, launch, pool

EC2 = Ec2Terms(image="ami-1", subnets={"a": "subnet-1"}, join_url="https://gw")
AT_EC2: dict[str, Any] = {"provider": PoolProvider.EC2, "zones": ("a",)}
LOCAL = PoolTerms(types=(MachineType(name="local"),))


@pytest.fixture
def registry() -> MemoryRegistry:
    """Without pools."""
    return MemoryRegistry()


async def test_fallbacks_form_no_circle(registry: MemoryRegistry) -> None:
    """Each would be asked only when another one has no capacity: none ever."""
    await set_pool(registry, "a", LOCAL)
    await set_pool(registry, "b", replace(LOCAL, fallback="a"))
    await set_pool(registry, "c", replace(LOCAL, fallback="b"))
    with pytest.raises(BadInput, match="a -> c -> b -> a"):
        await set_pool(registry, "a", replace(LOCAL, fallback="c"))


async def test_a_pool_is_made_shown_drained_and_removed(registry: MemoryRegistry) -> None:
    """Not while it may launch machines, nor while it has any."""
    await set_pool(registry, "here", LOCAL)
    record = registry.pool_records["here"]
    registry.launch_records["here.1"] = launch(1, record, usd_per_hour=2.0)
    shown = await show_pool(registry, "here")
    assert ([machine.node for machine in shown.machines], shown.usd_per_hour) == (["here-n1"], 2.0)
    assert pool_infos(registry) == [shown]

    with pytest.raises(Conflict, match="drain it first"):
        await remove_pool(registry, "here")
    assert (await drain_pool(registry, "here")).state is PoolState.DRAINING
    with pytest.raises(Conflict, match="still has 1 machines"):
        await remove_pool(registry, "here")
    registry.launch_records.clear()
    await remove_pool(registry, "here")
    assert pool_infos(registry) == []
    for nobody in (drain_pool(registry, "here"), show_pool(registry, "here"), remove_pool(registry, "here")):
        with pytest.raises(NotFound):
            await nobody


async def test_a_pool_is_not_removed_by_a_gateway_that_has_not_heard_of_its_drain(registry: MemoryRegistry) -> None:
    """It may not have heard either of what was launched before that."""
    await set_pool(registry, "here", LOCAL)
    behind = list(registry.pools())
    await drain_pool(registry, "here")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(registry, "pools", lambda: iter(behind))
        patched.setattr(pool_book, "LOOKS", 2)
        with pytest.raises(Conflict, match="try again"):
            await remove_pool(registry, "here")
    await remove_pool(registry, "here")
    assert pool_infos(registry) == []


async def test_setting_a_drained_pool_opens_it(registry: MemoryRegistry) -> None:
    """With what is said now."""
    await set_pool(registry, "here", LOCAL)
    await drain_pool(registry, "here")
    made = await set_pool(registry, "here", replace(LOCAL, most_nodes=5))
    assert (made.state, made.terms.most_nodes) == (PoolState.OPEN, 5)


async def test_the_provider_of_a_pool_with_machines_stays(registry: MemoryRegistry) -> None:
    """Nobody would end those of the other."""
    await set_pool(registry, "here", LOCAL)
    registry.launch_records["here.1"] = launch(1, registry.pool_records["here"])
    with pytest.raises(Conflict, match="another provider"):
        await set_pool(registry, "here", PoolTerms(types=(L4,), ec2=EC2, **AT_EC2))


async def test_there_are_no_more_pools_than_there_may_be(registry: MemoryRegistry) -> None:
    """Those that there are may be changed."""
    registry.pool_records |= {f"p{number}": pool(f"p{number}") for number in range(MOST_POOLS)}
    with pytest.raises(Conflict):
        await set_pool(registry, "more", LOCAL)
    await set_pool(registry, "p1", replace(registry.pool_records["p1"].terms, provider=PoolProvider.LOCAL))


@pytest.mark.parametrize(
    ("field", "terms"),
    [
        ("types", {"types": (MachineType(name="x"), MachineType(name="x"))}),
        ("gpus", {"types": (MachineType(name="x", gpus="1xNothing"),)}),
        ("zones", {"zones": ("a", "a")}),
        ("purchase", {"purchase": Purchase.ANY}),
        ("least_nodes", {"least_nodes": 2, "most_nodes": 1}),
        ("fallback", {"fallback": "here"}),
        ("fallback", {"fallback": "nobody"}),
        ("ec2", {"provider": PoolProvider.EC2}),
        ("ec2", {"ec2": EC2}),
        ("kubernetes", {"kubernetes": KubernetesTerms()}),
        ("zones", {**AT_EC2, "ec2": EC2, "zones": ()}),
        ("zones", {**AT_EC2, "ec2": EC2, "zones": ("b",)}),
        ("ec2.join_url", {**AT_EC2, "ec2": replace(EC2, join_url="http://gw")}),
        ("ec2.trusted_pem", {**AT_EC2, "ec2": replace(EC2, trusted_pem="x")}),
        ("budgets", {"budgets": (DisruptionBudget(schedule="0 9 * * *"),)}),
        ("budgets", {"budgets": (DisruptionBudget(schedule="at nine", duration_s=60.0),)}),
    ],
)
async def test_what_cannot_be_is_refused_by_its_field(
    registry: MemoryRegistry, field: str, terms: dict[str, Any]
) -> None:
    """And nothing is written."""
    with pytest.raises(BadInput) as caught:
        await set_pool(registry, "here", replace(LOCAL, **terms))
    assert caught.value.more["field"] == field
    assert not registry.pool_records


async def test_a_pool_on_a_cluster_has_a_name_that_pods_may_have(registry: MemoryRegistry) -> None:
    """No capitals."""
    terms = PoolTerms(provider=PoolProvider.KUBERNETES, types=(L4,), kubernetes=KubernetesTerms())
    await set_pool(registry, "l4-pods", terms)
    with pytest.raises(BadInput, match="small letters"):
        await set_pool(registry, "L4_pods", terms)


def test_the_file_of_the_page_is_one() -> None:
    """`docs/node-pools.md` shows what may be said."""
    page = (Path(__file__).parents[3] / "docs" / "node-pools.md").read_text()
    text = page.split("```toml\n", 1)[1].split("```", 1)[0]
    terms = msgspec.convert(tomllib.loads(text), PoolTerms)
    check_terms("l4-spot", terms)
    assert (terms.provider, terms.most_usd_per_hour, len(terms.budgets)) == (PoolProvider.EC2, 15.0, 2)
