"""Too few containers, for one reason or another."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_gateway.diagnosis.bottlenecks import diagnose
from pilotlight_gateway.diagnosis.diagnosis_window import QuotaFacts, SliceSpeed
from pilotlight_gateway.diagnosis.suspects import CureCost
from tests.gateway.diagnosis.windows import calls, sample, window

FULL: dict[str, Any] = {
    "samples": calls(gateway=0.2, queue=400.0, execute=95.0, respond=0.2), "containers": 1.0, "queued": 4.0,
}  # fmt: skip


def test_full_slices_are_the_bound_while_processors_idle() -> None:
    found = diagnose(window(**FULL, max_containers=1))

    assert found.name == "gpu"
    assert found.says.startswith("GPU-bound: calls to shop.f@v1 need 96% of its slices even in full batches")
    assert any("the processors are not what is short" in line for line in found.evidence)


@pytest.mark.parametrize(
    ("limits", "first", "cost"),
    [
        ({"max_containers": 1}, "max_containers=", CureCost.GPU_TIME),
        ({"max_containers": 9}, "min_containers=", CureCost.GPU_TIME),
        (
            {"owner_limit": QuotaFacts(limit="containers", tenant="shop", allowed=1.0), "max_containers": 9},
            "raise containers=1 of shop",
            CureCost.SETTING,
        ),
        ({"free_places": 0, "max_containers": 1}, "room for ", CureCost.HARDWARE),
    ],
)
def test_the_first_cure_is_what_keeps_containers_away(limits: dict[str, Any], first: str, cost: CureCost) -> None:
    found = diagnose(window(**FULL, **limits))

    assert found.cures[0].what.startswith(first)
    assert found.cures[0].cost is cost


def test_more_containers_are_no_cure_where_the_fleet_has_no_room() -> None:
    found = diagnose(window(**FULL, shortage_part=0.9, wanted=4.0))

    assert found.name == "placement"
    assert "wants at least 4 containers and 1 fit" in found.says
    assert found.cures[0].cost is CureCost.MOVES


def test_calls_that_wait_for_a_first_container_are_cold() -> None:
    samples = (sample(600.0, execute=50.0), sample(400.0, start=4_000.0, execute=50.0))
    found = diagnose(window(samples, starts=40, start_ms=4_000.0, idle_ends=40))

    assert found.name == "cold"
    assert "40% of the calls to shop.f@v1 waited for one of 40 starts of 4.0 s" in found.says
    assert found.cures[0].command == "pilotlight scale shop.f --min 1"


def test_containers_that_come_and_go_beside_others_flap() -> None:
    samples = (sample(500.0, execute=50.0), sample(500.0, queue=900.0, execute=50.0))
    found = diagnose(window(samples, starts=20, idle_ends=20, start_ms=2_000.0, starting=0.5, queued=4.0, wanted=6.0))

    assert found.name == "flapping"
    assert "--scaledown-window" in found.cures[0].command


def test_a_queue_before_idle_containers_is_one_of_bursts() -> None:
    samples = (sample(500.0, execute=50.0), sample(500.0, queue=900.0, execute=50.0))
    found = diagnose(window(samples, queued=4.0))

    assert found.name == "bursts"


def test_slots_that_were_free_meanwhile_are_not_missing() -> None:
    samples = (sample(500.0, execute=50.0), sample(500.0, queue=900.0, execute=50.0))

    assert diagnose(window(samples, queued=4.0, idle_credit_part=0.9)).name == "unknown"


def test_a_slice_is_too_small_if_a_larger_one_is_known_to_be_fast_enough() -> None:
    slow = calls(execute=500.0)
    larger = SliceSpeed(what="a whole H100", batch=1, ms=100.0)
    found = diagnose(window(slow, containers=20.0, slice="10% of H100", other_slices=(larger,)))

    assert found.name == "slice"
    assert "takes 505 ms on 10% of H100" in found.says
    assert found.cures[0].what == "ask for a whole H100 in gpu="


def test_code_that_takes_too_long_everywhere_bounds_itself() -> None:
    found = diagnose(window(calls(execute=500.0), containers=20.0))

    assert found.name == "execute"
    assert "pilotlight profile" in found.evidence[1]
