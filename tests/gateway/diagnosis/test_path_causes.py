"""The gateway's thread, the bytes of bodies, the processors of containers."""

from __future__ import annotations

from pilotlight_gateway.diagnosis.bottlenecks import diagnose
from pilotlight_gateway.diagnosis.suspects import CureCost
from tests.gateway.diagnosis.windows import calls, window


def test_a_thread_that_is_never_idle_bounds_calls_while_slices_idle() -> None:
    found = diagnose(window(calls(gateway=500.0, execute=50.0, respond=200.0), loop_part=0.98))

    assert found.name == "gateway"
    assert "its thread is busy 98% of the time while the slices of shop.f@v1 are busy 2" in found.says
    assert found.promises[1].metric == "loop_part"


def test_large_bodies_bound_calls() -> None:
    found = diagnose(window(calls(transport=500.0, execute=50.0), body_bytes=8e6, link_part=0.83))

    assert found.name == "payload"
    assert "bodies of 8 MB to shop.f@v1 keep the link busy 83% of the time" in found.says
    assert found.cures[0].cost is CureCost.CALLER


def test_bodies_that_are_read_slowly_bound_calls_while_the_thread_idles() -> None:
    found = diagnose(window(calls(gateway=600.0, execute=50.0), body_bytes=4e6))

    assert found.name == "payload"
    assert "reading and answering are" in found.says


def test_small_bodies_are_no_cause() -> None:
    assert diagnose(window(calls(transport=500.0, execute=50.0), body_bytes=2e3)).name == "unknown"


def test_processors_that_work_while_the_device_waits_are_the_bound_and_not_the_device() -> None:
    found = diagnose(window(calls(queue=400.0, execute=50.0), containers=0.5, queued=4.0, guest_cpu_s=40.0))

    assert found.name == "cpu"
    assert "preprocess hook" in found.cures[0].what


def test_processors_that_are_kept_from_working_want_more_cores() -> None:
    found = diagnose(
        window(calls(queue=400.0, execute=50.0), containers=0.5, queued=4.0, guest_cpu_s=20.0, throttled_s=20.0)
    )

    assert found.name == "cpu"
    assert found.cures[0].what.startswith("cpu=2")


def test_a_device_that_computes_is_not_waited_for() -> None:
    busy = window(calls(queue=400.0, execute=50.0), containers=0.5, queued=4.0, guest_cpu_s=40.0, device_part=0.9)

    assert diagnose(busy).name != "cpu"
