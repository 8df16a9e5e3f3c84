"""Which models are scarce, against all groups of models one by one."""

from __future__ import annotations

from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_placement.fragmentation.scarcity import DEAREST, claims, loads, prices

MODELS = ("a", "b", "c", "d")
ANY: frozenset[str] = frozenset()

demands = st.dictionaries(
    st.frozensets(st.sampled_from(MODELS)), st.integers(1, 100).map(float), min_size=1, max_size=6
)
room_of_each = st.fixed_dictionaries({model: st.integers(0, 50).map(float) for model in MODELS})


def worst(demand: dict[frozenset[str], float], room: dict[str, float]) -> float:
    """The highest load of any group of models, by looking at all of them."""
    groups = chain.from_iterable(combinations(MODELS, size) for size in range(1, len(MODELS) + 1))
    return max(
        sum(amount for accepted, amount in demand.items() if (accepted or set(MODELS)) <= set(group))
        / (sum(room[model] for model in group) + 1)
        for group in groups
    )


@given(demand=demands, room=room_of_each)
def test_the_most_loaded_group_is_found(demand: dict[frozenset[str], float], room: dict[str, float]) -> None:
    """The highest load is that of the worst of all groups."""
    found = loads(claims(MODELS, demand), room)
    scale = (sum(room.values()) + 1) / sum(demand.values())
    assert set(found) == set(MODELS)
    assert max(found.values()) == pytest.approx(worst(demand, room) * scale, rel=1e-6)


@given(demand=demands, room=room_of_each)
def test_prices_are_bounded_and_the_least_loaded_is_free(
    demand: dict[frozenset[str], float], room: dict[str, float]
) -> None:
    """Prices lie between 0 and DEAREST, and one model has none."""
    found = prices(claims(MODELS, demand), room)
    assert min(found.values()) == 0
    assert max(found.values()) <= DEAREST


def test_demand_that_accepts_any_model_makes_none_scarce() -> None:
    """Without demand for certain models there is nothing to price."""
    assert prices(claims(MODELS, {ANY: 5.0}), dict.fromkeys(MODELS, 1.0)) == dict.fromkeys(MODELS, 0.0)


def test_demand_for_one_model_makes_it_dear_as_its_room_shrinks() -> None:
    """A tenth of the room for half of the demand is scarce; nine tenths are not."""
    claimed = claims(("a", "b"), {frozenset("a"): 1.0, ANY: 1.0})
    assert prices(claimed, {"a": 90.0, "b": 10.0}) == {"a": 0.0, "b": 0.0}
    scarce = prices(claimed, {"a": 30.0, "b": 70.0})
    scarcer = prices(claimed, {"a": 10.0, "b": 90.0})
    assert 0 == scarce["b"] < scarce["a"] < scarcer["a"]


def test_a_set_of_models_is_scarce_together() -> None:
    """Demand for either of two models loads both, however their room is divided."""
    claimed = claims(("a", "b", "c"), {frozenset("ab"): 3.0, ANY: 1.0})
    found = loads(claimed, {"a": 10.0, "b": 20.0, "c": 70.0})
    assert found["a"] == found["b"] > found["c"]


def test_demand_for_unknown_models_is_left_out() -> None:
    """Demand that no model of the fleet could meet has no effect."""
    assert claims(("a",), {frozenset("z"): 3.0, frozenset("az"): 1.0}).demand == ((1, 1.0),)
