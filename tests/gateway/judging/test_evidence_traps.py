"""What makes judges roll back equal versions: each trap with what mends it, and without, where the judge must fail.

A mutant is the same traffic with the mend taken away, so a judge that stops heeding it is found.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutTerms, Sticky
from pilotlight_gateway.judging.evidence import fold, start
from tests.builders.compared import FUNCTION, compared_call, compared_calls, compared_history, rollout_of

Made = Callable[[int], Iterator[ComparedCall]]
HISTORY = compared_history()
CALL = RolloutTerms(tolerance=0.0, pairs=0)


def rolled_back(made: Made, seeds: int, terms: RolloutTerms = CALL, **more: Any) -> int:
    """In how many runs E comes to 100."""
    found = 0
    for seed in range(seeds):
        evidence, calls = start(rollout_of(terms), history=HISTORY, **more), made(seed)
        for seq, call in enumerate(calls, start=1):
            evidence = fold(evidence, seq, (call,))
            if evidence.crossed_at:
                found += 1
                break
    return found


# -- sticky by tenant --------------------------------------------------------------------------------------------------


def tenants(seed: int, *, unit: bool, calls: int = 1_500) -> Iterator[ComparedCall]:
    """Forty tenants who differ by themselves, each on one side for good."""
    draw = random.Random(seed)
    speeds = [draw.gauss(0.0, 0.5) for _ in range(40)]
    sides = [draw.random() < 0.5 for _ in range(40)]
    for number in range(calls):
        tenant = int(40 * draw.random() ** 2)
        took = 100.0 * math.exp(speeds[tenant] + draw.gauss(0.0, 0.3))
        yield compared_call(
            Arm.CANARY if sides[tenant] else Arm.TWIN,
            call_id=str(number), execute_ms=took, gpu_ns=int(1e6 * took), unit=f"t{tenant}" if unit else "",
        )  # fmt: skip


def test_sticky_tenants_are_one_bet_each() -> None:
    """Judged per call, tenants who differ by themselves look like a slower version."""
    sticky = replace(CALL, sticky=Sticky.TENANT)

    assert rolled_back(lambda seed: tenants(seed, unit=True), 6, sticky) == 0
    assert rolled_back(lambda seed: tenants(seed, unit=False), 6) >= 2


def users(seed: int) -> Iterator[ComparedCall]:
    """Users of equal speed but for the new version, which is half as fast."""
    draw = random.Random(seed)
    for user in range(120):
        canary = draw.random() < 0.5
        for number in range(20):
            took = 100.0 * math.exp(draw.gauss(0.0, 0.5)) * (2.0 if canary else 1.0)
            yield compared_call(
                Arm.CANARY if canary else Arm.TWIN, execute_ms=took, unit=f"u{user}", call_id=f"{user}.{number}",
            )  # fmt: skip


def test_a_worse_version_is_found_by_sticky_users_too() -> None:
    """By some tens of them."""
    assert rolled_back(users, 3, replace(CALL, sticky=Sticky.USER)) == 3


# -- batches -----------------------------------------------------------------------------------------------------------


def batches(seed: int, *, named: bool, size: int, other: int) -> Iterator[ComparedCall]:
    """Batches of 2,400 calls, of so many on each side, whose cost is shared: calls of larger ones are cheaper."""
    draw = random.Random(seed)
    for number in range(4_800 // (size + other)):
        canary = draw.random() < 0.5
        mates = size if canary else other
        cost = int(1e8 * math.exp(draw.gauss(0.0, 0.5)) * (1.0 + 0.2 * mates) / mates)
        for place in range(mates):
            yield compared_call(
                Arm.CANARY if canary else Arm.TWIN,
                gpu_ns=cost, call_id=f"{number}.{place}",
                execute_ms=100.0 * math.exp(draw.gauss(0.0, 0.5)),
                **({"batch": str(number), "batch_size": mates} if named else {}),
            )  # fmt: skip


def test_a_batch_is_one_observation_and_the_twin_has_as_many_mates() -> None:
    """Per call, mates count as if each had its own luck; against all of the old version, larger batches are cheaper."""
    assert rolled_back(lambda seed: batches(seed, named=True, size=12, other=12), 5) == 0
    assert rolled_back(lambda seed: batches(seed, named=True, size=3, other=12), 2) == 2
    assert rolled_back(lambda seed: batches(seed, named=False, size=12, other=12), 5) >= 2


def heard(seed: int, gateways: int) -> Iterator[ComparedCall]:
    """Batches of twelve whose calls end at so many gateways; told under one name, or under one for each gateway."""
    for number, call in enumerate(batches(seed, named=True, size=12, other=12)):
        parts = {} if gateways == 1 else {"batch": f"{call.batch} {number % gateways}", "batch_size": 12 // gateways}
        yield replace(call, **parts)


def test_a_batch_that_ends_at_several_gateways_is_still_one_observation() -> None:
    """Named by what each gateway sees of it, it would be several."""
    assert rolled_back(lambda seed: heard(seed, 1), 5) == 0
    assert rolled_back(lambda seed: heard(seed, 6), 5) >= 1


# -- fresh containers --------------------------------------------------------------------------------------------------


def fresh(seed: int, *, told: bool) -> Iterator[ComparedCall]:
    """The canary has more cold calls, and more first calls of containers, than the old version; those are slow."""
    draw = random.Random(seed)
    for call in compared_calls(1_500, seed):
        part = 0.15 if call.arm == Arm.CANARY else 0.02
        if draw.random() >= part:
            yield call
            continue
        changes: dict[str, Any] = (
            {"is_cold": True} if draw.random() < 0.2 else {"nth_call": 1 + int(20 * draw.random())}
        )
        slow = replace(call, execute_ms=call.execute_ms * 8.0, gpu_ns=call.gpu_ns * 4)
        yield replace(slow, **changes) if told else slow


def test_calls_of_fresh_containers_are_apart() -> None:
    """A canary that scales up is not slower for it."""
    assert rolled_back(lambda seed: fresh(seed, told=True), 5) == 0
    assert rolled_back(lambda seed: fresh(seed, told=False), 3) == 3


# -- failures that are usual -------------------------------------------------------------------------------------------


def failing(seed: int, *, told: bool) -> Iterator[ComparedCall]:
    """One of ten calls of either version fails, and of the old one before anything is compared."""
    draw = random.Random(seed)
    for number in range(1_500):
        fails = draw.random() < 0.1
        if told or not fails:
            code = "function_raised" if fails else ""
            yield compared_call(Arm.CONTROL, rho=0.0, call_id=f"before_{number}", code=code)
    for call in compared_calls(1_200, seed):
        yield replace(call, code="function_raised" if draw.random() < 0.1 else "")


def test_failures_of_before_are_usual() -> None:
    """Who hears of the old version's answers alone believes that it never fails."""
    assert rolled_back(lambda seed: failing(seed, told=True), 6) == 0
    assert rolled_back(lambda seed: failing(seed, told=False), 6) >= 3


# -- deaths ------------------------------------------------------------------------------------------------------------


def deaths(seed: int, *, told: bool) -> Iterator[ComparedCall]:
    """Containers of both sides die as often, each with eight calls."""
    draw = random.Random(seed)
    for number, call in enumerate(compared_calls(1_600, seed)):
        yield call
        if number % 40 == 20:
            arm = Arm.CANARY if draw.random() < 0.5 else Arm.TWIN
            for place in range(8):
                container = f"c{number}" if told else ""
                yield replace(
                    call, arm=arm.value, code="container_died", container=container, call_id=f"{number}.{place}"
                )  # fmt: skip


def test_a_containers_death_is_one_event() -> None:
    """Eight calls died of one cause. The alarm on failures in a row has its own tests, and no weight here."""
    terms = replace(CALL, weights={"crash": 0.0})

    assert rolled_back(lambda seed: deaths(seed, told=True), 6, terms) == 0
    assert rolled_back(lambda seed: deaths(seed, told=False), 6, terms) >= 2


# -- hanging calls -----------------------------------------------------------------------------------------------------


def hanging(seed: int, *, told: bool) -> list[ComparedCall]:
    """Twenty calls a second; 30 % of the canary's hang until a minute is over. In the order in which they are told."""
    draw, found = random.Random(seed), []
    for call in compared_calls(1_600, seed):
        begun = call.at / 20.0
        if call.arm != Arm.CANARY or draw.random() >= 0.3:
            found.append(replace(call, at=begun + call.execute_ms / 1e3))
            continue
        if told:
            found.append(replace(call, at=begun + 0.4, execute_ms=400.0, is_running=True))
        found.append(replace(call, at=begun + 60.0, execute_ms=60_000.0, code="execution_timeout"))
    return sorted(found, key=lambda call: call.at)


def rolled_back_at(calls: list[ComparedCall]) -> float:
    """The second at which E comes to 100."""
    evidence = start(rollout_of(CALL), history=HISTORY)
    for seq, call in enumerate(calls, start=1):
        if fold(evidence, seq, (call,)).crossed_at:
            return call.at
    return math.inf


def test_a_call_that_hangs_is_slow_at_the_threshold_and_not_when_it_ends() -> None:
    """Seconds instead of more than a minute."""
    told = sorted(rolled_back_at(hanging(seed, told=True)) for seed in range(5))
    untold = sorted(rolled_back_at(hanging(seed, told=False)) for seed in range(3))

    assert told[2] < 12.0
    assert untold[1] > 55.0


# -- bad inputs --------------------------------------------------------------------------------------------------------


def inputs(seed: int, *, own: float, is_left_out: bool = False) -> Iterator[ComparedCall]:
    """A fifth of the inputs fail on both sides, and the old version is asked about those that the new one has failed;
    the new one fails `own` of the others too. Left out on its side alone, those are as if it had done them well.
    """
    draw = random.Random(seed)
    for number in range(1_500):
        canary, is_bad, fails = draw.random() < 0.5, draw.random() < 0.2, draw.random() < own
        failed = is_bad or (canary and fails)
        yield compared_call(
            Arm.CANARY if canary else Arm.TWIN,
            call_id=str(number), execute_ms=0.0, also_failed=canary and is_bad,
            code="function_raised" if failed and not (is_left_out and canary and is_bad) else "",
        )  # fmt: skip


def test_bad_inputs_count_on_both_sides_or_on_none() -> None:
    """Left out of the new version's failures alone they hide as many of its own, and prove that it has none. The guard
    on crashes, which compares with nobody, is out of this.
    """
    terms = replace(CALL, weights={"crash": 0.0})

    assert rolled_back(lambda seed: inputs(seed, own=0.0), 8, terms) == 0
    assert rolled_back(lambda seed: inputs(seed, own=0.2), 4, terms) >= 3
    assert rolled_back(lambda seed: inputs(seed, own=0.2, is_left_out=True), 4, terms) == 0
    proven = []
    for is_left_out in (False, True):
        made = inputs(1, own=0.2, is_left_out=is_left_out)
        evidence = fold(start(rollout_of(terms), history=HISTORY), 1, made)
        proven.append(evidence.functions[FUNCTION].verified().get("errors"))
    assert proven == [None, 0.1]


# -- devices -----------------------------------------------------------------------------------------------------------


def devices(seed: int, spread: float) -> Iterator[ComparedCall]:
    """Each side on a device of its own; those of one type differ, and the size of a call is known."""
    draw = random.Random(seed)
    speed = {True: draw.gauss(0.0, spread), False: draw.gauss(0.0, spread)}
    for number in range(2_000):
        canary = draw.random() < 0.5
        cost = math.exp(draw.gauss(0.0, 0.1) + speed[canary])
        yield compared_call(
            Arm.CANARY if canary else Arm.TWIN,
            call_id=str(number), gpu_ns=int(1e8 * cost), execute_ms=100.0 * cost,
        )  # fmt: skip


def test_the_tolerance_is_no_less_than_devices_differ() -> None:
    """With none, the worse device's version is rolled back."""
    learnt = RolloutTerms(pairs=0)

    assert rolled_back(lambda seed: devices(seed, 0.04), 8, learnt, spreads={FUNCTION: 0.04}) == 0
    assert rolled_back(lambda seed: devices(seed, 0.04), 8) >= 2


# -- the clock ---------------------------------------------------------------------------------------------------------


def waves(seed: int, *, ramp: bool) -> Iterator[ComparedCall]:
    """Calls grow slower over the day, while the canary's share grows."""
    draw = random.Random(seed)
    for number in range(2_000):
        rho = (0.05, 0.2, 0.5)[number * 3 // 2_000]
        canary = draw.random() < rho
        took = math.exp(draw.gauss(0.0, 0.5)) * (1.0 + 1.5 * number / 2_000)
        yield compared_call(
            Arm.CANARY if canary else Arm.TWIN,
            rho=rho if ramp else 0.25, call_id=str(number), execute_ms=100.0 * took, gpu_ns=int(1e8 * took),
        )  # fmt: skip


def test_each_call_brings_the_probability_it_was_sent_with() -> None:
    """One share for all of a ramp makes of a busy hour a slower version."""
    assert rolled_back(lambda seed: waves(seed, ramp=True), 5) == 0
    assert rolled_back(lambda seed: waves(seed, ramp=False), 3) >= 2


def test_which_of_two_shadows_comes_first_changes_nothing() -> None:
    """Their order is random, to the bit."""
    draw, found = random.Random(1), set()
    costs = [(draw.gauss(0.0, 0.05), draw.gauss(0.0, 0.05)) for _ in range(60)]
    for order in (1, -1):
        evidence = start(rollout_of(RolloutTerms()), shadowed=(FUNCTION,))
        for number, each in enumerate(costs, start=1):
            both = [
                compared_call(arm, rho=0.0, pair=str(number), gpu_ns=int(1e8 * math.exp(cost)))
                for arm, cost in zip((Arm.CANARY, Arm.TWIN), each, strict=True)
            ]
            evidence = fold(evidence, number, both[::order])
        found.add(evidence.functions[FUNCTION].pairs.e.hex())

    assert len(found) == 1


def doubled(usual_ms: float) -> float:
    """The pairs' e after 100 of them, where the canary's containers take twice as long."""
    draw, evidence = random.Random(1), start(rollout_of(RolloutTerms()), shadowed=(FUNCTION,))
    for number in range(1, 101):
        both = [
            compared_call(
                arm, rho=0.0, pair=str(number), gpu_ns=int(usual_ms * 1e6 * times * math.exp(draw.gauss(0.0, 0.05)))
            )
            for arm, times in ((Arm.CANARY, 2.0), (Arm.TWIN, 1.0))
        ]  # fmt: skip
        evidence = fold(evidence, number, both)
    return evidence.functions[FUNCTION].pairs.e


def test_containers_differ_by_parts_of_a_millisecond_and_that_is_not_their_version() -> None:
    """What takes 0.1 ms in one container may take 0.2 ms in another; 20 ms and 40 ms are a difference."""
    assert doubled(0.1) < 1.0
    assert doubled(20.0) > 1e3
