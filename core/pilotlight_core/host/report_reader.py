"""Reads nodes' reports, of which hardly anything is ever new: what is as it was before is not made again.

There are a thousand reports a second. Of one with the number of the last only what moves is read; of others the slices
and devices, which are most of them, are made if they are new. What devices gauge (use, used memory, processes) is
skipped, as it is always new, and no controller decides by it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import MOST_DEVICES, MOST_SLICES, Bytes, Ppm, ShortText
from pilotlight_core.model.devices import DeviceReport, MigMode, MigPlacement
from pilotlight_core.model.messages.node_messages import NodeReport, SliceReport
from pilotlight_core.model.messages.node_reports.report_revisions import SteadyReport

MOST_KNOWN = 20_000
"""Nodes whose hardware is remembered; the one that reported longest ago is forgotten."""
_EMPTY = msgspec.msgpack.encode(())
_RAW_EMPTY = msgspec.Raw(_EMPTY)


class SteadyInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An `InstanceReport` without its gauges."""

    slice: ShortText
    place: MigPlacement
    name: ShortText
    uuid: ShortText
    memory: Bytes
    ppm: Ppm
    container: ShortText = ""


class SteadyDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A `DeviceReport` without its gauges, whose profiles are bytes."""

    id: ShortText
    type: ShortText
    name: ShortText
    memory: Bytes
    price: ShortText
    mig: MigMode = MigMode.NONE
    shareable: bool = False
    instances: Annotated[tuple[SteadyInstance, ...], Meta(max_length=64)] = ()
    profiles: msgspec.Raw = _RAW_EMPTY
    withdrawn: str = ""
    changing: bool = False
    refused: str = ""
    fake: bool = False


class _RawReport(NodeReport, frozen=True, kw_only=True, tag="NodeReport"):
    """A report whose hardware is still bytes."""

    slices: msgspec.Raw = _RAW_EMPTY  # type: ignore[assignment]  # `read` puts them in place
    devices: msgspec.Raw = _RAW_EMPTY  # type: ignore[assignment]  # `read` puts them in place


_revision_decoder = msgspec.msgpack.Decoder(SteadyReport)
_report_decoder = msgspec.msgpack.Decoder(_RawReport)
_slices_decoder = msgspec.msgpack.Decoder(Annotated[tuple[SliceReport, ...], Meta(max_length=MOST_SLICES)])
_steady_decoder = msgspec.msgpack.Decoder(Annotated[tuple[SteadyDevice, ...], Meta(max_length=MOST_DEVICES)])
_devices_decoder = msgspec.msgpack.Decoder(Annotated[tuple[DeviceReport, ...], Meta(max_length=MOST_DEVICES)])


class _Hardware(msgspec.Struct, kw_only=True):
    """A node's, as it was last reported."""

    raw_slices: bytes = _EMPTY
    slices: tuple[SliceReport, ...] = ()
    steady: tuple[SteadyDevice, ...] = ()
    devices: tuple[DeviceReport, ...] = ()
    instance: str = ""
    revision: int = 0


class ReportReader:
    """Two reports of a node with the same slices, or the same devices but for gauges, have the same objects."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Hardware] = OrderedDict()

    def read(self, node: str, data: bytes) -> NodeReport | SteadyReport:
        """The report in `data`, or what moves of it if nothing else is new since the node's last one.

        `node` is whose subject it came on: what it says of itself is not checked here.

        Raises:
            msgspec.DecodeError: if it is none.
        """
        steady, known = _revision_decoder.decode(data), self._known.get(node)
        last = (known.instance, known.revision) if known is not None else ("", 0)
        if steady.revision and last == (steady.instance, steady.revision):
            self._known.move_to_end(node)
            return steady
        return self.read_whole(node, data)

    def read_whole(self, node: str, data: bytes) -> NodeReport:
        """The report in `data`; gauges of its devices are those of when they were last new otherwise.

        Raises:
            msgspec.DecodeError: if it is none.
        """
        report = _report_decoder.decode(data)
        raw_slices, raw_devices = bytes(report.slices), bytes(report.devices)
        known = self._known.pop(node, None) or _Hardware()
        if raw_slices != known.raw_slices:
            known.slices, known.raw_slices = _slices_decoder.decode(raw_slices), raw_slices
        steady = _steady_decoder.decode(raw_devices)
        if steady != known.steady:
            # Copies: what was read would keep the whole message in memory.
            known.devices = _devices_decoder.decode(raw_devices)
            known.steady = tuple(_copied(device) for device in steady)
        known.instance, known.revision = report.instance, report.revision
        self._known[node] = known
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        msgspec.structs.force_setattr(report, "slices", known.slices)
        msgspec.structs.force_setattr(report, "devices", known.devices)
        return report


def _copied(device: SteadyDevice) -> SteadyDevice:
    return msgspec.structs.replace(device, profiles=msgspec.Raw(bytes(device.profiles)))
