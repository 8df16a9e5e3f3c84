"""What an agent tells Prometheus of its node."""

from __future__ import annotations

from pilotlight_core.host.metrics import ProcessMetrics
from pilotlight_core.model.messages.node_messages import ContainerState
from tests.runtime.harness import Harness
from tests.waiting import until

GREET = "def f():\n    return 1\n"
BROKEN = "raise RuntimeError('no')\n"


def shown(world: Harness) -> dict[str, float]:
    """The values of a scrape."""
    text = ProcessMetrics(world.agent.metrics.collect, world.agent.loop_watch.collect).exposition().decode()
    return {line.rpartition(" ")[0]: float(line.split()[-1]) for line in text.splitlines() if line[0] != "#"}


async def test_it_tells_of_containers_slices_blanks_and_usage(world: Harness) -> None:
    """As they are at the scrape; the loop's lag beside them."""
    await world.bind(await world.deploy(GREET), "cpu-1")
    found = shown(world)

    assert found['pilotlight_agent_containers{state="ready"}'] == 1
    assert found['pilotlight_agent_containers{state="draining"}'] == 0
    assert found['pilotlight_agent_slices{state="held"}'] == found['pilotlight_agent_slices{state="free"}'] == 1
    assert sum(name.startswith("pilotlight_agent_blanks{base=") for name in found) == 1
    assert found['pilotlight_agent_containers{state="parked"}'] == 0
    assert found['pilotlight_agent_warm_memory_bytes{state="parked"}'] == 0
    assert found["pilotlight_agent_usage_unwritten_records"] == 0
    assert found["pilotlight_agent_environments"] == found["pilotlight_agent_environment_bytes"] == 0
    assert found["pilotlight_agent_usage_unacknowledged_bytes"] >= 0
    assert found["pilotlight_loop_lag_seconds_count"] > 0


async def test_what_goes_out_is_counted_by_function(world: Harness) -> None:
    """From a container that asked for what it may not have."""
    source = """
    import socket, os
    def f():
        host, _, port = os.environ["HTTPS_PROXY"].rpartition("/")[2].partition(":")
        with socket.create_connection((host, int(port))) as proxy:
            proxy.sendall(b"CONNECT b.example.com:443 HTTP/1.1\\r\\n\\r\\n")
            return proxy.recv(1000).decode()
    """
    version = await world.deploy(source, network=("a.example.com:443",))
    container = await world.bind(version, network=("a.example.com:443",))

    assert "403 b.example.com:443 is not in network=" in await world.run(container).output()
    name = f'{{function="{version.manifest.tenant}:{version.manifest.app}.{version.manifest.function}"}}'
    await until(lambda: shown(world).get(f"pilotlight_agent_egress_refused_total{name}") == 1)
    assert shown(world)[f"pilotlight_agent_egress_sent_bytes_total{name}"] == 0


async def test_each_start_counts_once_by_how_it_ended(world: Harness) -> None:
    """With how long it took; a container that did not become ready counts as failed."""
    good, bad = await world.deploy(GREET), await world.deploy(BROKEN)
    await world.bind(good, "cpu-1")
    bind = world.bind_of(bad, "cpu-0")
    assert (await world.command(bind)).ok
    await world.credit(bind.container, ContainerState.GONE)

    await until(lambda: shown(world)["pilotlight_agent_failed_starts_total"] == 1)
    await until(lambda: shown(world)["pilotlight_agent_start_seconds_count"] == 1)
    assert shown(world)["pilotlight_agent_start_seconds_sum"] > 0
    assert shown(world)['pilotlight_agent_start_step_seconds_count{step="enter"}'] == 1
    assert shown(world)['pilotlight_agent_start_step_seconds_count{step="warmup"}'] == 0
    assert shown(world)["pilotlight_agent_failed_checks_total"] == 0
