"""Builders of the controller's tests: versions of `greet`, a node of CPU slots, demand, and a pass over them."""

from __future__ import annotations

from itertools import count
from typing import Any

from pilotlight_autoscaler.observations.world import World
from pilotlight_autoscaler.passes.decide import Pass
from pilotlight_autoscaler.passes.decision import Decision
from pilotlight_autoscaler.passes.pass_input import PassInput
from pilotlight_autoscaler.policy.desired import desired
from pilotlight_autoscaler.policy.function_view import FunctionView
from pilotlight_autoscaler.policy.prediction.function_memory import FunctionMemory
from pilotlight_autoscaler.policy.scaling_policy import VersionView
from pilotlight_autoscaler.policy.wish import Wish
from pilotlight_core.model.limits import NO_LIMITS, Limits
from pilotlight_core.model.messages.demand import Demand
from pilotlight_core.model.messages.node_messages import ContainerReport, NodeReport
from pilotlight_core.model.spec import VersionRecord
from tests.builders.nodes import cpu_slot, node_report
from tests.builders.specs import function_spec, version_record


def record(version: str = "ver_1", **options: Any) -> VersionRecord:
    """A version of the function `greet`."""
    return version_record(function_spec(**options), id=version)


def report(*containers: ContainerReport, seq: int = 1, slots: int = 4, instance: str = "i1", **more: Any) -> NodeReport:
    """A node with `slots` CPU slots, and `containers` on some of them."""
    used = {item.slice: item.id for item in containers}
    slices = tuple(cpu_slot(n, container=used.get(f"cpu-{n}", "")) for n in range(slots))
    return node_report(seq=seq, instance=instance, slices=slices, containers=containers, **more)


def demand(version: str = "ver_1", **more: Any) -> Demand:
    """A version's demand, without queued or running calls unless `more` has them."""
    fields: dict[str, Any] = {
        "tenant": "acme", "gateway": "g", "epoch": 1, "queued": 0, "oldest_ms": 10.0, "running": 0,
        "arrivals": more.get("queued", 0),
    }  # fmt: skip
    return Demand(version=version, **fields | more)


def decide(world: World, *versions: VersionRecord, at: float = 1.0, only: str | None = None, **more: Any) -> Decision:
    """What one pass decides on these versions."""
    ids = count(1)
    known = {version.id: version for version in versions}
    more = {"deployed": known} | more
    given = PassInput(versions=known, epoch=7, new_id=lambda _: f"new{next(ids)}", at=at, **more)
    return Pass(world, given).run(None if only is None else {only})


def wish_of(view: VersionView, memory: FunctionMemory | None = None, at: float = 0.0) -> Wish:
    """What the function of this one version should have; without `memory` nothing is known of its past."""
    seen = FunctionView(name="acme:shop.greet", versions={"ver_1": view})
    return desired(seen, memory or FunctionMemory(60.0, at), at)


def wanted(view: VersionView) -> int:
    """How many containers of this version there should be."""
    return wish_of(view).by_version["ver_1"]


def limits(**of: int) -> dict[str, Any]:
    """The input of a pass in which `acme` has these limits, and others have none."""
    return {"limits_of": lambda tenant: Limits(**of) if tenant == "acme" else NO_LIMITS}
