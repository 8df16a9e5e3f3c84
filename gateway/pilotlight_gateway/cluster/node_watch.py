"""Passes the messages of nodes to the drivers of this gateway."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import structlog

from pilotlight_core.model.messages.node_messages import Credit, NodeReport, Shortage
from pilotlight_gateway.cluster.node_incarnations import GoneNode, NodeIncarnations

log = structlog.get_logger(__name__)


class NodeListener(Protocol):
    """A driver that acts on the messages of nodes."""

    def on_credit(self, credit: Credit, at: float) -> None:
        """A container reports its state and room."""
        ...

    def on_shortage(self, shortage: Shortage, at: float) -> None:
        """The controller has no capacity for a version."""
        ...

    def node_gone(self, gone: GoneNode, at: float) -> None:
        """An agent is gone, or counts as gone, with all that it ran."""
        ...

    def on_node_unheard(self, node: str, at: float) -> None:
        """A node's agent does not listen."""
        ...


class NodeWatch:
    """Passes messages on, and finds the nodes that are gone."""

    def __init__(self, listeners: Sequence[NodeListener], nodes: NodeIncarnations) -> None:
        self._listeners = tuple(listeners)
        self._nodes = nodes

    def check_silence(self, at: float) -> None:
        """Find silent nodes. Call it at least once a second."""
        for gone in self._nodes.lost(at):
            self._gone(gone, at)
        self._nodes.forget(at)

    def on_credit(self, credit: Credit, at: float) -> None:
        """A container reports its state: its node lives."""
        self._seen(credit.node, credit.instance, at)
        for listener in self._listeners:
            listener.on_credit(credit, at)

    def on_report(self, report: NodeReport, at: float) -> None:
        """A node reports its state, or its end."""
        if not report.stopped:
            self._seen(report.node, report.instance, at)
        elif (gone := self._nodes.stopped(report.node, report.instance)) is not None:
            self._gone(gone, at)

    def on_shortage(self, shortage: Shortage, at: float) -> None:
        """The controller has no capacity for a version."""
        for listener in self._listeners:
            listener.on_shortage(shortage, at)

    def on_unheard(self, node: str, at: float) -> None:
        """No agent listens at a node."""
        for listener in self._listeners:
            listener.on_node_unheard(node, at)

    def _seen(self, node: str, instance: str, at: float) -> None:
        if (gone := self._nodes.seen(node, instance, at)) is not None:
            self._gone(gone, at)

    def _gone(self, gone: GoneNode, at: float) -> None:
        log.warning("node gone", node=gone.node, reason=gone.reason)
        for listener in self._listeners:
            listener.node_gone(gone, at)
