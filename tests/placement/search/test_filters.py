"""Each filter refuses with a sentence, and the first that does is named."""

from __future__ import annotations

from typing import Any

import pytest

from pilotlight_core.model.placing import Over, Spread
from pilotlight_placement.fleet.fleet import Fleet
from pilotlight_placement.hardware.node import Domain, Node, PlacedContainer, Slice
from pilotlight_placement.search.filters import FILTER_NAMES, FILTERS, RULED_OUT, crowding, refusal_at
from tests.placement.makers import ABLE, ask, chosen, cpu, gpu, node


@pytest.mark.parametrize("over", list(Over))
def test_crowding_counts_the_functions_own_containers_where_it_spreads(over: Over) -> None:
    """On the node, or in the zone; without a spread it is nothing."""
    fleet = Fleet([node("n", gpu("a", "T4"), zone="z"), node("m", gpu("b", "T4"), zone="z")])
    whole = Slice(node="n", kind=chosen(fleet, ask("T4")).kind, type="T4", ids=("a",), memory=1)
    fleet.hold(PlacedContainer(container="x", slice=whole, function="f"))
    wanted = ask("T4", function="f", spread=Spread(over=over))

    counts = [crowding(fleet, wanted, fleet.places[name]) for name in ("n", "m")]

    assert counts == ([1, 0] if over is Over.NODE else [1, 1])
    assert crowding(fleet, ask("T4", function="f"), fleet.places["n"]) == 0


def test_refusals_name_the_first_filter_and_why() -> None:
    """A draining node is out for that, whatever else it lacks."""
    fleet = Fleet([node("n", gpu("a", "T4"), zone="x", slots=(cpu(0),))])
    unit = fleet.places["n"].units[0]

    refused = refusal_at(fleet, unit, ask("H100", zones=("y",)))
    assert refused is not None
    assert (refused[0].name, refused[1]) == ("zone", "it is in the zone x, not in y")
    fleet.drain("n")
    refused = refusal_at(fleet, fleet.places["n"].units[0], ask("H100", zones=("y",)))
    assert refused is not None
    assert refused[0].name == "draining"


def test_what_a_node_cannot_do_is_said_of_it() -> None:
    """By its name, with what it has or allows."""
    able = Node(name="n", domain=Domain(abilities=ABLE), slots=(cpu(0),))
    fleet = Fleet([able])
    (unit,) = fleet.units.values()

    def why(**more: Any) -> str:
        refused = refusal_at(fleet, unit, ask(**more))
        return f"{refused[0].name}: {refused[1]}" if refused else ""

    assert why(base="torch", needs=("limits",), shm=ABLE.shm, scratch=ABLE.scratch, pids=ABLE.pids) == ""
    assert why(base="jax") == "base: n has the base environments default, torch, not jax"
    assert why(needs=("sandbox-limits",)) == (
        "feature: n cannot do sandbox-limits: its agent is older, or its sandbox holds no such limits"
    )
    assert why(needs=("wings", "limits")) == "feature: the agent of n is older and cannot do wings"
    assert why(shm=ABLE.shm + 1) == "shm: n allows 8192 MiB of /dev/shm at most"
    assert why(scratch=ABLE.scratch + 1) == "scratch: n allows 8192 MiB of /tmp at most"
    assert why(pids=5000) == "pids: n allows 4096 processes and threads at most"


def test_each_filter_has_its_words() -> None:
    """Whoever adds one gives them."""
    assert tuple(RULED_OUT) == FILTER_NAMES
    assert all(item.sentence.endswith(".") for item in FILTERS)
