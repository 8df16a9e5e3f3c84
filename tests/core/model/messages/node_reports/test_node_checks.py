"""What is believed of a node: only what is its own, and what was bound there."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.messages.bindings import Binding
from pilotlight_core.model.messages.node_messages import ContainerState, SliceKind
from pilotlight_core.model.messages.node_reports.node_checks import (
    NodeFault,
    believed,
    container_fault,
    credit_fault,
    price_fits,
)
from tests.builders.calls import credit
from tests.builders.nodes import binding, container, cpu_slot, gpu_device, gpu_slice, node_report

FUNCTION = "acme:hello.greet"


def test_a_bound_containers_credit_is_believed() -> None:
    """From its own node, with no more slots than its version has."""
    assert credit_fault("n1", credit(function=FUNCTION), binding()) is None
    assert credit_fault("n1", credit("c1", 1, "a", "b", slots=2, function=FUNCTION), binding(slots=2)) is None


@pytest.mark.parametrize(
    ("node", "more", "bound", "fault"),
    [
        ("n2", {}, binding(), NodeFault.OTHER_NODE),
        ("n2", {"node": "n2"}, binding(), NodeFault.BOUND_ELSEWHERE),
        ("n1", {}, None, NodeFault.NOT_BOUND),
        ("n1", {"version": "ver_2"}, binding(), NodeFault.OTHER_VERSION),
        ("n1", {"tenant": "rival"}, binding(), NodeFault.OTHER_VERSION),
        ("n1", {"function": "acme:hello.other"}, binding(), NodeFault.OTHER_VERSION),
        ("n1", {"slots": 1_000}, binding(), NodeFault.MORE_ROOM),
        ("n1", {"batch_room": 2}, binding(), NodeFault.MORE_ROOM),
        ("n1", {"spare": 2}, binding(), NodeFault.MORE_ROOM),
        ("n1", {"held": ("a", "b")}, binding(), NodeFault.MORE_ROOM),
    ],
)
def test_a_credit_that_is_not_its_nodes_is_not_believed(
    node: str, more: dict[str, Any], bound: Binding | None, fault: NodeFault
) -> None:
    """Of another node, of what is not bound there, or with more room than was bound."""
    held = more.pop("held", ())
    assert credit_fault(node, credit("c1", 1, *held, **{"function": FUNCTION} | more), bound) is fault


@pytest.mark.parametrize(
    ("more", "bound", "fault"),
    [
        ({}, binding(), None),
        ({"state": ContainerState.BINDING, "app": "", "function": "", "slots": 0}, binding(), None),
        ({}, None, NodeFault.NOT_BOUND),
        ({}, binding(node="n2"), NodeFault.BOUND_ELSEWHERE),
        ({"version": "ver_2"}, binding(), NodeFault.OTHER_VERSION),
        ({"tenant": "rival"}, binding(), NodeFault.OTHER_VERSION),
        ({"slice": "cpu-1"}, binding(), None),
        ({"slice": "GPU-1"}, binding(), NodeFault.OTHER_VERSION),
        ({"slice": "GPU-2"}, binding(slice="GPU-1", price="h100"), NodeFault.OTHER_VERSION),
        ({"slice": "cpu-1"}, binding(slice="GPU-1", price="h100"), NodeFault.OTHER_VERSION),
        ({"slice": "", "state": ContainerState.PARKED}, binding(), None),
        ({"slice": "", "state": ContainerState.DRAINING}, binding(slice="GPU-1", price="h100"), None),
        ({"slice": ""}, binding(), NodeFault.OTHER_VERSION),
        ({"function": "other"}, binding(), NodeFault.OTHER_VERSION),
        ({"slots": 9}, binding(), NodeFault.MORE_ROOM),
        ({"running": 9}, binding(), NodeFault.MORE_ROOM),
    ],
)
def test_a_reported_container_is_believed_as_it_was_bound(
    more: dict[str, Any], bound: Binding | None, fault: NodeFault | None
) -> None:
    """Else a node could make a version seem to have all the containers that it needs."""
    assert container_fault("n1", container(**more), bound) is fault


def test_what_is_not_believed_leaves_a_report() -> None:
    """The rest of it stands."""
    bound = {"c1": binding()}
    told = node_report(
        slices=(cpu_slot(), cpu_slot(1, price="h200")),
        devices=(gpu_device(), gpu_device("GPU-2", kind="T4", price="b200")),
        containers=(container(), container("forged")),
    )

    kept, faults = believed("n1", told, bound.get)

    assert [part.id for part in kept.slices] == ["cpu-0"]
    assert [gpu.id for gpu in kept.devices] == ["GPU-1"]
    assert [one.id for one in kept.containers] == ["c1"]
    assert faults == {
        "cpu-1": NodeFault.OTHER_PRICE, "GPU-2": NodeFault.OTHER_PRICE, "forged": NodeFault.NOT_BOUND,
    }  # fmt: skip


def test_a_true_report_is_the_same_object() -> None:
    """Receivers see by that what has not changed."""
    told = node_report(slices=(cpu_slot(), gpu_slice(gpu_type="H100")), containers=(container(),))

    assert believed("n1", told, lambda _: binding()) == (told, {})
    assert believed("n1", told, lambda _: binding())[0] is told


@pytest.mark.parametrize(
    ("kind", "gpu_type", "price", "fits"),
    [
        (SliceKind.CPU, "", "cpu", True),
        (SliceKind.CPU, "", "64xcpu", True),
        (SliceKind.CPU, "", "99999999xcpu", False),
        (SliceKind.CPU, "", "h100", False),
        (SliceKind.GPU, "H100", "h100", True),
        (SliceKind.GPU, "H100", "fake-h100", True),
        (SliceKind.MIG, "A100-80GB", "a100", True),
        (SliceKind.GPU, "A10G", "a10", True),
        (SliceKind.SHARE, "RTX-4090", "gpu", True),
        (SliceKind.GPU, "T4", "h200", False),
        (SliceKind.GPU, "T4", "", False),
        (SliceKind.GPU, "", "h200", False),
        (SliceKind.GPU, "H100", "cpu", False),
    ],
)
def test_a_price_is_that_of_the_device(kind: SliceKind, gpu_type: str, price: str, *, fits: bool) -> None:
    """A node must not sell a small device at the price of a large one."""
    assert price_fits(kind, gpu_type, price) is fits
