"""What the pure heart of the gateway costs: the fair queue, and a call's whole way through home and origin.

One process, no bus, no clock but the stopwatch (CPU time, since the machine may be busy); medians of five runs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial

from benchmarks import report
from pilotlight_core.model.messages.call_messages import CallDescriptor, Ended, Outcome, Spent, Stages
from pilotlight_core.model.messages.node_messages import ContainerState, Credit
from pilotlight_core.model.messages.scheduling import Enqueue, Settle
from pilotlight_core.model.spec import FunctionSpec, MethodSpec, Priority, VersionRecord
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.effects import Effect
from pilotlight_gateway.calls.origin import Origin
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.home.home import Home
from pilotlight_gateway.home.queue import FairQueue
from pilotlight_gateway.home.tier_queue import FunctionCounters

RUNS = 5
SPENT = Spent(ns=1_000_000, ppm=1_000_000, price="cpu")
STAGES = Stages(execute_ms=1.0, total_ms=1.2)
METHOD = MethodSpec(name="", attribute="fn")
VERSION = VersionRecord(
    id="ver_1", tenant="acme", app="app", function="fn", number=1, manifest_sha256="", bundle_bytes=1, created_at=0.0,
    spec=FunctionSpec(name="fn", module="app", qualname="fn", methods=(METHOD,)),
)  # fmt: skip


def descriptors(flows: int, calls: int) -> list[CallDescriptor]:
    """`calls` calls of as many tenants as there are flows, in turn."""
    return [
        CallDescriptor(
            call_id=f"call{n}",
            tenant=f"tenant{n % flows}",
            version="ver_1",
            method="",
            priority=Priority.STANDARD,
            cost=1.0 + n % 7,
            remaining_ms=60_000.0,
            function="acme:app.fn",
        )
        for n in range(calls)
    ]


def pick_and_push(flows: int, rounds: int) -> float:
    """Microseconds for one pick, settle and push while `flows` tenants are backlogged."""
    queue = FairQueue(FunctionCounters())
    calls = descriptors(flows, 2 * flows + rounds)
    for call in calls[: 2 * flows]:
        queue.push(call, cost=call.cost, at=0.0)
    begun = time.process_time()
    for call in calls[2 * flows :]:
        entry = queue.pick()
        assert entry is not None
        queue.settle(entry, entry.cost + 0.5)
        queue.push(call, cost=call.cost, at=0.0)
    return (time.process_time() - begun) / rounds * 1e6


def removal(flows: int, rounds: int) -> float:
    """Microseconds for one push and its removal by id while `flows` tenants are backlogged."""
    queue = FairQueue(FunctionCounters())
    calls = descriptors(flows, flows + rounds)
    for call in calls[:flows]:
        queue.push(call, cost=call.cost, at=0.0)
    begun = time.process_time()
    for call in calls[flows:]:
        queue.push(call, cost=call.cost, at=0.0)
        queue.remove(call.call_id)
    return (time.process_time() - begun) / rounds * 1e6


def whole_call(containers: int, rounds: int) -> float:
    """Microseconds that origin and home take for one warm call: enqueue, grant, run, answer, settle, demand."""
    home = Home(gateway="gw", epoch=1)
    for n in range(containers):
        home.on_credit(
            Credit(
                container=f"c{n}", version="ver_1", tenant="acme", node="n1", instance="i1", epoch=1, seq=n + 1,
                state=ContainerState.READY, slots=8,
            ),
            0.0,
        )  # fmt: skip
    names = [f"call{n}" for n in range(rounds)]
    begun = time.process_time()
    for n, name in enumerate(names):
        one_call(home, name, n * 1e-4)
    return (time.process_time() - begun) / rounds * 1e6


def one_call(home: Home, name: str, at: float) -> None:
    """The life of one call, as the gateway's driver leads it."""
    call = PreparedCall(
        call_id=name, client_id=None, tenant="acme", version=VERSION, method=METHOD, input=b"",
        priority=Priority.STANDARD, arrived_at=at, deadline_at=at + 60.0, stream=False,
    )  # fmt: skip
    origin = Origin(call, "gw", at)
    perform(home, origin.begin(at), at)
    home.expire(at)
    (grant,) = home.grants(at)
    home.demand(at)
    origin.granted(grant, at)
    ended = Ended(
        call_id=name,
        grant_number=grant.grant_number,
        container=grant.container,
        outcome=Outcome.OK,
        spent=SPENT,
        stages=STAGES,
    )
    perform(home, origin.frame("n1", ended, at), at)
    home.expire(at)
    home.grants(at)
    home.demand(at)


def perform(home: Home, actions: list[Effect], at: float) -> None:
    """Do what a warm call's origin asks of its home."""
    for action in actions:
        match action:
            case Enqueue(call):
                home.enqueue(call, at)
            case Settle():
                home.done(action.call_id, action.container, action.grant_number, at, cost=action.cost)
            case CallResult():
                pass
            case _:
                raise AssertionError(f"a warm call needs no {action}")


def median_of(measure: Callable[[], float], runs: int) -> float:
    """The middle of several runs, without the collector's pauses in them."""
    values = []
    for _ in range(runs):
        gc.collect()
        gc.disable()
        values.append(measure())
        gc.enable()
    return report.median(values)


def main() -> None:
    """Measure, print the table and the figures."""
    quick = report.parsed(report.arguments("scheduler", __doc__ or "")).quick
    rounds, runs = (5_000, 1) if quick else (50_000, RUNS)
    figures = {}
    rows = []
    for flows in (1, 100, 10_000):
        name = f"pick_push_us_{flows // 1000}k" if flows >= 1000 else f"pick_push_us_{flows}"
        figures[name] = median_of(partial(pick_and_push, flows, rounds), runs)
        rows.append((f"pick + settle + push, {flows} flows backlogged", figures[name]))
    figures["push_remove_us_10k"] = median_of(partial(removal, 10_000, rounds), runs)
    rows.append(("push + remove by id, 10000 flows backlogged", figures["push_remove_us_10k"]))
    for containers in (1, 100):
        name = f"call_us_{containers}"
        figures[name] = median_of(partial(whole_call, containers, rounds // 2), runs)
        rows.append((f"one warm call through origin and home, {containers} containers", figures[name]))
    report.table("The gateway's heart, without I/O", ("what", "µs"), rows)
    report.finish("scheduler", figures)


if __name__ == "__main__":
    main()
