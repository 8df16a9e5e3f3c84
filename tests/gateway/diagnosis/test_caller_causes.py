"""What callers and their limits bound."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.bottlenecks import diagnose
from pilotlight_gateway.diagnosis.diagnosis_window import FlowFacts, QuotaFacts
from tests.gateway.diagnosis.windows import calls, window

FLOWS = (
    FlowFacts(tenant="mouse", slowdown=8.0, held_part=0.05, mean_ms=480.0),
    FlowFacts(tenant="elephant", slowdown=1.1, held_part=0.95),
)


def test_a_limit_that_refuses_calls_is_named_with_what_it_allows() -> None:
    quotas = (QuotaFacts(limit="requests_per_s", tenant="shop", allowed=10.0),)
    found = diagnose(window(arrivals=1_700, failed={"rate_limited": 700}, quotas=quotas))

    assert found.name == "quota"
    assert found.evidence[0] == "shop may have requests_per_s=10"
    assert found.cures[0].command == "pilotlight quota set shop requests_per_s=26"
    assert found.promises[1].value == 17.0


def test_a_budget_that_is_used_up_is_named() -> None:
    found = diagnose(window(arrivals=1_300, failed={"budget_exhausted": 300}))

    assert found.name == "budget"


def test_jobs_that_fill_the_containers_are_named_before_a_lack_of_these() -> None:
    """Where they do not, or calls do not wait, they are not."""
    waiting = calls(queue=800.0, execute=50.0)
    found = diagnose(window(waiting, jobs_busy_s=140.0, queued=8.0))
    assert found.name == "jobs"
    assert "runs of jobs keep the slices of shop.f@v1 busy 70% of the time, its calls 25%" in found.says
    assert found.cures[1].command == "pilotlight scale shop.f --min 3 --max 3"
    assert found.promises[0].value < 300
    assert diagnose(window(waiting, jobs_busy_s=20.0, queued=8.0)).name != "jobs"
    assert diagnose(window(calls(queue=1.0, execute=400.0), jobs_busy_s=140.0)).name != "jobs"


def test_a_rate_that_nobody_asks_for_is_the_callers_bound() -> None:
    found = diagnose(window(wanted_per_s=100.0))

    assert found.name == "client"
    assert "keep 0.513 calls in flight, and 0.513 / 51.3 ms is 10/s" in found.says
    assert found.cures[0].changes == {"in_flight": 6.0}


def test_a_rate_that_is_not_reached_has_its_own_causes() -> None:
    full = window(calls(queue=400.0, execute=95.0), wanted_per_s=100.0, containers=1.0, queued=4.0, max_containers=1)

    assert diagnose(full).name == "gpu"


def test_streams_that_nobody_reads_are_their_callers_fault() -> None:
    found = diagnose(window(calls(execute=2_000.0), unread_ms=1_800.0, containers=30.0))

    assert found.name == "client"
    assert "do not read what is there" in found.says


def slowed(**more: object) -> object:
    return diagnose(
        window(calls(queue=430.0, execute=50.0), flows=FLOWS, containers=4.0, held_part=0.9, queued=4.0, **more)
    )


def test_a_neighbour_is_named_to_the_operator_and_a_number_to_the_tenant() -> None:
    found = slowed()

    assert found.name == "neighbour"  # type: ignore[attr-defined]
    assert "elephant" not in found.says  # type: ignore[attr-defined]
    assert "8.0 times as long as alone, while another tenant holds 95%" in found.says  # type: ignore[attr-defined]
    assert "calls of mouse" in found.for_operator  # type: ignore[attr-defined]
    assert found.cures[0].command == "pilotlight quota set elephant concurrency=3"  # type: ignore[attr-defined]


def test_beside_a_single_container_a_cap_is_not_enough() -> None:
    alone = diagnose(window(calls(queue=430.0, execute=50.0), flows=FLOWS, containers=1.0, queued=4.0, busy_s=50.0))

    assert alone.name == "neighbour"
    assert alone.cures[0].changes == {"concurrency": 1.0, "min_containers": 2.0}
