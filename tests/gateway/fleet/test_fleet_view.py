"""What is listed of containers."""

from __future__ import annotations

from pilotlight_core.model.devices import MigMode
from pilotlight_core.model.messages.node_messages import HostShare, NodeReport
from pilotlight_core.model.messages.scheduling import BreakerReport, Breakers
from pilotlight_core.model.records.nodes import NodeLabels, NodeRecord
from pilotlight_gateway.fleet.clock_watch import REPORTS, ClockKind
from pilotlight_gateway.fleet.fleet_view import FORGOTTEN_S, REMEMBERED_S, SILENT_S, FleetView, guarantees_of
from tests.builders.nodes import CEILINGS, GIB, container, gpu_device, gpu_node, node_report


def report(seq: int = 1) -> NodeReport:
    return node_report(seq=seq, containers=(container("c1"), container("c2")))


def breakers(view: FleetView, at: float) -> list[tuple[str, int, str]]:
    return [(c["breaker"], c["failures"], c["version_breaker"]) for c in view.containers("acme", at)]


def test_breakers_are_listed_with_their_containers() -> None:
    """As the home of the version last told, whichever gateway that is; closed where nothing was said, or long ago."""
    view = FleetView()
    view.on_report(report(), 0.0)
    assert breakers(view, 0.0) == [("closed", 0, "closed")] * 2
    told = (
        BreakerReport(version="ver_1", container="c1", state="open", failures=5, retry_after=1.0),
        BreakerReport(version="ver_1", state="half_open", failures=6),
        BreakerReport(version="ver_1", tenant="t1", state="open", failures=5),
        BreakerReport(version="ver_1", tenant="t2", state="closed", failures=1),
    )
    view.on_breakers(Breakers(gateway="gw1", reports=told), 1.0)
    view.on_breakers(Breakers(gateway="gw2"), 1.0)
    assert breakers(view, 1.0) == [("open", 5, "half_open"), ("closed", 0, "half_open")]
    assert [container["tenant_breakers"] for container in view.containers(None, 1.0)] == [1, 1]

    view.on_report(report(2), SILENT_S + 2.0)
    assert breakers(view, SILENT_S + 2.0) == [("closed", 0, "closed")] * 2
    view.on_breakers(Breakers(gateway="gw1", reports=told), SILENT_S + 2.0)
    view.on_breakers(Breakers(gateway="gw1"), SILENT_S + 3.0)
    assert breakers(view, SILENT_S + 3.0) == [("closed", 0, "closed")] * 2


def test_what_counts_no_more_is_forgotten() -> None:
    """Nodes and gateways that died without a word; nodes count as part of the fleet for longer than they are listed."""
    view = FleetView()
    view.on_report(report(), 0.0)
    view.on_breakers(Breakers(gateway="gw1", reports=(BreakerReport(version="ver_1", state="open", failures=5),)), 0.0)
    view.forget(FORGOTTEN_S)
    assert (len(view._reports), len(view._breakers)) == (1, 1)
    view.forget(FORGOTTEN_S + 1.0)
    assert (len(view._reports), len(view._breakers)) == (1, 0)
    assert [each.node for each in view.remembered(REMEMBERED_S)] == ["n1"]
    view.forget(REMEMBERED_S + 1.0)
    assert not view._reports


def test_nodes_are_listed_by_name() -> None:
    """Whichever reported first."""
    view = FleetView()
    for name in ("b", "a", "c"):
        view.on_report(node_report(name), 0.0)

    assert [node["node"] for node in view.nodes(0.0)] == ["a", "b", "c"]


def test_nodes_say_their_base_environments() -> None:
    """An older agent has the one that every agent has."""
    view = FleetView()
    view.on_report(node_report("new", bases=("default", "torch")), 0.0)
    view.on_report(node_report("old"), 0.0)

    assert [node["bases"] for node in view.nodes(0.0)] == [("default", "torch"), ("default",)]


def test_a_node_says_what_it_guarantees() -> None:
    """Of its report what bounds containers; an older agent says less."""
    gpu = gpu_device("GPU-1", mig=MigMode.ON, withdrawn="it is hot")
    host = HostShare(cpu_millis=32_000, memory=GIB)
    held = guarantees_of(gpu_node("n1", host=host, ceilings=CEILINGS, features=("shm",), devices=(gpu,)))

    assert (held["sandbox"], held["isolated"], held["host"]) == ("bubblewrap", True, {"cores": 32.0, "memory": GIB})
    assert held["devices"] == [
        {"id": "GPU-1", "type": "H100", "mig": "on", "shares": False, "software": False, "withdrawn": "it is hot"}
    ]
    assert held["limits"] == {"shm": GIB, "scratch": GIB, "pids": 1024}
    assert guarantees_of(node_report("n2", sandbox="process")) == {
        "sandbox": "process", "isolated": False, "features": [],
    }  # fmt: skip


def test_a_nodes_clock_and_labels_are_shown() -> None:
    """The first as it was heard, the others as they are on record."""
    view = FleetView()
    labels = NodeLabels(region="eu", zone="eu-1", spot=True)
    view.record_of = {"n1": NodeRecord(node="n1", labels=labels)}.get
    view.on_report(node_report("n1", zone="elsewhere"), 0.0)
    for _ in range(REPORTS):
        view.clocks.on_stamp(ClockKind.NODE, "n1", 103.0, 100.0)

    (node,) = view.nodes(0.0)
    assert (node["zone"], node["spot"], node["clock_s"]) == ("eu-1", True, 3.0)
