"""The command `pilotlight simulate`: what the controller would do with this traffic on this fleet."""

# ruff: noqa: T201 - it is a command; printing is what it does

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pilotlight_autoscaler.simulator.fleet_options import BadFleet, groups_of
from pilotlight_autoscaler.simulator.function_table import (
    NODE_NUMBERS,
    NUMBERS,
    BadFunctionTable,
    FunctionTable,
    bytes_of_nodes,
    number_of,
    read_functions,
)
from pilotlight_autoscaler.simulator.results.result_page import page_of
from pilotlight_autoscaler.simulator.results.result_pictures import (
    CannotDraw,
    check_drawable,
    pareto_png,
    timeline_png,
)
from pilotlight_autoscaler.simulator.results.simulation_result import SimulationResult, as_table
from pilotlight_autoscaler.simulator.simulated_policy import CONSTANTS, changed_constants
from pilotlight_autoscaler.simulator.simulation import Simulation, simulation_of
from pilotlight_autoscaler.simulator.traffic.function_traffic import FunctionTraffic
from pilotlight_autoscaler.simulator.traffic.trace_files import FunctionKey, TraceFault
from pilotlight_autoscaler.simulator.traffic.traffic_files import read_traffic
from pilotlight_autoscaler.simulator.traffic.traffic_patterns import PATTERNS, PatternMix, draw_traffic, parts_of_mix
from pilotlight_core.model.errors import BadInput
from pilotlight_core.model.price_book import PriceBook, load_prices
from pilotlight_placement.asks.options import Prices
from pilotlight_placement.capacity_planner.demand_csv import BadTable, read_prices

INTERRUPTED = 130
PROGRESS_S = 2.0
SETTINGS = {**NUMBERS, **NODE_NUMBERS}
Faults = (BadFleet, BadFunctionTable, BadInput, BadTable, CannotDraw, TraceFault, ValueError)


class SimulatedTraffic:
    """The calls of all functions, and their classes."""

    def __init__(self, minutes: int, by_function: Mapping[FunctionKey, FunctionTraffic]) -> None:
        self.minutes = minutes
        self.by_function = by_function
        self.classes: Mapping[FunctionKey, str] = {}


def main(words: Sequence[str] | None = None) -> int:
    """Read, simulate, print; 1 with a sentence if something cannot be read, 130 if it was interrupted."""
    options = _options(words)
    try:
        if options.plot or options.html:
            check_drawable()
        variants = variants_of(options)
        results, is_whole = _simulated(options, variants)
    except Faults as error:
        where = f"{options.trace}: " if isinstance(error, TraceFault) else ""
        where = f"{options.functions}: " if isinstance(error, BadFunctionTable) and options.functions else where
        print(f"error: {where}{error}", file=sys.stderr)
        return 1
    _show(options, results)
    return 0 if is_whole else INTERRUPTED


def variants_of(options: argparse.Namespace) -> dict[str, dict[str, str]]:
    """What is to be simulated, by name: the given values, or each of those of `--vary`.

    Raises:
        ValueError: naming the word.
    """
    given = {name: str(getattr(options, name)) for name in SETTINGS if getattr(options, name) is not None}
    given |= dict(_assignment(word) for word in options.constant)
    if not options.vary:
        return {"simulated": given}
    name, texts = _assignment(options.vary)
    return {f"{name}={text}": {**given, name: text} for text in texts.split(",")}


def _assignment(word: str) -> tuple[str, str]:
    name, is_set, value = word.partition("=")
    if not is_set or name not in (*SETTINGS, *CONSTANTS):
        raise ValueError(f"{word!r}: expected NAME=VALUE, with one of {', '.join((*SETTINGS, *CONSTANTS))}")
    for text in value.split(","):
        _ = number_of(name, text or "-") if name in SETTINGS else _constant(name, text)
    return name, value


def _constant(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name}: expected a number, not {text[:40]!r}") from None


def _simulated(
    options: argparse.Namespace, variants: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, SimulationResult], bool]:
    """The results so far, and whether they are all and whole."""
    results: dict[str, SimulationResult] = {}
    for name, values in variants.items():
        constants = {each: _constant(each, text) for each, text in values.items() if each in CONSTANTS}
        settings = {each: text for each, text in values.items() if each in SETTINGS}
        with changed_constants(constants):
            simulation = _simulation(options, settings)
            results[name] = simulation.result
            try:
                with _progress(name, simulation) as progress:
                    simulation.run(progress)
            except KeyboardInterrupt:
                print(f"interrupted: {name} is as of {simulation.result.at / 3600.0:.2f} h", file=sys.stderr)
                return results, False
    return results, True


def _simulation(options: argparse.Namespace, settings: Mapping[str, str]) -> Simulation:
    given = {"gpu": options.gpu, **settings} if options.gpu else dict(settings)
    table = read_functions(options.functions, given) if options.functions else FunctionTable(given=given)
    traffic = _traffic(options, table)
    functions = [
        (table.function(key, traffic.classes.get(key, "")), calls) for key, calls in traffic.by_function.items()
    ]
    return simulation_of(
        functions, groups_of(options.fleet), _prices(options), minutes=traffic.minutes, seed=options.seed,
        warm_bytes=bytes_of_nodes(settings),
    )  # fmt: skip


def _traffic(options: argparse.Namespace, table: FunctionTable) -> SimulatedTraffic:
    if options.trace:
        found = read_traffic(options.trace, table.duration_s, options.seed)
        traffic = SimulatedTraffic(min(found.minutes, _minutes(options, found.minutes)), found.by_function)
        traffic.classes = found.classes
        return traffic
    mix = PatternMix(
        functions=options.count,
        minutes=_minutes(options, 24 * 60),
        calls_per_s=options.rate,
        seed=options.seed,
        parts=parts_of_mix(options.generate),
    )
    drawn = draw_traffic(mix, lambda name: table.duration_s(("", name)))
    return SimulatedTraffic(mix.minutes, {("", name): calls for name, calls in drawn.items()})


def _minutes(options: argparse.Namespace, otherwise: int) -> int:
    return otherwise if options.hours is None else max(1, round(options.hours * 60))


def _prices(options: argparse.Namespace) -> Prices:
    book = load_prices(options.price_file)
    book.refresh(time.time())
    if options.prices:
        from pilotlight_core.model.devices import gpu_price

        rates = {gpu_price(name): round(dollars * 10**9) for name, dollars in read_prices(options.prices).items()}
        book = PriceBook(rates=book.rates | rates)
    return Prices(book=book)


@contextmanager
def _progress(name: str, simulation: Simulation) -> Iterator[Callable[[float], None]]:
    """Say on stderr how far a simulation is, if that takes long."""
    began = told = time.monotonic()
    steps, end = 0, simulation.minutes * 60.0

    def progress(at: float) -> None:
        nonlocal steps, told
        steps += 1
        if steps % 1_000:
            return
        now = time.monotonic()
        if now - told >= PROGRESS_S:
            told = now
            print(f"{name}: {at / 3600.0:.2f} h of {end / 3600.0:.2f} h, {now - began:.0f} s", file=sys.stderr)

    yield progress


def _show(options: argparse.Namespace, results: Mapping[str, SimulationResult]) -> None:
    if options.json:
        print(json.dumps({"simulations": {name: result.as_json() for name, result in results.items()}}))
    else:
        print("\n".join(as_table({name: result.figures() for name, result in results.items()})))
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        (options.plot / "pareto.png").write_bytes(pareto_png(results))
        for number, (name, result) in enumerate(results.items(), start=1):
            suffix = f"-{number}" if len(results) > 1 else ""
            (options.plot / f"timeline{suffix}.png").write_bytes(timeline_png(name, result))
    if options.html:
        what = options.trace.name if options.trace else f"{options.count} functions of {', '.join(options.generate)}"
        options.html.write_text(page_of(results, f"{what} on {', '.join(options.fleet)}"), encoding="utf-8")


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="pilotlight simulate", description="the controller's decisions over traffic on a fleet, in virtual time"
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--trace", type=Path, help="CSV: function,at_s,duration_s or function,minute,count")
    source.add_argument("--generate", action="append", metavar="PATTERN[=PART]", help=f"of {', '.join(PATTERNS)}")
    parser.add_argument("--count", type=int, default=100, help="functions to generate")
    parser.add_argument("--rate", type=float, default=10.0, help="calls per second of all generated functions together")
    parser.add_argument("--hours", type=float, help="hours to simulate; default: the trace, or 24")
    parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn")
    parser.add_argument(
        "--fleet", action="append", required=True, help="H100-80GB:8, A100-80GB:16:mig, or a plan's JSON"
    )
    parser.add_argument("--functions", type=Path, help="CSV: function, and what is known of it")
    parser.add_argument("--gpu", help="GPU of functions that name none: H100, H100|A100, CPU; default any")
    for name, known in SETTINGS.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=_number_of(name), dest=name, help=f"{known.what}; default {known.default:g}")
    parser.add_argument("--prices", type=Path, help="CSV: gpu, price in dollars per hour, over the price book")
    parser.add_argument("--price-file", type=Path, help="TOML: a price file as gateways have it")
    parser.add_argument("--set", action="append", default=[], dest="constant", metavar="NAME=VALUE", help="a constant")
    parser.add_argument("--vary", metavar="NAME=V1,V2", help="simulate once for each value, and compare")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="write pictures (needs pilotlight[plots])")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with table and pictures")
    options = parser.parse_args(words)
    if not 0 < options.count <= 100_000 or not 0 < options.rate <= 1e6:
        parser.error("--count: expected 1 to 100000, --rate: more than 0 and at most 1e6")
    if options.hours is not None and not 0 < options.hours <= 366 * 24:
        parser.error("--hours: expected more than 0 and at most 8784")
    return options


def _number_of(column: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        try:
            number_of(column, text or "-")
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return text

    return read


if __name__ == "__main__":
    sys.exit(main())
