"""Operational laws, which hold of any window whatever the load: where they do not, something was counted wrong.

Little     calls inside = rate x mean time                        (Little; exact but for calls that straddle the ends)
Busy       sum of the times of all batches = time in which containers ran calls   (utilisation law)
Flow       arrivals = ended + refused + what is left inside
"""

from __future__ import annotations

from pilotlight_gateway.diagnosis.call_samples import mean_stage, mean_total
from pilotlight_gateway.diagnosis.diagnosis_window import TRANSPORT, DiagnosisWindow

LEAST_CALLS = 30
"""Of fewer nothing can be said."""
OFF = 0.10
"""By which two counts of the same may differ."""
FLOW_OFF = 0.02


def broken_laws(window: DiagnosisWindow) -> tuple[str, ...]:
    """A sentence for each law that the counters of a window break."""
    broken = [_littles_law(window), _utilisation_law(window), _balance_of_flow(window)]
    return tuple(sentence for sentence in broken if sentence)


def _littles_law(window: DiagnosisWindow) -> str:
    if window.mean_inside is None or window.completed < LEAST_CALLS:
        return ""
    mean_ms = window.mean_ms if window.mean_ms is not None else mean_total(window.samples)
    little = (window.completed * mean_ms / 1000 + window.failed_s) / window.seconds
    longest_s = min(window.seconds, max(mean_ms, window.longest_ms) / 1000)
    # Those that are still inside, and those who left unseen, were there for no longer than anybody was.
    straddling = (window.left_inside + window.codes("cancelled")) * longest_s / window.seconds
    if abs(little - window.mean_inside) <= OFF * max(window.mean_inside, little) + straddling + 0.5:
        return ""
    return (
        f"Little's law: {window.rate:.3g} calls a second of {mean_ms:.3g} ms make {little:.3g} inside, "
        f"but {window.mean_inside:.3g} were counted"
    )


def _utilisation_law(window: DiagnosisWindow) -> str:
    runs_apart = window.is_batched or window.batch_most == 1  # what runs at once shares its container's time
    if window.busy_s is None or not window.batches or not runs_apart:
        return ""
    ran_s = sum(each.count * each.ms for each in window.batches) / 1000
    runs = sum(each.count for each in window.batches)
    at_ends_s = 2 * max(each.ms for each in window.batches) / 1000 * max(1.0, window.containers)
    # A container is billed from when a call is handed to it until its answer is back: a part of the way is in that.
    handed_s = runs * mean_stage(window.samples, TRANSPORT) / 1000
    slack_s = (OFF + window.batches_off) * max(ran_s, window.busy_s) + at_ends_s
    if -slack_s <= window.busy_s - ran_s <= handed_s + slack_s:
        return ""
    return f"the utilisation law: calls ran for {ran_s:.3g} s, but their containers were busy for {window.busy_s:.3g} s"


def _balance_of_flow(window: DiagnosisWindow) -> str:
    lost = window.arrivals - window.ended - window.left_inside + (window.began_inside or 0)
    unknown = 3 * (window.mean_inside or 0.0) + 10 if window.began_inside is None else 0.0
    slack = FLOW_OFF * window.arrivals + 3
    if lost <= slack and -lost <= slack + unknown:
        return ""
    what = "more calls came than" if lost > 0 else "fewer calls came than"
    return (
        f"the balance of flow: {what} ended, were refused or are inside: {window.arrivals} came, "
        f"{window.ended} ended, {window.left_inside} are inside"
    )
