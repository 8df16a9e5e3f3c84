"""What containers did, from their nodes' reports."""

from __future__ import annotations

from typing import Any

from pilotlight_core.model.messages.engine_report import EngineReport
from pilotlight_core.model.messages.node_messages import ContainerReport, ContainerState, EndedContainer
from pilotlight_gateway.fleet.container_history import EVERY_S, VERSIONS, ContainerHistory
from tests.builders.nodes import container, node_report

LOADING = ContainerState.LOADING


def hear(history: ContainerHistory, at: float, *containers: ContainerReport, **more: Any) -> None:
    history.on_report(node_report(revision=int(at * 10), containers=containers, **more), at)


def test_a_start_is_counted_once_and_timed_when_it_has_succeeded() -> None:
    history = ContainerHistory()
    hear(history, 60.0, container(state=LOADING, age_s=1.0))
    hear(history, 61.0, container(state=LOADING, age_s=2.0))
    hear(history, 62.0, container(age_s=3.0, timeline={"bind": 500.0, "load": 1_500.0}))
    found = history.of("ver_1", 0.0)

    assert (found.starts, found.failed_starts, found.succeeded, found.start_ms) == (1, 0, 1, 2_000.0)


def test_what_was_there_before_this_process_is_no_start() -> None:
    history = ContainerHistory()
    hear(history, 60.0, container(age_s=500.0))

    assert history.of("ver_1", 0.0).starts == 0


def test_a_container_that_ends_before_it_was_ready_is_a_start_that_failed() -> None:
    history = ContainerHistory()
    hear(history, 60.0, container(state=LOADING, age_s=1.0, reason="ImportError: no torch"))
    hear(history, 61.0)
    found = history.of("ver_1", 0.0)

    assert (found.starts, found.failed_starts, found.reason) == (1, 1, "ImportError: no torch")


def test_what_comes_and_goes_between_two_reports_is_counted_once() -> None:
    ended = (EndedContainer(id="c1", version="ver_1", tenant="acme"),)
    history = ContainerHistory()
    hear(history, 60.0)
    hear(history, 61.0, ended=ended)
    hear(history, 62.0, ended=ended)
    found = history.of("ver_1", 0.0)

    assert (found.starts, found.failed_starts) == (1, 1)


def test_what_ended_before_a_node_was_heard_of_is_no_start() -> None:
    """Nobody here knows whether that was lately, or counted by this process before the node was forgotten."""
    ended = (EndedContainer(id="c1", version="ver_1", tenant="acme"),)
    history = ContainerHistory()
    hear(history, 60.0, ended=ended)
    hear(history, 61.0, ended=ended)
    history.forget_node("n1")
    hear(history, 62.0, ended=ended)
    hear(history, 63.0, instance="i2", ended=ended)
    assert history.of("ver_1", 0.0).starts == 0

    more = (*ended, EndedContainer(id="c2", version="ver_1", tenant="acme"))
    hear(history, 64.0, instance="i2", ended=more)
    assert (history.of("ver_1", 0.0).starts, history.of("ver_1", 0.0).failed_starts) == (1, 1)


def test_an_end_that_is_told_late_is_counted_once() -> None:
    """A container is gone from its node's report some time before the node says that it ended."""
    history = ContainerHistory()
    hear(history, 60.0, container(state=LOADING, age_s=1.0))
    for at in (61.0, 62.0, 63.0):
        hear(history, at)
    hear(history, 64.0, ended=(EndedContainer(id="c1", version="ver_1", tenant="acme"),))
    assert (history.of("ver_1", 0.0).starts, history.of("ver_1", 0.0).failed_starts) == (1, 1)


def test_a_container_that_was_told_to_end_has_not_died() -> None:
    history = ContainerHistory()
    hear(history, 60.0, container("a"), container("b"))
    hear(history, 61.0, container("a", state=ContainerState.DRAINING), container("b"))
    hear(history, 62.0)
    found = history.of("ver_1", 0.0)

    assert (found.ended, found.died) == (1, 1)


def test_a_node_that_starts_anew_has_lost_its_containers_by_no_fault_of_theirs() -> None:
    history = ContainerHistory()
    hear(history, 60.0, container())
    hear(history, 61.0, instance="i2")

    assert history.of("ver_1", 0.0).died == 0


def test_processors_and_memory_are_added_up() -> None:
    history = ContainerHistory()
    hear(history, 60.0, container(cpu_ms=100, throttled_ms=10, memory_bytes=7))
    hear(history, 70.0, container(cpu_ms=600, throttled_ms=60, memory_bytes=9))
    hear(history, 130.0, container(cpu_ms=700, throttled_ms=60, memory_bytes=8))
    found = history.of("ver_1", 0.0)

    assert (found.cpu_ms, found.throttled_ms, found.memory_bytes) == (600, 50, 9)
    assert history.of("ver_1", 120.0).cpu_ms == 100


def test_a_report_with_nothing_new_is_read_every_few_seconds_only() -> None:
    history = ContainerHistory()
    for at, used in ((60.0, 0), (61.0, 100), (60.0 + EVERY_S, 500)):
        history.on_report(node_report(revision=3, containers=(container(cpu_ms=used),)), at)

    assert history.of("ver_1", 0.0).cpu_ms == 500


def test_engines_are_followed_between_reports() -> None:
    history = ContainerHistory()
    for at, steps in ((60.0, 10), (61.0, 30)):
        hear(history, at, container(engine=EngineReport(steps=steps, running=2)))
    (sample,) = history.engines("ver_1", 0.0)

    assert (sample.seconds, sample.after.steps - sample.before.steps) == (1.0, 20)
    assert history.engines("ver_1", 62.0) == []


def test_versions_are_bounded() -> None:
    history = ContainerHistory()
    for number in range(VERSIONS + 10):
        hear(history, 60.0 + number, container(f"c{number}", version=f"ver_{number}", age_s=1.0))

    assert history.of("ver_0", 0.0).starts == 0
    assert history.of(f"ver_{VERSIONS + 9}", 0.0).starts == 1
