"""Containers that do not start, or die."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.bottlenecks import diagnose
from tests.gateway.diagnosis.windows import window


def test_a_crash_loop_is_never_a_lack_of_capacity() -> None:
    found = diagnose(
        window(
            (), completed=0, arrivals=40, failed={"load_failed": 38, "breaker_open": 2}, starts=6, failed_starts=6,
            containers=0.0, start_error="ImportError: no torch", mean_inside=None, mean_ms=None, batches=(),
            busy_s=None, shortage_part=0.6,
        )
    )  # fmt: skip

    assert found.name == "crash_loop"
    assert found.says == ("Crash loop: 6 of 6 starts of shop.f@v1 failed before it was ready: ImportError: no torch.")
    assert found.cures[0].command == "pilotlight logs shop.f"


def test_containers_that_die_at_their_limit_of_memory_lack_memory() -> None:
    found = diagnose(window(arrivals=1_050, failed={"container_died": 50}, died=9, memory_part=0.99))

    assert found.name == "memory"


def test_containers_that_die_for_another_reason_have_their_breaker_named() -> None:
    found = diagnose(window(arrivals=1_050, failed={"container_died": 20, "breaker_open": 30}, died=9, breaker="open"))

    assert found.name == "breaker"
    assert "9 containers of shop.f@v1 died while they served, and 30 calls were refused after it" in found.says


def test_calls_that_run_past_their_timeout_are_named() -> None:
    assert diagnose(window(arrivals=1_040, failed={"execution_timeout": 40})).name == "timeout"
