"""Two gateways and two agents, each with folders of its own: hosts die and are parted, and the promises hold."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pilotlight_core.host.signing import PUBLIC, Signer
from pilotlight_gateway.cluster.node_incarnations import LOST_AFTER_S
from pilotlight_gateway.operator_key import KEY_SET, OPERATOR_KEY, vouch
from pilotlight_gateway.secrets.key_files import KEY_FILE
from tests.hosts.host_fleet import GatewayClient, HostFleet, host_fleet
from tests.hosts.host_network import TestHost
from tests.system.support.processes import descendants, is_alive
from tests.system.support.sample_apps import APPS
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.system, pytest.mark.timeout(240)]
NODES, STRAY = ("node-1", "node-2"), "stray"
GATEWAYS = ("gateway-1", "gateway-2")
CALL_S, CALLERS = 0.5, 4
SECRET_APP = """
import os
from pilotlight import App
app = App("{app}")
@app.gpu_function(secrets={{"TOKEN": "hosts-token"}}, scaledown_window=0.0, forecast=False)
def length() -> int:
    return len(os.environ["TOKEN"])
"""


class TwoOfEach:
    """The whole of it, and the operator's folder, which is on none of the hosts."""

    def __init__(self, fleet: HostFleet, operator: Path) -> None:
        self.fleet, self.operator = fleet, operator
        self.clients: list[GatewayClient] = []

    def host(self, name: str) -> TestHost:
        return self.fleet.network.hosts[name]

    def start_agent(self, node: str) -> None:
        self.fleet.start_agent(node, "--trusted-keys", str(self.host(node).folder / "operator.pub"))

    def vouch(self, *keys: Path) -> str:
        """Sign the set of these keys, and bring it to the first gateway's host, where its path is."""
        vouch(self.operator, keys, time.time())
        return str(shutil.copy(self.operator / KEY_SET, self.host("gateway-1").folder))

    def public_key(self, gateway: str) -> Path:
        return self.host(gateway).folder / "state" / "keys" / PUBLIC

    def start(self) -> None:
        """As docs/hosts.md has it: gateways make their keys, the operator vouches, agents are given one public key."""
        self.fleet.start_database()
        for name in GATEWAYS:
            host = self.fleet.network.add(name)
            Signer.load_or_create(host.folder / "state" / "keys")
        first = self.vouch(*map(self.public_key, GATEWAYS))
        self.clients.append(self.fleet.start_gateway("gateway-1", "--key-set", first))
        self.clients.append(self.fleet.start_gateway("gateway-2"))
        self.fleet.start_duties(self.host("gateway-1"))
        self.fleet.start_controller()
        for node in NODES:
            host = self.fleet.network.add(node)
            shutil.copy(self.operator / f"{OPERATOR_KEY}.pub", host.folder / "operator.pub")
            self.start_agent(node)

    def nodes(self) -> set[str]:
        """Those that the second gateway hears."""
        return {str(node["node"]) for node in self.clients[1].http.get("/v1/nodes").json()["nodes"]}

    def runs_on(self, app: str) -> set[str]:
        return {str(container["node"]) for container in self.clients[0].containers(app)}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoOfEach]:
    """Two gateways, two agents, a controller, a bus, a store and a database: eight hosts."""
    with host_fleet(tmp_path_factory.mktemp("hosts"), *NODES, strays=(STRAY,)) as fleet:
        made = TwoOfEach(fleet, tmp_path_factory.mktemp("operator"))
        made.start()
        made.clients[0].deploy(APPS / "calls" / "app.py")
        made.clients[1].deploy(APPS / "crash" / "app.py")
        yield made


class SteadyCalls:
    """Calls through all gateways or some, each with a name of its own, until it is stopped."""

    def __init__(self, world: TwoOfEach, prefix: str, ref: str, through: Sequence[GatewayClient] = ()) -> None:
        self._clients, self._prefix, self._ref = through or world.clients, prefix, ref
        self._stopping = threading.Event()
        self.answers: dict[str, str] = {}
        """By name: `ok`, or the code of the error."""
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CALLERS)]

    def __enter__(self) -> SteadyCalls:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def count(self) -> int:
        return sum(code == "ok" for code in list(self.answers.values()))

    def _run(self, thread: int) -> None:
        client, number = self._clients[thread % len(self._clients)], 0
        while not self._stopping.is_set():
            name, number = f"{self._prefix}-{thread}-{number}", number + 1
            answer = client.call(self._ref, name=name, seconds=CALL_S, timeout=60.0)
            self.answers[name] = "ok" if answer.status_code == 200 else str(answer.json().get("code"))


def check_promises(world: TwoOfEach, calls: SteadyCalls, prefix: str) -> None:
    """Each call that was answered has run once, and none has run twice."""

    def runs() -> Counter[str]:
        words = (line.removeprefix("ran ") for line in world.clients[0].lines("crash") if line.startswith("ran "))
        return Counter(name for name in words if name.startswith(prefix))

    answered = {name for name, code in calls.answers.items() if code == "ok"}
    wait_until(lambda: answered <= runs().keys(), "all lines are logged", 30.0)
    assert {name: count for name, count in runs().items() if count > 1} == {}


def check_nothing_is_left(world: TwoOfEach, below: set[int]) -> None:
    """Containers go when nobody calls, and with them their processes."""
    wait_until(lambda: not world.clients[0].containers("crash"), "no container is left", 60.0)
    agents = {world.host(node).running["agent"].pid for node in NODES if "agent" in world.host(node).running}
    kept = set().union(*map(descendants, agents))
    wait_until(lambda: not any(map(is_alive, below - kept)), "no process of a container is left", 30.0)


def test_deploys_calls_and_large_bodies_pass_through_either_gateway(world: TwoOfEach) -> None:
    """Each signs with its own key, and both agents run what either has signed."""
    one, other = world.clients
    large = "x" * 9_999_000
    for client in world.clients:
        assert client.output("calls.echo", value=large) == large
        assert client.output("crash.again", name="once", seconds=0.0) == "once"
    value = "y" * 1_000_000
    job = one.job("calls.echo", value=value)
    done = other.ended(job)
    assert (done["state"], done["output"]) == ("succeeded", value)


def test_an_agent_without_a_key_that_counts_does_not_join(world: TwoOfEach) -> None:
    """It ends at once, and says which key is missing and how to give it."""
    stray = world.fleet.network.add(STRAY)
    Signer.load_or_create(stray.folder / "state" / "keys")
    with pytest.raises(AssertionError, match="Give this agent the operator's public key: --trusted-keys"):
        world.fleet.start_agent(STRAY)


def test_a_killed_host_of_an_agent_is_survived(world: TwoOfEach) -> None:
    """The other node takes over; nothing runs twice that must not, and the node comes back."""
    below = set().union(*(descendants(world.host(node).running["agent"].pid) for node in NODES))
    with SteadyCalls(world, "kill", "crash.once") as calls:
        wait_until(lambda: calls.count() > 8, "calls are answered")
        (victim, *_) = world.runs_on("crash")
        below |= descendants(world.host(victim).running["agent"].pid)
        world.host(victim).kill("agent")
        before = calls.count()
        wait_until(lambda: calls.count() > before + 8, "the other node answers")
    assert set(calls.answers.values()) <= {"ok", "container_died"}, Counter(calls.answers.values())
    world.start_agent(victim)
    check_promises(world, calls, "kill")
    check_nothing_is_left(world, below)


def test_a_killed_host_of_a_gateway_is_survived(world: TwoOfEach) -> None:
    """Calls through the other go on, and jobs that the dead one has accepted end; it comes back with its own key."""
    one, other = world.clients
    with SteadyCalls(world, "gateway", "crash.once", through=[other]) as calls:
        wait_until(lambda: calls.count() > 8, "calls are answered")
        below = set().union(*(descendants(world.host(node).running["agent"].pid) for node in NODES))
        jobs = [one.job("calls.echo", value=f"{number}" * 1_000_000) for number in range(3)]
        world.host("gateway-1").kill("gateway")
        assert [other.ended(job, 90.0)["state"] for job in jobs] == ["succeeded"] * 3
        world.fleet.start_gateway("gateway-1")
        before = calls.count()
        wait_until(lambda: calls.count() > before + 8, "calls are answered")
    assert set(calls.answers.values()) == {"ok"}, Counter(calls.answers.values())
    check_promises(world, calls, "gateway")
    check_nothing_is_left(world, below)


def test_an_agent_that_is_parted_from_a_gateway_keeps_the_promises(world: TwoOfEach) -> None:
    """They reach the bus and not each other: small calls go on; large bodies go through the other gateway, or fail as
    what never began; jobs that were accepted end. All is well again when the network is."""
    one, other = world.clients
    network = world.fleet.network
    with SteadyCalls(world, "apart", "crash.once") as calls:
        wait_until(lambda: calls.count() > 8, "calls are answered")
        below = set().union(*(descendants(world.host(node).running["agent"].pid) for node in NODES))
        with (
            network.apart(world.host("gateway-1"), world.host(NODES[0])),
            network.apart(world.host("gateway-1"), world.host(NODES[1])),
        ):
            before = calls.count()
            job = one.job("calls.echo", value="z" * 1_000_000)
            refused = one.call("calls.echo", value="x" * 1_000_000, timeout=60.0)
            assert refused.status_code == 503, refused.text[:500]
            assert other.output("calls.echo", value="x" * 1_000_000) == "x" * 1_000_000
            wait_until(lambda: calls.count() > before + 8, "small calls are answered")
        assert one.ended(job, 90.0)["state"] == "succeeded"
        wait_until(
            lambda: one.call("calls.echo", value="x" * 1_000_000).status_code == 200, "large bodies pass again", 60.0
        )
    assert set(calls.answers.values()) == {"ok"}, Counter(calls.answers.values())
    check_promises(world, calls, "apart")
    check_nothing_is_left(world, below)


@pytest.mark.parametrize("part", [NODES[0], "gateway-1", "controller"])
def test_a_host_that_is_parted_from_the_bus_does_no_harm(world: TwoOfEach, part: str) -> None:
    """So long that it is given up: others serve on, what it then still says is fenced, and it serves again after."""
    with SteadyCalls(world, f"bus-{part}", "crash.once", through=world.clients[1:]) as calls:
        wait_until(lambda: calls.count() > 8, "calls are answered")
        below = set().union(*(descendants(world.host(node).running["agent"].pid) for node in NODES))
        with world.fleet.network.apart(world.host(part), world.fleet.bus):
            time.sleep(LOST_AFTER_S + 4.0)
            before = calls.count()
            wait_until(lambda: calls.count() > before + 8, "others answer", 30.0)
        if part == "gateway-1":
            wait_until(world.clients[0].is_ready, "it takes calls again", 60.0)
            assert world.clients[0].output("crash.again", name="back", seconds=0.0) == "back"
        if part == NODES[0]:
            wait_until(lambda: world.nodes() == set(NODES), "it is heard again", 60.0)
        before = calls.count()
        wait_until(lambda: calls.count() > before + 8, "calls are answered again")
    assert set(calls.answers.values()) <= {"ok", "container_died"}, Counter(calls.answers.values())
    assert part == NODES[0] or set(calls.answers.values()) == {"ok"}, Counter(calls.answers.values())
    check_promises(world, calls, f"bus-{part}")
    check_nothing_is_left(world, below)


def test_a_secret_reaches_nodes_although_one_gateway_lacks_its_key(world: TwoOfEach, tmp_path: Path) -> None:
    """Agents ask on until the other answers; the one without sets none, until the file is copied to it."""
    one, other = world.clients
    value = {"value": "a value that nobody sees"}
    one.http.put("/v1/secrets/hosts-token", json=value).raise_for_status()
    refused = other.http.put("/v1/secrets/hosts-token", json=value)
    assert (refused.status_code, refused.json()["code"]) == (503, "misconfigured"), refused.text

    for number in range(4):  # each load asks anew, and either gateway may hear it
        (folder := tmp_path / f"held{number}").mkdir()
        (folder / "app.py").write_text(SECRET_APP.format(app=f"held{number}"))
        other.deploy(folder / "app.py")
        assert one.output(f"held{number}.length") == len(value["value"])

    keys = [world.public_key(gateway).parent for gateway in GATEWAYS]
    shutil.copy(keys[0] / KEY_FILE, keys[1] / KEY_FILE)
    again = other.http.put("/v1/secrets/hosts-token", json=value)
    assert again.json()["number"] == 2, again.text


def test_a_gateways_key_is_replaced_while_agents_run(world: TwoOfEach) -> None:
    """Both count while both are in the set; then what nobody has deployed since starts no more, and all else does."""
    one, other = world.clients
    other.deploy(APPS / "sold" / "app.py")
    folder = world.public_key("gateway-2").parent
    old, new = world.operator / "old.pub", folder / PUBLIC
    shutil.copy(new, old)
    world.host("gateway-2").kill("gateway")
    shutil.rmtree(folder)
    Signer.load_or_create(folder)

    def restart_with(*keys: Path) -> None:
        world.host("gateway-1").kill("gateway")
        world.fleet.start_gateway("gateway-1", "--key-set", world.vouch(*keys))

    restart_with(world.public_key("gateway-1"), old, new)
    world.fleet.start_gateway("gateway-2")
    assert one.output("crash.again", name="before", seconds=0.0) == "before"
    assert "unchanged" in other.deploy(APPS / "crash" / "app.py")  # and signed anew
    assert one.output("sold.waits", seconds=0.0) is None
    wait_until(lambda: not one.containers("sold") and not one.containers("crash"), "no container is left")

    restart_with(world.public_key("gateway-1"), new)
    refused = one.call("sold.waits", seconds=0.0)
    assert (refused.status_code, refused.json()["code"]) == (503, "misconfigured"), refused.text
    assert other.output("crash.again", name="after", seconds=0.0) == "after"
