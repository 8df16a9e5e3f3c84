"""Gates are asked in tasks of their own: one that hangs holds its own rollout alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from pilotlight_core.model.api.webhook_api import DeliveryAttempt
from pilotlight_core.model.rollouts.rollout_record import Rollout
from pilotlight_gateway.rollouts.rollout_gates import OF_TENANT, RolloutGates, question
from pilotlight_gateway.webhooks.delivery_attempts import DeliveryOutcome
from tests.gateway.rollouts.kept_rollout import QUICK, record_of, rollout


class Gate:
    """Answers when it may."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.asked = 0
        self.open = asyncio.Event()

    async def post(self, tenant: str, url: str, headers: Mapping[str, str], body: bytes) -> DeliveryOutcome:
        assert (tenant, url, headers["content-type"]) == ("acme", "https://gate.example.com/", "application/json")
        assert msgspec.json.decode(body)["type"] == "rollout.gate"
        self.asked += 1
        await self.open.wait()
        if self.status == 0:
            raise RuntimeError("a bug")
        return DeliveryOutcome(attempt=DeliveryAttempt(at=0.0, ms=1.0, status=self.status))


def gated(**more: object) -> Rollout:
    return rollout(terms=replace(QUICK, gate="https://gate.example.com/"), **more)


async def test_nobody_waits_for_a_gate_that_hangs() -> None:
    """It is asked once; of one tenant few at a time."""
    gate = Gate()
    gates = RolloutGates(sender=gate, clock=lambda: 0.0)
    async with asyncio.TaskGroup() as group:
        for number in range(OF_TENANT + 2):
            one = gated(id=f"rol_{number}")
            assert gates.answer(group, record_of(one), one) is None
            assert gates.answer(group, record_of(one), one) is None
        await asyncio.sleep(0)
        assert gate.asked == OF_TENANT
        gate.open.set()
    async with asyncio.TaskGroup() as group:
        one = gated(id="rol_0")
        assert gates.answer(group, record_of(one), one) is True
        assert gates.answer(group, record_of(one), replace(one, step=1)) is None


async def test_no_is_asked_again_later() -> None:
    """After a while; an error of its own is no answer."""
    gate, at = Gate(503), [0.0]
    gate.open.set()
    gates, one = RolloutGates(sender=gate, clock=lambda: at[0]), gated()
    for status, now in ((503, 0.0), (503, 1.0), (0, 20.0)):
        gate.status, at[0] = status, now
        async with asyncio.TaskGroup() as group:
            gates.answer(group, record_of(one), one)
    assert gate.asked == 2
    gate.status, at[0] = 204, 40.0
    async with asyncio.TaskGroup() as group:
        assert gates.answer(group, record_of(one), one) is False
    async with asyncio.TaskGroup() as group:
        assert gates.answer(group, record_of(one), one) is True


def test_a_gate_is_told_where_the_rollout_is() -> None:
    data = msgspec.json.decode(question(record_of(gated()), gated(share=500, step=1)))["data"]
    assert (data["app"], data["step"], data["share"]) == ("shop", 2, 5.0)
