"""The rim over records in memory: who runs, who waits, who is refused, whatever dies in between."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilotlight_core.bus import BusDown
from pilotlight_core.model.errors import CallFailed, PilotlightError, TooMuch, Unavailable, error_from_code
from pilotlight_gateway.idempotency.key_decision import NOT_TAKEN
from pilotlight_gateway.idempotency.key_record import KEPT_BYTES, CallOwner, StoredAnswer
from pilotlight_gateway.idempotency.keyed_calls import DAY_S, Idempotency
from pilotlight_gateway.idempotency.memory_key_records import MemoryKeyRecords
from pilotlight_gateway.storage_quota.memory_quota import MemoryQuotaRecords
from pilotlight_gateway.storage_quota.quota_lease import StorageQuota
from tests.example_counts import examples
from tests.gateway.idempotency.asking import Work, ask, give, told
from tests.waiting import until

ONE, TWO = CallOwner(name="one", instance="one-1"), CallOwner(name="two", instance="two-1")


def gateways() -> tuple[MemoryKeyRecords, Idempotency, Idempotency]:
    """Two over the same records."""
    records = MemoryKeyRecords()
    return records, Idempotency(records, owner=ONE), Idempotency(records, owner=TWO)


async def test_the_second_request_gets_the_first_ones_answer() -> None:
    """At any gateway, without running; a new key costs no read."""
    records, one, two = gateways()
    work = Work()

    first, second = await give(one, ask(), work), await give(two, ask(call="call_2"), work)

    assert (work.begun, records.reads) == (1, 1)
    assert (first.replayed, second.replayed) == (False, True)
    assert (second.answer, second.call_id) == (first.answer, "call_1")
    assert (one.statistics().first, two.statistics().replayed) == (1, 1)


async def test_an_error_is_an_answer_too() -> None:
    """It is raised to the first, and repeated to the second."""
    _, one, two = gateways()
    work = Work(error=CallFailed("no", code="function_raised"))

    with pytest.raises(CallFailed):
        await give(one, ask(), work)
    second = await give(two, ask(), work)

    assert (work.begun, second.replayed, second.answer.status, second.answer.body) == (1, True, 500, b"function_raised")


async def test_what_never_started_may_be_sent_again() -> None:
    """Under the same key, and with another body as well."""
    _, one, two = gateways()
    work = Work(error=Unavailable("full", code="no_capacity"))
    with pytest.raises(Unavailable):
        await give(one, ask(), work)
    work.error = None

    again = await give(two, ask(body=b"other"), work)

    assert (work.begun, again.replayed) == (2, False)


async def test_a_mistake_of_the_platform_is_remembered() -> None:
    """What the call came to is not known, so it does not run again."""
    _, one, two = gateways()
    work = Work(error=RuntimeError("bug"))
    with pytest.raises(RuntimeError):
        await give(one, ask(), work)

    assert (await give(two, ask(), work)).answer.body == b"internal"
    assert work.begun == 1


async def test_another_request_with_the_key_is_refused() -> None:
    """By 422, while the first runs and afterwards."""
    _, one, two = gateways()
    await give(one, ask(), Work())

    with pytest.raises(PilotlightError) as refused:
        await give(two, ask(body=b"other"), Work())

    assert refused.value.wire_code == "idempotency_key_reused"


async def test_while_the_first_runs_the_second_comes_again_or_waits() -> None:
    """409 with Retry-After, or the answer once it is there; not longer than it would wait."""
    _, one, two = gateways()
    work = Work(hold=asyncio.Event())
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(give(one, ask(), work))
        await work.running.wait()
        for waits in (0.0, 0.01):
            with pytest.raises(PilotlightError) as refused:
                await give(two, ask(wait_s=waits), work)
            assert (refused.value.wire_code, refused.value.retry_after) == ("idempotency_key_in_use", 1.0)
        waiting = tasks.create_task(give(two, ask(wait_s=30.0), work))
        assert work.hold is not None
        work.hold.set()

    assert waiting.result().answer == first.result().answer
    assert (waiting.result().replayed, work.begun) == (True, 1)


async def test_who_waits_reads_nothing_until_something_is_written() -> None:
    """It looks into memory whether the first one's gateway lives, and asks the bus when the bell rings."""
    records = MemoryKeyRecords()
    one, two = Idempotency(records, owner=ONE), Idempotency(records, owner=TWO, glance=0.001)
    work = Work(hold=asyncio.Event())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(give(one, ask(), work))
        await work.running.wait()
        waiting = tasks.create_task(give(two, ask(wait_s=300.0), work))
        await until(lambda: records.glances > 1)
        reads = records.reads
        await until(lambda: records.glances > 50)

        assert records.reads == reads
        assert work.hold is not None
        work.hold.set()

    assert waiting.result().replayed
    assert records.reads == reads + 1


async def test_who_waits_hears_that_the_first_ones_gateway_is_gone() -> None:
    """Though nothing is written then."""
    records = MemoryKeyRecords()
    one, two = Idempotency(records, owner=ONE), Idempotency(records, owner=TWO, glance=0.001)
    work = Work(hold=asyncio.Event())
    lost = asyncio.create_task(give(one, ask(), work))
    await work.running.wait()
    waiting = asyncio.create_task(give(two, ask(wait_s=300.0), work))
    await until(lambda: records.glances > 1)
    records.gone.add(ONE)

    with pytest.raises(PilotlightError) as refused:
        await waiting

    assert refused.value.wire_code == "call_lost"
    lost.cancel()
    await asyncio.wait([lost])


@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_call_whose_gateway_died_runs_again_only_if_it_may(idempotent: bool) -> None:
    """It may have started: `call_lost`, unless the function may run twice."""
    records, one, two = gateways()
    work = Work(hold=asyncio.Event())
    lost = asyncio.create_task(give(one, ask(), work))
    await work.running.wait()
    lost.cancel()
    await asyncio.wait([lost])
    records.gone.add(ONE)
    work.hold = None

    if idempotent:
        assert not (await give(two, ask(idempotent=True), work)).replayed
    else:
        with pytest.raises(PilotlightError) as refused:
            await give(two, ask(), work)
        assert refused.value.wire_code == "call_lost"

    assert work.begun == 1 + idempotent


async def test_a_gateway_that_was_given_up_too_early_has_the_last_word() -> None:
    """Nobody runs its call again, and when it ends after all, its answer is the key's."""
    records, one, two = gateways()
    work = Work(hold=asyncio.Event())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(give(one, ask(), work))
        await work.running.wait()
        records.gone.add(ONE)
        with pytest.raises(PilotlightError, match="is gone"):
            await give(two, ask(), work)
        assert work.hold is not None
        work.hold.set()

    assert (await give(two, ask(), work)).answer.body == b"answer"
    assert work.begun == 1


async def test_an_ended_call_whose_record_was_not_written_is_lost_in_time() -> None:
    """Its gateway lives and says nothing: beyond its deadline it is over, though nobody knows how it ended."""
    records, now = MemoryKeyRecords(deaf=True), [1000.0]
    one = Idempotency(records, owner=ONE, wall=lambda: now[0])
    await give(one, ask(), Work())
    with pytest.raises(PilotlightError) as early:
        await give(one, ask(), Work())
    now[0] += 3600.0
    with pytest.raises(PilotlightError) as late:
        await give(one, ask(), Work())

    assert [error.value.wire_code for error in (early, late)] == ["idempotency_key_in_use", "call_lost"]


async def test_a_large_answer_is_given_once() -> None:
    """The second hears that it was not kept, and that the call has run."""
    _, one, two = gateways()
    work = Work(body=bytes(KEPT_BYTES + 1))
    assert len((await give(one, ask(), work)).answer.body) == KEPT_BYTES + 1

    with pytest.raises(PilotlightError) as refused:
        await give(two, ask(), work)

    assert (refused.value.wire_code, work.begun) == ("answer_not_kept", 1)


def small_quota(records: MemoryQuotaRecords) -> StorageQuota:
    """Room for two keys without bodies."""
    return StorageQuota(records, limit=1000, life=DAY_S, wall=time.time)


async def test_a_tenant_without_room_makes_no_new_keys() -> None:
    """Its old ones are answered, its answers are remembered without their bodies, other tenants see nothing of it."""
    one = Idempotency(MemoryKeyRecords(), small_quota(MemoryQuotaRecords()), owner=ONE)
    await give(one, ask("small"), Work())
    await give(one, ask("large"), Work(body=bytes(500)))

    with pytest.raises(TooMuch):
        await give(one, ask("new"), Work())
    assert (await give(one, ask("small"), Work())).replayed
    with pytest.raises(PilotlightError, match="too large to keep"):
        await give(one, ask("large"), Work())
    assert not (await give(one, ask("new", tenant="rival"), Work())).replayed


async def test_several_gateways_give_a_tenant_no_more_room_than_one() -> None:
    """What it has filled at one is full at the other, and at one that is started anew."""
    records, quotas = MemoryKeyRecords(), MemoryQuotaRecords()
    for owner in (ONE, TWO, CallOwner(name="one", instance="one-2")):
        gateway = Idempotency(records, small_quota(quotas), owner=owner)
        for number in range(3):
            with contextlib.suppress(TooMuch):
                await give(gateway, ask(f"{owner.instance}-{number}"), Work())

    assert len(records._kept) == 2


async def test_without_the_bus_nothing_runs() -> None:
    """What the key stands for is not known."""
    records, one, _ = gateways()
    records.error = BusDown("gone")
    work = Work()

    with pytest.raises(BusDown):
        await give(one, ask(), work)

    assert work.begun == 0


OUTCOMES = st.sampled_from(["ok", "ok", "function_raised", "container_died", "no_capacity", "queue_full"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(0, 2)),
        st.tuples(st.just("end"), OUTCOMES),
        st.tuples(st.just("die"), st.integers(0, 2)),
        st.tuples(st.just("pause"), st.integers(0, 2)),
    ),
    max_size=14,
)


@examples(300)
@given(steps=STEPS, idempotent=st.booleans())
def test_no_history_runs_a_call_twice(steps: list[tuple[str, int | str]], idempotent: bool) -> None:
    """Three gateways, a key, and any order of requests, ends, deaths and false alarms.

    At most one run that may have reached a container is begun, unless the function is idempotent; and all answers that
    are repeated are the same.
    """
    asyncio.run(Histories(idempotent=idempotent).play(steps))


class Histories:
    """One key in the hands of three gateways, of which some die and some are only thought dead."""

    def __init__(self, *, idempotent: bool) -> None:
        self.records = MemoryKeyRecords()
        self.idempotent = idempotent
        self.owners = [CallOwner(name=str(n), instance=f"{n}-1") for n in range(3)]
        self.gateways = [Idempotency(self.records, owner=owner) for owner in self.owners]
        self.tasks: list[tuple[int, asyncio.Task[None]]] = []
        self.runs: list[tuple[int, asyncio.Future[str]]] = []
        self.may_have_run = 0
        self.replayed: set[bytes] = set()

    async def play(self, steps: list[tuple[str, int | str]]) -> None:
        for verb, what in steps:
            match verb, what:
                case "send", int():
                    self.tasks.append((what, asyncio.create_task(self.request(what))))
                case "end", str():
                    self.end(what)
                case "die", int():
                    self.records.gone.add(self.owners[what])
                    for number, task in self.tasks:
                        if number == what:
                            task.cancel()
                    self.owners[what] = CallOwner(name=str(what), instance=f"{what}-{len(self.tasks) + 2}")
                    self.gateways[what] = Idempotency(self.records, owner=self.owners[what])
                case _, int():
                    self.records.gone.add(self.owners[what])
            await self.settle()
        while any(not run.done() for _, run in self.runs):
            self.end("ok")
            await self.settle()
        await self.settle()
        assert self.idempotent or self.may_have_run <= 1
        assert self.idempotent or len(self.replayed) <= 1

    async def request(self, number: int) -> None:
        async def work() -> StoredAnswer:
            run: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self.runs.append((number, run))
            self.may_have_run += 1
            code = await run
            if code in NOT_TAKEN:
                self.may_have_run -= 1
            if code != "ok":
                raise error_from_code(code, "x")
            return StoredAnswer(status=200, headers=(), body=str(len(self.runs)).encode())

        try:
            given = await self.gateways[number].give(ask(idempotent=self.idempotent), work, told)
        except PilotlightError:
            return
        if given.replayed:
            self.replayed.add(given.answer.body)

    def end(self, code: str) -> None:
        for _, run in self.runs:
            if not run.done():
                run.set_result(code)
                return

    async def settle(self) -> None:
        """Until everybody waits for something."""
        for _ in range(12):
            await asyncio.sleep(0)
