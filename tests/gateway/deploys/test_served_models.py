"""Who has which name, and what a name stands for."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.engines.engine_spec import EngineKind, EngineSpec
from pilotlight_core.model.errors import BadInput, QuotaExceeded, UnknownFunction
from pilotlight_core.model.spec import AppRecord, FunctionSpec
from pilotlight_gateway.deploys import served_models
from pilotlight_gateway.deploys.served_models import CLAIM_S, ServedModels
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.specs import id_of, manifest, version_record
from tests.gateway.world import entry, function

AT = 1_000.0


class Shop:
    """Apps of a tenant, deployed as a gateway does it."""

    def __init__(self) -> None:
        self.registry = MemoryRegistry()
        self.models = ServedModels(self.registry)

    def put(self, app: str, *specs: FunctionSpec, **more: Any) -> AppRecord:
        """What is deployed of an app, without its names."""
        ids = {}
        for spec in specs:
            version = id_of(manifest(spec, entry(b"x"), tenant="acme", app=app))
            self.registry.versions[version] = version_record(spec, id=version, tenant="acme", app=app)
            ids[spec.name] = version
        record = AppRecord(tenant="acme", app=app, revision=1, functions=ids, **more)
        self.registry.apps["acme", app] = record
        return record

    async def deploy(self, app: str, *specs: FunctionSpec, at: float = AT, **more: Any) -> None:
        """All of it."""
        named = {spec.name: spec for spec in specs}
        await self.models.claim("acme", app, named, at)
        await self.models.release(self.put(app, *specs, **more), named, at)

    def names(self) -> list[str]:
        return [model.name for model in self.models.listed("acme")]


def serving(*names: str, name: str = "tells") -> FunctionSpec:
    """A function that is served."""
    return function(name, serves=names)


async def test_a_name_leads_to_its_function() -> None:
    """Whatever version of it is deployed, and to nobody else."""
    shop = Shop()
    await shop.deploy("chat", serving("acme/tiny", "acme/tiny:8b"))
    found = await shop.models.find("acme", "acme/tiny:8b")

    assert (found.ref, found.created_at) == ("chat.tells", AT)
    assert shop.names() == ["acme/tiny", "acme/tiny:8b"]
    assert shop.models.listed("rival") == []
    for tenant, name in (("rival", "acme/tiny"), ("acme", "acme/tiny:none"), ("acme", "acme/tin"), ("acme", "")):
        with pytest.raises(UnknownFunction) as unknown:
            await shop.models.find(tenant, name)
        assert unknown.value.wire_code == "model_not_found"


async def test_a_ref_is_a_model_too() -> None:
    """It need not be one that there is: who resolves it says so."""
    models = ServedModels(MemoryRegistry())
    for ref in ("chat.tells", "zoo:chat.tells", "chat.tells@v7"):
        assert (await models.find("acme", ref)).ref == ref


async def test_a_misspelt_name_is_told_the_nearest() -> None:
    """Of its own tenant's."""
    shop = Shop()
    await shop.deploy("chat", serving("acme/tiny"))
    with pytest.raises(UnknownFunction, match="Did you mean acme/tiny"):
        await shop.models.find("acme", "acme/tyni")
    with pytest.raises(UnknownFunction) as unknown:
        await shop.models.find("rival", "acme/tyni")
    assert "mean" not in unknown.value.detail


async def test_a_name_is_one_functions() -> None:
    """Another app does not get it while it is served."""
    shop = Shop()
    await shop.deploy("chat", serving("acme/tiny"))
    with pytest.raises(BadInput, match=r"is the name of chat\.tells") as refused:
        await shop.deploy("other", serving("acme/tiny"), at=AT + 10 * CLAIM_S)
    assert refused.value.more["field"] == "serves"
    with pytest.raises(BadInput, match="is the name of tells too"):
        await shop.deploy("both", serving("acme/x"), serving("acme/x", name="sings"))


async def test_a_name_goes_with_the_deploy_that_does_not_serve_it() -> None:
    """And is free at once."""
    shop = Shop()
    await shop.deploy("chat", serving("acme/tiny", "acme/old"))
    await shop.deploy("chat", serving("acme/tiny", name="sings"), at=AT + 1)
    assert (await shop.models.find("acme", "acme/tiny")).ref == "chat.sings"
    assert shop.names() == ["acme/tiny"]
    await shop.deploy("other", serving("acme/old"), at=AT + 2)
    assert (await shop.models.find("acme", "acme/old")).ref == "other.tells"


async def test_what_a_crash_left_is_in_nobodys_way_for_long() -> None:
    """A name that was claimed by a deploy that was never written; until then that deploy may be under way."""
    shop = Shop()
    await shop.models.claim("acme", "chat", {"tells": serving("acme/tiny")}, AT)
    assert shop.names() == []
    with pytest.raises(BadInput):
        await shop.deploy("other", serving("acme/tiny"), at=AT + CLAIM_S - 1)
    await shop.deploy("other", serving("acme/tiny"), at=AT + CLAIM_S)
    assert (await shop.models.find("acme", "acme/tiny")).ref == "other.tells"


async def test_a_later_claim_outlives_an_earlier_deploys_release() -> None:
    """Two deploys of one app at the same time: the second may be written last."""
    shop = Shop()
    await shop.models.claim("acme", "chat", {"tells": serving("acme/tiny")}, AT + 5)
    await shop.models.release(shop.put("chat", function("tells")), {"tells": function("tells")}, AT)
    shop.put("chat", serving("acme/tiny"))
    assert shop.names() == ["acme/tiny"]


@pytest.mark.parametrize("more", [{"stopped": True}, {"ends_at": AT * 2}])
async def test_what_is_stopped_or_a_run_serves_nothing(more: dict[str, Any]) -> None:
    """Until it is deployed again."""
    shop = Shop()
    await shop.deploy("chat", serving("acme/tiny"), **more)
    assert shop.names() == []
    with pytest.raises(UnknownFunction):
        await shop.models.find("acme", "acme/tiny")


async def test_a_deleted_app_takes_its_names_along() -> None:
    """With its records."""
    shop = Shop()
    await shop.deploy("chat", serving("acme/tiny"))
    await shop.registry.delete_app(shop.registry.apps["acme", "chat"])
    assert not shop.registry.model_records


async def test_adapters_are_models_behind_their_model() -> None:
    """Of an engine that has them."""
    shop = Shop()
    engine = EngineSpec(kind=EngineKind.TORCH, weights="tiny", adapters=("french",))
    await shop.deploy("chat", function("tells", serves=("acme/tiny:8b",), engine=engine))
    found = await shop.models.find("acme", "acme/tiny:8b:french")
    assert (found.ref, found.adapter, found.parent) == ("chat.tells", "french", "acme/tiny:8b")
    assert (await shop.models.find("acme", "acme/tiny:8b")).adapter == ""
    assert shop.names() == ["acme/tiny:8b", "acme/tiny:8b:french"]
    with pytest.raises(UnknownFunction):
        await shop.models.find("acme", "acme/tiny:8b:german")


async def test_an_adapter_that_memory_has_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else its calls would wait behind names that others guess."""
    shop = Shop()
    engine = EngineSpec(kind=EngineKind.TORCH, weights="tiny", adapters=("french",))
    await shop.deploy("chat", function("tells", serves=("tiny",), engine=engine))
    monkeypatch.setattr(shop.registry, "model", None)
    assert (await shop.models.find("acme", "tiny:french")).adapter == "french"


async def test_names_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are there already count once."""
    monkeypatch.setattr(served_models, "MOST_MODELS", 2)
    shop = Shop()
    for _ in range(2):
        await shop.deploy("chat", serving("a", "b"))
    with pytest.raises(QuotaExceeded):
        await shop.deploy("other", serving("c"))
