"""A forecast follows what it sees, and trusts itself as far as its own errors allow."""

from __future__ import annotations

from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast


def forecast(lead: int, *needed: float) -> HoltForecast:
    made = HoltForecast(lead)
    for each in needed:
        made.observe(each)
    return made


def test_a_steady_need_is_foretold_as_it_is() -> None:
    """Without errors the bound is the mean."""
    steady = forecast(1, *[4.0] * 200)

    assert abs(steady.mean() - 4.0) < 0.01
    assert abs(steady.bound(0.95) - 4.0) < 0.01


def test_nothing_is_foretold_before_an_error_is_known() -> None:
    """One minute says nothing of the next."""
    assert forecast(1, 5.0).bound(0.95) == 0.0


def test_a_rising_need_is_met_ahead_of_it() -> None:
    """The errors of a ramp are as large as its steps over the lead."""
    ramp = [float(minute) for minute in range(60)]

    for lead in (1, 5):
        assert forecast(lead, *ramp).bound(0.95) >= 59 + lead - 1


def test_a_higher_quantile_is_never_lower() -> None:
    """A need that jumps between one and nine."""
    jumping = [9.0 if minute % 5 == 0 else 1.0 for minute in range(300)]
    bounds = [forecast(1, *jumping).bound(quantile) for quantile in (0.5, 0.8, 0.95)]

    assert bounds == sorted(bounds)
    assert bounds[0] < 4.0 < bounds[2]
