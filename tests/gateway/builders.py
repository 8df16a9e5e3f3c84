"""Small makers of what scheduler, home and origin tests are about."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.messages.agent_messages import CallDescriptor, ContainerState, Credit, Grant
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.calls.call_plan import CallPlan


def call(name: str, tenant: str = "acme", **more: Any) -> CallDescriptor:
    fields: dict[str, Any] = {
        "version": "ver_1", "method": "", "priority": Priority.STANDARD, "cost": 1.0, "remaining_ms": 60_000.0,
        "gateway": "gw1", "function": "acme:app.fn",
    }  # fmt: skip
    return CallDescriptor(call=name, tenant=tenant, **fields | more)


def credit(container: str = "c1", seq: int = 1, *held: str, slots: int = 1, **more: Any) -> Credit:
    fields: dict[str, Any] = {
        "version": "ver_1", "tenant": "acme", "node": "n1", "instance": "i1", "epoch": 0, "state": ContainerState.READY,
    }  # fmt: skip
    return Credit(container=container, seq=seq, slots=slots, held=held, **fields | more)


def grant(number: int = 1, **more: Any) -> Grant:
    fields: dict[str, Any] = {
        "call": "a", "container": "c1", "node": "n1", "instance": "i1", "epoch": 1, "home": "gw1"
    }  # fmt: skip
    return Grant(number=number, **fields | more)


def plan(**more: Any) -> CallPlan:
    fields: dict[str, Any] = {
        "id": "a", "tenant": "acme", "version": "ver_1", "function": "acme:app.fn", "method": "",
        "priority": Priority.STANDARD, "gateway": "gw1", "arrived": 0.0, "deadline": 60.0,
    }  # fmt: skip
    return CallPlan(**fields | more)
