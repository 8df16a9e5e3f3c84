"""One fleet over hosts does what one machine does; processes are killed and hosts parted, and the promises hold."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.command_line import run_command
from tests.hosts.bus_view import is_whole
from tests.hosts.host_faults import KINDS, WHOLE_S, killed, parted
from tests.hosts.host_world import GATEWAYS, NODES, HostWorld
from tests.hosts.mixed_load import MixedLoad, check_promises
from tests.system.support import ledger
from tests.waiting import wait_until

pytestmark = [pytest.mark.system, pytest.mark.timeout(240)]
LARGE = "x" * (10_000_000 - 1_000)
"""With what is around it, as large as a body may be."""
SECOND = """\
from pilotlight import App

app = App("second")


@app.gpu_function(scaledown_window=0.5, forecast=False)
def speak(x: int) -> int:
    print(f"it is {x}")
    return x
"""


def test_what_one_machine_does_is_done_by_many(world: HostWorld, tmp_path: Path) -> None:
    """10 MB both ways, jobs, deploys and logs through either gateway, and a profile; all that runs at once."""
    one, other = world.clients
    (tmp_path / "app.py").write_text(SECOND)
    other.deploy(tmp_path / "app.py")
    for client in world.clients:
        assert client.output("counted.echo", value=LARGE) == LARGE
    job = one.job("counted.echo", value=LARGE)
    done = other.ended(job)
    assert (done["state"], done["output"]) == ("succeeded", LARGE)
    assert one.output("second.speak", x=7) == 7
    wait_until(lambda: "it is 7" in one.lines("second"), "it is logged")
    assert "it is 7" in other.lines("second")
    profile = run_command(["profile", "second.speak", "x=3", "--seconds", "0.2", "--json"], env=one.env)
    assert profile.returncode == 0, profile.stderr
    assert json.loads(profile.stdout)["curves"][0]["points"][0]["samples"] >= 3
    with MixedLoad(world, "whole") as load:
        load.wait_more()
    assert set(load.codes()) == {"ok"}, load.codes()
    check_promises(load)


@pytest.mark.parametrize("part", KINDS)
def test_a_killed_process_is_survived(world: HostWorld, part: str) -> None:
    """Others go on with what it has begun; nothing runs twice, and nothing that was accepted is lost."""
    with MixedLoad(world, f"kill-{part}") as load:
        with killed(world, part) as heard:
            load.wait_more()
        load.wait_more()
    assert set(load.codes()) <= {"ok"} | heard, load.codes()
    check_promises(load, interrupted=bool(heard), unbilled=part == "agent")


@pytest.mark.parametrize(
    "part",
    [
        NODES[0],
        GATEWAYS[0],
        "controller",
        "server",
    ],
)
def test_a_host_that_is_parted_from_the_bus_does_no_harm(world: HostWorld, part: str) -> None:
    """So long that it is given up: others serve on, what it then still says is fenced, and it serves again after."""
    through = world.clients[1:] if part == GATEWAYS[0] else world.clients
    with MixedLoad(world, f"parted-{part}", through) as load:
        with parted(world, part):
            load.wait_more()
        wait_until(world.clients[0].is_ready, "it takes calls again")
        wait_until(lambda: world.nodes() == set(NODES), "all nodes are heard again")
        load.wait_more()
    # Until the other servers have elected, calls that cannot be held are told when to come again.
    heard = {NODES[0]: {"container_died"}, "server": {"container_died", "no_capacity"}}.get(part, set())
    assert set(load.codes()) <= {"ok"} | heard, load.codes()
    check_promises(load, interrupted=part != "controller")


def test_agents_that_are_parted_from_a_gateway_keep_the_promises(world: HostWorld) -> None:
    """They reach the bus and not each other: small calls go on; large bodies go through the other gateway, or fail as
    what never began; jobs that were accepted end. All is well again when the network is."""
    one, other = world.clients
    with ExitStack() as apart:
        with MixedLoad(world, "apart") as load:
            apart.enter_context(world.network.cut_off(world.host(GATEWAYS[0]), map(world.host, NODES)))
            job = one.job("counted.echo", value="z" * 1_000_000)
            load.wait_more()
        refused = one.call("counted.echo", value="x" * 1_000_000, timeout=60.0)
        assert refused.status_code == 503, refused.text[:500]
        assert other.output("counted.echo", value="x" * 1_000_000) == "x" * 1_000_000
    assert one.ended(job, 90.0)["state"] == "succeeded"
    wait_until(lambda: one.call("counted.echo", value="x" * 1_000_000).status_code == 200, "large bodies pass")
    assert set(load.codes()) == {"ok"}, load.codes()
    check_promises(load)


def test_a_bus_server_is_lost_for_good(world: HostWorld) -> None:
    """With its disk: a fresh one gets all from the other two, of which another may then die."""
    wait_until(lambda: is_whole(world), "all servers have everything", WHOLE_S)
    lost, other, _ = world.fleet.servers
    with MixedLoad(world, "lost") as load:
        lost.kill("nats")
        shutil.rmtree(lost.folder / "jetstream")
        load.wait_more()
        world.fleet.start_server(lost)
        wait_until(lambda: is_whole(world), "the fresh server has everything", WHOLE_S)
        other.kill("nats")
        load.wait_more()
        world.fleet.start_server(other)
        wait_until(lambda: is_whole(world), "all servers have everything", WHOLE_S)
    assert set(load.codes()) <= {"ok", "container_died"}, load.codes()
    check_promises(load, interrupted=True)


def test_nothing_is_left_over(world: HostWorld) -> None:
    """After all that: no container and no process of one, no instant that was sold twice, and the ledger knows all."""
    world.check_nothing_is_left()
    ledger.check_no_instant_is_sold_twice(world)
    ledger.check_nothing_is_in_quarantine(world)
