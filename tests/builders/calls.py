"""A call on its way: to its home, to its origin, to a container. It is one of `acme`'s, unless a test says more."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.messages.call_messages import BodyRef, CallDescriptor, Grant, Run
from pilotlight_core.model.messages.node_messages import ContainerState, Credit
from pilotlight_core.model.spec import Priority
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_runtime.calls.answer_room import AnswerRoom
from tests.builders.specs import function_spec, method, version_record

BODY = BodyRef(url="http://origin/bodies/x", token="x", size=10)
"""A large input, where its origin has it."""


def call(name: str, tenant: str = "acme", **more: Any) -> CallDescriptor:
    """What a home queues of a call."""
    fields: dict[str, Any] = {
        "version": "ver_1", "method": "", "priority": Priority.STANDARD, "cost": 1.0, "remaining_ms": 60_000.0,
        "gateway": "gw1", "function": "acme:app.fn",
    }  # fmt: skip
    return CallDescriptor(call_id=name, tenant=tenant, **fields | more)


def prepared_call(call_id: str = "a", *, idempotent: bool = False, retries: int = 0, **more: Any) -> PreparedCall:
    """A call of `app.fn`, which came at 0 s and is given up at 60 s."""
    version = version_record(function_spec("fn", method(), idempotent=idempotent, retries=retries), app="app")
    fields: dict[str, Any] = {
        "client_id": None, "tenant": "acme", "version": version, "method": version.spec.methods[0], "input": b"",
        "priority": Priority.STANDARD, "arrived_at": 0.0, "deadline_at": 60.0, "stream": False,
    }  # fmt: skip
    return PreparedCall(call_id=call_id, **fields | more)


def credit(container: str = "c1", seq: int = 1, *held: str, slots: int = 1, **more: Any) -> Credit:
    """The room of a container that is ready and holds the calls `held`."""
    fields: dict[str, Any] = {
        "version": "ver_1", "tenant": "acme", "node": "n1", "instance": "i1", "epoch": 0, "state": ContainerState.READY,
    }  # fmt: skip
    return Credit(container=container, seq=seq, slots=slots, held=held, **fields | more)


def grant(number: int = 1, **more: Any) -> Grant:
    """The permission for call `a` to go to container `c1`."""
    fields: dict[str, Any] = {
        "call_id": "a", "container": "c1", "node": "n1", "instance": "i1", "epoch": 1, "home": "gw1"
    }  # fmt: skip
    return Grant(grant_number=number, **fields | more)


def run(call: str = "a", grant: int = 1, **more: Any) -> Run:
    """A granted call, as its container's agent gets it."""
    fields: dict[str, Any] = {
        "tenant": "acme", "version": "ver_1", "container": "c1", "method": "", "epoch": 1, "gateway": "gw1",
        "home": "gw1", "start_within_ms": 10_000.0, "timeout_ms": 10_000.0, "input": b"\x80",
    }  # fmt: skip
    return Run(call_id=call, grant_number=grant, **fields | more)


class ReadsAll:
    """The connection of a container that reads what it is sent at once."""

    unsent_bytes = 0
    is_writable = True

    async def wait_writable(self) -> None:
        """It is."""


def a_room() -> AnswerRoom:
    """For the answers of such a container."""
    return AnswerRoom(ReadsAll())
