from __future__ import annotations

from typing import Any

import pytest

from pilotlight_gateway.diagnosis.bottlenecks import diagnose
from pilotlight_gateway.diagnosis.operational_laws import broken_laws
from tests.gateway.diagnosis.windows import window


def test_counters_that_add_up_break_no_law() -> None:
    assert broken_laws(window()) == ()


@pytest.mark.parametrize(
    ("changes", "law"),
    [
        ({"mean_inside": 1.3}, "Little's law"),
        ({"busy_s": 80.0}, "utilisation law"),
        ({"arrivals": 1_300}, "balance of flow: more calls came"),
        ({"arrivals": 700}, "balance of flow: fewer calls came"),
    ],
)
def test_a_counter_that_is_wrong_breaks_the_law_that_it_is_in(changes: dict[str, Any], law: str) -> None:
    (broken,) = broken_laws(window(**changes))

    assert law in broken


def test_a_broken_law_is_the_whole_diagnosis() -> None:
    found = diagnose(window(busy_s=80.0))

    assert found.name == "counters"
    assert found.says.startswith("The counters of this window do not add up: the utilisation law")
    assert found.cures == ()


def test_calls_that_are_still_inside_break_no_law() -> None:
    assert broken_laws(window(arrivals=1_040, left_inside=40)) == ()


def test_where_nobody_knows_how_many_were_inside_at_the_beginning_some_may_have_been() -> None:
    assert broken_laws(window(arrivals=988, began_inside=None)) == ()
    assert broken_laws(window(arrivals=1_200, began_inside=None)) != ()


def test_examples_that_differ_much_say_less_of_the_time_of_batches() -> None:
    assert broken_laws(window(busy_s=66.0, is_batched=True, batch_most=8)) != ()
    assert broken_laws(window(busy_s=66.0, is_batched=True, batch_most=8, batches_off=0.2)) == ()
