"""A misspelt name is answered with the one that was meant, if its caller may see that one."""

from __future__ import annotations

import pytest

from pilotlight_core.model.errors import NotFound, UnknownFunction
from pilotlight_core.model.ids import parse_ref
from pilotlight_core.model.spec import AppRecord
from pilotlight_core.model.tenancy import FunctionShareRecord
from pilotlight_gateway.tenancy.function_shares import shared_with
from pilotlight_gateway.tenancy.name_hints import check_function, known_app, no_function
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry


def app_of(tenant: str, app: str, *functions: str, stopped: bool = False) -> AppRecord:
    """An app with functions that have one version each."""
    versions: dict[str, tuple[str, ...]] = {name: (f"{tenant}-{app}-{name}",) for name in functions}
    deployed = {name: ids[0] for name, ids in versions.items()}
    return AppRecord(tenant=tenant, app=app, revision=1, functions=deployed, versions=versions, stopped=stopped)


def registry_of(*apps: AppRecord) -> MemoryRegistry:
    """A registry with these apps; zoo's llm.chat is shared with acme."""
    registry = MemoryRegistry(apps={(app.tenant, app.app): app for app in apps})
    registry.share_records["zoo", "llm"] = FunctionShareRecord(tenant="zoo", app="llm", grants={"acme": ("chat",)})
    return registry


def unknown(registry: MemoryRegistry, tenant: str, text: str) -> UnknownFunction:
    """What a tenant hears that asked for it."""
    return no_function(registry, tenant, parse_ref(text), (one.ref for one in shared_with(registry, tenant)))


APPS = (
    app_of("acme", "calls", "echo", "naps"),
    app_of("acme", "retired", "echoes", stopped=True),
    app_of("zoo", "llm", "chat", "secrets"),
)


def test_ones_own_function_is_suggested() -> None:
    """In the detail for people, as a member for programs; what is stopped is nobody's answer."""
    error = unknown(registry_of(*APPS), "acme", "calls.ecko@v3")

    assert error.detail == "There is no function calls.ecko@v3. Did you mean calls.echo?"
    assert error.more == {"suggestion": "calls.echo"}
    assert unknown(registry_of(*APPS), "acme", "x.y").detail == "There is no function x.y."
    assert "suggestion" not in unknown(registry_of(*APPS), "acme", "retired.echoes").more


def test_of_another_tenant_only_what_it_shares_is_suggested() -> None:
    """Whoever guesses hears of nothing that it could not list."""
    registry = registry_of(*APPS)

    assert unknown(registry, "acme", "zoo:llm.chats").more == {"suggestion": "zoo:llm.chat"}
    assert unknown(registry, "acme", "zoo:llm.secret").more == {}
    assert unknown(registry, "bob", "zoo:llm.chats").more == {}
    assert unknown(registry, "bob", "calls.ecko").more == {}


def test_the_app_that_was_named_is_looked_at_first() -> None:
    """However many others there are."""
    crowd = [app_of("acme", f"a{number}", "f") for number in range(500)]

    error = unknown(registry_of(*crowd, app_of("acme", "shop", "charge")), "acme", "shop.chrage")

    assert error.more == {"suggestion": "shop.charge"}


async def test_an_app_is_suggested_too() -> None:
    """Of one's own."""
    with pytest.raises(NotFound, match=r"There is no app cals\. Did you mean calls\?"):
        await known_app(registry_of(*APPS), "acme", "cals")
    with pytest.raises(NotFound, match=r"There is no app cals\. [^D]"):
        await known_app(registry_of(*APPS), "bob", "cals")


def test_an_app_that_is_known_suggests_its_functions() -> None:
    """Under their full names."""
    with pytest.raises(UnknownFunction, match=r"There is no function calls\.nap\. Did you mean calls\.naps\?"):
        check_function(APPS[0], "nap", "function")
    with pytest.raises(UnknownFunction) as refused:
        check_function(APPS[0], "banana", "function")
    assert refused.value.more == {"field": "function"}
