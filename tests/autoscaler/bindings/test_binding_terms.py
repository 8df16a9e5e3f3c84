"""What is written of a container before it is bound."""

from __future__ import annotations

import pytest

from pilotlight_autoscaler.bindings.binding_terms import binding_of, host_terms, slice_terms
from pilotlight_core.model.devices import InstanceReport, MigMode, MigPlacement
from pilotlight_core.model.messages.node_messages import HostShare
from pilotlight_core.model.records.nodes import NodeLabels
from tests.autoscaler.builders import record
from tests.builders.nodes import bind, binding, cpu_slot, gpu_device, gpu_slice, node_report

CUT = InstanceReport(
    slice="GPU-2:3g@4", place=MigPlacement(start=4, profile="3g"), name="3g.40gb", uuid="MIG-1", memory=1, ppm=428_571
)
NODE = node_report(
    slices=(cpu_slot(), gpu_slice("GPU-1", gpu_type="H100")),
    devices=(
        gpu_device("GPU-1"), gpu_device("GPU-2", mig=MigMode.ON, instances=(CUT,)), gpu_device("GPU-3"),
        gpu_device("GPU-4", kind="T4"),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("slice_id", "terms"),
    [
        ("cpu-0", (250_000, "cpu")),
        ("GPU-1", (1_000_000, "h100")),
        ("GPU-3", (1_000_000, "h100")),
        ("GPU-2:3g@4", (428_571, "h100")),
        ("GPU-3:250/1000~ctr_1", (250_000, "h100")),
        ("GPU-1+GPU-3", (1_000_000, "h100")),
        ("GPU-1+GPU-4", None),
        ("GPU-2:3g@0", None),
        ("GPU-9", None),
        ("cpu-9", None),
        ("not a slice", None),
    ],
)
def test_a_slice_has_the_part_and_price_that_its_meter_says(slice_id: str, terms: tuple[int, str] | None) -> None:
    """As the node's report has it; None where the node has no such slice."""
    assert slice_terms(NODE, slice_id) == terms


@pytest.mark.parametrize(
    ("share", "ppm", "price", "terms"),
    [
        (HostShare(cpu_millis=2_000, memory=4 * 2**30), 1_000_000, "h100", (2_000_000, 4_000_000)),
        (HostShare(cpu_millis=100, memory=64 * 2**20), 250_000, "fake-l4", (100_000, 62_500)),
        (HostShare(cpu_millis=2_000, memory=2**30), 125_000, "8xcpu", (1_000_000, 1_000_000)),
        (HostShare(cpu_millis=100, memory=1), 125_000, "8xcpu", (0, 0)),
        (HostShare(cpu_millis=1_000, memory=2**30), 41_666, "24xcpu", (0, 1_000_000)),
        (HostShare(cpu_millis=2_000, memory=2**30), 41_666, "24xcpu", (1_000_016, 1_000_000)),
        (HostShare(), 1_000_000, "t4", (0, 0)),
    ],
)
def test_a_host_is_paid_for_beside_a_slice(share: HostShare, ppm: int, price: str, terms: tuple[int, int]) -> None:
    """All that is promised of it; the cores of a CPU slot are in the slot's price."""
    assert host_terms(share, ppm, price) == terms


def test_a_binding_says_what_the_version_may() -> None:
    """Its slots are the version's, whatever the node will say."""
    command = bind("c1", function="acme:hello.greet")

    assert binding_of(command, record(max_inputs=3), NODE) == binding(slots=3, core_ppm=750_000, gib_ppm=2_000_000)
    tags, most = {"team": "search"}, {"images": 4}
    assert binding_of(command, record(tags=tags, max_units=most), NODE) == binding(
        slots=1, core_ppm=750_000, gib_ppm=2_000_000, tags=tags, max_units=most
    )
    labels = NodeLabels(region="eu", zone="eu-1", spot=True)
    labelled = binding_of(command, record(), NODE, labels)
    assert labelled is not None
    assert (labelled.region, labelled.purchase) == ("eu", "spot")
    assert binding_of(command, record(), None) is None
    assert binding_of(bind("c1", slice="cpu-7"), record(), NODE) is None
