"""How long a simulated day takes: `python -m benchmarks.simulate [--quick]`.

10,000 GPUs, 2,000 functions, 24 hours: generated traffic of all patterns (seed 7), with the controller's own rules and
the planner. Time is that of one core; what else the machine does makes no difference to `cpu_s`.
"""

from __future__ import annotations

import gc
import resource
import time

from benchmarks.report import arguments, finish, parsed, table
from pilotlight_autoscaler.simulator.fleet_options import groups_of
from pilotlight_autoscaler.simulator.function_table import FunctionTable
from pilotlight_autoscaler.simulator.results.simulation_result import ROWS
from pilotlight_autoscaler.simulator.simulation import simulation_of
from pilotlight_autoscaler.simulator.traffic.traffic_patterns import PATTERNS, PatternMix, draw_traffic
from pilotlight_core.host.gc_tuning import freeze

FLEET = {"A100-80GB": 40, "H100-80GB": 40, "L40S": 20}
"""Parts of the fleet, in percent."""


def main() -> None:
    """Simulate a day, and report how long it took."""
    parser = arguments("simulate", "how long a simulated day of 2,000 functions on 10,000 GPUs takes")
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--functions", type=int, default=2_000)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--rate", type=float, default=200.0, help="calls per second of all functions")
    parser.add_argument("--window-s", type=float, default=60.0, help="for how long idle containers stay")
    options = parsed(parser)
    if options.quick:
        options.gpus, options.functions, options.hours, options.rate = 500, 100, 1.0, 10.0
    given = {"window_s": str(options.window_s), "load_s": "20", "duration_s": "2", "max_containers": "500"}
    functions = FunctionTable(given=given)
    mix = PatternMix(
        functions=options.functions,
        minutes=round(options.hours * 60),
        calls_per_s=options.rate,
        seed=7,
        parts=dict.fromkeys(PATTERNS, 1.0),
    )
    began, worked = time.perf_counter(), time.process_time()
    traffic = draw_traffic(mix, lambda _: 2.0)
    simulation = simulation_of(
        [(functions.function(("", name)), calls) for name, calls in traffic.items()],
        groups_of([f"{name}:{options.gpus * part // 100}" for name, part in FLEET.items()]),
        minutes=mix.minutes,
        seed=7,
    )
    gc.collect()
    freeze()
    found = simulation.run().figures()
    figures = {
        "wall_s": time.perf_counter() - began,
        "cpu_s": time.process_time() - worked,
        "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6,
        "calls": found["calls"],
        "starts": found["starts"],
    }
    rows = [(words, format(found[name], how)) for name, (words, how) in ROWS.items()]
    rows += [(name, format(value, ",.1f")) for name, value in figures.items()]
    table(f"{options.gpus:,} GPUs, {options.functions:,} functions, {options.hours:g} h", ("what", "figure"), rows)
    finish("simulate", figures)


if __name__ == "__main__":
    main()
