"""What a controller tells of itself."""

from __future__ import annotations

from typing import Any

from structlog.testing import capture_logs

from pilotlight_autoscaler.controller_metrics import ControllerMetrics
from pilotlight_autoscaler.observations.world import World
from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_core.model.messages.demand import ClassLoad
from pilotlight_core.model.messages.node_messages import Drain
from tests.autoscaler.builders import demand, record, report
from tests.builders.nodes import container


def shown(metrics: ControllerMetrics, world: World, *, leads: bool, advises: bool = False) -> dict[str, float]:
    """The values of a scrape."""
    process = ProcessMetrics(lambda: metrics.collect(world, 1.0, leads=leads, decides=leads or advises))
    text = process.exposition().decode()
    return {line.rpartition(" ")[0]: float(line.split()[-1]) for line in text.splitlines() if line[0] != "#"}


def test_the_leader_tells_what_versions_want_and_hold() -> None:
    """As its last pass saw them: one version waits for two containers, one has what it needs, one wants nothing."""
    world = World()
    world.on_report(report(container("c1", version="ver_2")), 0.0)
    world.on_demand(demand("ver_1", queued=1), 0.0)
    records = {
        "ver_1": record("ver_1", max_containers=5, buffer_containers=1),
        "ver_2": record("ver_2", min_containers=1),
        "ver_3": record("ver_3"),
    }
    metrics = ControllerMetrics()
    metrics.decided({"ver_1": (1, 2), "ver_2": (0, 1), "ver_3": (0, 0)})
    metrics.keep(records.keys(), refused=1)

    found = shown(metrics, world, leads=True)

    assert found["pilotlight_controller_leads"] == found["pilotlight_controller_nodes"] == 1
    assert found['pilotlight_controller_versions{state="wanting"}'] == 2
    assert found['pilotlight_controller_versions{state="holding"}'] == 1
    assert found['pilotlight_controller_versions{state="short"}'] == 1
    assert found['pilotlight_controller_containers{state="wanted"}'] == 3
    assert found['pilotlight_controller_containers{state="held"}'] == 1
    advised = shown(metrics, world, leads=False, advises=True)
    assert advised == {**found, "pilotlight_controller_leads": 0}


def test_what_is_not_active_any_more_is_not_told() -> None:
    """From then on; who advises tells of all that it has decided on."""
    sizes, active = {"ver_1": (1, 2), "ver_2": (1, 1)}, {"ver_1": None, "ver_2": None}
    leading, advising = ControllerMetrics(), ControllerMetrics()
    leading.decided(sizes)
    leading.keep(active.keys(), refused=0)
    del active["ver_2"]
    assert shown(leading, World(), leads=True)['pilotlight_controller_containers{state="wanted"}'] == 2

    advising.decided(sizes)
    told = shown(advising, World(), leads=False, advises=True)
    assert told['pilotlight_controller_containers{state="wanted"}'] == 3


def test_passes_and_commands_are_counted() -> None:
    """Whoever leads; what was wanted is known to the leader alone."""
    metrics = ControllerMetrics()
    metrics.pass_ended(0.002, whole=True)
    metrics.pass_ended(0.001, whole=False)
    metrics.failed_passes += 1
    metrics.command_sent(Drain(epoch=1, container="c1", within_ms=1.0, reason=""))

    found = shown(metrics, World(), leads=False)

    assert found["pilotlight_controller_leads"] == 0
    assert found['pilotlight_controller_pass_seconds_count{versions="all"}'] == 1
    assert found['pilotlight_controller_pass_seconds_sum{versions="one"}'] == 0.001
    assert found["pilotlight_controller_failed_passes_total"] == 1
    assert found['pilotlight_controller_commands_total{command="drain"}'] == 1
    assert found['pilotlight_controller_commands_total{command="switch_mig"}'] == 0
    assert not any(name.startswith("pilotlight_controller_versions") for name in found)


def test_sweeps_that_go_wrong_are_counted_and_the_first_in_a_row_is_told() -> None:
    """There are twenty a second: the log is not filled with the same."""
    metrics = ControllerMetrics()

    def sweep(*, fails: bool) -> None:
        with metrics.sweep():
            if fails:
                raise KeyError("a bug")

    with capture_logs() as logs:
        for fails in (True, True, False, True):
            sweep(fails=fails)

    assert shown(metrics, World(), leads=False)["pilotlight_controller_failed_sweeps_total"] == 3
    assert len(logs) == 2


def test_what_homes_tell_is_added_up() -> None:
    """By class, where it is fresh; versions of one function tell the same jobs."""
    world, metrics = World(), ControllerMetrics()
    loads = {"batch": ClassLoad(queued=2, running=1), "standard": ClassLoad(queued=1)}
    greet: dict[str, Any] = {"function": "acme:hello.greet", "backlog": 40, "oldest_run_ms": 1_500.0}
    for told in (
        demand("ver_1", classes=loads, **greet),
        demand("ver_2", classes={"batch": ClassLoad(running=4)}, **greet),
        demand("ver_3", function="acme:hello.other", backlog=2, refused_calls=5, late=1),
    ):
        world.on_demand(told, 0.5)
        metrics.on_demand(told)
    world.on_demand(demand("ver_4", backlog=9), -60.0)

    found = shown(metrics, world, leads=False)

    assert found['pilotlight_controller_calls{class="batch",state="queued"}'] == 2
    assert found['pilotlight_controller_calls{class="batch",state="running"}'] == 5
    assert found['pilotlight_controller_calls{class="interactive",state="queued"}'] == 0
    assert found["pilotlight_controller_backlog_jobs"] == 42
    assert found["pilotlight_controller_oldest_run_seconds"] == 1.5
    assert found["pilotlight_controller_refused_calls_total"] == 5
    assert found["pilotlight_controller_late_calls_total"] == 1
