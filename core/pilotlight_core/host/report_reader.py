"""Reads nodes' reports, of which the hardware is hardly ever new: what is as it was before is not made again.

Most of a report are its slices and devices, and there are a thousand reports a second. What devices gauge (use, used
memory, processes) is skipped, as it is always new, and no controller decides by it.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Annotated

import msgspec
from msgspec import Meta

from pilotlight_core.model.bounded import MOST_DEVICES, MOST_SLICES, Bytes, Ppm, ShortText
from pilotlight_core.model.devices import DeviceReport, MigMode, MigPlacement
from pilotlight_core.model.messages.node_messages import NodeReport, SliceReport

MOST_KNOWN = 20_000
"""Nodes whose hardware is remembered; the one that reported longest ago is forgotten."""
GAUGES = frozenset({"utilisation", "memory_used", "processes"})
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


class ReportReader:
    """Two reports of a node with the same slices, or the same devices but for gauges, have the same objects."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Hardware] = OrderedDict()

    def read(self, data: bytes) -> NodeReport:
        """The report in `data`; gauges of its devices are those of when they were last new otherwise.

        Raises:
            msgspec.DecodeError: if it is none.
        """
        report = _report_decoder.decode(data)
        raw_slices, raw_devices = bytes(report.slices), bytes(report.devices)
        known = self._known.pop(report.node, None) or _Hardware()
        if raw_slices != known.raw_slices:
            known.slices, known.raw_slices = _slices_decoder.decode(raw_slices), raw_slices
        steady = _steady_decoder.decode(raw_devices)
        if steady != known.steady:
            # Copies: what was read would keep the whole message in memory.
            known.devices = _devices_decoder.decode(raw_devices)
            known.steady = tuple(_copied(device) for device in steady)
        self._known[report.node] = known
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        msgspec.structs.force_setattr(report, "slices", known.slices)
        msgspec.structs.force_setattr(report, "devices", known.devices)
        return report


def _copied(device: SteadyDevice) -> SteadyDevice:
    return msgspec.structs.replace(device, profiles=msgspec.Raw(bytes(device.profiles)))
