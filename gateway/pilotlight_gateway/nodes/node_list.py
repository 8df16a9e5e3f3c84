"""The list of nodes: their records beside their last reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pilotlight_core.model.api.node_api import NodeInfo
from pilotlight_core.model.placing import Purchase
from pilotlight_core.model.records.nodes import NodeRecord, NodeState

SHOWN = ("sandbox", "draining", "bases", "blanks", "slices", "containers", "guarantees", "clock_s", "notice")


def node_infos(reports: Iterable[dict[str, Any]], records: Iterable[NodeRecord], at: float) -> list[NodeInfo]:
    """Every node that reports or is on record, by name, at the unix second `at`."""
    up, known = {report["node"]: report for report in reports}, {record.node: record for record in records}
    return [node_info(node, up.get(node), known.get(node), at) for node in sorted(up.keys() | known.keys())]


def node_info(node: str, report: dict[str, Any] | None, record: NodeRecord | None, at: float) -> NodeInfo:
    """One of them; there is a report, or a record, or both."""
    shown: dict[str, Any] = {name: report[name] for name in SHOWN if name in report} if report is not None else {}
    joined = record is not None and record.joined
    if joined and record is not None and record.labels is not None:
        labels = record.labels
        place = {"region": labels.region, "zone": labels.zone, "pool": labels.pool, "purchase": str(labels.purchase)}
    elif report is not None:
        bought = Purchase.SPOT if report.get("spot") else Purchase.ON_DEMAND
        said = {name: report.get(name, "") for name in ("region", "zone", "pool")}
        place = {**said, "purchase": str(bought)}
    else:
        place = dict[str, str]()
    state = record.state if record is not None else NodeState.OPEN
    fields = shown | place
    return NodeInfo(
        node=node,
        status=_status(report is not None, record, at),
        state=NodeState.DRAINING if shown.get("draining") else state,
        joined=joined,
        expires_at=record.expires_at if joined and record is not None and not record.revoked_at else None,
        **fields,
    )


def _status(is_up: bool, record: NodeRecord | None, at: float) -> str:
    if record is not None and record.joined and record.why_out(at):
        return "revoked" if record.revoked_at else "expired"
    return "up" if is_up else "silent"
