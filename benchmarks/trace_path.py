"""What tracing costs a call, part by part, where a busy machine cannot tell: in one process, without sockets.

The gateway is that of `gateway_path`: real connections, limits, homes and origins, an agent that answers at once. The
same one traces and does not in turns of a few hundred calls, so a drift of the machine hits both; what it keeps is told
to the duties, whose part of it runs here too, but for the request to the collector.

    call_us              of a call at the gateway, of which none is traced
    kept_us              more of one at the gateway where all are kept, with its part of the message to the duties
    kept_error           the standard error of that median
    sampled_us           more of one at the gateway where one of a thousand is
    sampled_error
    duties_us            the duties' part of a kept call: reading the message, and the spans as protobuf
    same_us              the median of what a turn without costs more than the one before: nothing, but for the machine
"""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from benchmarks import report
from benchmarks.gateway_path import Clients, gateway, timed
from benchmarks.overhead import ERROR_OF_SPREAD
from pilotlight_core.model.messages.scheduling import MOST_OF_BATCH
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.tracing.trace_sampling import TraceSampler
from pilotlight_gateway.traces.otlp_encoding import request_of
from pilotlight_gateway.traces.sampled_encoding import SpanForms
from pilotlight_gateway.traces.trace_exporter import calls_of
from pilotlight_gateway.traces.trace_keeper import TraceKeeper
from pilotlight_gateway.traces.traced_calls import TracedCalls, lone_traces

TURN = 512
RATIOS = {"sampled": 0.001, "kept": 1.0}


class Traced:
    """What the gateway keeps, and the duties make of it."""

    def __init__(self) -> None:
        lone = lone_traces()
        self.sampler = TraceSampler(0.0)
        self.keeper = TraceKeeper(self.sampler, gateway="gw")
        self.parts = TracedCalls(sampler=self.sampler, keeper=self.keeper, find=lone.find, running=lone.running)
        self._forms = SpanForms()

    async def turn(self, clients: Clients, ratio: float) -> tuple[float, float]:
        """Microseconds of a call at the gateway, and of a kept one in the duties."""
        self.sampler.least = TraceSampler(ratio).least
        took = await timed(clients, TURN)
        messages, begun = [], time.process_time()
        while batch := self.keeper.take_unsent(MOST_OF_BATCH):
            messages.append(encode(batch))
        took += (time.process_time() - begun) / TURN * 1e6
        count, begun = 0, time.process_time()
        for message in messages:
            batch = decode(message)
            told = [*batch.calls, *batch.sheets]
            request_of(self._forms.messages(told), {})
            count += calls_of(told)
        return took, (time.process_time() - begun) / max(1, count) * 1e6


async def measure(turns: int) -> dict[str, float]:
    """The figures."""
    traced, without, duties = Traced(), list[float](), list[float]()
    more: dict[str, list[float]] = {name: [] for name in RATIOS}
    with TemporaryDirectory() as folder:
        async with gateway(Path(folder), traced.parts) as (clients, _):
            await clients.call(10 * TURN)
            await traced.turn(clients, 1.0)
            before, _ = await traced.turn(clients, 0.0)
            for _ in range(turns):
                for name, ratio in RATIOS.items():
                    having, exported = await traced.turn(clients, ratio)
                    after, _ = await traced.turn(clients, 0.0)
                    more[name].append(having - (before + after) / 2)
                    without.append(after - before)
                    before = after
                    if name == "kept":
                        duties.append(exported)
            call_us, _ = await traced.turn(clients, 0.0)
    found = {"call_us": call_us, "duties_us": report.median(duties), "same_us": report.median(without)}
    for name, values in more.items():
        middle = report.median(values)
        spread = report.median([abs(each - middle) for each in values])
        found |= {f"{name}_us": middle, f"{name}_error": ERROR_OF_SPREAD * spread / math.sqrt(turns)}
    return found


def main() -> None:
    """Measure, print, finish."""
    options = report.parsed(report.arguments("trace_path", __doc__ or ""))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        figures = runner.run(measure(20 if options.quick else 200))
    report.table("Tracing, a call", ("what", "µs"), list(figures.items()))
    report.finish("trace_path", figures)


if __name__ == "__main__":
    main()
