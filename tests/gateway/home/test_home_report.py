"""What a home reports of its breakers and slowdowns."""

from __future__ import annotations

import pytest

from pilotlight_core.model.messages.scheduling import FLOWS_TOLD, QUEUES_TOLD, BreakerReport
from pilotlight_gateway.home.breakers import CONTAINER_FAILURES, FIRST_PAUSE_S, VERSION_FAILURES, ContainerVerdict
from pilotlight_gateway.home.call_admission import QueueLimits
from pilotlight_gateway.home.home import Home
from pilotlight_gateway.home.home_report import BreakerCounts, breakers_of, loads_of, worst_of
from pilotlight_gateway.home.version_queue import VersionQueue
from tests.builders.calls import call, credit


@pytest.fixture
def queue() -> VersionQueue:
    """One version with one container."""
    made = VersionQueue("ver_1", QueueLimits(), 1, 0.0)
    made.pool.update(credit("c1"), 0.0)
    return made


def lose(queue: VersionQueue, *tenants: str, count: int) -> None:
    """So many containers are lost that held calls of these tenants."""
    for n in range(count):
        queue.losses.lost(f"lost{n}", tenants, "exit code 139", 10.0)


def keep_late(queue: VersionQueue, count: int) -> None:
    """The container keeps so many calls of two tenants far too long."""
    for n in range(count):
        queue.pool.ended("c1", f"call{n}", f"t{n % 2}", ContainerVerdict.LATE, 10.0)


def test_a_version_without_failures_reports_nothing(queue: VersionQueue) -> None:
    """Closed breakers without failures are not worth a message."""
    queue.pool.ended("c1", "call", "acme", ContainerVerdict.FINE, 1.0)
    assert list(breakers_of(queue, 1.0)) == []
    assert BreakerCounts.of([queue]) == BreakerCounts()


def test_failures_of_a_tenant_are_reported_beside_those_of_the_version(queue: VersionQueue) -> None:
    """Five lost containers of one tenant open its breaker only; the version's counts them and stays closed."""
    lose(queue, "acme", count=VERSION_FAILURES)
    assert list(breakers_of(queue, 10.25)) == [
        BreakerReport(version="ver_1", state="closed", failures=VERSION_FAILURES),
        BreakerReport(
            version="ver_1", tenant="acme", state="open", failures=VERSION_FAILURES, retry_after=FIRST_PAUSE_S - 0.25
        ),
    ]
    assert BreakerCounts.of([queue]) == BreakerCounts(tenants=1)


def test_a_pause_that_is_over_has_nothing_left(queue: VersionQueue) -> None:
    """The breaker is still open, since no call has come to probe, but a call may come at once."""
    lose(queue, count=VERSION_FAILURES)
    (report,) = breakers_of(queue, 11.0 + FIRST_PAUSE_S)
    assert (report.state, report.retry_after) == ("open", 0.0)
    assert BreakerCounts.of([queue]) == BreakerCounts(versions=1)


def test_a_container_is_reported_from_its_first_failure_and_counted_once_its_breaker_opens(queue: VersionQueue) -> None:
    """Operators see failures gather before a container gets no more calls."""
    keep_late(queue, CONTAINER_FAILURES - 1)
    (report,) = breakers_of(queue, 10.0)
    assert (report.container, report.state, report.failures) == ("c1", "closed", CONTAINER_FAILURES - 1)
    assert BreakerCounts.of([queue]).containers == 0

    keep_late(queue, 1)
    (report,) = breakers_of(queue, 10.0)
    assert (report.container, report.state, report.retry_after) == ("c1", "open", FIRST_PAUSE_S)
    assert BreakerCounts.of([queue, queue]).containers == 2


def test_the_worst_of_each_class_is_the_largest() -> None:
    """Over all versions; a class that only one version knows counts too."""
    assert worst_of([]) == {}
    assert worst_of([{"batch": 2.0, "standard": 1.0}, {"batch": 1.5}, {"interactive": 3.0}]) == {
        "batch": 2.0,
        "standard": 1.0,
        "interactive": 3.0,
    }


def test_what_waits_at_a_home_is_told_the_longest_wait_first() -> None:
    """With whose calls they are; a version without calls is not among them."""
    home = Home(gateway="g", epoch=1)
    home.enqueue(call("a1", version="ver_a", tenant="acme", function="acme:shop.a"), 1.0)
    home.enqueue(call("b1", version="ver_b", tenant="acme", function="acme:shop.b"), 2.0)
    home.enqueue(call("b2", version="ver_b", tenant="friend", function="acme:shop.b"), 3.0)

    told = loads_of(home.queues, 4.0)

    assert (told.queued, told.left, told.slow) == (3, 0, ())
    assert [(one.version, one.queued, one.oldest_ms) for one in told.queues] == [
        ("ver_a", 1, 3_000.0), ("ver_b", 2, 2_000.0),
    ]  # fmt: skip
    assert [(flow.tenant, flow.queued, flow.oldest_ms) for flow in told.queues[1].flows] == [
        ("acme", 1, 2_000.0), ("friend", 1, 1_000.0),
    ]  # fmt: skip
    assert loads_of(Home(gateway="g", epoch=1).queues, 4.0).queues == ()


def test_no_more_queues_are_told_than_others_read() -> None:
    """The rest is counted."""
    home = Home(gateway="g", epoch=1)
    for n in range(QUEUES_TOLD + 3):
        home.enqueue(call(f"c{n}", version=f"ver_{n}", function=f"acme:shop.f{n}"), float(n))
    for n in range(FLOWS_TOLD + 2):
        waiting = call(f"d{n}", version="ver_0", tenant=f"t{n}", function="acme:shop.f0")
        home.enqueue(waiting, 90.0)

    told = loads_of(home.queues, 100.0)

    assert (len(told.queues), told.left, told.queued) == (QUEUES_TOLD, 3, QUEUES_TOLD + FLOWS_TOLD + 5)
    assert (len(told.queues[0].flows), told.queues[0].flows_left) == (FLOWS_TOLD, 3)
