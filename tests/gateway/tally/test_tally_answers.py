"""What a gateway tells fits into a message, whatever it has counted."""

from __future__ import annotations

from pilotlight_core.model.messages import wire
from pilotlight_core.model.messages.scheduling import AskTallies, TalliesTold
from pilotlight_gateway.tally.gateway_tallies import GatewayTallies
from pilotlight_gateway.tally.tallies import TallyKey
from pilotlight_gateway.tally.tally_answers import TallyAnswers, TallySources, is_asked, step_of
from tests.gateway.tally.tallied_calls import MINUTE, end, version
from tests.gateway.tally.tally_gateways import SeveralGateways


async def test_an_answer_fits_into_a_message_of_the_bus() -> None:
    """What has no room is counted: the functions with the fewest calls."""
    world = SeveralGateways()
    for number in range(500):
        one = version(f"f{number}")
        for at in range(1, 40):
            end(world.one.calls, one, 1.13**at)
    told = await TallyAnswers(
        TallySources(
            calls=world.one.calls, homes=world.one.homes, own=GatewayTallies("one", wall=world.clock), wall=world.clock
        )
    ).answer(AskTallies(tenant="acme"))
    assert isinstance(told, TalliesTold)
    assert len(wire.encode(told)) < 1_000_000
    assert len(told.parts) + told.left_out == 500
    assert told.left_out > 0


def test_a_question_is_for_a_function_or_for_a_tenants() -> None:
    """No tenant is another one whose name begins alike."""
    own, other = TallyKey("acme:app.fn", "v"), TallyKey("acme-eu:app.fn", "v")
    assert is_asked(AskTallies(functions=("acme:app.fn",)), own)
    assert not is_asked(AskTallies(functions=("acme:app.fn",), tenant="acme"), TallyKey("acme:app.fn2", "v"))
    assert [is_asked(AskTallies(tenant="acme"), key) for key in (own, other)] == [True, False]
    assert is_asked(AskTallies(), other)


def test_parts_lie_in_the_step_in_which_they_begin() -> None:
    asked = AskTallies(since_ns=10 * MINUTE, step=5)
    assert [step_of(asked, at * MINUTE) for at in (3, 10, 14, 15, 29)] == [0, 0, 0, 1, 3]
    assert step_of(AskTallies(since_ns=0), 99 * MINUTE) == 0
