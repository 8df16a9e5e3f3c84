"""Containers with former values are replaced, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from pilotlight_core.bus import BusTimeout
from pilotlight_core.host.binding_book import MemoryBindings
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState
from pilotlight_gateway.fleet.container_stopper import MemoryStopper
from pilotlight_gateway.fleet.fleet_view import FleetView
from pilotlight_gateway.secrets.secret_records import SecretRecord, revision_of
from pilotlight_gateway.secrets.secret_rotation import (
    BEGUN_S,
    BELIEVED_S,
    END_MARGIN_S,
    IDLE_S,
    REASON,
    REPLACED_S,
    SEEN_S,
    LastReplacement,
    SecretRotation,
    container_to_replace,
    keeps_serving,
)
from pilotlight_gateway.secrets.secret_store import MemorySecrets
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from tests.builders.nodes import binding, container, node_report
from tests.builders.specs import function_spec, version_record
from tests.gateway.secrets.makers import secret


def ready(name: str, secrets: str = "old", **more: Any) -> ContainerReport:
    return container(name, secrets=secrets, **more)


def test_the_oldest_goes_first() -> None:
    """Of those with other values than are stored."""
    present = [ready("a", age_s=1.0), ready("b", age_s=9.0), ready("c", "new", age_s=99.0)]
    assert container_to_replace(present, "new", None, 0.0) == "b"
    assert container_to_replace(present[2:], "new", None, 0.0) == ""
    assert container_to_replace([], "new", None, 0.0) == ""


@pytest.mark.parametrize(
    "state", [ContainerState.BINDING, ContainerState.LOADING, ContainerState.WARMING, ContainerState.DRAINING]
)
def test_while_another_starts_or_ends_none_goes(state: ContainerState) -> None:
    """One that is gone does not count."""
    assert container_to_replace([ready("a"), ready("b", "", state=state)], "new", None, 0.0) == ""
    assert container_to_replace([ready("a"), ready("b", state=ContainerState.GONE)], "new", None, 0.0) == "a"


def test_what_is_parked_with_a_former_value_goes_at_once() -> None:
    """Nobody misses it, and it would serve with what it has; whether others start or end is no matter."""
    parked = ready("p", state=ContainerState.PARKED, slice="")
    assert container_to_replace([ready("a", state=ContainerState.LOADING), parked], "new", None, 0.0) == "p"
    assert container_to_replace([ready("a"), parked], "new", LastReplacement(0.0, 2), 0.0) == "p"
    assert not keeps_serving(function_spec(min_containers=1), [parked], "p")
    fresh = ready("f", "new", state=ContainerState.PARKED, slice="")
    assert container_to_replace([ready("a"), fresh], "new", None, 0.0) == "a"
    assert container_to_replace([fresh], "new", None, 0.0) == ""


def test_the_next_goes_once_the_last_is_replaced() -> None:
    """Or will not be, after a while."""
    present = [ready("a"), ready("b")]
    assert container_to_replace(present, "new", LastReplacement(0.0, 2), SEEN_S - 0.1) == ""
    assert container_to_replace(present, "new", LastReplacement(0.0, 2), SEEN_S) == "a" or "b"
    assert container_to_replace(present[:1], "new", LastReplacement(0.0, 2), REPLACED_S - 0.1) == ""
    assert container_to_replace(present[:1], "new", LastReplacement(0.0, 2), REPLACED_S) == "a"


def test_one_that_has_told_nothing_stays() -> None:
    """Its agent is of a release that knows no secrets, and it has none."""
    assert container_to_replace([ready("a", "")], "new", None, 0.0) == ""


@dataclass(kw_only=True)
class Rotating:
    """`acme:hello.greet` names `token`, and has the containers that a test reports of the node `n1`."""

    store: MemorySecrets = field(default_factory=MemorySecrets)
    registry: MemoryRegistry = field(default_factory=MemoryRegistry)
    fleet: FleetView = field(default_factory=FleetView)
    stopper: MemoryStopper = field(default_factory=MemoryStopper)
    bindings: MemoryBindings = field(default_factory=MemoryBindings)
    home: bool = True
    seq: int = 0

    def __post_init__(self) -> None:
        spec = function_spec("greet", secrets={"TOKEN": "token"}, timeout=20.0)
        self.registry.versions["ver_1"] = version_record(spec, id="ver_1", tenant="acme", app="hello")
        self.store.records["acme", "token"] = secret(sealed=b"new")
        self.new = revision_of({"token": self.store.records["acme", "token"]})
        self.asked_of: list[str] = []
        self.rotation = SecretRotation(
            self.store, self.registry, self.fleet, self.stopper, self.bindings, self._is_home
        )

    def _is_home(self, function: str) -> bool:
        self.asked_of.append(function)
        return self.home

    def report(self, at: float, *containers: ContainerReport, node: str = "n1") -> None:
        self.seq += 1
        self.fleet.on_report(node_report(node, self.seq, containers=containers), at)
        for one in containers:
            self.stopper.tenants[one.id] = "acme"
            if self.bindings.live(one.id) is None:
                self.bindings.bind(binding(one.id, "ver_1", node=node, tenant="acme"))

    async def replaced(self, at: float) -> list[str]:
        before = len(self.stopper.asked)
        await self.rotation.replace_stale(at)
        return [asked.container for asked in self.stopper.asked[before:]]


async def test_a_container_with_a_former_value_is_asked_to_end() -> None:
    """Its calls have the time that they may take."""
    rotating = Rotating()
    rotating.report(1.0, ready("a"))

    assert await rotating.replaced(1.0) == ["a"]
    (asked,) = rotating.stopper.asked
    assert (asked.tenant, asked.reason, asked.within_ms) == ("acme", REASON, (20.0 + END_MARGIN_S) * 1000)
    assert rotating.asked_of == ["acme:hello.greet"]


async def test_all_are_replaced_in_turn() -> None:
    """However many there are: the next as soon as as many are ready as before."""
    rotating = Rotating()
    rotating.report(1.0, ready("a"), ready("b"))
    assert await rotating.replaced(1.0) == ["b"]
    rotating.report(5.0, ready("a"), ready("b", state=ContainerState.DRAINING))
    assert await rotating.replaced(5.0) == []
    rotating.report(6.0, ready("a"))
    assert await rotating.replaced(6.0) == []
    rotating.report(7.0, ready("a"), ready("c", "", state=ContainerState.LOADING))
    assert await rotating.replaced(7.0) == []
    rotating.report(8.0, ready("a"), ready("c", rotating.new))
    assert await rotating.replaced(8.0) == ["a"]
    rotating.report(20.0, ready("c", rotating.new), ready("d", rotating.new))
    assert await rotating.replaced(20.0) == []


async def test_the_only_one_serves_until_another_is_ready() -> None:
    """It is asked for again and again, so that it counts as leaving; then it ends, and nothing is left of that."""
    rotating = Rotating()
    rotating.stopper.replacing = True
    for at, *others in (
        (1.0,),
        (2.0,),
        (3.0, ready("b", "", state=ContainerState.LOADING)),
        (200.0, ready("b", "", state=ContainerState.WARMING)),
    ):
        rotating.report(at, ready("a"), *others)
        assert await rotating.replaced(at) == ["a"]
    assert all(asked.replace_first for asked in rotating.stopper.asked)

    rotating.stopper.replacing = False
    rotating.report(201.0, ready("a"), ready("b", rotating.new))
    assert await rotating.replaced(201.0) == ["a"]
    rotating.report(202.0, ready("a", state=ContainerState.DRAINING), ready("b", rotating.new))
    assert await rotating.replaced(202.0) == []
    assert rotating.rotation._first == {}


async def test_where_no_other_starts_it_ends_all_the_same() -> None:
    """After a while: there may be no room for two."""
    rotating = Rotating()
    rotating.stopper.replacing = True
    for at in (1.0, BEGUN_S, 1.0 + BEGUN_S):
        rotating.report(at, ready("a"))
        assert await rotating.replaced(at) == ["a"]

    assert [asked.replace_first for asked in rotating.stopper.asked] == [True, True, False]
    rotating.report(2.0 + BEGUN_S, ready("a"))
    assert await rotating.replaced(2.0 + BEGUN_S) == []


async def test_with_values_that_let_no_other_start_it_goes_on() -> None:
    """However long its starts fail, and also between them, when none is under way."""
    rotating = Rotating()
    rotating.stopper.replacing = rotating.stopper.failing = True
    for at in (1.0, 1.0 + BEGUN_S - 1.0, 2 * BEGUN_S - 1.0, 3 * BEGUN_S - 2.0):
        rotating.report(at, ready("a"))
        assert await rotating.replaced(at) == ["a"]

    assert {asked.replace_first for asked in rotating.stopper.asked} == {True}


@pytest.mark.parametrize("state", [ContainerState.LOADING, ContainerState.DRAINING])
async def test_a_node_that_says_for_ever_that_one_starts_or_ends_holds_up_nothing(state: ContainerState) -> None:
    """Once it takes longer than the function may, by the gateway's clock and not by the age that the node tells."""
    rotating = Rotating()
    spec = rotating.registry.versions["ver_1"].spec
    longest_s = max(spec.startup_timeout, spec.timeout) + BELIEVED_S
    for at in (1.0, longest_s / 2, longest_s):
        rotating.report(at, ready("a"), ready("b", "", state=state, age_s=0.0))
        assert await rotating.replaced(at) == []
    rotating.report(1.0 + longest_s, ready("a"), ready("b", "", state=state, age_s=0.0))
    assert await rotating.replaced(1.0 + longest_s) == ["a"]


async def test_one_with_nothing_to_do_is_replaced_only_where_one_is_kept() -> None:
    """Else nobody would start another in its place."""
    for min_containers, idle_s, first in ((0, IDLE_S, False), (0, IDLE_S - 1.0, True), (1, IDLE_S, True)):
        rotating = Rotating()
        version = rotating.registry.versions["ver_1"]
        spec = msgspec.structs.replace(version.spec, min_containers=min_containers)
        rotating.registry.versions["ver_1"] = msgspec.structs.replace(version, spec=spec)
        rotating.report(1.0, ready("a", idle_s=idle_s))
        assert await rotating.replaced(1.0) == ["a"]
        assert rotating.stopper.asked[0].replace_first is first


async def test_the_home_alone_replaces() -> None:
    """Each function has one."""
    rotating = Rotating(home=False)
    rotating.report(1.0, ready("a"))
    assert await rotating.replaced(1.0) == []


async def test_what_is_not_known_for_sure_replaces_nothing() -> None:
    """Secrets as they were a while ago, one that was removed, and a version that is deleted."""
    rotating = Rotating()
    rotating.report(1.0, ready("a"))
    rotating.store.fresh = False
    assert await rotating.replaced(1.0) == []
    rotating.store.fresh = True
    kept = rotating.store.records.pop(("acme", "token"))
    assert await rotating.replaced(1.0) == []
    rotating.store.records["acme", "token"] = kept
    rotating.registry.versions.clear()
    assert await rotating.replaced(1.0) == []


async def test_a_container_that_is_newer_than_what_is_known_here_stays() -> None:
    """A gateway may hear late of a change that a container has; and if it cannot ask, it waits."""

    class Late(MemorySecrets):
        def secret_nowait(self, tenant: str, name: str) -> SecretRecord | None:
            return secret(sealed=b"known late")

    class Away(Late):
        async def secret(self, tenant: str, name: str) -> SecretRecord | None:
            raise BusTimeout("no answer")

    for store in (Late(), Away()):
        rotating = Rotating(store=store)
        rotating.report(1.0, ready("a", rotating.new))
        assert await rotating.replaced(1.0) == []


async def test_a_node_has_only_its_own_containers_replaced() -> None:
    """What it says of others is not believed."""
    rotating = Rotating()
    rotating.report(1.0, ready("a", rotating.new))
    rotating.report(1.0, ready("a"), node="n2")
    assert await rotating.replaced(1.0) == []


async def test_while_no_controller_leads_it_is_tried_again() -> None:
    """Nothing is given up."""
    rotating = Rotating()
    rotating.stopper.leads = False
    rotating.report(1.0, ready("a"))
    assert await rotating.replaced(1.0) == ["a"]
    rotating.report(9.0, ready("a"))
    assert await rotating.replaced(9.0) == ["a"]
