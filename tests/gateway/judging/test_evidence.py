"""The whole judge: what it finds, what it leaves alone, and that its death changes no bit."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import Arm, RolloutTerms, Sticky
from pilotlight_gateway.judging.call_folding import fold_call
from pilotlight_gateway.judging.evidence import (
    Evidence,
    decode_evidence,
    encode_evidence,
    fold,
    slow_limits_of,
    start,
)
from tests.builders.compared import FUNCTION, compared_call, compared_calls, compared_history, rollout_of
from tests.example_counts import examples

HISTORY = compared_history()


def found_after(calls: list[ComparedCall], terms: RolloutTerms | None = None) -> int:
    """Compared calls until E was 100; 0: it never was."""
    return fold(start(rollout_of(terms), history=HISTORY), 1, calls).crossed_at


@pytest.mark.parametrize(
    ("most", "worse"),
    [(1_000, {"slower": 1.2}), (4_500, {"dearer": 1.1}), (12, {"fails": 1.0}), (5_000, {"fails": 0.01})],
)
def test_a_worse_version_is_found(most: int, worse: dict[str, float]) -> None:
    """Within what the design's simulations needed in nine of ten runs."""
    found = [found_after(list(compared_calls(most, seed, **worse))) for seed in range(4)]

    assert sum(after > 0 for after in found) >= 3


def test_equal_versions_are_left_alone() -> None:
    """Ville's inequality for the mean of all guards, looked at after each of 1,500 calls, also with another share."""
    found = [found_after(list(compared_calls(1_500, seed, rho=(0.5, 0.1)[seed % 2]))) for seed in range(30)]

    assert sum(after > 0 for after in found) <= 1


def test_without_a_history_the_old_versions_first_calls_teach_what_is_usual() -> None:
    """It takes fifty of them longer."""
    evidence = fold(start(rollout_of()), 1, compared_calls(1_500, 4, slower=1.3))

    assert evidence.crossed_at > 0


def test_a_message_that_was_folded_changes_nothing() -> None:
    """The stream may bring it again after a death."""
    calls = list(compared_calls(50, 1))
    evidence = fold(start(rollout_of(), history=HISTORY), 7, calls)
    before = encode_evidence(evidence)

    assert encode_evidence(fold(evidence, 7, calls)) == before
    assert encode_evidence(fold(evidence, 3, calls)) == before


def test_calls_of_others_are_not_looked_at() -> None:
    """Of another rollout, or of a function that takes no part."""
    evidence = fold(
        start(rollout_of()),
        1,
        [compared_call(Arm.CANARY, rollout="rol_2"), compared_call(Arm.CANARY, function="other")],
    )

    assert evidence.calls == 0


TERMS = [
    RolloutTerms(tolerance=0.0),
    RolloutTerms(tolerance=0.0, sticky=Sticky.TENANT),
]


def mixed(seed: int) -> list[ComparedCall]:
    """Calls of all kinds: batches, units, pairs, deaths, early ones."""
    calls = []
    for number, call in enumerate(compared_calls(240, seed, slower=1.1)):
        kind = number % 8
        changes: dict[str, object] = {"unit": f"u{number % 9}"} if seed % 2 else {}
        if kind == 1:
            changes = {"batch": f"b{number // 16}", "batch_size": 2}
        elif kind == 2:
            changes = {"pair": f"p{number // 16}"}
        elif kind == 3:
            changes = {"code": "container_died", "container": f"c{number // 40}"}
        elif kind == 4:
            changes = {"is_cold": True, "start_ms": 900.0 + number, "container": f"s{number}", "node": "n"}
        elif kind == 5:
            changes = {"is_running": True, "execute_ms": 9_000.0}
        elif kind == 6:
            # It is the end of the call that was told of before.
            changes = {
                "call_id": f"call_{number - 1}",
                "rho": 0.1,
                "first_ms": 20.0,
                "gap_ms": 2.0,
                "fields": {"x": 1.0},
            }
        calls.append(msgspec.structs.replace(call, **changes))
    return calls


@given(st.lists(st.integers(1, 239), max_size=50, unique=True), st.integers(0, 3), st.booleans())
@examples(60, deadline=None)
def test_the_judge_may_die_at_any_moment(cuts: list[int], seed: int, sees_again: bool) -> None:
    """Killed after any message, and read back: each number has the same bits, also if messages come again."""
    calls, edges = mixed(seed), [0, *sorted(cuts), 240]
    terms = TERMS[seed % 2]
    whole, killed = (start(rollout_of(terms), history=HISTORY[:120], streaming=(FUNCTION,)) for _ in range(2))
    for seq, (begin, end) in enumerate(pairwise(edges), start=1):
        whole = fold(whole, seq, calls[begin:end])
        read = decode_evidence(encode_evidence(killed))
        assert read is not None
        killed = fold(read, seq, calls[begin:end])
        if sees_again:
            killed = fold(killed, seq, calls[begin:end])

    assert encode_evidence(killed) == encode_evidence(whole)
    assert killed.value.hex() == whole.value.hex()


def test_how_calls_are_cut_into_messages_changes_no_bit() -> None:
    """Only their order counts: E is looked at after each."""
    calls = mixed(2)
    one = fold(start(rollout_of(), history=HISTORY), 1, calls)
    many = start(rollout_of(), history=HISTORY)
    for seq, call in enumerate(calls, start=1):
        many = fold(many, seq, (call,))
    many.seq = 1

    assert encode_evidence(one) == encode_evidence(many)


def test_e_that_was_a_hundred_once_is_enough() -> None:
    """Also when the next calls of the same message take it back."""
    failed = [compared_call(Arm.CANARY, code="function_raised", call_id=str(n)) for n in range(4)]
    well = [compared_call(Arm.CANARY) for _ in range(200)]
    evidence = fold(start(rollout_of(), history=HISTORY), 1, [*failed, *well])

    assert evidence.is_regressed
    assert evidence.crossed_at in (2, 3)
    assert evidence.value < 100.0
    assert evidence.peak >= 100.0


def test_the_instant_when_e_was_last_high_is_kept() -> None:
    """A ramp goes on when it has been low for a while."""
    calls = [
        compared_call(Arm.CANARY, code="function_raised", call_id=str(n), at=100.0 + n) for n in range(2)
    ]  # fmt: skip
    evidence = fold(start(rollout_of(RolloutTerms(weights={"crash": 0.2}, tolerance=0.0)), history=HISTORY), 1, calls)

    assert evidence.high_at == evidence.last_at == 101.0


def test_one_function_of_several_is_a_part_of_the_mean() -> None:
    """Each has its own guards; functions that are new are not compared."""
    rollout = rollout_of(control={"a": "1", "b": "2"}, canary={"a": "3", "b": "4", "new": "5"})
    evidence = start(rollout, history=[])
    assert list(evidence.functions) == ["a", "b"]
    evidence.functions["a"].crash.e = 1_001.0
    evidence = fold(evidence, 1, [compared_call(function="b")])

    assert evidence.value == pytest.approx(1.0 + 0.5 * 1_000.0 / sum(evidence.functions["a"].weights.values()))


def test_the_tolerance_is_the_terms_or_what_is_learnt_of_devices() -> None:
    """And of pairs one percent."""
    as_said = start(rollout_of(RolloutTerms(tolerance=0.03))).functions[FUNCTION]
    assert (as_said.tolerance, as_said.pair_tolerance) == (0.03, 0.03)
    unknown = start(rollout_of(RolloutTerms())).functions[FUNCTION]
    assert (unknown.tolerance, unknown.pair_tolerance) == (0.05, 0.01)
    known = start(rollout_of(RolloutTerms()), spreads={FUNCTION: 0.04}, devices=4).functions[FUNCTION]
    assert known.tolerance == pytest.approx(2.6 * math.sqrt(2.0) * 0.04 / 2.0)
    learnt = [
        compared_call(container=f"c{n % 5}", execute_ms=100.0 + (n % 5) + 0.01 * (n % 7)) for n in range(300)
    ]  # fmt: skip
    assert 0.02 <= start(rollout_of(RolloutTerms()), history=learnt).functions[FUNCTION].tolerance < 0.08


def test_failures_of_the_history_say_which_rate_is_no_alarm() -> None:
    """A function of which 4 % fail is not ended by the same of the new version."""
    history = [compared_call(Arm.CONTROL, code="function_raised" if n % 25 == 0 else "") for n in range(500)]
    evidence = start(rollout_of(), history=history).functions[FUNCTION]

    assert evidence.crash.rate == pytest.approx(0.09)


def test_what_another_release_wrote_is_begun_anew() -> None:
    """And what is no evidence at all."""
    assert decode_evidence(b"nonsense") is None
    assert decode_evidence(encode_evidence(Evidence("rol_1", {}, format=99))) is None


def test_evidence_is_small() -> None:
    """It is written each few seconds."""
    evidence = fold(start(rollout_of()), 1, compared_calls(1_500, 3))

    assert len(encode_evidence(evidence)) < 60_000


def test_however_many_functions_there_are_their_evidence_fits_the_bus() -> None:
    """A message has 4 MB there. Callers choose units, sizes, and what fails."""
    names = [f"function{number}" for number in range(40)]
    rollout = rollout_of(
        RolloutTerms(sticky=Sticky.USER), control=dict.fromkeys(names, "1"), canary=dict.fromkeys(names, "2")
    )
    evidence = start(rollout, streaming=names, shadowed=names)
    for name in names:
        one = evidence.functions[name]
        for number in range(140):
            for change in (
                {"unit": f"{number:016x}", "body_bytes": 2 ** (number % 40)},
                {"code": "function_raised", "container": f"con_{number:020}", "call_id": f"call_{number:020}"},
                {
                    "code": "container_died",
                    "container": f"con_{number:020}",
                    "batch": f"con_{number:020}/123456789",
                    "batch_size": 2,
                    "call_id": f"call_a{number:020}",
                    "is_asked": number >= 64,
                },
                {"is_running": True, "execute_ms": 9e9, "call_id": f"call_{number:020}"},
                {"batch": f"con_{number:020}/123456789", "batch_size": 2},
                {"pair": f"call_{number:020}"},
                {"is_cold": True, "start_ms": 1.0, "container": f"con_{number:020}", "node": "node"},
            ):
                fold_call(one, compared_call((Arm.CANARY, Arm.TWIN)[number % 2], function=name, **change))

    assert len(encode_evidence(evidence)) < 2_500_000


def test_gateways_are_told_when_a_call_is_slow() -> None:
    """Nothing is known of functions that take no part."""
    evidence = start(rollout_of(), history=HISTORY)

    limits = slow_limits_of(evidence)

    assert limits.slow_after_ms(compared_call()) is not None
    assert limits.slow_after_ms(compared_call(function="other")) is None
