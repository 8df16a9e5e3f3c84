"""Erasing a tenant: planned, taken back, done, interrupted and done again."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from pilotlight_core.bus import BusDown
from pilotlight_core.host.blobs import BlobsDown, MemoryBlobKeys, MemoryBlobs, SealedBlobs
from pilotlight_core.model.api.erasure_api import ErasureInfo, ErasureState
from pilotlight_core.model.api.tenancy_api import TenantChange, TenantRequest
from pilotlight_core.model.errors import BadInput, Conflict, NotFound
from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.tenancy import TenantRecord
from pilotlight_gateway.erasure.tenant_eraser import BLOBS, SEALED, TenantEraser
from pilotlight_gateway.erasure.tenant_traces import MemoryTraces
from pilotlight_gateway.fleet.container_stopper import MemoryStopper
from pilotlight_gateway.tenancy.auth import Principal
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_gateway.tenancy.tenants import change_tenant, create_tenant, tenant_info, visible_tenant
from tests.builders.nodes import binding

OPERATOR = Principal(tenant="ops", key_id="k1", scopes=frozenset({"operator"}))
SHA = hashlib.sha256(b"content").hexdigest()
TRACES = Counter({"API keys": 1, "apps": 2, "jobs": 3})


class KeyRing:
    """Data keys of tenants."""

    def __init__(self, *tenants: str) -> None:
        self.tenants = set(tenants)

    async def erase(self, tenant: str) -> bool:
        there = tenant in self.tenants
        self.tenants.discard(tenant)
        return there

    async def is_there(self, tenant: str) -> bool:
        return tenant in self.tenants


@dataclass(kw_only=True)
class Erasing:
    """A platform with the tenants `acme` and `rival`, both of which have something of everything."""

    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    traces: MemoryTraces = field(default_factory=MemoryTraces)
    backend: MemoryBlobs = field(default_factory=MemoryBlobs)
    keys: KeyRing = field(default_factory=lambda: KeyRing("acme", "rival"))
    stopper: MemoryStopper = field(default_factory=MemoryStopper)
    bound: list[Binding] = field(default_factory=list)
    blobs: SealedBlobs = field(init=False)

    def __post_init__(self) -> None:
        self.blobs = SealedBlobs(self.backend, MemoryBlobKeys(), seals=True)
        for tenant in ("acme", "rival"):
            self.registry.tenant_records[tenant] = TenantRecord(name=tenant, created_at=1.0, tier="paid")
            self.traces.kept[tenant] = Counter(TRACES)

    async def fill(self) -> None:
        for tenant in ("acme", "rival"):
            await self.blobs.put(tenant, SHA, b"content")

    def eraser(self, **given: Any) -> TenantEraser:
        """Of a gateway that has just started."""
        return TenantEraser(
            self.registry, self.traces, self.blobs, (self.keys,), self.stopper, lambda: self.bound,
            **{"ended_within_s": 0.3, "settled_s": 0.0, **given},
        )  # fmt: skip

    async def erase(self) -> ErasureInfo:
        """Both steps, of two gateways."""
        planned = await self.eraser().plan(OPERATOR, "acme")
        return await self.eraser().erase(OPERATOR, "acme", planned.confirmation)


@pytest.fixture
async def erasing(anyio_backend: str) -> Erasing:
    made = Erasing()
    await made.fill()
    return made


async def test_a_plan_disables_and_deletes_nothing(erasing: Erasing) -> None:
    """It says what would go; asked again, it says the same with the same word."""
    planned = await erasing.eraser().plan(OPERATOR, "acme")

    assert planned.state is ErasureState.PLANNED
    assert planned.found == {**TRACES, BLOBS: 1, SEALED: 1}
    assert planned.confirmation
    assert erasing.registry.tenant_records["acme"].disabled
    assert await erasing.eraser().plan(OPERATOR, "acme") == planned
    assert erasing.traces.kept["acme"] == TRACES
    assert await erasing.blobs.read("acme", SHA) == b"content"
    assert "acme" in erasing.keys.tenants


async def test_a_plan_is_taken_back_by_enabling(erasing: Erasing) -> None:
    """Its word is worth nothing then."""
    planned = await erasing.eraser().plan(OPERATOR, "acme")
    await change_tenant(erasing.registry, OPERATOR, "acme", TenantChange(disabled=False))

    with pytest.raises(Conflict, match="Nobody has planned"):
        await erasing.eraser().erase(OPERATOR, "acme", planned.confirmation)
    assert not erasing.registry.tenant_records["acme"].disabled
    assert (await erasing.eraser().plan(OPERATOR, "acme")).confirmation != planned.confirmation


async def test_an_erasure_takes_all_of_one_tenant(erasing: Erasing) -> None:
    """And nothing of another's; it says what went, and what stays."""
    done = await erasing.erase()

    assert done.state is ErasureState.ERASED
    assert done.found == {**TRACES, BLOBS: 1, SEALED: 1}
    assert any("ledger" in one for one in done.keeps)
    assert (erasing.traces.kept, erasing.keys.tenants) == ({"rival": TRACES}, {"rival"})
    assert {tenant for tenant, _ in erasing.backend.kept} == {"rival"}
    assert await erasing.blobs.read("rival", SHA) == b"content"


async def test_it_can_be_asked_for_again_and_says_the_same(erasing: Erasing) -> None:
    """Planned as well: nothing is left, and what went is remembered."""
    done = await erasing.erase()
    again = await erasing.erase()

    assert (again.state, again.found) == (done.state, done.found)
    planned = await erasing.eraser().plan(OPERATOR, "acme")
    assert (planned.state, planned.found) == (ErasureState.ERASED, done.found)


async def test_it_is_not_over_while_a_key_lives(erasing: Erasing) -> None:
    """One that was made meanwhile goes at the end; one that is made later is told of."""
    planned = await erasing.eraser().plan(OPERATOR, "acme")
    erase = erasing.traces.erase

    async def erase_and_make(tenant: str) -> Counter[str]:
        erasing.keys.tenants.add(tenant)
        return await erase(tenant)

    erasing.traces.erase = erase_and_make  # type: ignore[method-assign]
    done = await erasing.eraser().erase(OPERATOR, "acme", planned.confirmation)
    assert (done.found[SEALED], erasing.keys.tenants) == (2, {"rival"})
    erasing.keys.tenants.add("acme")
    later = await erasing.eraser().plan(OPERATOR, "acme")
    assert (later.state, later.why) == (ErasureState.ERASING, "still there: data keys")


async def test_without_the_plans_word_nothing_goes(erasing: Erasing) -> None:
    """Nor without a plan, of nobody, or of the asking key's own tenant."""
    await erasing.eraser().plan(OPERATOR, "acme")
    with pytest.raises(BadInput, match="not that of the plan"):
        await erasing.eraser().erase(OPERATOR, "acme", "guessed")
    with pytest.raises(Conflict, match="Nobody has planned"):
        await erasing.eraser().erase(OPERATOR, "rival", "guessed")
    for name in ("nobody", "../acme"):
        with pytest.raises(NotFound):
            await erasing.eraser().plan(OPERATOR, name)
        with pytest.raises(NotFound):
            await erasing.eraser().erase(OPERATOR, name, "guessed")
    own = Principal(tenant="acme", key_id="k1", scopes=frozenset({"operator"}))
    with pytest.raises(Conflict, match="the tenant of the key that asks"):
        await erasing.eraser().plan(own, "acme")
    with pytest.raises(Conflict, match="the tenant of the key that asks"):
        await erasing.eraser().erase(own, "acme", "guessed")
    assert erasing.traces.kept["acme"] == TRACES


@pytest.mark.parametrize("where", ["traces", "blobs"])
async def test_one_that_broke_off_goes_on_where_it_was(erasing: Erasing, where: str) -> None:
    """Its key is destroyed already, and it cannot be taken back; another gateway ends it."""
    planned = await erasing.eraser().plan(OPERATOR, "acme")
    erasing.traces.fails, erasing.backend.down = where == "traces", where == "blobs"
    with pytest.raises((BusDown, BlobsDown)):
        await erasing.eraser().erase(OPERATOR, "acme", planned.confirmation)

    assert "acme" not in erasing.keys.tenants
    with pytest.raises(Conflict, match="was erased"):
        await change_tenant(erasing.registry, OPERATOR, "acme", TenantChange(disabled=False))
    shown = tenant_info(await visible_tenant(erasing.registry, OPERATOR, "acme"))
    assert (shown.erased_at > 0, shown.erasure_open) == (True, True)
    erasing.traces.fails = erasing.backend.down = False
    assert (await erasing.eraser().plan(OPERATOR, "acme")).state is ErasureState.ERASING
    done = await erasing.eraser().erase(OPERATOR, "acme", planned.confirmation)
    assert (done.state, set(erasing.traces.kept), set(erasing.keys.tenants)) == (
        ErasureState.ERASED, {"rival"}, {"rival"},
    )  # fmt: skip
    assert not tenant_info(await visible_tenant(erasing.registry, OPERATOR, "acme")).erasure_open


async def test_containers_are_ended_first_and_one_that_stays_is_told_of(erasing: Erasing) -> None:
    """Of a node that does not answer: all else goes, and the same asked later is whole."""
    erasing.bound = [binding("c1", "ver_1", tenant="acme"), binding("c2", "ver_2", tenant="rival")]
    erasing.stopper.leads = False
    done = await erasing.erase()

    assert (done.state, done.containers) == (ErasureState.ERASING, 1)
    assert "1 of its containers" in done.why
    assert [(asked.container, asked.tenant) for asked in erasing.stopper.asked] == [("c1", "acme")]
    assert set(erasing.traces.kept) == {"rival"}
    assert tenant_info(await visible_tenant(erasing.registry, OPERATOR, "acme")).erasure_open
    erasing.bound = erasing.bound[1:]
    assert (await erasing.erase()).state is ErasureState.ERASED


async def test_the_name_is_nobodys_again(erasing: Erasing) -> None:
    """Nor can anything be set or made for it, while its lines are there to be read."""
    await erasing.erase()

    with pytest.raises(Conflict, match="was erased: the ledger has its lines"):
        await create_tenant(erasing.registry, TenantRequest(name="acme"), 2.0, 0)
    with pytest.raises(Conflict, match="was erased"):
        await change_tenant(erasing.registry, OPERATOR, "acme", TenantChange(tier="free"))
    with pytest.raises(Conflict, match="was erased"):
        await visible_tenant(erasing.registry, OPERATOR, "acme", to_change=True)
    assert (await visible_tenant(erasing.registry, OPERATOR, "acme")).erased_at > 0
    assert erasing.registry.is_erased("acme")
    assert not erasing.registry.is_erased("rival")
    assert not erasing.registry.is_erased("nobody")
