from __future__ import annotations

from dataclasses import replace
from typing import Any

from pilotlight_gateway.diagnosis.bottlenecks import diagnose
from pilotlight_gateway.diagnosis.diagnosis_window import BatchTimes
from pilotlight_gateway.diagnosis.suspects import CallTrouble, CureCost
from tests.gateway.diagnosis.windows import calls, sample, window


def test_a_healthy_function_is_told_its_nearest_limit_and_its_headroom() -> None:
    found = diagnose(window())

    assert found.name == "nothing"
    assert "the nearest limit is slices, at 25%" in found.says
    assert found.headroom is not None
    assert 3.8 < found.headroom < 4.2


def test_of_few_calls_nothing_is_said() -> None:
    few = window(completed=12, arrivals=12, mean_inside=None, batches=(), busy_s=None)

    assert diagnose(few).name == "few"


def test_calls_that_all_fail_by_their_callers_mistake_are_no_calls_that_do_well() -> None:
    found = diagnose(window((), completed=0, arrivals=80, failed={"bad_input": 80}, mean_ms=None, batches=()))

    assert found.name == "few"
    assert "Only 0 calls of shop.f@v1 ended well in 100 s, besides 80 bad_input" in found.says


def saturated() -> dict[str, Any]:
    slow = calls(gateway=0.2, queue=400.0, execute=95.0, respond=0.2)
    return {"samples": slow, "containers": 1.0, "queued": 4.0, "max_containers": 1}


def test_the_cause_with_the_largest_gain_is_named_with_its_cures_cheapest_first() -> None:
    found = diagnose(window(**saturated()))

    assert found.name == "gpu"
    assert found.trouble is CallTrouble.SLOW
    assert [cure.cost for cure in found.cures] == sorted(cure.cost for cure in found.cures)
    assert found.cures[0].command == "pilotlight scale shop.f --max 2"
    assert {promise.metric for promise in found.promises} == {"rate", "p95_ms"}
    assert 0.5 < found.confidence < 1.0


def test_what_bounds_it_next_is_named_too() -> None:
    """A full gateway behind full containers: the second is in the way once the first is gone."""
    both = calls(gateway=500.0, queue=1_900.0, execute=95.0, respond=200.0)
    found = diagnose(window(both, containers=1.0, queued=9.0, max_containers=1, loop_part=0.97))

    assert found.name == "gpu"
    assert found.then is not None
    assert found.then.name == "gateway"


def test_two_causes_that_explain_little_alone_are_found_together() -> None:
    samples = (
        *(sample(50.0, execute=50.0) for _ in range(18)),
        sample(50.0, gateway=700.0, execute=50.0, start=700.0),
        sample(50.0, gateway=700.0, execute=50.0, start=700.0),
    )
    found = diagnose(window(samples, loop_part=0.99, starts=6, start_ms=4_000.0))

    assert found.name in ("gateway", "cold")
    assert found.then is not None


def test_trouble_without_a_known_cause_is_not_named() -> None:
    found = diagnose(window(calls(postprocess=500.0, execute=50.0)))

    assert found.name == "unknown"
    assert "postprocess is the largest stage" in found.says
    assert not found.is_bottleneck


def test_each_trouble_is_diagnosed_alone() -> None:
    """Refused calls and slow ones may have different causes."""
    refused = window(**saturated() | {"arrivals": 3_000, "failed": {"rate_limited": 2_000}})
    found = diagnose(refused)

    assert found.name == "gpu"
    assert [other.name for other in found.others] == ["quota"]


def test_callers_mistakes_are_no_trouble() -> None:
    assert diagnose(window(arrivals=1_400, failed={"bad_input": 400})).name == "nothing"


def test_a_costly_action_does_not_go_before_a_cheap_one_of_equal_gain() -> None:
    found = diagnose(window(**saturated()))

    assert found.cures[0].cost < CureCost.HARDWARE


def test_one_tenants_calls_can_be_asked_about() -> None:
    slow, quick = sample(500.0, "a", queue=800.0, execute=95.0), sample(500.0, "b", execute=95.0)
    both = window((slow, quick), containers=1.0, queued=4.0, max_containers=1, batches=(BatchTimes(1, 1_000, 95.0),))

    assert diagnose(both, "a").name == "gpu"
    assert diagnose(replace(both), "b").trouble is None
