"""A function of a simulation asks placement as a deployed one does."""

from __future__ import annotations

from pilotlight_autoscaler.simulator.runs.simulated_function import SimulatedFunction, spec_of
from pilotlight_core.model.units import GpuAsk


def test_it_asks_for_what_its_spec_says() -> None:
    """By its tenant and name."""
    spec = spec_of("f", gpu=(GpuAsk("H100"),), vram=2**30, max_inputs=4)
    function = SimulatedFunction(tenant="acme", spec=spec, load_s=1.0, duration_s=1.0)

    assert function.key == "acme:f"
    assert (function.ask.function, function.ask.tenant) == ("acme:f", "acme")
    assert (function.ask.gpu, function.ask.vram, spec.slots) == ((GpuAsk("H100"),), 2**30, 4)
