"""What shadows cost the callers whose calls they repeat: the p99 of calls of which half are repeated, and of others.

A rollout gathers pairs. It is paused and resumed in turns, and while it is paused nothing is repeated: all else is the
same, containers too, and a drift of the machine hits both. Calls come at a rate whatever comes back, of a function that
sleeps, so that two cores are not the limit.

    shadow_p99_ratio        the p99 of calls with shadows over that without: of all calls of each kind together
    shadow_p99_error        the standard error of that, by drawing the turns anew
    shadow_p50_ratio        the same of the median, and its error
    same_p99_ratio          the p99 of every second turn without shadows over that of the others: nothing, but for the
                            machine
    repeated                pairs of shadows for each call, of the turns with them
    calls                   of the turns with shadows
    gateway_us_pair         processor time that a pair takes of the gateway

    --rate, --sleep-ms, --turns, --turn-s
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.http_load import Caller, took_at_rate
from tests.system.support.platform import Platform, platform
from tests.waiting import wait_until

APP, FUNCTION = "sleeper", "many"
SOURCE = Path(__file__).parent / "functions" / "sleeper.py"
OPTIONS = ("--blanks", "0", "--cpu-slots", "4")
MOST_PAIRS = 5_000
TOLERANT = 0.5
"""Nothing is rolled back here, however busy the machine is."""
SETTLED_S = 1.0
"""From a pause, or its end, to the first call that counts: the last pair ends, or the first begins."""
DRAWN = 400
"""How often turns are drawn anew for an error."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What calls took, in milliseconds from when each was due."""

    took: tuple[float, ...]
    pairs: int
    gateway_s: float


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("shadows", __doc__ or "")
    parser.add_argument("--rate", type=float, default=20.0, help="calls a second (20)")
    parser.add_argument("--sleep-ms", type=float, default=40.0, help="what a call takes (40)")
    parser.add_argument("--turns", type=int, help="of each kind (50)")
    parser.add_argument("--turn-s", type=float, default=10.0, help="of a turn (10)")
    options = report.parsed(parser)
    options.turns = options.turns or (4 if options.quick else 50)
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), *OPTIONS) as running:
        begin(running, Path(folder))
        turns = asyncio.run(in_turns(running, options))
    report.finish("shadows", figures_of(*turns) | {"rate": options.rate, "sleep_ms": options.sleep_ms})


def begin(running: Platform, folder: Path) -> None:
    """A rollout that gathers pairs until somebody ends it: of its other function there are none."""
    running.deploy(SOURCE)
    running.output(f"{APP}.{FUNCTION}", ms=1)
    changed = folder / "sleeper.py"
    changed.write_text(SOURCE.read_text().replace("return ms", "return ms + 0"))
    running.cli("deploy", str(changed), "--no-traffic")
    terms = {"steps": [50, 100], "every_s": 36_000, "pairs": MOST_PAIRS, "tolerance": TOLERANT}
    running.http.post(f"/v1/apps/{APP}/rollout", json=terms).raise_for_status()
    wait_until(lambda: rollout_of(running)["state"] == "pairs", "pairs are gathered")


def rollout_of(running: Platform) -> dict[str, Any]:
    found: dict[str, Any] = running.http.get(f"/v1/apps/{APP}/rollout").raise_for_status().json()
    return found


def pairs_of(running: Platform) -> int:
    """That were compared so far."""
    seen = rollout_of(running)["seen"]
    return next((one["canary"] for one in seen if (one["function"], one["guard"]) == (FUNCTION, "pairs")), 0)


async def in_turns(running: Platform, options: argparse.Namespace) -> tuple[list[Turn], list[Turn]]:
    """The turns with shadows, and those without, in an order that changes."""
    found: dict[bool, list[Turn]] = {True: [], False: []}
    for number in range(options.turns):
        for shadowed in (True, False) if number % 2 else (False, True):
            word = "resume" if shadowed else "pause"
            running.http.post(f"/v1/apps/{APP}/rollout/{word}", json={}).raise_for_status()
            found[shadowed].append(await turn(running, options))
        print(f"{number + 1} of {options.turns} turns", flush=True)
    return found[True], found[False]


async def turn(running: Platform, options: argparse.Namespace) -> Turn:
    """Calls at the rate; the first ones count for nothing."""
    caller = Caller(running.url, f"{APP}.{FUNCTION}", running.key)
    pid, body = running.pids["gateway"], f'{{"input": {{"ms": {options.sleep_ms}}}}}'.encode()
    await took_at_rate(caller, body, options.rate, SETTLED_S)
    pairs, used = await asyncio.to_thread(pairs_of, running), report.cpu_seconds(pid)
    took = await took_at_rate(caller, body, options.rate, options.turn_s)
    used = report.cpu_seconds(pid) - used
    pairs = await asyncio.to_thread(pairs_of, running) - pairs
    caller.close()
    return Turn(took=tuple(took), pairs=pairs, gateway_s=used)


def figures_of(shadowed: Sequence[Turn], plain: Sequence[Turn]) -> dict[str, float]:
    """What the turns say."""
    pairs, calls = sum(one.pairs for one in shadowed), sum(len(one.took) for one in shadowed)
    more = sum(one.gateway_s for one in shadowed) - sum(one.gateway_s for one in plain)
    figures = {
        "p50_ms": percentile_of(plain, 50), "p99_ms": percentile_of(plain, 99), "calls": float(calls),
        "repeated": pairs / calls, "gateway_us_pair": 1e6 * more / max(1, pairs),
        "same_p99_ratio": percentile_of(plain[::2], 99) / percentile_of(plain[1::2], 99),
    }  # fmt: skip
    rows = []
    for name, percent in (("p50", 50.0), ("p99", 99.0)):
        ratio = percentile_of(shadowed, percent) / percentile_of(plain, percent)
        error = error_of(shadowed, plain, percent)
        figures |= {f"shadow_{name}_ratio": ratio, f"shadow_{name}_error": error}
        rows.append((name, percentile_of(plain, percent), percentile_of(shadowed, percent), ratio, error))
    title = f"Calls, of which {pairs / calls:.0%} are repeated by both versions, and without"
    report.table(title, ("", "without, ms", "with, ms", "ratio", "error"), rows)
    return figures


def percentile_of(turns: Sequence[Turn], percent: float) -> float:
    """Of all calls of some turns together."""
    return report.percentile([took for one in turns for took in one.took], percent)


def error_of(shadowed: Sequence[Turn], plain: Sequence[Turn], percent: float, seed: int = 1) -> float:
    """The standard error of the ratio: turns with their neighbours are drawn anew, since calls of one are alike."""
    chance, found = random.Random(seed), list[float]()
    for _ in range(DRAWN):
        drawn = [chance.randrange(len(plain)) for _ in plain]
        over = percentile_of([shadowed[number] for number in drawn], percent)
        found.append(over / percentile_of([plain[number] for number in drawn], percent))
    mean = sum(found) / DRAWN
    return float((sum((each - mean) ** 2 for each in found) / (DRAWN - 1)) ** 0.5)


if __name__ == "__main__":
    main()
