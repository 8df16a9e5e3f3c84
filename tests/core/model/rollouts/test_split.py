"""Splits: monotone, unpredictable without the salt, the same everywhere."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pilotlight_core.model.rollouts.rollout_record import WHOLE, Arm, Rollout, RolloutState, RolloutTerms
from pilotlight_core.model.rollouts.split import bucket_of, compared_share, drawn, twin_share_of

ROLLOUT = Rollout(
    id="rol_1", number=1, control={"f": "ver_old"}, canary={"f": "ver_new"}, twins={"f": "ver_twin"}, salt=b"s" * 32,
    state=RolloutState.RAMP, since=0.0, started_at=0.0, by="key_1",
)  # fmt: skip
UNITS = [f"unit-{number}" for number in range(2_000)]


def at(share: int) -> Rollout:
    return replace(ROLLOUT, share=share, twin_share=twin_share_of(share))


@given(st.lists(st.integers(0, WHOLE), min_size=2, max_size=6).map(sorted), st.text(max_size=40))
def test_no_unit_leaves_the_canary_while_its_share_rises(shares: list[int], unit: str) -> None:
    arms = [found.arm for share in shares if (found := drawn(at(share), "f", unit)) is not None]
    assert len(arms) == len(shares)
    entered = [arm is Arm.CANARY for arm in arms]
    assert entered == sorted(entered)


def test_each_side_has_its_share_and_twin_and_canary_are_equal() -> None:
    rollout = at(2_500)
    found = Counter(one.arm for unit in UNITS if (one := drawn(rollout, "f", unit)) is not None)
    assert found[Arm.CANARY] + found[Arm.TWIN] + found[Arm.CONTROL] == len(UNITS)
    assert all(abs(found[arm] / len(UNITS) - part) < 0.04 for arm, part in ((Arm.CANARY, 0.25), (Arm.TWIN, 0.25)))
    assert compared_share(rollout) == 0.5


def test_a_call_of_the_control_is_compared_only_where_there_is_no_twin() -> None:
    rollout = at(1_000)
    middle = next(unit for unit in UNITS if 1_000 <= bucket_of(rollout.salt, unit) < 9_000)
    with_twin, without = drawn(rollout, "f", middle), replace(rollout, terms=RolloutTerms(twin=False), twin_share=0)
    assert with_twin == (Arm.CONTROL, "ver_old", 0.0)
    assert drawn(without, "f", middle) == (Arm.CONTROL, "ver_old", 0.1)


def test_another_salt_sends_others() -> None:
    one, other = at(5_000), replace(at(5_000), salt=b"t" * 32)
    assert [drawn(one, "f", unit) for unit in UNITS[:50]] != [drawn(other, "f", unit) for unit in UNITS[:50]]


def test_functions_that_take_no_part_and_ended_rollouts_split_nothing() -> None:
    assert drawn(at(WHOLE), "g", "u") is None
    assert drawn(replace(at(WHOLE), state=RolloutState.ROLLED_BACK), "f", "u") is None
    assert compared_share(at(0)) == 0.0
