"""Every method has a price for functions of which nothing is known."""

from __future__ import annotations

from pilotlight_autoscaler.policy.prediction.call_chances import LEVELS, CallChances
from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast
from pilotlight_autoscaler.policy.prediction.idle_times import IdleTimes
from pilotlight_autoscaler.policy.prediction.method_set import standard_methods
from pilotlight_autoscaler.policy.prediction.minute_methods import LikelyWarmth
from pilotlight_autoscaler.policy.prediction.shadow_pool import LIKELY, NOTHING


def test_each_method_has_its_price_and_past() -> None:
    """Idle times that were seen before are known to the histograms."""
    likely = LikelyWarmth(CallChances([IdleTimes() for _ in range(LEVELS)]), 22.0)
    made = standard_methods(likely, 22.0, HoltForecast(), seen=[[60] * 12])

    assert made.methods.keys() == made.priors.keys() >= {NOTHING, LIKELY, "usual-240", "kept-10", "forecast-95"}
    usual = made.methods["usual-240"]
    usual.observe(1)
    for _ in range(30):
        usual.observe(0)
    assert usual.level() == 0
