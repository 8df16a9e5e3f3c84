"""What a call costs in the duties: its share of an interval, from the bytes of a message to its rows in SQL.

One container with 64 calls in flight ends 6,000 a second, which its meter splits as an agent's does; cores and memory
have prices, so each call has three parts. Into a new ledger, and into one with 200,000 receipts. CPU time of one
process, without a bus; medians of folds of a second each.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmarks import report
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import new_call_id
from pilotlight_core.model.messages.bindings import Binding, Bound
from pilotlight_core.model.messages.usage import LeaseState, UsageBatch
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.units import NS_PER_S
from pilotlight_gateway.ledger.ledger_entries import entries_of
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.usage_delivery import UsageDelivery, delivery_of
from pilotlight_gateway.ledger.usage_intake import KnownUsage, sort_usage
from pilotlight_runtime.metering.meter import SliceMeter
from pilotlight_runtime.metering.metered_slice import MeteredSlice, SliceOwner
from pilotlight_runtime.metering.usage_metering import by_tenant

IN_FLIGHT = 64
CALLS_PER_S = 6_000
RECEIPTS = 200_000
MEASURED_S, QUICK_S = 15, 3
BEGAN = 1_790_000_000
"""Unix seconds at which the container is bound."""
SLICE = MeteredSlice(
    instance="i" * 20, node="n1", device="cpu", slice="cpu-0", ppm=250_000, price="cpu", region="local"
)
OWNER = SliceOwner(
    tenant="acme", app="shop", function="echo", version="ver_" + "0" * 32, container="c" * 26, memory=2**31,
    core_ppm=2_000_000, gib_ppm=4_000_000,
)  # fmt: skip
BINDING = Binding(
    container=OWNER.container, node=SLICE.node, tenant=OWNER.tenant, function="acme:shop.echo", version=OWNER.version,
    slice=SLICE.slice, ppm=SLICE.ppm, price=SLICE.price, slots=IN_FLIGHT, core_ppm=OWNER.core_ppm,
    gib_ppm=OWNER.gib_ppm,
)  # fmt: skip

T = TypeVar("T")


def metered() -> Iterator[list[bytes]]:
    """The messages of each second, as an agent stores them."""
    meter = SliceMeter(SLICE, at_ns=0, wall_offset_ns=BEGAN * NS_PER_S)
    meter.transition(LeaseState.IDLE, 0, OWNER)
    running: deque[str] = deque()
    at, second = 0, 0
    while True:
        second += NS_PER_S
        while at < second:
            if len(running) == IN_FLIGHT:
                meter.call_ended(running.popleft(), "ok", at)
            running.append(new_call_id("local", 1, BEGAN + at / NS_PER_S))
            meter.call_started(running[-1], OWNER.tenant, at, key="key_" + "0" * 16)
            at += NS_PER_S // CALLS_PER_S
        yield [encode(UsageBatch(events=events)) for _, events in by_tenant(meter.checkpoint(second))]


class Folding:
    """Folds second after second into one ledger; keeps what each part of it took, in microseconds a call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = 0
        """Of the messages of the last second."""
        self.took: dict[str, list[float]] = defaultdict(list)
        self._ledger = Ledger(f"sqlite:///{path}", load_prices())
        self._seconds = enumerate(metered(), 1)
        subject = subjects.bindings("local", SLICE.node)
        self._ledger.fold("USAGE", 0, [delivery_of(0, subject, BEGAN, Bound(binding=BINDING))])

    def close(self) -> None:
        self._ledger.settle()
        self._ledger.close()

    def fold(self, seconds: int) -> None:
        """Fold the usage of the next seconds."""
        subject = subjects.usage("local", SLICE.node, OWNER.tenant)
        for _ in range(seconds):
            number, messages = next(self._seconds)
            self.bytes = sum(map(len, messages))
            at = BEGAN + number + 0.5
            usage = self._timed("decode", partial(_decoded, messages))
            deliveries = [delivery_of(number, subject, at, batch) for batch in usage]
            self._fold_in_parts(deliveries)
            done = self._timed("fold", partial(self._ledger.fold, "USAGE", number, deliveries))
            assert done.new
            assert not done.quarantined

    def _fold_in_parts(self, deliveries: list[UsageDelivery]) -> None:
        """What of the fold is no SQL, apart, into no ledger."""
        known = KnownUsage(bound=self._ledger.bound_containers([OWNER.container]))
        fresh = self._timed("sort", partial(sort_usage, deliveries, known)).fresh
        self._timed("entries", partial(entries_of, fresh, self._ledger.book))

    def _timed(self, part: str, work: Callable[[], T]) -> T:
        gc.collect()
        begun = time.process_time()
        found = work()
        self.took[part].append((time.process_time() - begun) / CALLS_PER_S * 1e6)
        return found


def _decoded(messages: Iterable[bytes]) -> list[UsageBatch]:
    return [decode(data) for data in messages]


def measure(path: Path, *, receipts: int, seconds: int) -> tuple[dict[str, float], int]:
    """Microseconds a call by part in a ledger with so many receipts, and bytes a call on the wire."""
    folding = Folding(path)
    folding.fold(receipts // CALLS_PER_S)
    folding.took.clear()
    folding.fold(seconds)
    folding.close()
    us = {part: report.median(took) for part, took in folding.took.items()}
    us["write"] = us["fold"] - us["sort"] - us["entries"]
    us["fold"] += us["decode"]
    return us, folding.bytes // CALLS_PER_S


def main() -> None:
    """Measure, print the table and the figures."""
    quick = report.arguments("fold", __doc__ or "").parse_args().quick
    seconds = QUICK_S if quick else MEASURED_S
    with tempfile.TemporaryDirectory() as folder:
        new, wire = measure(Path(folder, "new.sqlite"), receipts=0, seconds=seconds)
        large = Path(folder, "large.sqlite")
        grown, _ = measure(large, receipts=RECEIPTS, seconds=seconds)
        kept = large.stat().st_size / (RECEIPTS + seconds * CALLS_PER_S)
    parts = ("decode", "sort", "entries", "write", "fold")
    report.table(
        "Microseconds of CPU a call",
        ("part", "new ledger", f"{RECEIPTS:,} receipts"),
        [(part if part != "fold" else "all of it", new[part], grown[part]) for part in parts],
    )
    figures = {f"{part}_us": grown[part] for part in parts if part != "fold"}
    figures |= {
        "fold_us_per_call": grown["fold"], "new_fold_us_per_call": new["fold"], "wire_bytes_per_call": wire,
        "ledger_bytes_per_call": kept,
    }  # fmt: skip
    report.finish("fold", figures)


if __name__ == "__main__":
    main()
