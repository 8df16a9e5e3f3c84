"""Small simulations for tests: functions whose calls are known, on GPUs of one kind."""

from __future__ import annotations

from typing import Any

from pilotlight_autoscaler.simulator.fleet_options import groups_of
from pilotlight_autoscaler.simulator.function_table import FunctionTable
from pilotlight_autoscaler.simulator.runs.function_run import FunctionRun
from pilotlight_autoscaler.simulator.simulation import Simulation, simulation_of
from pilotlight_autoscaler.simulator.traffic.function_traffic import FunctionTraffic, RecordedCalls, TimedCall


def recorded(*calls: TimedCall) -> RecordedCalls:
    return RecordedCalls(list(calls))


def simulation(
    traffic: dict[str, FunctionTraffic],
    fleet: str = "A100-80GB:64",
    *,
    minutes: int = 10,
    warm_gib: float = 0.0,
    **settings: Any,
) -> Simulation:
    """Functions of one tenant, all with these settings; a start takes 20 s."""
    table = FunctionTable(given={"load_s": "20"} | {name: str(value) for name, value in settings.items()})
    functions = [(table.function(("", name)), calls) for name, calls in traffic.items()]
    return simulation_of(functions, groups_of([fleet]), minutes=minutes, warm_bytes=round(warm_gib * 2**30))


def run_of(traffic: FunctionTraffic, **settings: Any) -> FunctionRun:
    """One function alone."""
    return simulation({"f": traffic}, **settings).runs[0]
