"""A platform over hosts, with its ledger in PostgreSQL, is copied under load and brought back where nothing is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pilotlight_core.bus.bus_users import OPERATOR
from tests.command_line import run_command
from tests.fixtures.postgres import USER
from tests.hosts.drill_fleet import GATEWAYS, NODES, DrillFleet, drill_fleet
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.drill, pytest.mark.system, pytest.mark.timeout(240)]
LATER, LATER_S = 5, 30.0
BILLED = """
    SELECT call, sum(ns) FROM receipt_line WHERE function LIKE '%once' GROUP BY call HAVING max(outcome) <> ''
"""
"""Without those of which only the first seconds are folded yet: they have no outcome."""
AGAIN = "restored"
"""The database that is restored into."""


@pytest.fixture
def drilled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DrillFleet]:
    with drill_fleet(tmp_path_factory.mktemp("hosts")) as fleet:
        yield fleet


def billed(drilled: DrillFleet) -> dict[str, int]:
    """Nanoseconds by call, of a function."""
    with psycopg.connect(drilled.fleet.ledger_url) as connection:
        return {call: int(ns) for call, ns in connection.execute(BILLED)}


def commanded(drilled: DrillFleet, name: str, folder: Path) -> None:
    """Run `pilotlight backup` or `restore` as an operator does on the first gateway's host."""
    env = {"PILOTLIGHT_NATS_URL": drilled.fleet.bus_url(OPERATOR), "PILOTLIGHT_LEDGER_URL": drilled.fleet.ledger_url}
    state = drilled.host(GATEWAYS[0]).folder / "state"
    done = run_command([name, str(folder), "--state-dir", str(state), "--blob-url", "s3://blobs"], env=env)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "s3://blobs" in done.stdout


def lose_everything(drilled: DrillFleet) -> None:
    """All processes die, and what they had is gone; the bucket is somewhere else."""
    hosts = drilled.fleet.network.hosts
    for host in hosts.values():
        if host is not drilled.fleet.store:
            for process in list(host.running):
                host.kill(process)
    for name in (*GATEWAYS, *NODES):
        shutil.rmtree(hosts[name].folder / "state")
    shutil.rmtree(drilled.fleet.bus.folder / "jetstream")
    address = drilled.fleet.ledger_url.partition("@")[2].partition("/")[0]
    with psycopg.connect(f"postgresql://{USER}@{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {AGAIN}")
    drilled.fleet.ledger_url = f"postgresql://{USER}@{address}/{AGAIN}"


def test_a_platform_over_hosts_comes_back(drilled: DrillFleet, tmp_path: Path) -> None:
    """Functions answer, jobs that were accepted end, and the bill is what it was and goes on."""
    one = drilled.gateways[0]
    with drilled.load() as load:
        load.wait_for_more()
        answered = set(load.ids)
        wait_until(lambda: answered <= billed(drilled).keys(), "calls are billed", 60.0)
        later = [load.submit_at(time.time() + LATER_S, f"later-{number}") for number in range(LATER)]
        jobs, before = [*load.jobs, *later], billed(drilled)
        commanded(drilled, "backup", tmp_path / "copy")
        load.wait_for_more()
    assert load.failures == []
    lose_everything(drilled)

    drilled.fleet.start_bus()
    commanded(drilled, "restore", tmp_path / "copy")
    drilled.start_all()

    one = drilled.gateways[0]
    assert one.output("crash.once", name="restored", seconds=0.0) == "restored"
    assert {one.ended(job, 90.0)["state"] for job in jobs} == {"succeeded"}
    wait_until(lambda: billed(drilled).keys() > before.keys(), "new calls are billed", 60.0)
    after = billed(drilled)
    assert {call: after.get(call) for call in answered} == {call: before[call] for call in answered}
    audit = run_command(["ledger", "verify"], env={"PILOTLIGHT_LEDGER_URL": drilled.fleet.ledger_url})
    assert (audit.returncode, "differ" in audit.stdout) == (0, False), audit.stdout
