"""What gateways know of when calls are slow says the same as the judge."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutTerms
from pilotlight_gateway.judging.call_folding import fold_call
from pilotlight_gateway.judging.evidence import slow_limits_of, start
from pilotlight_gateway.judging.usual.slow_limits import SlowLimits
from tests.builders.compared import FUNCTION, compared_call, compared_calls, compared_history, rollout_of

MIXED = [
    replace(
        call,
        body_bytes=2 ** (4 + number % 3),
        tenant="large" if number % 2 else f"t{number % 40}",
        execute_ms=call.execute_ms * (1.0 + number % 3),
    )
    for number, call in enumerate(compared_calls(1_600, 5, rho=0.0, arm=Arm.CONTROL))
]
"""Of several sizes, and of one tenant with many calls."""


@pytest.mark.parametrize("arm", [Arm.CANARY, Arm.TWIN])
@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_they_say_of_each_call_what_the_judge_says(arm: Arm, tolerance: float) -> None:
    """Just below it a call is not slow, just above it is: in each stratum, with the canary's tolerance."""
    evidence = start(rollout_of(RolloutTerms(tolerance=tolerance)), history=MIXED)
    limits = msgspec.msgpack.decode(msgspec.msgpack.encode(slow_limits_of(evidence)), type=SlowLimits)
    found = set()
    for number, call in enumerate(MIXED[:60]):
        asked = replace(call, arm=arm, rho=0.5, is_running=True)
        after = limits.slow_after_ms(asked)
        assert after is not None
        found.add(round(after, 3))
        for part, more in ((0.999, 0), (1.001, 1)):
            slow = evidence.functions[FUNCTION].events["slow"]
            before = slow.canary + slow.other
            told = replace(asked, execute_ms=after * part, call_id=f"{number}.{part}")
            fold_call(evidence.functions[FUNCTION], told)
            assert slow.canary + slow.other == before + more
    assert len(found) > 3


def test_the_canary_is_slow_later_by_the_tolerance() -> None:
    limits = slow_limits_of(start(rollout_of(RolloutTerms(tolerance=0.1)), history=compared_history()))
    old, new = (limits.slow_after_ms(compared_call(arm)) for arm in (Arm.TWIN, Arm.CANARY))
    assert old == pytest.approx(227.0, rel=0.2)
    assert old is not None
    assert new == pytest.approx(old * 1.1)


def test_of_what_is_not_known_they_say_nothing() -> None:
    """Another kind of GPU, function or rollout; or before there are enough calls."""
    limits = slow_limits_of(start(rollout_of(), history=compared_history()))
    for unknown in ({"gpu_type": "other"}, {"function": "other"}, {"rollout": "rol_0"}, {"method": "other"}):
        assert limits.slow_after_ms(compared_call(**unknown)) is None
    early = slow_limits_of(start(rollout_of(), history=compared_history(49)))
    assert early.slow_after_ms(compared_call()) is None
