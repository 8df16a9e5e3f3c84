"""Why containers are where they are: asked of the controller that leads, on a real bus."""

from __future__ import annotations

import pytest

from pilotlight_core.bus import Bus
from pilotlight_core.model import subjects
from pilotlight_core.model.errors import NotFound, Unavailable
from pilotlight_core.model.ids import token
from pilotlight_core.model.messages.controller_questions import ExplainPlacement, PlacementReply
from pilotlight_gateway.fleet.placement_explainer import BusExplainer, Explainer, MemoryExplainer

TOLD = PlacementReply(found=True, lines=("It fits there.",))


async def test_the_controller_that_leads_answers(bus: Bus, other: Bus) -> None:
    """It is asked what the caller asked."""
    region, heard = f"r{token(8)}", []
    asked = ExplainPlacement(container="ctr_1")

    def answer(_: str, message: object, reply: str) -> None:
        heard.append(message)
        other.publish_nowait(reply, TOLD)

    async with other.listening({subjects.explain(region): answer}):
        await other.flush()
        assert await BusExplainer(bus, region=region).explain(asked) == TOLD
    assert heard == [asked]


@pytest.mark.parametrize("real", [True, False])
async def test_while_nobody_leads_nobody_knows(bus: Bus, real: bool) -> None:
    """The caller is told when to ask again."""
    explainer: Explainer = BusExplainer(bus, region=f"r{token(8)}") if real else MemoryExplainer(reply=None)
    with pytest.raises(Unavailable, match="No controller leads") as refused:
        await explainer.explain(ExplainPlacement(container="ctr_1"))

    assert (refused.value.wire_code, refused.value.retry_after) == ("starting", 2.0)


async def test_one_that_advises_answers_for_itself(bus: Bus, other: Bus) -> None:
    """On a subject of its own: the leader is not asked."""
    region = f"r{token(8)}"
    asked = ExplainPlacement(function="acme:shop.hello", scaling=True)

    def answer(_: str, message: object, reply: str) -> None:
        other.publish_nowait(reply, TOLD)

    async with other.listening({subjects.advice(region): answer}):
        await other.flush()
        assert await BusExplainer(bus, region=region).advise(asked) == TOLD


@pytest.mark.parametrize("real", [True, False])
async def test_where_nobody_advises_it_says_how(bus: Bus, real: bool) -> None:
    """That is no failure of the leader."""
    explainer: Explainer = BusExplainer(bus, region=f"r{token(8)}") if real else MemoryExplainer()
    with pytest.raises(NotFound, match="--advise"):
        await explainer.advise(ExplainPlacement(function="acme:shop.hello", scaling=True))
