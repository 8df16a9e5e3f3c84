"""Which intervals cannot be."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest

from pilotlight_core.model.devices import MEMORY_DEVICE, WARM_PRICE
from pilotlight_core.model.messages.usage import CallShare, LeaseState, UsageBatch, UsageEvent
from pilotlight_gateway.ledger.ledger_entries import LONGEST_NS
from pilotlight_gateway.ledger.usage_checks import (
    BOUND_SLACK_NS,
    CLOCK_SKEW_S,
    DEVICE_SLACK_NS,
    OLDEST_S,
    SLOT_STARTS_PER_S,
    STARTS_PER_S,
    BoundContainer,
    KnownDevice,
    UsageFault,
    binding_fault,
    device_fault,
    device_ns,
    fault_of,
    most_starts,
    starts_in,
)
from pilotlight_gateway.ledger.usage_delivery import Sender, UsageDelivery
from tests.gateway.ledger.metering import MIDNIGHT, SECOND, busy, event

AT = MIDNIGHT + 86_400.0
AGENT = UsageDelivery(seq=1, at=AT, sender=Sender.AGENT, node="n1", message=UsageBatch(events=()))


def bound_container(**more: Any) -> BoundContainer:
    """As `event` says it, bound for a minute."""
    fields: dict[str, Any] = {
        "container": "c1", "node": "n1", "tenant": "acme", "app": "shop", "function": "hello", "version": "ver_1",
        "slice": "s0", "ppm": 1_000_000, "price": "cpu", "bound_at": AT - 60.0,
    }  # fmt: skip
    return BoundContainer(**fields | more)


def shared(*shares: CallShare, length: int = 5) -> UsageEvent:
    return event(1, 0, length, LeaseState.BUSY, shares=shares)


def test_what_agents_meter_can_be() -> None:
    """Also the operator's time, a call without time, and a share of a call that goes on."""
    assert fault_of(event(1, 0, SECOND), AGENT) is None
    assert fault_of(event(1, 0, SECOND, LeaseState.FREE, tenant="", container="", app="", function=""), AGENT) is None
    assert fault_of(event(1, 5, 5, LeaseState.BUSY, shares=(CallShare("a", "acme", 0, "ok"),)), AGENT) is None
    assert fault_of(busy(1, 0, ("call_local_1_abc", 3, ""), ("b", 4, "raised")), AGENT) is None


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"node": "n2"}, UsageFault.OTHER_NODE),
        ({"ended_at": 1e300}, UsageFault.BAD_TIME),
        ({"ended_at": math.nan}, UsageFault.BAD_TIME),
        ({"ended_at": math.inf}, UsageFault.BAD_TIME),
        ({"ended_at": 0.0}, UsageFault.TOO_OLD),
        ({"ended_at": AT - OLDEST_S - 1.0}, UsageFault.TOO_OLD),
        ({"ended_at": AT + CLOCK_SKEW_S + 1.0}, UsageFault.BAD_TIME),
        ({"t0": 2**63, "t1": 2**63}, UsageFault.BAD_TIME),
        ({"t0": -5}, UsageFault.BAD_TIME),
        ({"t0": SECOND + 1}, UsageFault.BAD_TIME),
        ({"t1": LONGEST_NS + 1, "ended_at": AT}, UsageFault.BAD_TIME),
        ({"ppm": 0}, UsageFault.BAD_PART),
        ({"ppm": -1}, UsageFault.BAD_PART),
        ({"ppm": 1_000_001}, UsageFault.BAD_PART),
        ({"ppm": 2**64 - 1}, UsageFault.BAD_PART),
        ({"tenant": "a b"}, UsageFault.BAD_NAME),
        ({"tenant": "x" * 64}, UsageFault.BAD_NAME),
        ({"node": ""}, UsageFault.OTHER_NODE),
        ({"app": "a\0b"}, UsageFault.BAD_NAME),
        ({"function": "a~b"}, UsageFault.BAD_NAME),
        ({"function": "~pre"}, UsageFault.BAD_NAME),
        ({"function": "a~pre~pre"}, UsageFault.BAD_NAME),
        ({"function": "x" * 59 + "~post"}, UsageFault.BAD_NAME),
        ({"id": "x" * 256}, UsageFault.BAD_NAME),
        ({"id": ""}, UsageFault.BAD_NAME),
        ({"container": "c\ud7ff"}, UsageFault.BAD_NAME),
        ({"device": "d" * 129}, UsageFault.BAD_NAME),
        ({"price": "p" * 64}, UsageFault.BAD_NAME),
        ({"region": "a b"}, UsageFault.BAD_NAME),
        ({"zone": "z" * 64}, UsageFault.BAD_NAME),
        ({"purchase": "stolen"}, UsageFault.BAD_NAME),
        ({"memory": -1}, UsageFault.BAD_PART),
        ({"core_ppm": -1}, UsageFault.BAD_PART),
        ({"gib_ppm": 2**62}, UsageFault.BAD_PART),
        ({"wall_ns": 5}, UsageFault.BAD_TIME),
        ({"tenant": ""}, UsageFault.BAD_STATE),
        ({"state": LeaseState.FREE}, UsageFault.BAD_STATE),
        ({"shares": (CallShare("a", "acme", SECOND),)}, UsageFault.BAD_SHARES),
    ],
)
def test_a_number_or_name_that_cannot_be_is_found(more: dict[str, Any], fault: UsageFault) -> None:
    """Before anything is computed from it, or given to the database."""
    fields = {"t0": 0, "t1": SECOND} | more
    state = fields.pop("state", LeaseState.IDLE)
    assert fault_of(event(1, fields.pop("t0"), fields.pop("t1"), state, **fields), AGENT) is fault


@pytest.mark.parametrize(
    "shares",
    [
        (),
        (CallShare("a", "acme", 4),),
        (CallShare("a", "acme", 6),),
        (CallShare("a", "rival", 10**15 + 5), CallShare("b", "acme", -(10**15))),
        (CallShare("a", "acme", 5, "ok", 0),),
        (CallShare("a", "acme", 5, "x" * 17),),
        (CallShare("a b", "acme", 5),),
        (CallShare("x" * 65, "acme", 5),),
        (CallShare("a", "", 5),),
        (CallShare("a", "acme", 5, key="k k"),),
        (CallShare("a", "acme", 5, tags={"team": "x" * 600}),),
        (CallShare("a", "acme", 5, tags={f"t{n}": "x" for n in range(11)}),),
        (CallShare("a", "acme", 5, units={"two words": 1}),),
        (CallShare("a", "acme", 5, units={"images": -1}),),
        (CallShare("a", "acme", 5, units={"images": 2**53 + 1}),),
    ],
)
def test_shares_are_the_interval(shares: tuple[CallShare, ...]) -> None:
    """Each of a call of a tenant, none below nothing, and no more and no less together."""
    assert fault_of(shared(*shares), AGENT) is UsageFault.BAD_SHARES


def test_facts_that_can_be() -> None:
    """Also provisioned and parked time, whoever pays for it."""
    told = CallShare("a", "acme", 5, "ok", key="key_1", tags={"team": "red"}, units={"images": 2**53, "custom": 0})
    place = {"region": "eu", "zone": "eu-a", "purchase": "on-demand", "memory": 2**40, "tags": {"t": "x"}}
    assert fault_of(event(1, 0, 5, LeaseState.BUSY, shares=(told,), **place), AGENT) is None
    for state in (LeaseState.PROVISIONING, LeaseState.PARKED):
        assert fault_of(event(1, 0, SECOND, state), AGENT) is None
        assert fault_of(event(1, 0, SECOND, state, tenant="", app="", function="", version=""), AGENT) is None
    dated = event(1, 0, SECOND)
    exact = int(dated.ended_at) * SECOND + 1
    assert fault_of(msgspec.structs.replace(dated, wall_ns=exact), AGENT) is None


def test_a_bound_container_is_billed_for_the_time_that_it_was_bound() -> None:
    """By the bus's clock, and a little more for the clocks' difference; then no more, whatever its node says."""
    bound = bound_container()
    minute = event(1, 0, 60 * SECOND, ended_at=AT)
    assert binding_fault(minute, bound, AT) is None
    bound.ns = 60 * SECOND
    assert binding_fault(event(2, 0, BOUND_SLACK_NS, ended_at=AT), bound, AT) is None
    assert binding_fault(minute, bound, AT) is UsageFault.TOO_LONG
    assert binding_fault(minute, bound, AT + 60.0) is None
    bound.ended_at = AT
    assert binding_fault(minute, bound, AT + 3_600.0) is UsageFault.TOO_LONG


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"node": "n2"}, UsageFault.NOT_BOUND),
        ({"tenant": "rival"}, UsageFault.OTHER_TERMS),
        ({"app": "other"}, UsageFault.OTHER_TERMS),
        ({"function": "other"}, UsageFault.OTHER_TERMS),
        ({"version": "ver_2"}, UsageFault.OTHER_TERMS),
        ({"slice": "s1"}, UsageFault.OTHER_TERMS),
        ({"ppm": 500_000}, UsageFault.OTHER_TERMS),
        ({"price": "h200"}, UsageFault.OTHER_TERMS),
    ],
)
def test_a_tenant_pays_on_the_terms_of_the_binding(more: dict[str, Any], fault: UsageFault) -> None:
    """Neither for another's container nor at another price."""
    assert binding_fault(event(1, 0, SECOND, **more), bound_container(), AT) is fault


PARKED: dict[str, Any] = {
    "state": LeaseState.PARKED, "device": MEMORY_DEVICE, "slice": "parked.c1", "ppm": 1_000, "price": WARM_PRICE,
    "gib_ppm": 500_000,
}  # fmt: skip


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({}, None),
        ({"gib_ppm": 1_000_001}, UsageFault.OTHER_TERMS),
        ({"core_ppm": 1}, UsageFault.OTHER_TERMS),
        ({"state": LeaseState.IDLE}, UsageFault.OTHER_TERMS),
        ({"device": "GPU-1"}, UsageFault.OTHER_TERMS),
        ({"price": "h100"}, UsageFault.OTHER_TERMS),
        ({"tenant": "rival"}, UsageFault.OTHER_TERMS),
        ({"t1": 200 * SECOND}, UsageFault.TOO_LONG),
    ],
)
def test_a_parked_container_is_metered_on_the_memory_that_it_was_promised(
    more: dict[str, Any], fault: UsageFault | None
) -> None:
    """And on nothing else: its slice is not its own meanwhile. Its time is that of its binding, as ever."""
    fields = {"t1": SECOND} | PARKED | more
    found = event(1, 0, fields.pop("t1"), fields.pop("state"), **fields)
    assert binding_fault(found, bound_container(slice="GPU-1", price="h100", gib_ppm=1_000_000), AT) is fault


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"slice": "cpu-3"}, None),
        ({"slice": "cpu-3", "ppm": 249_999}, None),
        ({"slice": "cpu-3", "ppm": 249_998}, UsageFault.OTHER_TERMS),
        ({"slice": "cpu-3", "price": "8xcpu"}, UsageFault.OTHER_TERMS),
        ({"slice": "cpu-3", "device": "GPU-1"}, UsageFault.OTHER_TERMS),
        ({"slice": "cpu-0", "ppm": 249_999}, UsageFault.OTHER_TERMS),
        ({"slice": "cpu-3", "core_ppm": 8}, UsageFault.OTHER_TERMS),
    ],
)
def test_a_container_that_was_parked_may_return_to_any_cpu_slot(more: dict[str, Any], fault: UsageFault | None) -> None:
    """Of its node, as large as its own but for the rest of a division, and beside it no more than it was promised."""
    bound = bound_container(slice="cpu-0", ppm=250_000, price="4xcpu", core_ppm=7)
    fields: dict[str, Any] = {"device": "cpu", "ppm": 250_000, "price": "4xcpu"} | more
    assert binding_fault(event(1, 0, SECOND, **fields), bound, AT) is fault


def test_a_tenant_does_not_pay_for_what_nobody_bound() -> None:
    """However plausible it looks."""
    assert binding_fault(event(1, 0, SECOND), None, AT) is UsageFault.NOT_BOUND


def test_several_devices_have_the_time_of_each() -> None:
    """A container on two GPUs is metered on both."""
    bound = bound_container(slice="GPU-1+GPU-2")
    bound.ns = 100 * SECOND
    assert binding_fault(event(1, 0, 20 * SECOND, slice="GPU-1"), bound, AT) is None
    assert binding_fault(event(1, 0, 50 * SECOND, slice="GPU-2"), bound, AT) is UsageFault.TOO_LONG


def test_a_container_ends_no_more_calls_than_its_slots_have_time_for() -> None:
    """What they are charged at least has nothing to do with the time that they took."""
    bound = bound_container(slots=2)
    most = most_starts(bound, 60.0)
    assert 60 * 2 * SLOT_STARTS_PER_S < most < 71 * 2 * SLOT_STARTS_PER_S
    two = shared(CallShare("a", "acme", 0, "ok"), CallShare("b", "acme", 0, "raised"), CallShare("c", "acme", 5))
    assert starts_in(two) == 2
    bound.starts = most - 2
    assert binding_fault(two, bound, AT) is None
    bound.starts += 1
    assert binding_fault(two, bound, AT) is UsageFault.TOO_MANY
    assert binding_fault(two, bound, AT + 1.0) is None
    bound.ended_at = AT
    assert binding_fault(two, bound, AT + 1.0) is UsageFault.TOO_MANY


@pytest.mark.parametrize(
    ("more", "per_s"),
    [({"slots": 10_000}, STARTS_PER_S), ({"slots": 0}, STARTS_PER_S), ({"slots": 1}, SLOT_STARTS_PER_S),
     ({"slots": 1, "slice": "GPU-1+GPU-2"}, 2 * SLOT_STARTS_PER_S)],
)  # fmt: skip
def test_a_guest_is_one_process_whatever_its_slots(more: dict[str, Any], per_s: int) -> None:
    """Where slots are not known too; each of several devices tells of all calls."""
    assert 1_000 * per_s < most_starts(bound_container(**more), 1_000.0) < 1_100 * per_s


def test_cores_and_memory_are_at_most_those_of_the_binding() -> None:
    """On the first of several devices alone; an agent that knows nothing of them bills none."""
    bound = bound_container(slice="GPU-1+GPU-2", core_ppm=2_000_000, gib_ppm=4_000_000)
    host: dict[str, Any] = {"core_ppm": 2_000_000, "gib_ppm": 4_000_000}
    assert binding_fault(event(1, 0, SECOND, slice="GPU-1", **host), bound, AT) is None
    assert binding_fault(event(1, 0, SECOND, slice="GPU-1"), bound, AT) is None
    for name, most in host.items():
        for slice_, ppm in (("GPU-1", most + 1), ("GPU-2", 1)):
            more: dict[str, Any] = {"slice": slice_, name: ppm}
            assert binding_fault(event(1, 0, SECOND, **more), bound, AT) is UsageFault.OTHER_TERMS


def test_a_device_has_no_more_time_than_has_passed() -> None:
    """Since the bus first heard of it; what it is cut into does not matter."""
    half = event(1, 0, 2 * SECOND, ppm=500_000)
    assert device_ns(half) == SECOND
    device = KnownDevice(node="n1", device="d0", since=AT - 60.0, ns=DEVICE_SLACK_NS + 59 * SECOND)
    assert device_fault(half, device, AT) is None
    device.ns += SECOND
    assert device_fault(half, device, AT) is UsageFault.TOO_MUCH
    assert device_fault(half, device, AT + 1.0) is None


def test_a_joined_nodes_purchase_is_that_on_record() -> None:
    """Or else the tenant does not pay: a node that was bought on spot must not bill as one on demand. Of another node
    its own word counts, since nothing is on record.
    """
    joined, own = bound_container(region="eu", purchase="spot"), bound_container()
    for region, purchase, fault in (
        ("eu", "spot", None), ("eu", "on-demand", UsageFault.OTHER_TERMS), ("eu", "", UsageFault.OTHER_TERMS),
        ("us", "spot", UsageFault.OTHER_TERMS),
    ):  # fmt: skip
        used = event(1, 0, SECOND, region=region, purchase=purchase)
        assert binding_fault(used, joined, AT) is fault
        assert binding_fault(used, own, AT) is None
