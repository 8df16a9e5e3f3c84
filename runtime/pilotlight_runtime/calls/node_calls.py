"""What the calls of all containers of a node share."""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_runtime.calls.credits import Credits
from pilotlight_runtime.calls.gateway_links import GatewayLinks
from pilotlight_runtime.calls.nested_asks import NestedAsks
from pilotlight_runtime.calls.origin_frames import OriginSender
from pilotlight_runtime.calls.remote_bodies import BodyTransfers
from pilotlight_runtime.calls.slot_table import SlotTable
from pilotlight_runtime.calls.waiting_calls import WaitingCalls


@dataclass(frozen=True, kw_only=True)
class NodeCalls:
    slots: SlotTable
    waiting: WaitingCalls
    links: GatewayLinks
    origins: OriginSender
    bodies: BodyTransfers
    credits: Credits
    nested: NestedAsks
