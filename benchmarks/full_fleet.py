"""What a rollout that is held for want of capacity costs the callers of the old version: the p95 of their calls.

The fleet has two containers: the old version's, and another tenant's. A rollout is started, and called back, in turns;
while it is there it is held, since it gets no container, and all else is the same, so a drift of the machine hits both.
Calls come at a rate whatever comes back, of a function that sleeps.

    held_p95_ratio          the p95 of calls beside a held rollout over that without: of all calls of each kind together
    held_p95_error          the standard error of that, by drawing the turns anew
    held_p50_ratio          the same of the median, and its error
    same_p95_ratio          the p95 of every second turn without a rollout over that of the others: nothing, but for the
                            machine
    containers_kept         1: all containers are the same ones at the end, and none was started meanwhile
    calls                   beside a held rollout

    --rate, --sleep-ms, --turns, --turn-s
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.http_load import Caller, took_at_rate
from benchmarks.shadows import APP, FUNCTION, SETTLED_S, SOURCE, Turn, error_of, percentile_of, rollout_of
from tests.system.support.platform import Platform, make_tenant, platform
from tests.waiting import wait_until

OPTIONS = ("--blanks", "0", "--cpu-slots", "2")
OTHERS = """
from pilotlight import App

app = App("others")


@app.gpu_function(min_containers=1, max_containers=1, forecast=False)
def nap() -> int:
    return 1
"""


def main() -> None:
    """Run, print, finish."""
    parser = report.arguments("full_fleet", __doc__ or "")
    parser.add_argument("--rate", type=float, default=20.0, help="calls a second (20)")
    parser.add_argument("--sleep-ms", type=float, default=40.0, help="what a call takes (40)")
    parser.add_argument("--turns", type=int, help="of each kind (30)")
    parser.add_argument("--turn-s", type=float, default=10.0, help="of a turn (10)")
    options = report.parsed(parser)
    options.turns = options.turns or (3 if options.quick else 30)
    with tempfile.TemporaryDirectory() as folder, platform(Path(folder), *OPTIONS) as running:
        other = fill(running, Path(folder))
        before = containers(running, other)
        turns = asyncio.run(in_turns(running, options))
        kept = containers(running, other) == before
    figures = figures_of(*turns) | {"containers_kept": float(kept)}
    report.finish("full_fleet", figures | {"rate": options.rate, "sleep_ms": options.sleep_ms})


def fill(running: Platform, folder: Path) -> str:
    """Deploy both until the fleet is full, and the version that is to be rolled out; the other tenant's key."""
    key = make_tenant(running, "other")
    (folder / "others.py").write_text(OTHERS)
    running.cli("deploy", str(folder / "others.py"), key=key)
    running.deploy(SOURCE)
    running.output(f"{APP}.{FUNCTION}", ms=1)
    wait_until(lambda: len(containers(running, key)) == 2, "the fleet is full")
    changed = folder / "sleeper.py"
    changed.write_text(SOURCE.read_text().replace("return ms", "return ms + 0"))
    running.cli("deploy", str(changed), "--no-traffic")
    return key


def containers(running: Platform, key: str) -> set[str]:
    """All of both tenants."""
    with running.as_holder_of(key) as client:
        theirs = client.get("/v1/containers").raise_for_status().json()["containers"]
    return {one["id"] for one in [*theirs, *running.containers(APP)]}


async def in_turns(running: Platform, options: argparse.Namespace) -> tuple[list[Turn], list[Turn]]:
    """The turns beside a held rollout, and those without one, in an order that changes."""
    found: dict[bool, list[Turn]] = {True: [], False: []}
    for number in range(options.turns):
        for held in (True, False) if number % 2 else (False, True):
            await asyncio.to_thread(hold if held else call_back, running)
            found[held].append(await turn(running, options))
        print(f"{number + 1} of {options.turns} turns", flush=True)
    return found[True], found[False]


def hold(running: Platform) -> None:
    """Start a rollout, unless one is there, and wait until it is held."""
    if not is_under_way(running):
        terms = {"steps": [50, 100], "every_s": 36_000, "pairs": 0}
        running.http.post(f"/v1/apps/{APP}/rollout", json=terms).raise_for_status()
    wait_until(lambda: rollout_of(running)["held"] == "no_capacity", "it is held")


def call_back(running: Platform) -> None:
    """End the rollout, if there is one."""
    if is_under_way(running):
        running.http.post(f"/v1/apps/{APP}/rollout/abort", json={}).raise_for_status()
        wait_until(lambda: not is_under_way(running), "it is over")


def is_under_way(running: Platform) -> bool:
    answer = running.http.get(f"/v1/apps/{APP}/rollout")
    return answer.status_code == 200 and answer.json()["state"] != "rolled_back"


async def turn(running: Platform, options: argparse.Namespace) -> Turn:
    """Calls at the rate; the first ones count for nothing."""
    caller = Caller(running.url, f"{APP}.{FUNCTION}", running.key)
    body = f'{{"input": {{"ms": {options.sleep_ms}}}}}'.encode()
    await took_at_rate(caller, body, options.rate, SETTLED_S)
    took = await took_at_rate(caller, body, options.rate, options.turn_s)
    caller.close()
    return Turn(took=tuple(took), pairs=0, gateway_s=0.0)


def figures_of(held: Sequence[Turn], plain: Sequence[Turn]) -> dict[str, float]:
    """What the turns say."""
    figures = {
        "p50_ms": percentile_of(plain, 50), "p95_ms": percentile_of(plain, 95),
        "calls": float(sum(len(one.took) for one in held)),
        "same_p95_ratio": percentile_of(plain[::2], 95) / percentile_of(plain[1::2], 95),
    }  # fmt: skip
    rows = []
    for name, percent in (("p50", 50.0), ("p95", 95.0)):
        ratio, error = percentile_of(held, percent) / percentile_of(plain, percent), error_of(held, plain, percent)
        figures |= {f"held_{name}_ratio": ratio, f"held_{name}_error": error}
        rows.append((name, percentile_of(plain, percent), percentile_of(held, percent), ratio, error))
    report.table(
        "Calls beside a rollout that is held, and without", ("", "without, ms", "held, ms", "ratio", "error"), rows
    )
    return figures


if __name__ == "__main__":
    main()
