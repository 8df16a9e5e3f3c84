"""What of a node's report is as before is the same object; whatever is new is read."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.host.report_reader import GAUGES, ReportReader, SteadyDevice, SteadyInstance
from pilotlight_core.model.devices import DeviceReport, InstanceReport
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.messages.wire import encode
from tests.builders.nodes import bind, container, cpu_slot, gpu_device, node_report


def names(of: type[msgspec.Struct]) -> set[str]:
    return {field.name for field in msgspec.structs.fields(of)}


def test_hardware_as_before_is_the_same_object_whatever_its_gauges_say() -> None:
    """Containers are always read."""
    reader = ReportReader()
    first = reader.read(encode(node_report(slices=(cpu_slot(),), devices=(gpu_device(utilisation=10),))))
    second = reader.read(
        encode(node_report(slices=(cpu_slot(),), devices=(gpu_device(utilisation=90),), containers=(container(),)))
    )

    assert second.slices is first.slices
    assert second.devices is first.devices
    assert [one.id for one in second.containers] == ["c1"]


def test_what_is_new_is_read() -> None:
    """A slice's container, a device's refusal, and nothing at all."""
    reader = ReportReader()
    reader.read(encode(node_report(slices=(cpu_slot(),), devices=(gpu_device(),))))
    other = node_report(slices=(cpu_slot(container="c1"),), devices=(gpu_device(refused="no"),))
    found = reader.read(encode(other))
    assert (found.slices, found.devices) == (other.slices, other.devices)
    assert isinstance(found, NodeReport)

    assert (reader.read(encode(node_report())).slices, reader.read(encode(node_report())).devices) == ((), ())


def test_two_nodes_are_not_mixed_up() -> None:
    reader = ReportReader()
    one = reader.read(encode(node_report("n1", slices=(cpu_slot(),))))
    other = reader.read(encode(node_report("n2", slices=(cpu_slot(),))))

    assert one.slices == other.slices
    assert reader.read(encode(node_report("n1", slices=(cpu_slot(),)))).slices is one.slices


def test_what_is_no_report_is_refused() -> None:
    """As the wire's decoder refuses it: another message, and a slice that is none."""
    with pytest.raises(msgspec.DecodeError):
        ReportReader().read(encode(bind()))
    raw = msgspec.msgpack.decode(encode(node_report(slices=(cpu_slot(),))))
    raw["slices"][0]["ppm"] = -1
    with pytest.raises(msgspec.DecodeError):
        ReportReader().read(msgspec.msgpack.encode(raw))


def test_every_field_of_a_device_is_compared_but_its_gauges() -> None:
    """A new field that is left out here would be noticed late."""
    assert names(DeviceReport) - GAUGES == names(SteadyDevice)
    assert names(InstanceReport) - GAUGES == names(SteadyInstance)
