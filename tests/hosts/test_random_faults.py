"""Minutes of whatever can happen to a fleet over hosts, in an order that a seed decides."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.hosts.host_faults import KINDS, killed, parted
from tests.hosts.host_fleet import GatewayClient
from tests.hosts.host_world import GATEWAYS, NODES, HostWorld
from tests.hosts.mixed_load import MixedLoad, check_promises
from tests.system.support import ledger
from tests.waiting import wait_until

SEED = int(os.environ.get("SEED") or random.SystemRandom().randrange(10**6))
MINUTES = float(os.environ.get("MINUTES") or 5)
FAULTS_PER_ROUND = 4
pytestmark = [pytest.mark.long, pytest.mark.system, pytest.mark.timeout(60 * MINUTES + 900)]
APP = """\
from pilotlight import App

app = App("drill")


@app.gpu_function(scaledown_window=0.5, forecast=False, idempotent=True)
def release() -> int:
    return {number}
"""


@contextmanager
def slept(chance: random.Random) -> Iterator[None]:
    """Nothing happens."""
    time.sleep(chance.uniform(0.0, 3.0))
    yield


def fault(world: HostWorld, chance: random.Random) -> tuple[str, AbstractContextManager[object]]:
    """What happens next, and what it is."""
    happens: dict[str, AbstractContextManager[object]] = {f"kill {kind}": killed(world, kind) for kind in KINDS}
    happens |= {
        f"part {part} from the bus": parted(world, part) for part in (*NODES, GATEWAYS[0], "controller", "server")
    }
    happens |= {
        f"part {node} from {GATEWAYS[0]}": world.network.apart(world.host(node), world.host(GATEWAYS[0]))
        for node in NODES
    }
    happens["nothing"] = slept(chance)
    name = chance.choice(sorted(happens))
    return name, happens[name]


def deploy(client: GatewayClient, folder: Path, number: int) -> None:
    """Release a number, which callers have from then on."""
    (folder / "app.py").write_text(APP.format(number=number))
    wait_until(lambda: client.deploys(folder / "app.py"), "it is deployed", 120.0)

    def answers() -> bool:
        try:
            answer = client.call("drill.release")
        except httpx.TransportError:
            return False
        return answer.status_code == 200 and answer.json()["output"] == number

    wait_until(answers, "the release is called", 120.0)


def test_promises_hold_whatever_happens(world: HostWorld, tmp_path: Path) -> None:
    """Kills, partitions, deploys and calls; the promises are checked after every few."""
    print(f"SEED={SEED} MINUTES={MINUTES:g}")
    chance, until, rounds, releases = random.Random(SEED), time.monotonic() + 60 * MINUTES, 0, 0
    while time.monotonic() < until:
        with MixedLoad(world, f"round-{rounds}") as load:
            for _ in range(FAULTS_PER_ROUND):
                name, happening = fault(world, chance)
                print(f"round {rounds}: {name}", flush=True)
                with happening:
                    time.sleep(chance.uniform(0.0, 4.0))
                    if chance.random() < 0.3:
                        releases += 1
                        deploy(world.clients[1], tmp_path, releases)
                time.sleep(chance.uniform(0.0, 2.0))
            wait_until(world.clients[0].is_ready, "it takes calls again")
            load.wait_more()
        print(f"round {rounds}: {dict(load.codes())}", flush=True)
        check_promises(load, interrupted=True, unbilled=True)
        rounds += 1
    world.check_nothing_is_left()
    ledger.check_no_instant_is_sold_twice(world)
    ledger.check_nothing_is_in_quarantine(world)
