"""Only the credits of agents are heard whose reports do not say what has ended. On a real bus."""

from __future__ import annotations

from pilotlight_autoscaler.old_agents import OldAgents
from pilotlight_core.bus import connect
from pilotlight_core.model import subjects
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.node_messages import ContainerState, Credit
from tests.builders.nodes import node_report
from tests.waiting import until_found


def credit(node: str) -> Credit:
    return Credit(
        container=f"ctr_{node}", version="ver_1", tenant="acme", node=node, instance="i1", epoch=1, seq=1,
        state=ContainerState.READY, slots=1,
    )  # fmt: skip


async def test_an_agent_is_heard_until_its_reports_say_what_ended(server_url: str) -> None:
    """One that is upgraded is not heard any more; one whose reports say it never is."""
    region = token(6).lower()
    heard: list[str] = []
    async with connect(server_url, name="old-agents-test") as bus:
        agents = OldAgents(bus, lambda _, message, __: heard.append(message.node), region=region)

        async def sent(*nodes: str) -> None:
            for node in nodes:
                await bus.publish(subjects.credit(region, node, "ver_1"), credit(node))
            await bus.flush()

        async def heard_of(node: str) -> bool:
            await sent(node)
            return node in heard

        agents.on_report(node_report("old"))
        agents.on_report(node_report("new", ended=()))
        await until_found(lambda: heard_of("old"))
        await sent("new", "old")
        assert set(heard) == {"old"}

        agents.on_report(node_report("old", seq=2, ended=()))

        async def is_silent() -> bool:
            heard.clear()
            await sent("old")
            return not heard

        await until_found(is_silent)
