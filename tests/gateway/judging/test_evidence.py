"""What calls come to: what counts, once, and what says nothing; and that a judge may die anywhere."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilotlight_core.model.messages.seeing.compared_calls import ComparedCall
from pilotlight_core.model.rollouts.rollout_record import GuardTerms, Sticky
from pilotlight_gateway.judging.evidence import LIVE, Evidence, begin_evidence, fold
from tests.gateway.judging.compared import a_rollout, compared

SPREAD = 0.5


def traffic(
    seed: int, count: int, rho: float, *, slower: float = 1.0, dearer: float = 1.0, failing: float = 0.001,
    sized: bool = False,
) -> Iterator[ComparedCall]:  # fmt: skip
    """Calls of both sides, of which the new one may be worse."""
    draw = random.Random(seed)
    for number in range(count):
        a = draw.random() < rho
        size = math.exp(draw.gauss(7.0, 0.57)) if sized else 0.0
        noise = draw.gauss(0.0, 0.19 if sized else 0.6)
        failed = draw.random() < (failing if a else 0.001)
        yield compared(
            "canary" if a else "twin" if rho else "control",
            rho=rho,
            call_id=f"c{number}",
            code="function_raised" if failed else "",
            cost=size,
            execute_ms=100.0 * math.exp(draw.gauss(0.0, SPREAD)) * (slower if a else 1.0),
            gpu_ns=int(1e5 * (size or 1e3) * math.exp(noise) * (dearer if a else 1.0)),
        )


def seen(calls: Iterator[ComparedCall], **terms: object) -> Evidence:
    evidence = begin_evidence(a_rollout(**terms))
    fold(evidence, 1, traffic(999, 2_000, 0.0))
    for seq, call in enumerate(calls, start=2):
        fold(evidence, seq, [call])
    return evidence


def alarm_after(calls: Iterator[ComparedCall], *, sized: bool = False) -> int | None:
    evidence = begin_evidence(a_rollout())
    fold(evidence, 1, traffic(999, 2_000, 0.0, sized=sized))
    for number, call in enumerate(calls, start=1):
        fold(evidence, number + 1, [call])
        if number % 10 == 0 and evidence.total >= 100:
            return number
    return None


@pytest.mark.parametrize(
    ("calls", "sized"),
    [
        (traffic(3, 20, 0.5, failing=1.0), False),
        (traffic(3, 1_100, 0.5, slower=1.2), False),
        (traffic(3, 700, 0.5, dearer=1.1, sized=True), True),
        (traffic(3, 600, 0.5, failing=0.1), False),
    ],
    ids=["fails", "slower", "dearer", "fails sometimes"],
)
def test_what_is_worse_shows(calls: Iterator[ComparedCall], sized: bool) -> None:
    assert alarm_after(calls, sized=sized) is not None


def test_equal_versions_raise_no_alarm() -> None:
    assert [alarm_after(traffic(seed, 1_500, 0.5)) for seed in range(6)] == [None] * 6


def test_a_canary_much_better_than_asked_is_proven() -> None:
    evidence = seen(traffic(5, 1_500, 0.5))
    proofs = {name: [proof.within for proof in one if proof.e >= 20] for name, one in evidence.proofs.items()}
    assert 0.5 in proofs["latency"]
    assert 0.5 in proofs["cost"]


@given(cuts=st.lists(st.integers(1, 59), max_size=8), again=st.booleans())
@settings(max_examples=40, deadline=None)
def test_a_judge_that_dies_anywhere_finds_the_same_to_the_bit(cuts: list[int], again: bool) -> None:
    """Kept after each message, read again, and told some messages twice."""
    calls = [*traffic(7, 300, 0.0), *traffic(8, 300, 0.5, slower=1.1, failing=0.05)]
    messages = [calls[first : first + 10] for first in range(0, 600, 10)]
    whole = begin_evidence(a_rollout())
    for seq, message in enumerate(messages, start=1):
        fold(whole, seq, message)

    kept = msgspec.msgpack.encode(begin_evidence(a_rollout()))
    for seq, message in enumerate(messages, start=1):
        evidence = msgspec.msgpack.decode(kept, type=Evidence)
        fold(evidence, seq, message)
        if seq in cuts and again:
            evidence = msgspec.msgpack.decode(kept, type=Evidence)  # it died before it had stored what it folded
            fold(evidence, seq, message)
        elif seq in cuts:
            fold(evidence, seq, message)  # it is told the same message once more
        kept = msgspec.msgpack.encode(evidence)
    assert msgspec.msgpack.decode(kept, type=Evidence) == whole
    assert msgspec.msgpack.decode(kept, type=Evidence).total == whole.total


def test_what_says_nothing_of_a_version_is_left_out() -> None:
    evidence = begin_evidence(a_rollout())
    fold(evidence, 1, traffic(1, 300, 0.0))
    before = evidence.guards()
    fold(evidence, 2, [
        compared(rho=1.0), compared(rho=0.0), compared(is_retry=True), compared(code="stale_split"),
        compared(code="bad_input"), compared(code="cancelled"), compared(rollout="rol_other"),
        compared(is_cold=True, execute_ms=9e6), compared(nth_call=20, execute_ms=9e6),
    ])  # fmt: skip
    after = evidence.guards()
    assert {name for name in LIVE if after[name] != before[name]} <= {"crash"}
    assert sum(evidence.left_out.values()) >= 8


def test_a_containers_death_counts_once() -> None:
    evidence = begin_evidence(a_rollout())
    deaths = [compared(code="container_died", container="c7", call_id=f"c{n}") for n in range(8)]
    fold(evidence, 1, deaths)
    assert evidence.events["errors"].new == 1


def test_a_batch_is_one_observation() -> None:
    evidence = begin_evidence(a_rollout())
    fold(evidence, 1, traffic(1, 400, 0.0))
    batch = [compared(batch="b1", batch_size=4, execute_ms=300.0, call_id=f"c{n}") for n in range(4)]
    fold(evidence, 2, batch[:3])
    assert evidence.amounts["latency"].logs == [0.0] * 6
    fold(evidence, 3, batch[3:])
    one = begin_evidence(a_rollout())
    fold(one, 1, traffic(1, 400, 0.0))
    fold(one, 2, [compared(execute_ms=300.0)])
    assert evidence.amounts["latency"].e == pytest.approx(one.amounts["latency"].e)


def test_a_sticky_unit_is_one_observation_of_twenty_calls() -> None:
    evidence = begin_evidence(a_rollout(sticky=Sticky.TENANT))
    fold(evidence, 1, traffic(1, 400, 0.0))
    fold(evidence, 2, [compared(unit="u1", execute_ms=300.0, code="function_raised") for _ in range(5)])
    assert evidence.events["errors"].new == 1
    fold(evidence, 3, [compared(unit="u1", execute_ms=300.0) for _ in range(19)])
    assert evidence.amounts["latency"].logs == [0.0] * 6
    fold(evidence, 4, [compared(unit="u1", execute_ms=300.0) for _ in range(40)])
    once = list(evidence.amounts["latency"].logs)
    assert once != [0.0] * 6
    fold(evidence, 5, [compared(unit="u1", execute_ms=300.0) for _ in range(40)])
    assert evidence.amounts["latency"].logs == once


def test_few_tenants_that_differ_anyway_raise_no_alarm() -> None:
    """Judged call by call they would: each has its own speed, and its calls are no independent draws."""
    alarms = {True: 0, False: 0}
    for seed in range(30):
        for by_unit in (True, False):
            draw = random.Random(seed)
            units = [(f"t{n}", math.exp(draw.gauss(0.0, 0.5)), draw.random() < 0.5) for n in range(20)]
            evidence = begin_evidence(a_rollout(sticky=Sticky.TENANT if by_unit else Sticky.CALL))
            fold(evidence, 1, traffic(1, 400, 0.0))
            for seq in range(2, 1_500):
                name, speed, is_new = units[draw.randrange(20)]
                call = compared(
                    "canary" if is_new else "twin", unit=name if by_unit else "",
                    execute_ms=100.0 * speed * math.exp(draw.gauss(0.0, 0.2)), gpu_ns=int(1e8 * speed),
                )  # fmt: skip
                fold(evidence, seq, [call])
            alarms[by_unit] += evidence.total >= 100
    assert alarms[True] == 0
    assert alarms[False] > 3


def test_pairs_speak_of_cost_and_of_failures_that_are_the_new_versions_alone() -> None:
    evidence = begin_evidence(a_rollout(pairs=300))
    draw = random.Random(1)
    messages = []
    for number in range(200):
        old = 1e8 * math.exp(draw.gauss(0.0, 0.035))
        new = 1.03 * 1e8 * math.exp(draw.gauss(0.0, 0.035))
        pair = [
            compared("canary", pair=f"p{number}", rho=0.5, gpu_ns=int(new), differs=number % 2 == 0),
            compared("twin", pair=f"p{number}", rho=0.5, gpu_ns=int(old)),
        ]
        draw.shuffle(pair)
        messages.append(pair)
    for seq, pair in enumerate(messages, start=1):
        fold(evidence, seq, pair[:1])
        fold(evidence, 1_000 + seq, [])  # nothing more of it
        evidence.seq = seq
        fold(evidence, seq + 1, pair[1:])
        evidence.seq = seq
    assert evidence.pairs_ran == 200
    assert evidence.pairs.e > 100
    assert evidence.differing == {"canary": 100}
    both = [compared(arm, pair="x", code="function_raised") for arm in ("canary", "twin")]
    fold(evidence, 5_000, both)
    assert evidence.events["errors"].new == 0
    fold(evidence, 5_001, [compared("canary", pair="y", code="function_raised"), compared("twin", pair="y")])
    assert evidence.events["errors"].new == 1


def test_own_guards_join_the_mean() -> None:
    own = (
        GuardTerms(name="refused", kind="event", field="refused"),
        GuardTerms(name="words", kind="amount", field="n"),
    )
    evidence = begin_evidence(a_rollout(guards=own, weights={"dear": 0.0}))
    assert {"refused", "words"} <= evidence.weights.keys()
    assert "dear" not in evidence.weights
    fold(evidence, 1, [compared("twin", fields={"words": 100.0, "refused": 0.0}) for _ in range(60)])
    fold(evidence, 2, [compared("canary", fields={"words": 300.0, "refused": 1.0}) for _ in range(40)])
    assert evidence.e_of("refused") > 100
    assert evidence.e_of("words") > 10


def test_streams_are_watched_for_their_tokens() -> None:
    evidence = begin_evidence(a_rollout(), streams=True)
    draw = random.Random(1)
    calls = []
    for _ in range(400):
        a = draw.random() < 0.5
        first = 50.0 * math.exp(draw.gauss(0.0, 0.2)) * (2.0 if a else 1.0)
        calls.append(compared("canary" if a else "twin", first_ms=first, gap_ms=10.0 * math.exp(draw.gauss(0.0, 0.2))))
    fold(evidence, 1, calls)
    assert evidence.e_of("first_token") > 100
    assert evidence.e_of("token_gap") < 10
