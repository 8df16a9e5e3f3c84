"""The agent when the bus goes away and comes back."""

from __future__ import annotations

from pathlib import Path

from pilotlight_core.model.messages.node_messages import ContainerState
from pilotlight_supervisor.embedded_bus import embedded_nats
from tests.runtime.harness import agent, everybody

SLOW = "import time\ndef f(seconds):\n    time.sleep(seconds)\n    return seconds\n"


async def test_calls_survive_the_bus(tmp_path: Path, anyio_backend: str) -> None:
    """A call that runs while nats-server is killed is answered when it is back, and the container takes more."""
    async with embedded_nats(tmp_path / "nats") as nats, everybody(nats.url, tmp_path) as world, agent(world):
        container = await world.bind(await world.deploy(SLOW))
        running = world.run(container, seconds=0.5)
        await running.wait(1)

        await nats.stop()
        await nats.start()

        assert await running.output() == 0.5
        world.credits.clear()
        await world.credit(container, ContainerState.READY)
        assert await world.run(container, seconds=0.0).output() == 0.0
        assert await world.usage(lambda events: any(share.call_id == running.id for e in events for share in e.shares))
