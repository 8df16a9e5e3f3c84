"""What of a call stays on one side of a rollout."""

import pytest

from pilotlight_core.model.rollouts.rollout_record import Cohort, Sticky
from pilotlight_core.model.rollouts.split_units import SplitAsker, is_in_cohort, unit_of

ASKER = SplitAsker(
    "acme", "key_1", "call_1", idempotency_key="once-1", sticky="s-1", user="u-1", headers={b"x-ring": b"inner"}
)
BARE = SplitAsker("acme", "key_1", "call_1")


@pytest.mark.parametrize(
    ("sticky", "text", "keyed"),
    [
        (Sticky.CALL, "once:acme/once-1", False),
        (Sticky.TENANT, "tenant:acme", True),
        (Sticky.USER, "user:acme/u-1", True),
        (Sticky.KEY, "key:acme/key_1", True),
        (Sticky.HEADER, "header:acme/s-1", True),
    ],
)
def test_the_unit_is_what_the_rollout_wants_to_be_sticky(sticky: Sticky, text: str, keyed: bool) -> None:
    unit = unit_of(sticky, ASKER)
    assert (unit.text, unit.is_keyed, bool(unit.hashed)) == (text, keyed, keyed)
    assert unit.hashed not in text or not unit.hashed


@pytest.mark.parametrize("sticky", [Sticky.CALL, Sticky.USER, Sticky.HEADER])
def test_who_does_not_say_it_is_drawn_call_by_call(sticky: Sticky) -> None:
    assert unit_of(sticky, BARE) == ("call:call_1", False)


def test_a_user_may_be_named_by_the_header_and_is_each_tenants_own() -> None:
    assert unit_of(Sticky.USER, BARE._replace(sticky="u-1")) == unit_of(Sticky.USER, ASKER)
    assert unit_of(Sticky.USER, ASKER._replace(tenant="rival")) != unit_of(Sticky.USER, ASKER)


def test_a_cohort_is_met_in_all_that_it_names() -> None:
    assert is_in_cohort(Cohort(), BARE)
    assert is_in_cohort(Cohort(tenants=("acme",), headers={"x-ring": "inner"}), ASKER)
    assert not is_in_cohort(Cohort(tenants=("rival",)), ASKER)
    assert not is_in_cohort(Cohort(headers={"x-ring": "outer"}), ASKER)
    assert not is_in_cohort(Cohort(headers={"x-ring": "inner"}), BARE)
