"""Usage events as agents make them, for tests of the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from pilotlight_core.model.messages.bindings import Bound
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageBatch, UsageEvent
from pilotlight_gateway.ledger.usage_delivery import Sender, UsageDelivery
from tests.builders.nodes import binding

MIDNIGHT = 1_790_035_200.0
"""2026-09-22T00:00:00Z"""
SECOND = 10**9
OWNED = (LeaseState.PROVISIONING, LeaseState.LOADING, LeaseState.IDLE, LeaseState.BUSY, LeaseState.DRAINING)


def event(number: int, t0: int, t1: int, state: LeaseState = LeaseState.IDLE, **more: Any) -> UsageEvent:
    """An interval of one slice, in ns; by default it is `acme`'s and ends at noon plus t1."""
    known: dict[str, Any] = {
        "id": f"node-1.s0.{number}", "node": "n1", "device": "d0", "slice": "s0", "ppm": 1_000_000, "price": "cpu",
        "ended_at": MIDNIGHT + 43_200 + t1 / SECOND, "tenant": "acme", "app": "shop", "function": "hello",
        "version": "ver_1", "container": "c1",
    }  # fmt: skip
    return UsageEvent(state=state, t0=t0, t1=t1, **(known | more))


def busy(number: int, t0: int, *shares: tuple[str, int, str], **more: Any) -> UsageEvent:
    """A busy interval: (call, ns, outcome or "") for each call in it."""
    t1 = t0 + sum(ns for _, ns, _ in shares)
    made = tuple(CallShare(call, "acme", ns, ended, len(shares)) for call, ns, ended in shares)
    return event(number, t0, t1, LeaseState.BUSY, shares=made, **more)


def delivered(events: Sequence[UsageEvent], at: float = MIDNIGHT + 86_400.0) -> list[UsageDelivery]:
    """Events as the stream has them of before subjects named nodes: within their ranges, they are taken as they are."""
    return [UsageDelivery(seq=1, at=at, sender=Sender.BEFORE_NODES, message=UsageBatch(events=tuple(events)))]


def named(max_units: dict[str, int], container: str = "c1") -> UsageDelivery:
    """The container is bound of a function that names so many units of a call at most."""
    message = Bound(binding=binding(container, "ver_1", max_units=max_units))
    return UsageDelivery(seq=1, at=MIDNIGHT, sender=Sender.CONTROLLER, node="n1", message=message)


def tagged(tags: Mapping[str, dict[str, str]], tenant: str = "acme") -> list[UsageDelivery]:
    """A container of each version is bound, with the version's tags."""
    return [
        UsageDelivery(
            seq=1, at=MIDNIGHT, sender=Sender.CONTROLLER, node="n1",
            message=Bound(binding=binding(f"{tenant}-{version}", version, tenant=tenant, tags=of_version)),
        )
        for version, of_version in tags.items()
    ]  # fmt: skip


@st.composite
def histories(draw: st.DrawFn) -> list[UsageEvent]:
    """The gapless life of one slice, over midnight: states of several tenants, shares and all."""
    events, at = [], 0
    wall = MIDNIGHT - draw(st.integers(0, 20))
    for number in range(draw(st.integers(1, 12))):
        length = draw(st.integers(0, 5 * SECOND))
        tenant = draw(st.sampled_from(["acme", "rival", ""]))
        paid = [0, 100_000, 2_000_000] if tenant else [0]
        host = {name: draw(st.sampled_from(paid)) for name in ("core_ppm", "gib_ppm")}
        shares: tuple[CallShare, ...] = ()
        state = draw(st.sampled_from(OWNED)) if tenant else LeaseState.FREE
        if state is LeaseState.BUSY:
            cuts = sorted(draw(st.lists(st.integers(0, length), max_size=3)))
            parts = [b - a for a, b in zip([0, *cuts], [*cuts, length], strict=True)]
            shares = tuple(
                CallShare(f"call{draw(st.integers(0, 4))}", tenant, ns, draw(st.sampled_from(["", "ok"])), len(parts))
                for ns in parts
            )
        ended_at = wall + (at + length) / SECOND
        events.append(event(number, at, at + length, state, tenant=tenant, shares=shares, ended_at=ended_at, **host))
        at += length
    return events
