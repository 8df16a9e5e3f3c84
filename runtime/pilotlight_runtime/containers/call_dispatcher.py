"""Where the calls that come over the bus go: into a container, or back to their origin with a refusal."""

from __future__ import annotations

import structlog

from pilotlight_core.model.messages.agent_messages import (
    Cancel,
    Ended,
    Outcome,
    Reconcile,
    Refusal,
    Refused,
    Run,
    Window,
)
from pilotlight_runtime.calls.accepted_call import AcceptedCall
from pilotlight_runtime.calls.node_calls import NodeCalls
from pilotlight_runtime.containers.containers import Containers

log = structlog.get_logger(__name__)

LOST = "its last frame was lost"


class CallDispatcher:
    """Hands what origins send of calls to the node's containers. `at` is the present instant, in monotonic seconds."""

    def __init__(self, containers: Containers, calls: NodeCalls) -> None:
        self._containers = containers
        self._calls = calls

    def on_run(self, run: Run, at: float, received_at: float) -> None:
        """Take a granted call, or refuse it; it cannot have come before `received_at`."""
        container = self._containers.get(run.container)
        if container is not None and container.holds(run.call_id):
            outcome: AcceptedCall | Refusal = Refusal.NO_SLOT  # an abandoned run of the same call has not ended yet
        else:
            outcome = self._calls.slots.accept(run, at, received_at)
        if isinstance(outcome, AcceptedCall) and container is not None:
            container.add(outcome, at)
            return
        refusal = Refusal.GONE if isinstance(outcome, AcceptedCall) else outcome
        if isinstance(outcome, AcceptedCall) or refusal is Refusal.NO_SLOT:
            self._calls.slots.release(run.call_id, run.grant_number)
        frame = Refused(call_id=run.call_id, grant_number=run.grant_number, container=run.container, reason=refusal)
        self._calls.origins.send(run.gateway, frame)
        if container is not None:
            self._calls.credits.publish_soon(container)  # its home knew too little of it

    def on_control(self, message: Cancel | Window | Reconcile, at: float) -> None:
        """Obey what an origin sends of calls that are here."""
        if isinstance(message, Window):
            for container in self._containers:
                container.on_window(message.call_id, message.upto, at)
        elif isinstance(message, Cancel):
            for call in self._calls.slots.cancel(message.call_id):
                self._cancel(call, message.reason, at)
        else:
            self._reconcile(message, at)

    def resend_frames(self, at: float) -> None:
        """Send undelivered last frames again, and cancel the calls of gateways that are gone."""
        for gateway in self._calls.origins.sweep(at):
            log.warning("a gateway listens no more; its calls are cancelled", gateway=gateway)
            for container in self._containers:
                container.cancel_calls_of(gateway, at)

    def _reconcile(self, message: Reconcile, at: float) -> None:
        outcome = self._calls.slots.reconcile(message, at)
        for orphan in outcome.orphans:
            self._cancel(orphan, "its gateway does not know it", at)
        for past in outcome.released:
            if not self._calls.origins.resend(past.call_id, past.grant_number):
                ended = Ended(
                    call_id=past.call_id,
                    grant_number=past.grant_number,
                    container="",
                    outcome=Outcome.DIED,
                    started=past.was_started,
                    reason=LOST,
                )
                self._calls.origins.send(message.gateway, ended)

    def _cancel(self, call: AcceptedCall, reason: str, at: float) -> None:
        if (container := self._containers.get(call.run.container)) is not None:
            container.cancel(call.call_id, reason, at)
