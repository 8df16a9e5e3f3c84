"""What the platform has on record of its nodes: who joined, and what operators have said of them.

    OPEN ──cordon──▶ CORDONED ──uncordon──▶ OPEN        takes nothing new; what runs there goes on
      └────drain───▶ DRAINING ──uncordon──▶ OPEN        its containers end too, as others start elsewhere

A node that joined by a token is believed neither its zone nor how it was bought: these are what its token said, since
they decide where containers go and what they cost. A node with a user of its own in the bus's configuration has no
labels here, and says them itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from pilotlight_core.model.messages.node_messages import NodeReport, NoticeKind, SliceKind, SliceReport
from pilotlight_core.model.placing import Purchase

LIFE_S = 7 * 86_400.0
"""Of a joined node's identity; its agent renews it in the middle of that."""
NODE_KEYS = "node."
"""In front of its name: the key of a node's record in the registry."""
CORDONED = "an operator has cordoned its node"
KEYS_KEPT = 2
"""Of a node: the one it has now, and the one before, since the answer to a renewal may be lost."""


class NodeState(StrEnum):
    OPEN = "open"
    CORDONED = "cordoned"
    DRAINING = "draining"


class NodeLabels(msgspec.Struct, frozen=True, kw_only=True):
    """Where a node is and how it was bought, by its operator's word."""

    region: str
    zone: str
    pool: str = ""
    spot: bool = False

    @property
    def purchase(self) -> Purchase:
        return Purchase.SPOT if self.spot else Purchase.ON_DEMAND


class NodeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Key: `node.{node}`."""

    node: str
    labels: NodeLabels | None = None
    """None: it has not joined by a token, and only `state` is on record."""
    keys: tuple[str, ...] = ()
    """The public keys by which the bus knows it, the latest first."""
    joined_at: float = 0.0
    expires_at: float = 0.0
    revoked_at: float = 0.0
    """0: it is not."""
    state: NodeState = NodeState.OPEN

    @property
    def joined(self) -> bool:
        return self.labels is not None

    def why_out(self, at: float) -> str:
        """Why its identity does not hold at the unix second `at`; "" if it does."""
        if not self.joined:
            return "it has not joined"
        if self.revoked_at:
            return "it was revoked"
        return "" if at < self.expires_at else "its identity has expired"

    def renewed(self, key: str, at: float) -> NodeRecord:
        """The record once its agent has another key, or the same for longer."""
        keys = (key, *(known for known in self.keys if known != key))[:KEYS_KEPT]
        return replace(self, keys=keys, expires_at=at + LIFE_S)


class JoinTokenRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What one node may join by, once. Only the digest of its secret is stored. Key: `join.{id}`."""

    id: str
    sha256: str
    labels: NodeLabels
    created_at: float
    expires_at: float
    node: str = ""
    """The only name under which a node may join by it; "": any that nobody has."""


def with_labels(report: NodeReport, record: NodeRecord | None) -> NodeReport:
    """The report with what is on record in the place of what its node says of the same."""
    if record is None or (labels := record.labels) is None:
        return report
    said = (report.region, report.zone, report.spot, report.pool)
    if said == (labels.region, labels.zone, labels.spot, labels.pool):
        return report
    return replace(report, region=labels.region, zone=labels.zone, spot=labels.spot, pool=labels.pool)


def is_at_risk(report: NodeReport) -> bool:
    """Whether its provider recommends to replace it, and has not yet said that it takes it away."""
    return report.notice is not None and report.notice.kind is NoticeKind.REBALANCE


def as_recorded(report: NodeReport, record: NodeRecord | None) -> NodeReport:
    """The report as placement sees it: with the labels on record, and no room where an operator wants nothing new."""
    report = with_labels(report, record)
    if is_at_risk(report):
        report = replace(report, draining=True)  # others start elsewhere, before its provider takes it away
    if record is None or record.state is NodeState.OPEN:
        return report
    if record.state is NodeState.DRAINING:
        return replace(report, draining=True)
    devices = tuple(replace(device, withdrawn=device.withdrawn or CORDONED) for device in report.devices)
    return replace(report, devices=devices, slices=tuple(_taken(report, report.slices)))


def _taken(report: NodeReport, slices: Iterable[SliceReport]) -> Iterable[SliceReport]:
    """Without CPU slots that nobody has, each of which is a place; the place of a GPU's slice is its device."""
    held = {container.slice for container in report.containers}
    return (part for part in slices if part.kind is not SliceKind.CPU or part.container or part.id in held)
