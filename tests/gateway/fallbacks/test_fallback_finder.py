"""Which calls fall back, and where to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pilotlight_core.model.errors import ContainerDied, PilotlightError, TooMuch, Unavailable
from pilotlight_core.model.fallbacks.fallback import Fallback
from pilotlight_core.model.limits import UNLIMITED
from pilotlight_core.model.money.budgets import Budget, BudgetMode
from pilotlight_core.model.pipelines.pipeline import CallHook, HookKind, Pipeline
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.spec import Priority, VersionRecord
from pilotlight_core.model.units import GpuAsk
from pilotlight_gateway.budgets.call_prices import CallPrices
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.fallbacks.fallback_finder import Fallbacks, covered_by
from pilotlight_gateway.limits.call_usage import CallUsage
from pilotlight_gateway.limits.limit_policy import policy_of
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.calls import prepared_call
from tests.builders.specs import function_spec, method
from tests.gateway.world import World

TO_SMALL = Fallback("small")
FULL = TooMuch("no", code="queue_full", retry_after=1.0)
BIG, SMALL = method(attribute="big", output_schema={"type": "string"}), method(output_schema={"type": "string"})


class Shop:
    """An app with a large function and a small one."""

    def __init__(self, world: World, fallback: Fallback = TO_SMALL) -> None:
        self.registry: MemoryRegistry = world.registry
        self.clock = world.clock
        self.fallbacks = Fallbacks(world.registry, world.clock)
        self.big, self.small = world.deploy(function_spec("big", BIG, fallback=fallback), function_spec("small", SMALL))

    def call(self, version: VersionRecord | None = None, **more: Any) -> PreparedCall:
        version = version or self.big
        at = self.clock.at
        times = {"arrived_at": at, "deadline_at": at + 60.0}
        return prepared_call(version=version, method=version.spec.methods[0], **times | more)

    def instead_of(self, error: PilotlightError = FULL, **more: Any) -> PreparedCall | None:
        return self.fallbacks.instead_of(self.call(**more), error)


@pytest.mark.parametrize(("error", "reason"), [(FULL, "queue_full"), (Unavailable("no container"), "no_capacity")])
def test_a_call_without_room_goes_to_the_fallback_as_it_is(world: World, error: PilotlightError, reason: str) -> None:
    """Its id, its input, its payer and its deadline stay; what it costs teaches of the version that ran."""
    shop, usage = Shop(world), CallUsage()
    call = shop.call(client_id="cid_12345678", input=b"x", key="k", usage=usage, priority=Priority.BATCH)
    found = shop.fallbacks.instead_of(call, error)

    assert found is not None
    assert (found.version, found.method, found.function) == (shop.small, SMALL, "acme:shop.small")
    for field in ("call_id", "client_id", "tenant", "input", "key", "priority", "deadline_at", "arrived_at", "usage"):
        assert getattr(found, field) == getattr(call, field)
    assert usage.version == shop.small.id
    assert shop.fallbacks.counts == {reason: 1}


def test_what_failed_in_another_way_does_not(world: World) -> None:
    """Nor what ran before it was refused, what has no time left, or a function without a fallback."""
    shop = Shop(world)
    billed = TooMuch("no", code="queue_full")
    billed.more["usage"] = object()

    assert shop.instead_of(ContainerDied("x")) is None
    assert shop.instead_of(TooMuch("x", code="rate_limited")) is None
    assert shop.instead_of(billed) is None
    assert shop.instead_of(deadline_at=shop.clock.at) is None
    assert shop.instead_of(version=shop.small) is None
    assert not shop.fallbacks.counts


def test_classes_and_tiers_say_whose_calls_it_takes(world: World) -> None:
    """By the class that the call has in the end."""
    shop = Shop(world, Fallback("small", classes=("batch",), tiers=("paid",)))
    assert shop.instead_of(priority=Priority.BATCH) is not None
    assert shop.instead_of(priority=Priority.STANDARD) is None
    record = shop.registry.tenant_records["acme"]
    shop.registry.tenant_records["acme"] = msgspec.structs.replace(record, tier="free")
    assert shop.instead_of(priority=Priority.BATCH) is None


def test_a_fallback_that_is_gone_or_became_another_kind_takes_nothing(world: World) -> None:
    """The call may be of a version of before."""
    shop = Shop(world)
    app = shop.registry.apps["acme", "shop"]
    for changed in (
        msgspec.structs.replace(app, stopped=True),
        msgspec.structs.replace(app, functions={"big": shop.big.id}),
        msgspec.structs.replace(app, functions={"small": "ver_gone"}),
    ):
        shop.registry.apps["acme", "shop"] = changed
        assert shop.instead_of() is None
    shop.registry.apps["acme", "shop"] = app
    for other in (
        msgspec.structs.replace(shop.small, schemas_apart=True),
        msgspec.structs.replace(shop.small, spec=function_spec("small", method(output_schema={"type": "integer"}))),
        msgspec.structs.replace(shop.small, spec=function_spec("small", method("generate"))),
    ):
        shop.registry.versions[shop.small.id] = other
        assert shop.instead_of() is None


def test_a_class_with_hooks_takes_calls_with_the_versions_of_its_hooks(world: World) -> None:
    """Of classes with hooks alone: what waits for another call has no room for the values between stages."""
    of_class = method("", "run", output_schema={"type": "string"})
    small, big = (
        world.deploy(function_spec(f"{name}~pre", method("", "read"), is_class=True, hook=HookKind.PREPROCESS))[0]
        for name in ("small", "big")
    )
    to_small = Fallback("small")
    pipelines = {
        hook.function: Pipeline(preprocess=CallHook(attribute="read", version=hook.id), takes={"": "a"})
        for hook in (small, big)
    }
    asked, found, plain = world.deploy(
        function_spec("big", of_class, is_class=True, pipeline=pipelines["big~pre"], fallback=to_small),
        function_spec("small", of_class, is_class=True, pipeline=pipelines["small~pre"]),
        function_spec("plain", of_class, fallback=to_small),
    )
    fallbacks, at = Fallbacks(world.registry, world.clock), world.clock.at
    hooks = {HookKind.PREPROCESS: big}

    def instead_of(version: VersionRecord, **more: Any) -> PreparedCall | None:
        times = {"arrived_at": at, "deadline_at": at + 60.0}
        call = prepared_call(version=version, method=version.spec.methods[0], **times | more)
        return fallbacks.instead_of(call, FULL)

    call = instead_of(asked, hooks=hooks)
    assert call is not None
    assert (call.version, call.hooks) == (found, {HookKind.PREPROCESS: small})
    assert instead_of(plain) is None
    del world.registry.versions[small.id]
    assert instead_of(asked, hooks=hooks) is None


def test_under_a_hard_budget_a_dearer_function_takes_no_calls(world: World) -> None:
    """What was reserved for the call would not cover it; without such a budget nothing was promised."""
    cheap, dear = world.deploy(
        function_spec("cheap", SMALL, fallback=Fallback("dear")),
        function_spec("dear", SMALL, gpu=(GpuAsk("H100", 8),), fallback=Fallback("cheap")),
    )
    budgets: list[Budget] = []
    is_covered = covered_by(
        lambda _tenant, function: policy_of(UNLIMITED, function, budgets), CallPrices(load_prices())
    )
    fallbacks, at = Fallbacks(world.registry, world.clock, is_covered), world.clock.at

    def goes(version: VersionRecord) -> bool:
        call = prepared_call(version=version, method=SMALL, arrived_at=at, deadline_at=at + 60.0)
        return fallbacks.instead_of(call, FULL) is not None

    assert goes(cheap)
    for mode, expected in ((BudgetMode.SOFT, True), (BudgetMode.HARD, False)):
        budgets[:] = [Budget(id="b", amount=1, mode=mode)]
        assert goes(cheap) is expected
        assert goes(dear)
