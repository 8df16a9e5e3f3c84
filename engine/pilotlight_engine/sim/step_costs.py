"""How long a step takes on a device that is described by four numbers."""

from __future__ import annotations

from dataclasses import dataclass

from pilotlight_engine.scheduling.token_sequence import StepPlan


@dataclass(frozen=True, kw_only=True, slots=True)
class StepCosts:
    """Milliseconds. A step costs something by itself, for each token computed, and for what is read of stored ones."""

    step_ms: float = 5.0
    prefill_token_ms: float = 0.05
    decode_token_ms: float = 0.1
    stored_token_ms: float = 0.0001
    """For each token whose keys and values a step reads."""

    def duration_ms(self, plan: StepPlan) -> float:
        """How long the plan takes."""
        prefilled = sum(span.end - span.start for span in plan.prefills)
        stored = sum(span.end for span in plan.spans)
        return (
            self.step_ms
            + prefilled * self.prefill_token_ms
            + len(plan.decodes) * self.decode_token_ms
            + stored * self.stored_token_ms
        )
