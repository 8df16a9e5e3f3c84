"""A rollout of one function, and everything that its keeper needs, in memory."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from pilotlight_core.host.events.event_log import MemoryEventLog
from pilotlight_core.model.messages.logs import ComparedCalls
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_moves import started
from pilotlight_core.model.rollouts.rollout_record import (
    Arm,
    Rollout,
    RolloutRecord,
    RolloutState,
    RolloutTerms,
)
from pilotlight_core.model.spec import AppRecord, VersionRecord
from pilotlight_gateway.deploys.moves.app_moves import AppMoves
from pilotlight_gateway.rollouts.evidence_store_fake import MemoryEvidence
from pilotlight_gateway.rollouts.rollout_facts import FactSources, counted
from pilotlight_gateway.rollouts.rollout_gates import RolloutGates
from pilotlight_gateway.rollouts.rollout_keeper import RolloutKeeper
from pilotlight_gateway.rollouts.rollout_news import RolloutTeller
from pilotlight_gateway.tenancy.registry_port import MemoryRegistry
from pilotlight_gateway.webhooks.http_sender import HttpSender
from pilotlight_gateway.webhooks.http_sender_fake import FakeHttpSender
from pilotlight_gateway.webhooks.webhook_port import MemoryWebhooks
from tests.builders.nodes import container, node_report
from tests.builders.specs import function_spec, version_record

OLD, NEW, TWIN = "ver_old", "ver_new", "ver_twin"
QUICK = RolloutTerms(steps=(5_000, 10_000), every_s=1.0, calls=1, bake_s=1.0, pairs=0)


def rollout(**more: Any) -> Rollout:
    fields: dict[str, Any] = {
        "id": "rol_1", "number": 1, "control": {"price": OLD}, "canary": {"price": NEW}, "terms": QUICK,
        "salt": bytes(32), "since": 0.0, "started_at": 0.0, "by": "key1",
    }  # fmt: skip
    return Rollout(**fields | more)


def record_of(one: Rollout, **more: Any) -> RolloutRecord:
    return replace(RolloutRecord(tenant="acme", app="shop", revision=1, rollout=one), **more)


def compared(number: int, arm: Arm, *, failed: bool = False, **more: Any) -> ComparedCall:
    """A call of a warm container that came to one of both sides by even chance."""
    fields: dict[str, Any] = {
        "rollout": "rol_1", "revision": 1, "function": "price", "method": "", "arm": arm, "rho": 0.5,
        "call_id": f"call_{number}", "tenant": "acme", "unit": "", "at": 100.0 + number,
        "code": "function_raised" if failed else "", "execute_ms": 10.0, "gpu_ns": 10_000_000, "nth_call": 100,
    }  # fmt: skip
    return ComparedCall(**fields | more)


def told(*calls: ComparedCall) -> ComparedCalls:
    return ComparedCalls(tenant="acme", app="shop", gateway="gw1", calls=calls)


def traffic(count: int, *, failing: bool = False, seed: int = 1) -> list[ComparedCalls]:
    """Messages of `count` calls of both sides, some of which are slow."""
    chance = random.Random(seed)
    calls = []
    for number in range(count):
        arm = Arm.CANARY if chance.random() < 0.5 else Arm.TWIN
        took = 10.0 * chance.lognormvariate(0.0, 0.3)
        calls.append(
            compared(number, arm, failed=failing and arm is Arm.CANARY, execute_ms=took, gpu_ns=int(took * 1e6))
        )
    return [told(*calls[at : at + 7]) for at in range(0, count, 7)]


@dataclass
class KeptRollout:
    """`at`: now, in unix seconds."""

    rollout: Rollout = field(default_factory=rollout)
    at: float = 0.0
    store: Any = field(default_factory=MemoryEvidence)
    ready: dict[str, int] = field(default_factory=lambda: {OLD: 2, NEW: 2, TWIN: 2})
    breaker: str = ""
    refused: str = ""
    events: MemoryEventLog = field(default_factory=MemoryEventLog)
    sender: HttpSender = field(default_factory=FakeHttpSender)

    def __post_init__(self) -> None:
        registry = self.registry = MemoryRegistry()
        spec = function_spec("price")
        for version, number in ((OLD, 1), (NEW, 2)):
            registry.versions[version] = version_record(spec, id=version, app="shop", number=number)
        versions: dict[str, tuple[str, ...]] = {"price": (OLD, NEW)}
        registry.apps["acme", "shop"] = AppRecord(
            tenant="acme", app="shop", revision=1, functions={"price": OLD}, versions=versions
        )
        registry.rollout_records["acme", "shop"] = started(None, "acme", "shop", self.rollout)

    @property
    def teller(self) -> RolloutTeller:
        return RolloutTeller(registry=self.registry, events=self.events, hooks=MemoryWebhooks())

    @property
    def kinds(self) -> list[str]:
        """Of the events that were told."""
        return [event.kind for event in self.events.events]

    @property
    def record(self) -> RolloutRecord:
        return self.registry.rollout_records["acme", "shop"]

    @property
    def now(self) -> Rollout:
        found = self.record.rollout
        assert found is not None
        return found

    @property
    def deployed(self) -> str:
        return self.registry.apps["acme", "shop"].functions["price"]

    def keeper(self) -> RolloutKeeper:
        """A new one, that knows nothing yet."""

        async def make_twin(version: VersionRecord) -> VersionRecord:
            made = replace(version, id=TWIN, spec=replace(version.spec, twin=version.id))
            self.registry.versions[TWIN] = made
            return made

        async def check(_record: RolloutRecord, _rollout: Rollout) -> str:
            return self.refused

        async def rate_of(_functions: Sequence[str]) -> float:
            return 0.0

        return RolloutKeeper(
            registry=self.registry,
            store=self.store,
            moves=AppMoves(registry=self.registry, wall=lambda: self.at),
            make_twin=make_twin,
            sources=FactSources(
                registry=self.registry,
                reports=lambda: [self.report()],
                breaker_of=lambda version: "open" if version == self.breaker else "closed",
            ),
            gates=RolloutGates(sender=self.sender, clock=lambda: self.at),
            notify_all=self.teller.notify_all,
            rate_of=rate_of,
            check=check,
            wall=lambda: self.at,
        )

    def report(self) -> NodeReport:
        containers = [
            container(f"{version}_{number}", version)
            for version, count in self.ready.items()
            for number in range(count)
        ]
        return node_report(containers=tuple(containers))

    async def keep(self, times: int = 1, keeper: RolloutKeeper | None = None) -> None:
        """Look so often, and once more for what was asked meanwhile."""
        keeper = keeper or self.keeper()
        async with asyncio.TaskGroup() as asking:
            for _ in range(times):
                await keeper.keep(asking, self.record, counted([self.report()]))
                await keeper.notify_all(self.record)

    async def keep_until(self, state: RolloutState, times: int = 40, keeper: RolloutKeeper | None = None) -> None:
        """Look again, a second later each time, until it is in a state."""
        keeper = keeper or self.keeper()
        for _ in range(times):
            if self.now.state is state:
                return
            await self.keep(keeper=keeper)
            self.at += 1.0
        raise AssertionError(f"It is {self.now.state}, held {self.now.held!r}.")
