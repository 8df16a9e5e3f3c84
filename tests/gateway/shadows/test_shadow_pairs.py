"""Pairs of shadows: which calls are repeated, in which order, and what is told of both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from msgspec.structs import replace

from pilotlight_core.model.errors import FunctionRaised, PilotlightError, Unavailable
from pilotlight_core.model.rollouts.rollout_record import Arm, Rollout, RolloutRecord, RolloutState, RolloutTerms
from pilotlight_core.model.rollouts.split import Side
from pilotlight_core.model.spec import VersionRecord
from pilotlight_gateway.bodies.byte_budget import ByteBudget
from pilotlight_gateway.calls.call_fake import FakeCalls
from pilotlight_gateway.calls.call_port import CallResult
from pilotlight_gateway.calls.prepared_call import PreparedCall
from pilotlight_gateway.schemas.version_schemas import VersionSchemas
from pilotlight_gateway.shadows.shadow_calls import ShadowCalls
from pilotlight_gateway.shadows.shadow_pairs import (
    LARGEST,
    MOST_OF_TENANT,
    MOST_WAITING,
    Pair,
    ShadowPairs,
    is_canary_second,
)
from tests.gateway.body_codecs import small_codec
from tests.gateway.shadows.test_shadow_calls import primary_of
from tests.gateway.world import World, function
from tests.waiting import until

OLD, NEW, TWIN = "ver_" + "1" * 32, "ver_" + "2" * 32, "ver_" + "3" * 32

SIDE = Side("rol_1", Arm.CONTROL, 0.0, "")


class VersionedCalls(FakeCalls):
    """Each version answers, or fails, as it is told."""

    answers: dict[str, object]

    async def run(self, call: PreparedCall) -> CallResult:
        self.seen.append(call)
        if self.hold is not None:
            await self.hold.wait()
        answer = self.answers[call.version.id]
        if isinstance(answer, PilotlightError):
            raise answer
        return CallResult(output=msgspec.msgpack.encode(answer))


class Bench:
    def __init__(self, world: World, **options: object) -> None:
        (version,) = world.deploy(function("hello", **options))
        self.old = version
        for version_id in (NEW, TWIN):
            world.registry.versions[version_id] = replace(version, id=version_id)
        self.calls = VersionedCalls()
        self.calls.answers = {NEW: 1.0, TWIN: 1.0}
        rollout = Rollout(
            id="rol_1", number=1, control={"hello": version.id}, canary={"hello": NEW}, twins={"hello": TWIN},
            salt=b"s" * 32, state=RolloutState.PAIRS, since=0.0, started_at=0.0, by="key_1",
        )  # fmt: skip
        self.key = (version.tenant, version.app)
        self.records = world.registry.rollout_records
        self.records[self.key] = RolloutRecord(tenant=version.tenant, app=version.app, revision=4, rollout=rollout)
        self.pairs: list[Pair] = []
        self.budget = ByteBudget(limit=10**7)
        shadows = ShadowCalls(
            calls=self.calls, registry=world.registry, schemas=VersionSchemas(world.blobs), codec=small_codec(),
            budget=self.budget, clock=lambda: 50.0,
        )  # fmt: skip
        self.shadow_pairs = ShadowPairs(
            records=world.registry, shadows=shadows, budget=self.budget, note=self.pairs.append
        )

    def end(self, number: int = 0, output: object = 1.0, version: VersionRecord | None = None) -> PreparedCall:
        call = primary_of(version or self.old)
        call.side = SIDE
        call.call_id = f"call_local_1_{number:020}"
        self.shadow_pairs.call_ended(call, CallResult(output=msgspec.msgpack.encode(output)), {}, 1.0)
        return call

    def version_of(self, tenant: str) -> VersionRecord:
        """The old version, as another tenant has it, with a rollout like this one's."""
        version = replace(self.old, tenant=tenant)
        self.records[tenant, version.app] = replace(self.records[self.key], tenant=tenant)
        return version

    def change(self, **fields: object) -> None:
        record = self.records[self.key]
        assert record.rollout is not None
        self.records[self.key] = replace(record, rollout=replace(record.rollout, **fields))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.shadow_pairs.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert self.budget.used == 0

    @property
    def taken(self) -> int:
        return len(self.shadow_pairs._waiting)


@pytest.fixture
def bench(world: World) -> Bench:
    return Bench(world)


async def test_both_versions_get_the_input_of_a_call_that_has_its_answer(bench: Bench) -> None:
    async with bench.running():
        primary = bench.end()
        await until(lambda: len(bench.pairs) == 1)
    (pair,) = bench.pairs
    assert (pair.primary, pair.revision, pair.rollout.id) == (primary, 4, "rol_1")
    assert {side.arm: side.shadowed.call.version.id for side in pair.sides} == {Arm.CANARY: NEW, Arm.TWIN: TWIN}
    assert not any(side.differs for side in pair.sides)
    assert bench.shadow_pairs.counts == {"ran": 1}


async def test_the_order_is_random_and_no_two_run_at_a_time(bench: Bench) -> None:
    bench.calls.hold = asyncio.Event()
    async with bench.running():
        for number in range(8):
            bench.end(number)
        await until(lambda: bool(bench.calls.seen))
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(bench.calls.seen) == 1
        bench.calls.hold.set()
        await until(lambda: len(bench.pairs) == 8)
    firsts = [pair.sides[0].arm for pair in bench.pairs]
    expected = [
        Arm.TWIN if is_canary_second(b"s" * 32, f"call_local_1_{number:020}") else Arm.CANARY for number in range(8)
    ]
    assert firsts == expected
    assert set(firsts) == {Arm.CANARY, Arm.TWIN}


@pytest.mark.parametrize(
    ("canary", "twin", "expected"),
    [(2.0, 1.0, {Arm.CANARY: True, Arm.TWIN: False}), (2.0, 2.0, {Arm.CANARY: True, Arm.TWIN: True})],
)
async def test_both_answers_are_compared_with_the_callers(
    bench: Bench, canary: float, twin: float, expected: dict[Arm, bool]
) -> None:
    """So a function that never says the same twice is no worse in its new version."""
    bench.calls.answers = {NEW: canary, TWIN: twin}
    async with bench.running():
        bench.end()
        await until(lambda: bool(bench.pairs))
    assert {side.arm: side.differs for side in bench.pairs[0].sides} == expected


async def test_how_far_numbers_may_differ_is_the_rollouts_word(bench: Bench) -> None:
    bench.change(terms=RolloutTerms(answer_tolerance=0.01))
    bench.calls.answers = {NEW: 1.005, TWIN: 1.0}
    async with bench.running():
        bench.end(1)
        await until(lambda: len(bench.pairs) == 1)
        bench.change(terms=RolloutTerms())
        bench.end(2)
        await until(lambda: len(bench.pairs) == 2)
    assert [any(side.differs for side in pair.sides) for pair in bench.pairs] == [False, True]


async def test_a_failure_of_the_function_counts_and_one_of_the_platform_voids_the_pair(bench: Bench) -> None:
    async with bench.running():
        bench.calls.answers = {NEW: FunctionRaised("no"), TWIN: 1.0}
        bench.end(1)
        await until(lambda: bench.shadow_pairs.counts["ran"] == 1)
        bench.calls.answers = {NEW: Unavailable("full", code="no_capacity"), TWIN: 1.0}
        bench.end(2)
        await until(lambda: bench.shadow_pairs.counts["failed"] == 1)
    (pair,) = bench.pairs
    errors = {side.arm: side.shadowed.error for side in pair.sides}
    assert errors[Arm.TWIN] is None
    assert isinstance(errors[Arm.CANARY], FunctionRaised)


@pytest.mark.parametrize("state", [state for state in RolloutState if state is not RolloutState.PAIRS])
async def test_outside_its_time_nothing_is_repeated(bench: Bench, state: RolloutState) -> None:
    bench.change(state=state)
    bench.end()
    assert not bench.taken


async def test_only_plain_calls_of_the_old_version_are_repeated(bench: Bench, world: World) -> None:
    bench.end(version=world.registry.versions[NEW])
    for side, is_shadow in [
        (SIDE, True),
        (None, False),  # its version was named, or its caller is not of the cohort
        (SIDE._replace(rollout="rol_0"), False),
        (SIDE._replace(arm=Arm.TWIN), False),
    ]:
        call = primary_of(bench.old)
        call.side, call.shadow = side, is_shadow
        bench.shadow_pairs.call_ended(call, CallResult(output=b""), {}, 1.0)
    bench.change(twins={})
    bench.end()
    bench.records.clear()
    bench.end()
    assert not bench.taken


async def test_a_paused_rollout_repeats_nothing(bench: Bench) -> None:
    """What waits then is dropped; it goes on when the rollout does."""
    bench.end(1)
    bench.change(paused_by="key_1")
    bench.end(2)
    async with bench.running():
        await until(lambda: not bench.taken)
        assert not bench.calls.seen
        bench.change(paused_by="")
        bench.end(3)
        await until(lambda: len(bench.pairs) == 1)


async def test_a_rollout_that_waits_for_another_function_repeats_only_so_many(bench: Bench) -> None:
    """Twice as many as it asks for, unless the evidence holds it: more of that decides. Of the next rollout again."""
    bench.change(terms=RolloutTerms(pairs=2))
    async with bench.running():
        for number in range(4):
            bench.end(number)
        await until(lambda: len(bench.pairs) == 4)
        bench.end(4)
        assert not bench.taken
        assert bench.shadow_pairs.counts == {"ran": 4, "enough": 1}
        bench.change(held="evidence")
        bench.end(5)
        await until(lambda: len(bench.pairs) == 5)
        bench.change(id="rol_2", held="")
        call = primary_of(bench.old)
        call.side = SIDE._replace(rollout="rol_2")
        bench.shadow_pairs.call_ended(call, CallResult(output=msgspec.msgpack.encode(1.0)), {}, 1.0)
        await until(lambda: len(bench.pairs) == 6)


async def test_what_could_do_a_thing_twice_is_not_repeated(world: World) -> None:
    bench = Bench(world, network=("api.example.com:443",))
    bench.end()
    assert not bench.taken


async def test_what_waits_is_bounded(bench: Bench) -> None:
    """All of them, and those of one tenant, so that a busy one leaves room."""
    for number in range(MOST_OF_TENANT + 3):
        bench.end(number)
    large = primary_of(bench.old)
    large.side = SIDE
    large.input = bytes(LARGEST + 1)
    bench.shadow_pairs.call_ended(large, CallResult(output=b""), {}, 1.0)
    assert bench.taken == MOST_OF_TENANT
    assert bench.shadow_pairs.counts["no_room"] == 4
    async with bench.running():
        await until(lambda: len(bench.pairs) == MOST_OF_TENANT)
    for number in range(MOST_WAITING + 1):
        bench.end(version=bench.version_of(f"tenant{number}"))
    assert bench.taken == MOST_WAITING


async def test_pairs_of_one_tenant_wait_for_no_others(bench: Bench) -> None:
    """Whose function may run for an hour."""
    bench.calls.hold = asyncio.Event()
    async with bench.running():
        for number in range(2):
            bench.end(number)
        await until(lambda: len(bench.calls.seen) == 1)
        bench.end(2, version=bench.version_of("other"))
        await until(lambda: len(bench.calls.seen) == 2)
        bench.calls.hold.set()
        await until(lambda: len(bench.pairs) == 3)
    assert bench.pairs[0].primary.version.tenant != bench.pairs[1].primary.version.tenant


async def test_what_waits_when_the_rollout_goes_on_is_dropped(bench: Bench) -> None:
    bench.end()
    bench.change(state=RolloutState.RAMP)
    async with bench.running():
        await until(lambda: not bench.taken)
        assert not bench.calls.seen


async def test_what_waits_at_the_end_is_given_back(bench: Bench) -> None:
    bench.calls.hold = asyncio.Event()
    async with bench.running():
        for number in range(3):
            bench.end(number)
        await until(lambda: bool(bench.calls.seen))
