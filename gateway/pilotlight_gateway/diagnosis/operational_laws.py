"""Operational laws, which hold of any window whatever the load: where they do not, something was counted wrong.

Little     calls inside = rate x mean time                        (Little; exact but for calls that straddle the ends)
Busy       sum of the times of all batches = time in which containers ran calls   (utilisation law)
Flow       arrivals = ended + refused + what is left inside
"""

from __future__ import annotations

from pilotlight_gateway.diagnosis.call_samples import mean_total
from pilotlight_gateway.diagnosis.diagnosis_window import DiagnosisWindow

LEAST_CALLS = 30
"""Of fewer nothing can be said."""
HANDED_OVER_S = 0.008
"""In which a container is billed for a batch, and its code does not run yet, or no more."""
OFF = 0.10
"""By which two counts of the same may differ."""
FLOW_OFF = 0.02


def broken_laws(window: DiagnosisWindow) -> tuple[str, ...]:
    """A sentence for each law that the counters of a window break."""
    broken = []
    if window.mean_inside is not None and window.completed >= LEAST_CALLS:
        mean_ms = window.mean_ms if window.mean_ms is not None else mean_total(window.samples)
        little = (window.completed * mean_ms / 1000 + window.failed_s) / window.seconds
        longest_s = max(mean_ms, window.p95_ms or 0.0) / 1000
        unseen = window.codes("cancelled") * longest_s / window.seconds  # nobody knows how long those took
        straddling = window.left_inside * mean_ms / 1000 / window.seconds + unseen
        if abs(little - window.mean_inside) > OFF * max(window.mean_inside, little) + straddling + 0.5:
            broken.append(
                f"Little's law: {window.rate:.3g} calls a second of {mean_ms:.3g} ms make {little:.3g} inside, "
                f"but {window.mean_inside:.3g} were counted"
            )
    runs_apart = window.is_batched or window.batch_most == 1  # what runs at once shares its container's time
    if window.busy_s is not None and window.batches and runs_apart:
        ran_s = sum(each.count * each.ms for each in window.batches) / 1000
        runs = sum(each.count for each in window.batches)
        at_ends_s = 2 * max((each.ms for each in window.batches), default=0.0) / 1000 * max(1.0, window.ready)
        if (
            abs(ran_s - window.busy_s)
            > (OFF + window.batches_off) * max(ran_s, window.busy_s) + at_ends_s + HANDED_OVER_S * runs
        ):
            broken.append(
                f"the utilisation law: calls ran for {ran_s:.3g} s, "
                f"but their containers were busy for {window.busy_s:.3g} s"
            )
    lost = window.arrivals - window.ended - window.left_inside + (window.began_inside or 0)
    unknown = 3 * (window.mean_inside or 0.0) + 10 if window.began_inside is None else 0.0
    if lost > FLOW_OFF * window.arrivals + 3 or -lost > FLOW_OFF * window.arrivals + 3 + unknown:
        what = "more calls came than" if lost > 0 else "fewer calls came than"
        broken.append(
            f"the balance of flow: {what} ended, were refused or are inside: {window.arrivals} came, "
            f"{window.ended} ended, {window.left_inside} are inside"
        )
    return tuple(broken)
