"""What a planned rollout can see at all, said before it starts. Pure.

For amounts, calls of both sides until E reaches 100 are about 2 (ln 100 G + 1.5) / (rho (1 - rho)) (sd / delta)^2, of G
guards; for pairs 12 (sd / delta)^2 + 20.
"""

from __future__ import annotations

import math

from pilotlight_core.model.rollouts.rollout_record import RolloutTerms

LATENCY_SD, COST_SD, PAIR_SD = 0.5, 0.6, 0.1
"""Of logarithms, where nothing is known of the function."""
DEFAULT_TOLERANCE = 0.05
LIVE_GUARDS = 6
SHOWN = (0.03, 0.1, 0.2, 0.5, 1.0)


def calls_to_see(part: float, sd: float, rho: float, guards: int, tolerance: float) -> float:
    """Compared calls until a rollback, if the new version is a `part` worse; infinite within the tolerance."""
    delta = math.log1p(part) - math.log1p(tolerance)
    if delta <= 0.0:
        return math.inf
    # Scores are clipped at three deviations, and lose little by it.
    return 2.0 * (math.log(100.0 * guards) + 1.5) / (rho * (1.0 - rho)) * (sd / delta) ** 2


def pairs_to_see(part: float, sd: float = PAIR_SD, tolerance: float = 0.01) -> float:
    """The same of pairs of shadows."""
    delta = math.log1p(part) - math.log1p(tolerance)
    return 12.0 * (sd / delta) ** 2 + 20.0 if delta > 0.0 else math.inf


def visible_sentences(terms: RolloutTerms, calls_per_hour: float, *, has_pairs: bool) -> list[str]:
    """The smallest regressions that the ramp will show, at the present traffic."""
    guards = LIVE_GUARDS + bool(has_pairs)
    tolerance = DEFAULT_TOLERANCE if terms.tolerance is None else terms.tolerance
    share = max(terms.steps) / 10_000
    part = min(share, 0.5) if terms.twin else 1.0
    compared_per_hour = calls_per_hour * (2.0 * part if terms.twin else 1.0)
    rho = 0.5 if terms.twin else min(max(share, 0.01), 0.5)
    if compared_per_hour <= 0.0:
        return ["Nobody calls it now, so nothing can be compared: it will end undecided, and say so."]
    found = []
    for name, sd in (("latency", LATENCY_SD), ("cost", COST_SD)):
        hours = [(worse, calls_to_see(worse, sd, rho, guards, tolerance) / compared_per_hour) for worse in SHOWN]
        seen = [f"+{worse:.0%} after {_hours(hour)}" for worse, hour in hours if math.isfinite(hour) and hour < 24 * 30]
        found.append(f"{name}: " + (", ".join(seen) if seen else "no regression below a month's calls") + ".")
    if has_pairs:
        needed = pairs_to_see(0.03)
        within = "within" if needed <= terms.pairs else "not within"
        found.append(f"cost +3 % shows after about {needed:.0f} pairs of shadows, {within} the {terms.pairs} planned.")
    return found


def _hours(hours: float) -> str:
    if hours < 1.0 / 60.0:
        return "less than a minute"
    if hours < 1.0:
        return f"{hours * 60.0:.0f} min"
    return f"{hours:.0f} h" if hours < 48.0 else f"{hours / 24.0:.0f} days"
