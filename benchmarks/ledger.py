"""What the ledger takes, and how long its questions take: SQLite, and a PostgreSQL of its own with default durability.

calls      one container with 64 calls in flight ends 6,000 a second; from the bytes of messages to rows, wall clock
intervals  5,000 slices of 500 functions, each with an interval of a second without calls, in each fold
report     usage by key and hour over 31 days: a tenant with 100 keys among ten such, 1.6 million sums
rebuild    all sums of 30 days recomputed from 10 million lines, and compared (`pilotlight ledger verify`), in a process
           of its own, whose peak of memory counts
size       bytes on disk of a million calls' receipts
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from benchmarks import report
from benchmarks.fold import BEGAN, BINDING, CALLS_PER_S, OWNER, SLICE, metered
from pilotlight_core.host.gc_tuning import freeze
from pilotlight_core.model import subjects
from pilotlight_core.model.messages.bindings import Binding, Bound
from pilotlight_core.model.messages.usage import LeaseState, UsageBatch, UsageEvent
from pilotlight_core.model.messages.wire import decode, encode
from pilotlight_core.model.price_book import load_prices
from pilotlight_core.model.units import NS_PER_S
from pilotlight_gateway.ledger.bulk_rows import insert_rows
from pilotlight_gateway.ledger.ledger_store import Ledger
from pilotlight_gateway.ledger.ledger_tables import lease_line, usage_day, usage_hour
from pilotlight_gateway.ledger.ledger_verification import verify
from pilotlight_gateway.ledger.usage_delivery import delivery_of
from pilotlight_gateway.ledger.usage_queries import usage_report
from pilotlight_gateway.ledger.usage_report import read_groups
from tests.fixtures.postgres import USER, postgres

SECONDS, QUICK_SECONDS = 60, 4
SLICES, FUNCTIONS, NODES = 5_000, 500, 50
TENANTS, KEYS, DAYS = 10, 100, 31
LINES, QUICK_LINES = 10_000_000, 100_000
LINE_MINUTES = 30 * 24 * 60
"""Minutes of the days that `rebuild` is of: a line each."""
MONTH = 1_793_491_200
"""2026-11-01T00:00:00Z"""
SETTINGS = "shared_buffers=256MB -c max_wal_size=4GB"
"""PostgreSQL's own, but for the room that a machine with memory gives it."""


@contextmanager
def databases() -> Iterator[dict[str, Callable[[str], str]]]:
    """By name, what makes the URL of a new database."""
    import psycopg

    with tempfile.TemporaryDirectory() as folder, postgres(SETTINGS) as server:

        def new_postgres(name: str) -> str:
            with psycopg.connect(f"host={server.folder} user={USER} dbname=postgres", autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE {name}")
            return f"postgresql://{USER}@/{name}?host={server.folder}"

        yield {"sqlite": lambda name: f"sqlite:///{Path(folder) / name}.sqlite", "postgres": new_postgres}


@dataclass
class Took:
    """Seconds of the wall, and those that this process had a processor: on a busy machine only these say something."""

    wall_s: float
    cpu_s: float


@contextmanager
def timed() -> Iterator[Took]:
    """How long the block took."""
    took = Took(time.perf_counter(), time.process_time())
    yield took
    took.wall_s, took.cpu_s = time.perf_counter() - took.wall_s, time.process_time() - took.cpu_s


def fold_calls(url: str, seconds: int) -> tuple[Took, float]:
    """What so many seconds of calls take into a new ledger, and bytes a call on disk."""
    made = metered()
    messages = [next(made) for _ in range(seconds)]
    ledger = Ledger(url, load_prices())
    ledger.fold("USAGE", 0, [delivery_of(0, subjects.bindings("local", SLICE.node), BEGAN, Bound(binding=BINDING))])
    subject, before = subjects.usage("local", SLICE.node, OWNER.tenant), bytes_of(ledger)
    with timed() as took:
        for number, second in enumerate(messages, 1):
            batches: list[UsageBatch] = [decode(data) for data in second]
            done = ledger.fold(
                "USAGE", number, [delivery_of(number, subject, BEGAN + number + 0.5, batch) for batch in batches]
            )  # fmt: skip
            assert done.new
            assert not done.quarantined
    size = (bytes_of(ledger) - before) / (seconds * CALLS_PER_S)
    ledger.close()
    return took, size


def fold_intervals(url: str, folds: int) -> Took:
    """What so many folds take of bound containers, each checked against its binding as an agent's are."""
    ledger = Ledger(url, load_prices())
    slices = [_binding(number) for number in range(SLICES)]
    bound = [delivery_of(0, subjects.bindings("local", one.node), BEGAN, Bound(binding=one)) for one in slices]
    ledger.fold("USAGE", 0, bound)
    messages = [[_idle(slices, node, second) for node in range(NODES)] for second in range(folds)]
    with timed() as took:
        for second, of_nodes in enumerate(messages):
            at = BEGAN + second + 1.5
            deliveries = [
                delivery_of(second + 1, subjects.usage("local", f"n{node}", "acme"), at, decode(data))
                for node, data in enumerate(of_nodes)
            ]
            done = ledger.fold("USAGE", second + 1, deliveries)
            assert (done.new, done.quarantined) == (SLICES, 0), done
    ledger.close()
    return took


def _binding(number: int) -> Binding:
    function = number % FUNCTIONS
    return Binding(
        container=f"ctr_{number:020}", node=f"n{number % NODES}", tenant="acme", function=f"acme:shop.f{function}",
        version=f"ver_{function:032}", slice=f"gpu{number}", ppm=1_000_000, price="l4", slots=1,
    )  # fmt: skip


def _idle(slices: list[Binding], node: int, second: int) -> bytes:
    wall_ns = (BEGAN + second + 1) * NS_PER_S
    return encode(UsageBatch(events=tuple(
        UsageEvent(
            id=f"{one.node}.{one.slice}.{second}", node=one.node, device=one.slice, slice=one.slice, ppm=one.ppm,
            price=one.price, state=LeaseState.IDLE, t0=second * NS_PER_S, t1=(second + 1) * NS_PER_S,
            ended_at=wall_ns / NS_PER_S, wall_ns=wall_ns, tenant=one.tenant, app="shop",
            function=one.function.rpartition(".")[2], version=one.version, container=one.container, region="local",
        )
        for one in slices[node::NODES]
    )))  # fmt: skip


def time_report(url: str, keys: int) -> Took:
    """What a tenant's report takes by key and hour over 31 days, as JSON is made of it."""
    ledger = Ledger(url, load_prices())
    with ledger._engine.begin() as connection:  # noqa: SLF001 - such a month takes hours to fold
        for tenant in range(TENANTS):
            for rows in _hours(f"tenant{tenant}", keys):
                insert_rows(connection, usage_hour, rows)
    with timed() as took:
        found = usage_report(ledger, "tenant3", "2026-11-01", "2026-12-02", read_groups("key,hour"))
    assert len(found.lines) == (keys + 1) * DAYS * 24
    ledger.close()
    return took


def _hours(tenant: str, keys: int) -> Iterator[list[dict[str, object]]]:
    for number in range(DAYS * 24):
        hour = time.strftime("%Y-%m-%dT%H", time.gmtime(MONTH + number * 3_600))
        yield [
            {
                "hour": hour, "tenant": tenant, "app": "shop", "function": "f", "version": "ver_1", "state": state,
                "price": price, "ppm": ppm, "rate": rate, "discount": 0, "key_id": key, "purpose": "call",
                "purchase": "on-demand",
                "region": "eu", "policy": 1, "ns": 10**9 + number, "calls": 7 if price == "l4" else 0,
            }
            for price, ppm, rate in (("l4", 1_000_000, 799_200_000), ("cpu_core", 2_000_000, 47_160_000))
            for key, state in [*((f"key_{key:016}", "busy") for key in range(keys)), ("", "idle")]
        ]  # fmt: skip


def time_rebuild(url: str, lines: int) -> tuple[Took, float]:
    """What it takes to recompute and compare all sums from so many lines of a minute; and the peak of memory in MB."""
    slices = max(1, lines // LINE_MINUTES)
    for work in (_fill_lines, _rebuild):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            done = process.submit(work, url, slices).result()
    return done


def _rebuild(url: str, slices: int) -> tuple[Took, float]:
    ledger = Ledger(url, load_prices())
    with timed() as took:
        found = verify(ledger, "2026-11-01", "2026-12-01")
    assert found.discrepancy is None, found
    assert found.lines == slices * LINE_MINUTES
    ledger.close()
    return took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024 / 1e6


def _fill_lines(url: str, slices: int) -> tuple[Took, float]:
    """Lines of idle containers, and their sums, as a fold makes them."""
    ledger = Ledger(url, load_prices())
    with timed() as took:
        _insert_lines(ledger, slices)
    ledger.close()
    return took, 0.0


def _insert_lines(ledger: Ledger, slices: int) -> None:
    rate, minute = ledger.book.rate("l4"), 60 * NS_PER_S
    with ledger._engine.begin() as connection:  # noqa: SLF001 - folding them takes an hour
        for number in range(slices):
            insert_rows(connection, lease_line, [_line(number, at, rate, minute) for at in range(LINE_MINUTES)])
        for table, length, size in ((usage_day, 10, 1_440), (usage_hour, 13, 60)):
            sums = dict.fromkeys(table.c.keys(), "")
            for number in range(slices):
                connection.execute(sa.insert(table), [
                    sums | {
                        table.c.keys()[0]: time.strftime("%Y-%m-%dT%H", time.gmtime(MONTH + at * 60))[:length],
                        "tenant": "acme", "app": "shop", "function": f"f{number}", "version": "ver_1", "state": "idle",
                        "price": "l4", "ppm": 1_000_000, "rate": rate, "discount": 0, "ns": size * minute, "calls": 0,
                    } | ({"policy": 1} if table is usage_hour else {})
                    for at in range(0, LINE_MINUTES, size)
                ])  # fmt: skip


def _line(number: int, at: int, rate: int, minute: int) -> dict[str, object]:
    wall_ns = (MONTH + (at + 1) * 60) * NS_PER_S
    return {
        "id": f"i.s{number}.{at}", "node": f"n{number % NODES}", "device": f"gpu{number}", "slice": f"gpu{number}",
        "ppm": 1_000_000, "price": "l4", "rate": rate, "state": "idle", "tenant": "acme", "app": "shop",
        "function": f"f{number}", "version": "ver_1", "container": f"ctr_{number}", "t0": at * minute,
        "t1": (at + 1) * minute, "ns": minute, "wall": wall_ns / NS_PER_S,
        "day": time.strftime("%Y-%m-%d", time.gmtime(MONTH + at * 60)), "wall_ns": wall_ns, "purpose": "call",
        "used": True, "memory": 0, "region": "eu", "zone": "", "purchase": "on-demand", "core_ppm": 0, "core_rate": 0,
        "gib_ppm": 0, "gib_rate": 0, "holder": "acme", "policy": 1, "booked_from": "", "discount": 0,
    }  # fmt: skip


def bytes_of(ledger: Ledger) -> int:
    """What the database has on disk, once all is written there."""
    ledger.settle()
    with ledger._engine.connect() as connection:  # noqa: SLF001
        if connection.dialect.name == "sqlite":
            pages, size = (
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in ("page_count", "page_size")
            )
            return int(pages) * int(size)
        return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())


def measure(name: str, new: Callable[[str], str], *, quick: bool) -> dict[str, float]:
    """The figures of one database."""
    seconds = QUICK_SECONDS if quick else SECONDS
    folds, keys = max(2, seconds // 5), KEYS // 10 if quick else KEYS
    calls, size = fold_calls(new("calls"), seconds)
    intervals, asked = fold_intervals(new("intervals"), folds), time_report(new("report"), keys)
    return {
        f"{name}_calls_per_s": seconds * CALLS_PER_S / calls.wall_s,
        f"{name}_calls_per_cpu_s": seconds * CALLS_PER_S / calls.cpu_s,
        f"{name}_mb_per_million_calls": size,
        f"{name}_intervals_per_s": folds * SLICES / intervals.wall_s,
        f"{name}_intervals_per_cpu_s": folds * SLICES / intervals.cpu_s,
        f"{name}_report_s": asked.wall_s,
        f"{name}_report_cpu_s": asked.cpu_s,
    }


def main() -> None:
    """Measure, print the table and the figures."""
    parser = report.arguments("ledger", __doc__ or "")
    parser.add_argument("--lines", type=int, help=f"of `rebuild`; default {LINES:,}, with --quick {QUICK_LINES:,}")
    parser.add_argument("--only-rebuild", action="store_true", help="measure nothing else, but it in both databases")
    options = parser.parse_args()
    lines = options.lines or (QUICK_LINES if options.quick else LINES)
    figures: dict[str, float] = {}
    freeze()  # as the gateways and the duties that do this
    with databases() as known:
        for name, new in {} if options.only_rebuild else known.items():
            figures |= measure(name, new, quick=options.quick)
            print(json.dumps(figures), flush=True)
        for name, of in {"sqlite": "", **({"postgres": "postgres_"} if options.only_rebuild else {})}.items():
            rebuilt, peak = time_rebuild(known[name]("rebuild"), lines)
            took = {"s": rebuilt.wall_s, "cpu_s": rebuilt.cpu_s, "peak_mb": peak}
            figures |= {f"{of}rebuild_{what}": value for what, value in took.items()}
            print(json.dumps(figures), flush=True)
    figures["rebuild_lines"] = max(1, lines // LINE_MINUTES) * LINE_MINUTES
    if not options.only_rebuild:
        figures["report_s"] = max(figures["sqlite_report_s"], figures["postgres_report_s"])
    report.table("The ledger", ("figure", "value"), list(figures.items()))
    report.finish("ledger", figures)


if __name__ == "__main__":
    main()
