"""Every method has a price for functions of which nothing is known."""

from __future__ import annotations

from pilotlight_autoscaler.policy.prediction.forecast import HoltForecast
from pilotlight_autoscaler.policy.prediction.keep_alive import LearntKeepAlive
from pilotlight_autoscaler.policy.prediction.method_set import LEARNT, standard_methods
from pilotlight_autoscaler.policy.prediction.minute_methods import LEVELS, PlannedWarmth
from pilotlight_autoscaler.policy.prediction.shadow_pool import NOTHING


def test_each_method_has_its_price_and_past() -> None:
    """Idle times that were seen before are known to the histograms."""
    learnt = PlannedWarmth([LearntKeepAlive((22.0,)) for _ in range(LEVELS)])
    made = standard_methods(learnt, 22.0, HoltForecast(), seen=[[60] * 12])

    assert made.methods.keys() == made.priors.keys() >= {NOTHING, LEARNT, "usual-240", "kept-10", "forecast-95"}
    usual = made.methods["usual-240"]
    usual.observe(1)
    for _ in range(30):
        usual.observe(0)
    assert usual.level() == 0
