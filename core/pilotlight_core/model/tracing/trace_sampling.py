"""Which calls are traced though nobody asked: OpenTelemetry's consistent rule, by the last 56 bits of the trace id.

A call is taken if they are at least T = 2**56 (1 - ratio). Every sampler that goes by the same rule takes the same
traces, and T tells what reads them how many each stands for (`ot=th:…` in the trace state).
"""

from __future__ import annotations

from pilotlight_core.model.tracing.trace_context import SAMPLED_HERE, randomness_of

DIGITS = 14


class TraceSampler:
    """Takes one call in so many: a `ratio` of them, 0 to 1."""

    def __init__(self, ratio: float) -> None:
        self.least = round((1.0 - ratio) * 2**56)
        """T."""

    @property
    def threshold(self) -> str:
        """T as OpenTelemetry's `th` has it: hexadecimal, without zeros at its end."""
        return f"{self.least:014x}".rstrip("0") or "0"

    def context_of(self, call_id: str) -> str:
        """What stands for the traceparent of a call that came without one: `SAMPLED_HERE` if it is; else ""."""
        # Each call pays for this.
        return SAMPLED_HERE if randomness_of(call_id) >= self.least else ""

    def takes(self, trace_id: str) -> bool:
        """Whether a trace is one of those that are sampled."""
        return int(trace_id[-DIGITS:], 16) >= self.least


UNSAMPLED = TraceSampler(0.0)
"""Takes none."""
