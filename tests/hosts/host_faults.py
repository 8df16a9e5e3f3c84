"""What happens to a world: its processes are killed, and its hosts parted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.hosts.bus_view import is_whole, lease_holder, lease_leader
from tests.hosts.host_world import CONTROLLERS, GATEWAYS, NODES, HostWorld
from tests.hosts.mixed_load import BROKEN
from tests.waiting import wait_until

KINDS = ("agent", "gateway", "duties", "controller", "bus", "database")
WHOLE_S = 90.0
"""For a server to catch up."""
GIVEN_UP_S = 90.0


def controller_that_leads(world: HostWorld) -> str:
    """Once there is one."""

    def look() -> str | None:
        name = lease_holder(world, "controller")
        return name if name in CONTROLLERS else None

    return wait_until(look, "a controller leads")


@contextmanager
def killed(world: HostWorld, kind: str) -> Iterator[frozenset[str]]:
    """kill -9; it is started again at the end. What callers may hear then."""
    heard, start_again = _kill(world, kind)
    try:
        yield frozenset(heard)
    finally:
        start_again()


def _kill(world: HostWorld, kind: str) -> tuple[set[str], Callable[[], object]]:
    if kind == "agent":
        node = min(wait_until(lambda: world.runs_on("counted"), "it runs"))
        world.kill_agent(node)
        return {"container_died"}, lambda: world.start_agent(node)
    if kind == "gateway":
        world.host(GATEWAYS[0]).kill("gateway")
        return {BROKEN}, lambda: world.start_gateway(GATEWAYS[0])
    if kind == "duties":
        world.host(GATEWAYS[0]).kill("duties")
        return set(), lambda: world.start_duties(GATEWAYS[0])
    if kind == "controller":
        name = controller_that_leads(world)
        world.host(name).kill("controller")
        return set(), lambda: world.fleet.start_controller(name)
    if kind == "database":
        world.fleet.database.kill()
        return set(), world.fleet.database.start
    server = world.host(server_that_leads(world))
    server.kill("nats")
    return {"container_died"}, lambda: world.fleet.start_server(server)  # of whom a frame was in it


def server_that_leads(world: HostWorld) -> str:
    """The server that leads the leases, once all servers have everything: until then no other may be lost."""
    wait_until(lambda: is_whole(world), "all servers have everything", WHOLE_S)
    return wait_until(lambda: lease_leader(world), "a server leads the leases")


@contextmanager
def parted(world: HostWorld, part: str) -> Iterator[None]:
    """A host that does not reach the bus, or a server that reaches nobody, so long that all others go on without it."""
    leads = {"server": server_that_leads, "controller": controller_that_leads}.get(part)
    name = leads(world) if leads else part

    def is_given_up() -> bool:
        if part in NODES:
            return bool(heard := world.nodes()) and name not in heard
        if part in GATEWAYS:
            return lease_holder(world, f"gateway.{name}") == ""
        if part == "server":
            return lease_leader(world) not in ("", name)
        return lease_holder(world, "controller") in set(CONTROLLERS) - {name}

    others = world.everybody_but(name) if part == "server" else world.fleet.servers
    with world.network.cut_off(world.host(name), others):
        wait_until(is_given_up, f"{name} is given up", GIVEN_UP_S)
        yield
