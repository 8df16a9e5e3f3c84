"""What of a node's report is as before is the same object; whatever is new is read."""

from __future__ import annotations

import msgspec
import pytest

from pilotlight_core.host.report_reader import ReportReader, SteadyDevice, SteadyInstance
from pilotlight_core.model.devices import DeviceReport, InstanceReport
from pilotlight_core.model.messages.node_messages import NodeReport
from pilotlight_core.model.messages.node_reports.report_revisions import GAUGES, SteadyReport
from pilotlight_core.model.messages.wire import encode
from tests.builders.nodes import bind, container, cpu_slot, gpu_device, node_report


def whole(reader: ReportReader, report: NodeReport) -> NodeReport:
    """The report as it is read, which has no number."""
    found = reader.read(report.node, encode(report))
    assert isinstance(found, NodeReport)
    return found


def names(of: type[msgspec.Struct]) -> set[str]:
    return {field.name for field in msgspec.structs.fields(of)}


def test_hardware_as_before_is_the_same_object_whatever_its_gauges_say() -> None:
    """Containers are always read."""
    reader = ReportReader()
    first = whole(reader, node_report(slices=(cpu_slot(),), devices=(gpu_device(utilisation=10),)))
    second = whole(
        reader, node_report(slices=(cpu_slot(),), devices=(gpu_device(utilisation=90),), containers=(container(),))
    )

    assert second.slices is first.slices
    assert second.devices is first.devices
    assert [one.id for one in second.containers] == ["c1"]


def test_what_is_new_is_read() -> None:
    """A slice's container, a device's refusal, and nothing at all."""
    reader = ReportReader()
    whole(reader, node_report(slices=(cpu_slot(),), devices=(gpu_device(),)))
    other = node_report(slices=(cpu_slot(container="c1"),), devices=(gpu_device(refused="no"),))
    found = whole(reader, other)
    assert (found.slices, found.devices) == (other.slices, other.devices)

    assert (whole(reader, node_report()).slices, whole(reader, node_report()).devices) == ((), ())


def test_two_nodes_are_not_mixed_up() -> None:
    reader = ReportReader()
    one = whole(reader, node_report("n1", slices=(cpu_slot(),)))
    other = whole(reader, node_report("n2", slices=(cpu_slot(),)))

    assert one.slices == other.slices
    assert whole(reader, node_report("n1", slices=(cpu_slot(),))).slices is one.slices


def test_of_a_report_with_the_last_ones_number_only_what_moves_is_read() -> None:
    """All of it can be read even so."""
    reader = ReportReader()
    first = node_report(slices=(cpu_slot(),), containers=(container(running=0),), revision=1)
    assert whole(reader, first).revision == 1
    second = node_report(seq=2, slices=(cpu_slot(),), containers=(container(running=1, age_s=101.0),), revision=1)
    steady = reader.read("n1", encode(second))

    assert isinstance(steady, SteadyReport)
    assert (steady.node, steady.instance, steady.seq, steady.revision) == ("n1", "i1", 2, 1)
    assert [(one.id, one.running, one.age_s) for one in steady.containers] == [("c1", 1, 101.0)]
    again = reader.read_whole("n1", encode(second))
    assert (again.seq, again.slices, again.containers) == (2, second.slices, second.containers)


def test_a_report_with_another_number_or_of_another_incarnation_is_read_whole() -> None:
    reader = ReportReader()
    whole(reader, node_report(revision=1))

    whole(reader, node_report(revision=2))
    whole(reader, node_report(instance="i2", revision=2))
    whole(reader, node_report("n2", revision=2))
    whole(reader, node_report())
    whole(reader, node_report())  # an agent of before numbers none


def test_what_a_node_says_of_another_is_kept_as_its_own() -> None:
    """Whoever it names, the other one's next report is read as before, and nothing is kept under made-up names."""
    reader = ReportReader()
    whole(reader, node_report(slices=(cpu_slot(),), revision=1))
    for name in ("n1", "x1", "x2"):
        reader.read("evil", encode(node_report(name, revision=7)))

    assert isinstance(reader.read("n1", encode(node_report(seq=2, slices=(cpu_slot(),), revision=1))), SteadyReport)
    assert set(reader._known) == {"n1", "evil"}


def test_what_is_no_report_is_refused() -> None:
    """As the wire's decoder refuses it: another message, and a slice that is none."""
    with pytest.raises(msgspec.DecodeError):
        ReportReader().read("n1", encode(bind()))
    raw = msgspec.msgpack.decode(encode(node_report(slices=(cpu_slot(),))))
    raw["slices"][0]["ppm"] = -1
    with pytest.raises(msgspec.DecodeError):
        ReportReader().read("n1", msgspec.msgpack.encode(raw))


def test_every_field_of_a_device_is_compared_but_its_gauges() -> None:
    """A new field that is left out here would be noticed late."""
    assert names(DeviceReport) - GAUGES == names(SteadyDevice)
    assert names(InstanceReport) - GAUGES == names(SteadyInstance)
