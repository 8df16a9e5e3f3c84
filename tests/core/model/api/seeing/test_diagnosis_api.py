"""When what is measured afterwards is what was promised."""

from __future__ import annotations

import pytest

from pilotlight_core.model.api.seeing.diagnosis_api import PromiseInfo, keeps_promise


@pytest.mark.parametrize(
    ("promise", "kept", "broken"),
    [
        (PromiseInfo(metric="rate", value=100.0, tolerance=0.05), (96.0, 104.0, 900.0), (94.0,)),  # more is better
        (PromiseInfo(metric="p95_ms", value=100.0, tolerance=0.5, at_most=True), (3.0, 150.9), (151.1,)),
        (PromiseInfo(metric="p95_ms", value=100.0, tolerance=0.5), (50.0, 150.0), (49.0, 151.0)),
        (PromiseInfo(metric="full_part", value=0.0, tolerance=0.0, at_most=True), (0.0, 0.01), (0.011,)),
        (PromiseInfo(metric="start_part", value=0.0, tolerance=0.0), (0.0,), (0.001,)),
        (PromiseInfo(metric="loop_part", value=0.5, tolerance=0.1), (0.46, 0.54), (0.44, 0.56)),
    ],
)
def test_a_promise_is_kept_within_its_tolerance(
    promise: PromiseInfo, kept: tuple[float, ...], broken: tuple[float, ...]
) -> None:
    assert [keeps_promise(promise, now) for now in kept] == [True] * len(kept)
    assert [keeps_promise(promise, now) for now in broken] == [False] * len(broken)
