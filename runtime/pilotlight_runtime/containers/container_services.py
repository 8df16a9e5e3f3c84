"""What all containers of a node share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pilotlight_runtime.calls.credits import Credits
from pilotlight_runtime.calls.origin_frames import OriginSender
from pilotlight_runtime.calls.remote_bodies import BodyTransfers
from pilotlight_runtime.calls.slot_table import SlotTable
from pilotlight_runtime.calls.waiting_calls import WaitingCalls
from pilotlight_runtime.containers.blank_pool import BlankPool
from pilotlight_runtime.containers.staging import Stager
from pilotlight_runtime.devices.device_port import Devices
from pilotlight_runtime.logs.log_shipper import LogShipper
from pilotlight_runtime.metering.usage_metering import Metering, boot_ns
from pilotlight_runtime.metering.work_log import WorkLog


@dataclass(frozen=True, kw_only=True)
class NodeServices:
    """Made once by the agent."""

    stager: Stager
    pool: BlankPool
    devices: Devices
    slots: SlotTable
    origins: OriginSender
    bodies: BodyTransfers
    credits: Credits
    metering: Metering
    shipper: LogShipper
    waiting: WaitingCalls
    work: WorkLog = field(default_factory=WorkLog)
    clock: Callable[[], float] = time.monotonic
    boot_ns: Callable[[], int] = boot_ns
