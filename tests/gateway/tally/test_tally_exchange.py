"""Who does not answer is named, and one too many questions gets no answer."""

from __future__ import annotations

from pilotlight_core.model import subjects
from pilotlight_core.model.messages.scheduling import AskTallies
from pilotlight_gateway.tally.tally_exchange import MOST_AT_ONCE
from tests.gateway.tally.tallied_calls import end, version
from tests.gateway.tally.tally_gateways import FN, SeveralGateways


async def test_a_gateway_that_does_not_answer_is_named() -> None:
    async with SeveralGateways() as world:
        end(world.one.calls, version())
        end(world.two.calls, version())
        world.bus.silent.add(subjects.tallies("local", "two"))
        window = await world.one.desk.window(FN)
        assert (window.tally.ended, window.silent) == (1, ("two",))


async def test_a_gateway_answers_only_so_many_questions_at_once() -> None:
    """The others get nothing, and their gateway counts this one as silent."""
    async with SeveralGateways() as world:
        held: list[object] = []
        world.bus.spawn = held.append  # type: ignore[method-assign, assignment]
        for _ in range(MOST_AT_ONCE + 5):
            world.two.peers.receive("", AskTallies(tenant="acme"), "reply")
            world.two.peers.receive("", "nonsense", "reply")
        assert len(held) == MOST_AT_ONCE
        for job in held:
            job.close()  # type: ignore[attr-defined]
