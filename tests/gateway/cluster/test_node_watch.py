"""What nodes say reaches all drivers, and a node that is gone is told once."""

from __future__ import annotations

from pilotlight_core.model.messages.node_messages import Credit, NodeReport, Shortage
from pilotlight_gateway.cluster.node_incarnations import LOST_AFTER_S, GoneNode, NodeIncarnations
from pilotlight_gateway.cluster.node_watch import NodeWatch
from tests.builders.calls import credit


class Heard:
    """A driver that keeps what it hears."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def on_credit(self, credit: Credit, at: float) -> None:
        self.said.append(f"credit {credit.container}")

    def on_shortage(self, shortage: Shortage, at: float) -> None:
        self.said.append(f"shortage {shortage.version}")

    def node_gone(self, gone: GoneNode, at: float) -> None:
        self.said.append(f"gone {gone.instance}")

    def on_node_unheard(self, node: str, at: float) -> None:
        self.said.append(f"unheard {node}")


def report(instance: str, *, stopped: bool = False) -> NodeReport:
    return NodeReport(
        node="n1", instance=instance, seq=1, region="r", zone="z", sandbox="process", stopped=stopped
    )  # fmt: skip


def test_everybody_hears_everything() -> None:
    """In the order of its coming."""
    homes, origins = Heard(), Heard()
    watch = NodeWatch((homes, origins), NodeIncarnations())
    watch.on_credit(credit(), 0.0)
    watch.on_shortage(Shortage(version="ver_1", epoch=1, reason="none"), 0.0)
    watch.on_unheard("n1", 0.0)
    assert homes.said == origins.said == ["credit c1", "shortage ver_1", "unheard n1"]


def test_a_node_that_is_followed_stopped_or_silent_is_gone() -> None:
    """That of a former incarnation is told before what the new one says; none is told twice."""
    heard = Heard()
    watch = NodeWatch((heard,), NodeIncarnations())
    watch.on_report(report("i1"), 0.0)
    watch.on_credit(credit(instance="i2"), 0.1)
    watch.on_report(report("i2", stopped=True), 0.2)
    watch.on_report(report("i2", stopped=True), 0.3)
    watch.on_report(report("i3"), 0.4)
    for tenth in range(int(LOST_AFTER_S * 10) + 10):
        watch.check_silence(0.5 + tenth / 10.0)
    assert heard.said == ["gone i1", "credit c1", "gone i2", "gone i3"]
