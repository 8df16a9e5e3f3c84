"""What deployed functions need of blanks, on a real bus."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_autoscaler.deployed_needs import DeployedNeeds
from pilotlight_autoscaler.policy.nodes.blank_sizes import CALLED, DEPLOYED, FORETOLD, BlankNeed, StartableFunctions
from pilotlight_core.bus import Bus, BusDown
from pilotlight_core.host.registry import Registry
from pilotlight_core.model.ids import token
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.tenancy import TenantRecord
from tests.builders.specs import function_spec, version_record
from tests.waiting import until


async def deploy(registry: Registry, tenant: str, base: str, *functions: str) -> AppRecord:
    """An app with functions of one base environment."""
    versions = {
        name: version_record(
            function_spec(name, max_containers=2),
            id=f"ver_{token()}",
            tenant=tenant,
            app="zoo",
            function=name,
            base=base,
        )
        for name in functions
    }
    for version in versions.values():
        await registry.put_version(version)
    app = AppRecord(
        tenant=tenant, app="zoo", revision=1, functions={name: version.id for name, version in versions.items()}
    )
    await registry.deploy(app, 0)
    return app


async def counted(
    needs: DeployedNeeds, base: str, ahead: dict[str, int] | None = None, called: tuple[str, ...] = ()
) -> StartableFunctions | None:
    """The functions of a base environment, once all is read."""
    while await needs.read_some():
        pass
    found = needs.counted(ahead or {}, called)
    return found.get(BlankNeed(base=base, types=("CPU",), mib=0))


async def test_functions_count_as_long_as_they_are_deployed(bus: Bus) -> None:
    """What is called weighs more, and what is expected soon most; those of before are found too."""
    tenant, base = f"t{token(6)}", f"base-{token(6)}"
    async with Registry(bus) as registry:
        app = await deploy(registry, tenant, base, "plain", "called")
        needs = DeployedNeeds(registry)
        called = (f"{tenant}:zoo.called", "nobody:knows.it")
        assert await counted(needs, base) == StartableFunctions(2, 2 * DEPLOYED)
        assert await counted(needs, base, called=called) == StartableFunctions(1 + 2, DEPLOYED + CALLED)
        assert not needs.stirred.is_set()

        soon = {f"{tenant}:zoo.plain": 3}
        both = StartableFunctions(3 + 2, 3 * FORETOLD + CALLED)
        assert await counted(needs, base, soon, called) == both
        assert await counted(needs, base, soon, (*called, *soon)) == both

        await registry.deploy(msgspec.structs.replace(app, revision=2, stopped=True), 1)
        await until(needs.stirred.is_set)
        assert await counted(needs, base) is None
        needs.close()


async def test_a_disabled_tenants_functions_do_not_count(bus: Bus) -> None:
    """Nobody can call them."""
    tenant, base = f"t{token(6)}", f"base-{token(6)}"
    async with Registry(bus) as registry:
        await deploy(registry, tenant, base, "plain")
        needs = DeployedNeeds(registry)
        assert await counted(needs, base) == StartableFunctions(1, DEPLOYED)

        await registry.put_tenant(TenantRecord(name=tenant, created_at=0.0, disabled=True))
        await until(needs.stirred.is_set)

        assert await counted(needs, base) is None
        needs.close()


async def test_what_could_not_be_read_is_read_later(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bus is away for a moment: the app counts when it is back, though nothing else is deployed."""
    tenant, base = f"t{token(6)}", f"base-{token(6)}"
    async with Registry(bus) as registry:
        needs = DeployedNeeds(registry)
        assert await counted(needs, base) is None
        await deploy(registry, tenant, base, "plain")
        await until(needs.stirred.is_set)
        with monkeypatch.context() as patched:
            patched.setattr(registry, "version", lambda _: None)
            patched.setattr(registry, "fetch_version", _no_bus)
            with pytest.raises(BusDown):
                await needs.read_some()
        assert await counted(needs, base) == StartableFunctions(1, DEPLOYED)
        needs.close()


async def _no_bus(_: str) -> None:
    raise BusDown("away")
