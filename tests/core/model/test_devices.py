"""Names of slices, and devices on the wire."""

from __future__ import annotations

import pytest

from pilotlight_core.model.devices import (
    InstanceReport,
    MigMode,
    MigPlacement,
    ProfileReport,
    SliceName,
    cpu_price,
    gpu_of_price,
    gpu_price,
    is_cpu_price,
)
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.messages import wire
from pilotlight_core.model.messages.device_commands import Cut, SwitchMig
from tests.builders.nodes import gpu_device, node_report

NAMES = {
    "cpu-0": SliceName(devices=("cpu-0",)),
    "GPU-1": SliceName(devices=("GPU-1",)),
    "GPU-1+GPU-2": SliceName(devices=("GPU-1", "GPU-2")),
    "GPU-1:3g@4": SliceName(devices=("GPU-1",), profile="3g", start=4),
    "GPU-1:1g.2x@6": SliceName(devices=("GPU-1",), profile="1g.2x", start=6),
    "GPU-1:250/1000~ctr_f_1": SliceName(devices=("GPU-1",), units=250, holder="ctr_f_1"),
}


@pytest.mark.parametrize("text", NAMES)
def test_a_name_is_read_as_it_is_written(text: str) -> None:
    """Every kind of slice has one name, from which it can be parsed."""
    assert SliceName.parse(text) == NAMES[text]
    assert str(NAMES[text]) == text


@pytest.mark.parametrize(
    "text",
    ["", ":", "GPU-1:", "GPU-1:3g", "GPU-1+GPU-1", "GPU-1+", "a b", "G:1g@0:1g@1", "G+H:1g@0", "G:0/1000~c",
     "G:1001/1000~c", "G:1/1000~", "G:1/32~c", "x" * 600],
)  # fmt: skip
def test_what_is_no_name_is_refused(text: str) -> None:
    """A name that means nothing is refused, whatever is wrong with it."""
    with pytest.raises(BadInput):
        SliceName.parse(text)


def test_a_name_says_what_part_of_the_device_it_is() -> None:
    """A share and a whole device have a `ppm`; an instance has none."""
    assert SliceName.parse("GPU-1:250/1000~c").ppm == 250_000
    assert SliceName.parse("GPU-1").ppm == 1_000_000
    assert SliceName.parse("GPU-1:3g@4").ppm is None


def test_devices_travel() -> None:
    """A report with devices, and the commands for them, are the same on the other side."""
    place = MigPlacement(start=4, profile="3g")
    instance = InstanceReport(slice="GPU-1:3g@4", place=place, name="3g.40gb", uuid="MIG-1", memory=1, ppm=500_000)
    device = gpu_device(
        mig=MigMode.ON, instances=(instance,),
        profiles=(ProfileReport(name="3g.40gb", memory=1, sms=60, size=4, starts=(0, 4)),),
    )  # fmt: skip
    report = node_report(devices=(device,))
    for message in (report, Cut(epoch=1, device="GPU-1", create=(place,)), SwitchMig(epoch=1, device="GPU-1", on=True)):
        assert wire.decode(wire.encode(message)) == message


@pytest.mark.parametrize(
    ("gpu_type", "price"),
    [("A100-40GB", "a100"), ("H100", "h100"), ("A10G", "a10"), ("A100-10C", "gpu"), ("RTX-4090", "gpu"), ("", "gpu")],
)
def test_a_gpu_has_the_price_id_of_its_product(gpu_type: str, price: str) -> None:
    """Whatever its memory is; a virtual part of one is none."""
    assert gpu_price(gpu_type) == price


def test_processors_are_priced_by_their_cores() -> None:
    """Agents of an earlier release say only what they are."""
    assert is_cpu_price(cpu_price(16))
    assert is_cpu_price("cpu")
    assert not any(map(is_cpu_price, ("0xcpu", "1025xcpu", "99999xcpu", "2xh100", "gpu")))


def test_a_price_is_of_a_kind_of_gpu() -> None:
    """That a GPU is in software only is shown; slots of processors are of one kind, whatever their host has."""
    prices = ("h100", "fake-a100", "16xcpu", "cpu", "cpu_core", "memory_gib", "gpu")
    assert [gpu_of_price(price) for price in prices] == ["H100", "fake-A100", "cpu", "cpu", "host", "host", "GPU"]
